// A function of tensors as one call: it is recorded on tensors without elements, and what it does
// is planned, run and differentiated as a whole.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan.hpp"
#include "runtime/trace.hpp"

namespace ein::engine {

struct RecordedCall {
  Graph graph;                   // of real numbers; its inputs are the arguments, then `captured`
  std::vector<Tensor> captured;  // what the function used from outside, with its history
  std::vector<bool> is_complex;  // of each result
  Device device = cpu;           // of the results, where the call has no operand
};

/// What `function` does to tensors like these, of which `without_first` lack their first dimension.
/// Their elements are not there, and gradients do not flow to them.
RecordedCall record_call(
    Trace::Of of, Operands like,
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
    const std::vector<bool>& without_first = {});

/// The results of such a call of these operands. `what` names it in errors.
std::vector<Tensor> run_recorded(const std::string& what, const RecordedCall& call,
                                 Operands arguments);

}  // namespace ein::engine
