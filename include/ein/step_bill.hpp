// What a compiled training step costs, by what it is for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ein/cost.hpp>
#include <ein/detail/fields.hpp>
#include <ein/dtype.hpp>
#include <ein/shape.hpp>

namespace ein {

/// An intermediate value of the forward pass that waits for the backward pass.
struct KeptValue {
  std::string operation;  ///< what computed it: `contract`, `map exp(x0)`, `reduce sum`
  std::string axes;       ///< of its dimensions: `b h q k`; those without a name are i0, i1 ...,
                          ///< and several that run as one stand in parentheses
  Shape shape;
  DType dtype = DType::f32;
  std::size_t bytes = 0;
  EIN_FIELDS(KeptValue, operation, axes, shape, dtype, bytes)
};

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
  std::vector<KeptValue> kept;  ///< each of these values, the largest first
  std::size_t gradients = 0;    ///< values that the backward pass leaves to the update, or returns

  Cost total() const;
};

/// A line for each of these but what is zero.
std::string to_string(const StepBill& bill);
/// A line for each value: `3200  b h q k  f32 (2, 4, 10, 10)  contract`, bytes first.
std::string to_string(const std::vector<KeptValue>& kept);

}  // namespace ein
