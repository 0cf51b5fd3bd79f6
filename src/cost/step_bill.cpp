#include "cost/step_bill.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "cost/scope.hpp"
#include "size/ask.hpp"

namespace ein {

Cost StepBill::total() const {
  Cost sum = forward;
  for (const Cost* part : {&recompute, &backward, &update}) sum += *part;
  return sum;
}

StepValues::StepValues(const Program& program) : program_(program), uses_(program.buffers.size()) {
  find_uses();
  for (const LoopNest& nest : program.nests) {
    for (const LoopNest::NestAxis& axis : nest.axes) {
      Size& size = sizes_.try_emplace(axis.name, axis.size).first->second;
      if (!ask_equal(size, axis.size)) size = 0;
    }
  }
}

void StepValues::find_uses() {
  /// Which passes have written to a buffer so far.
  struct Written {
    bool by_forward = false, by_backward = false;
  };
  std::vector<Written> written(program_.buffers.size());
  for (const LoopNest& nest : program_.nests) {
    const bool repeats = nest.phase == Phase::recompute, is_back = nest.phase == Phase::backward;
    for (const LoopNest::Operand& input : nest.inputs) {
      const auto b = static_cast<std::size_t>(input.buffer);
      uses_[b].is_activation |= written[b].by_forward && (repeats || is_back);
      uses_[b].is_gradient |= written[b].by_backward && nest.phase == Phase::update;
    }
    const auto b = static_cast<std::size_t>(nest.output.buffer);
    written[b].by_forward |= nest.phase == Phase::forward;
    written[b].by_backward |= is_back;
    if (!uses_[b].writer && b >= program_.input_count) uses_[b].writer = &nest;
  }
  for (const Program::Result& result : program_.results) {
    const auto b = static_cast<std::size_t>(result.buffer);
    uses_[b].is_gradient |= written[b].by_backward;
  }
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

void StepValues::add_axis(const LoopNest::NestAxis& axis, KeptValue& to) const {
  std::istringstream words(axis.name);
  std::vector<Size> sizes;
  Size product = 1;
  for (std::string word; words >> word;) {
    const auto found = sizes_.find(word);
    sizes.push_back(found == sizes_.end() ? Size(0) : found->second);
    product *= sizes.back();
  }
  const std::string before = to.axes.empty() ? "" : " ";
  if (sizes.size() > 1 && ask_equal(product, axis.size)) {
    to.axes += before + axis.name;
    for (const Size size : sizes) to.shape.push_back(size);
  } else {
    to.axes += before + (sizes.size() > 1 ? "(" + axis.name + ")" : axis.name);
    to.shape.push_back(axis.size);
  }
}

KeptValue StepValues::value(std::size_t b) const {
  const Program::Buffer& buffer = program_.buffers[b];
  const LoopNest& writer = *uses_[b].writer;
  KeptValue value{operation_of(writer),
                  "",
                  {},
                  buffer.dtype,
                  static_cast<std::size_t>(std::int64_t{buffer.bytes()})};
  std::vector<std::size_t> axes;  // that it lies along, the outermost first
  Size elements = 1;
  for (std::size_t a = 0; a < writer.axes.size(); ++a) {
    if (ask_equal(writer.output.strides[a], 0) || ask_equal(writer.axes[a].size, 1)) continue;
    axes.push_back(a);
    elements *= writer.axes[a].size;
  }
  if (!ask_equal(elements, buffer.elements)) {  // a part of it
    value.shape = {buffer.elements};
    return value;
  }
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(std::int64_t{writer.output.strides[a]}) >
           std::abs(std::int64_t{writer.output.strides[b]});
  });
  for (const std::size_t a : axes) add_axis(writer.axes[a], value);
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
  const StepValues values(program);
  for (std::size_t b = program.input_count; b < program.buffers.size(); ++b) {
    if (program.buffers[b].is_local) continue;
    const auto bytes = static_cast<std::size_t>(std::int64_t{program.buffers[b].bytes()});
    if (values.use(b).is_activation) {
      bill.activations += bytes;
      bill.kept.push_back(values.value(b));
    }
    if (values.use(b).is_gradient) bill.gradients += bytes;
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
