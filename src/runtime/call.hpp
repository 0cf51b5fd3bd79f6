// One call: where operands become what programs, traces and the tape know, and results what the
// caller knows. Complex tensors are real ones with a dimension for their parts; a tensor on a mesh
// is its parts, each of which a process here computes with; while a function is traced nothing is
// computed, and results are values of its graph; where gradients flow the tape remembers the call.
//
// Beside calls of plans, these see tensors of the user themselves: a Trace, what a function gets
// and takes from outside; a compiled function, whose arguments no tape sees and whose tensors from
// outside are found once; and the tape, cotangents and gradients.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/plan.hpp"

namespace ein::engine {

/// The results of a call: computed; or, while a function is traced, values of its graph. Remembered
/// for the backward pass where gradients flow.
std::vector<Tensor> run(const Plan& plan, Operands operands);
/// The same on memory that is no tensor's, of a plan without a mesh and complex numbers, where
/// nothing is traced or remembered. `operands` are addresses as address_of() has them, `results`
/// those of each of bound().result_buffers().
void run_in_memory(const Plan& plan, std::span<std::byte* const> operands,
                   std::span<std::byte* const> results);

/// Operands, of which complex ones are replaced by real ones.
class RealOperands {
 public:
  explicit RealOperands(Operands operands);
  Operands operands() const { return operands_; }

 private:
  std::vector<Tensor> real_;
  std::vector<const Tensor*> addresses_;
  Operands operands_;
};

/// Results, of which those that `is_pair` names become complex numbers again; none where it is
/// empty.
std::vector<Tensor> complex_where(const std::vector<bool>& is_pair, std::vector<Tensor> results);

}  // namespace ein::engine
