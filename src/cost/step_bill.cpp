#include "cost/step_bill.hpp"

#include <vector>

#include "cost/scope.hpp"

namespace ein {

Cost StepBill::total() const {
  Cost sum = forward;
  for (const Cost* part : {&recompute, &backward, &update}) sum += *part;
  return sum;
}

StepBill step_bill(const Program& program) {
  StepBill bill;
  /// What happened to a buffer so far, and whether that makes it an activation or a gradient.
  struct Use {
    bool of_forward = false, of_backward = false;
    bool is_activation = false, is_gradient = false;
  };
  std::vector<Use> uses(program.buffers.size());
  const auto use = [&](const LoopNest::Operand& operand) -> Use& {
    return uses[static_cast<std::size_t>(operand.buffer)];
  };
  const std::vector<Cost> costs = costs_of_nests(program);
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    const LoopNest& nest = program.nests[n];
    const bool repeats = nest.phase == Phase::recompute;
    const bool is_back = nest.phase == Phase::backward;
    for (const LoopNest::Operand& input : nest.inputs) {
      Use& read = use(input);
      read.is_activation |= read.of_forward && (repeats || is_back);
      read.is_gradient |= read.of_backward && nest.phase == Phase::update;
    }
    Use& written = use(nest.output);
    written.of_forward |= nest.phase == Phase::forward;
    written.of_backward |= is_back;
    Cost& part = repeats                       ? bill.recompute
                 : is_back                     ? bill.backward
                 : nest.phase == Phase::update ? bill.update
                                               : bill.forward;
    part += costs[n];
  }
  for (const Program::Result& result : program.results) {
    Use& returned = uses[static_cast<std::size_t>(result.buffer)];
    returned.is_gradient |= returned.of_backward;
  }
  for (std::size_t b = program.input_count; b < uses.size(); ++b) {
    if (program.buffers[b].is_local) continue;
    const std::size_t bytes = program.buffers[b].bytes();
    if (uses[b].is_activation) bill.activations += bytes;
    if (uses[b].is_gradient) bill.gradients += bytes;
  }
  return bill;
}

namespace {

void add_line(std::string& text, const std::string& name, const std::string& value) {
  text += name + ":" + std::string(17 - name.size(), ' ') + value + "\n";
}

void add_line(std::string& text, const std::string& name, const Cost& cost) {
  if (cost == Cost{}) return;
  add_line(text, name,
           to_string(cost.model) + " FLOPs, " + to_string(cost.matmul_only) +
               " of them in contractions" +
               (cost.estimated == Count(0)
                    ? ""
                    : ", " + to_string(cost.estimated) + " an estimate of decompositions") +
               "; " + to_string(cost.bytes()) + " bytes moved");
}

}  // namespace

std::string to_string(const StepBill& bill) {
  std::string text;
  add_line(text, "forward", bill.forward);
  add_line(text, "recomputation", bill.recompute);
  add_line(text, "backward", bill.backward);
  add_line(text, "update", bill.update);
  const auto add_bytes = [&](const std::string& name, std::size_t bytes) {
    if (bytes > 0) add_line(text, name, std::to_string(bytes) + " bytes");
  };
  add_bytes("parameters", bill.parameters);
  add_bytes("optimizer state", bill.optimizer_state);
  add_bytes("constants", bill.constants);
  add_bytes("activations", bill.activations);
  add_bytes("gradients", bill.gradients);
  return text;
}

}  // namespace ein
