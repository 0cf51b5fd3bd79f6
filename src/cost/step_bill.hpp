// The part of a step's bill that its loop nests say.
#pragma once

#include <vector>

#include <ein/step_bill.hpp>
#include "nest/nest.hpp"

namespace ein {

/// Costs, activations and gradients.
StepBill step_bill(const Program& program);

/// What a buffer is to a training step.
struct BufferUse {
  bool is_activation = false;        // computed by the forward pass, read by the backward pass
  bool is_gradient = false;          // left by the backward pass to the update, or returned
  const LoopNest* writer = nullptr;  // the first nest that writes it; null of an input
};
/// That of each buffer of a program.
std::vector<BufferUse> uses_of_buffers(const Program& program);

/// The value that a nest leaves in a buffer, with as many bytes as the buffer has.
KeptValue value_of(const LoopNest& writer, const Program::Buffer& buffer);

}  // namespace ein
