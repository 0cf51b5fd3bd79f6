#include "cost/step_bill.hpp"

#include <algorithm>
#include <cstdlib>

#include "cost/scope.hpp"

namespace ein {

Cost StepBill::total() const {
  Cost sum = forward;
  for (const Cost* part : {&recompute, &backward, &update}) sum += *part;
  return sum;
}

std::vector<BufferUse> uses_of_buffers(const Program& program) {
  /// Which passes have written to a buffer so far.
  struct Written {
    bool by_forward = false, by_backward = false;
  };
  std::vector<Written> written(program.buffers.size());
  std::vector<BufferUse> uses(program.buffers.size());
  for (const LoopNest& nest : program.nests) {
    const bool repeats = nest.phase == Phase::recompute, is_back = nest.phase == Phase::backward;
    for (const LoopNest::Operand& input : nest.inputs) {
      const auto b = static_cast<std::size_t>(input.buffer);
      uses[b].is_activation |= written[b].by_forward && (repeats || is_back);
      uses[b].is_gradient |= written[b].by_backward && nest.phase == Phase::update;
    }
    const auto b = static_cast<std::size_t>(nest.output.buffer);
    written[b].by_forward |= nest.phase == Phase::forward;
    written[b].by_backward |= is_back;
    if (!uses[b].writer && b >= program.input_count) uses[b].writer = &nest;
  }
  for (const Program::Result& result : program.results) {
    const auto b = static_cast<std::size_t>(result.buffer);
    uses[b].is_gradient |= written[b].by_backward;
  }
  return uses;
}

namespace {

std::string operation_of(const LoopNest& nest) {
  std::string text(name(nest.kind));
  if (nest.is_matrix()) return std::string(name(nest.function));
  if (nest.is_collective()) return std::string(name(nest.collective));
  if (nest.combine && nest.kind != OpKind::contract) text += " " + std::string(name(*nest.combine));
  if (nest.kind == OpKind::map) text += " " + to_string(nest.body);
  return text;
}

}  // namespace

KeptValue value_of(const LoopNest& writer, const Program::Buffer& buffer) {
  KeptValue value{operation_of(writer),
                  "",
                  {},
                  buffer.dtype,
                  static_cast<std::size_t>(std::int64_t{buffer.bytes()})};
  std::vector<std::size_t> axes;  // that it lies along, the outermost first
  Size elements = 1;
  for (std::size_t a = 0; a < writer.axes.size(); ++a) {
    if (writer.output.strides[a] == 0 || writer.axes[a].size == 1) continue;
    axes.push_back(a);
    elements *= writer.axes[a].size;
  }
  if (elements != buffer.elements) {  // a part of it
    value.shape = {buffer.elements};
    return value;
  }
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(std::int64_t{writer.output.strides[a]}) >
           std::abs(std::int64_t{writer.output.strides[b]});
  });
  for (const std::size_t a : axes) {
    value.axes += (value.axes.empty() ? "" : " ") + writer.axes[a].name;
    value.shape.push_back(writer.axes[a].size);
  }
  return value;
}

StepBill step_bill(const Program& program) {
  StepBill bill;
  const std::vector<Cost> costs = costs_of_nests(program);
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    const Phase phase = program.nests[n].phase;
    Cost& part = phase == Phase::recompute  ? bill.recompute
                 : phase == Phase::backward ? bill.backward
                 : phase == Phase::update   ? bill.update
                                            : bill.forward;
    part += costs[n];
  }
  const std::vector<BufferUse> uses = uses_of_buffers(program);
  for (std::size_t b = program.input_count; b < uses.size(); ++b) {
    if (program.buffers[b].is_local) continue;
    const auto bytes = static_cast<std::size_t>(std::int64_t{program.buffers[b].bytes()});
    if (uses[b].is_activation) {
      bill.activations += bytes;
      bill.kept.push_back(value_of(*uses[b].writer, program.buffers[b]));
    }
    if (uses[b].is_gradient) bill.gradients += bytes;
  }
  std::stable_sort(bill.kept.begin(), bill.kept.end(),
                   [](const KeptValue& a, const KeptValue& b) { return a.bytes > b.bytes; });
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

std::string to_string(const std::vector<KeptValue>& kept) {
  std::size_t widest = 0;
  for (const KeptValue& value : kept) widest = std::max(widest, std::to_string(value.bytes).size());
  std::string text;
  for (const KeptValue& value : kept) {
    const std::string bytes = std::to_string(value.bytes);
    text += std::string(widest - bytes.size(), ' ') + bytes + "  " +
            (value.axes.empty() ? "" : value.axes + "  ") + std::string(name(value.dtype)) + " " +
            value.shape.to_string() + "  " + value.operation + "\n";
  }
  return text;
}

}  // namespace ein
