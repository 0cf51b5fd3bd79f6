// What a compiled training step costs, by what it is for.
#pragma once

#include <cstddef>
#include <string>

#include <ein/cost.hpp>

namespace ein {

/// Of one run. A nest of several operations is billed to the phase of its reduction, or else to
/// that of its last operation.
struct StepBill {
  Cost forward;
  Cost recompute;  ///< what ein::checkpoint computes again
  Cost backward;
  Cost update;  ///< of parameters and other state, from the gradients on

  // Bytes.
  std::size_t parameters = 0;       ///< tensors from outside that require a gradient
  std::size_t optimizer_state = 0;  ///< other tensors from outside that are assigned to
  std::size_t constants = 0;        ///< the other tensors from outside
  std::size_t activations =
      0;  ///< intermediate values of the forward pass that are kept for the backward pass
  std::size_t gradients = 0;  ///< values that the backward pass leaves to the update, or returns

  Cost total() const;
};

/// A line for each of these but what is zero.
std::string to_string(const StepBill& bill);

}  // namespace ein
