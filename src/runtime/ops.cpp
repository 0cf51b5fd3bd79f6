#include <ein/ops.hpp>

#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "runtime/plan.hpp"

namespace ein {
namespace {

/// The pattern of a call, read by the run-time parser.
struct ParsedPattern {
  ParsedPattern(Operation op, std::string_view text) : reading(grammar::parse_pattern(text)) {
    if (reading.mistake) fail(op, reading.buffer.pattern(text), reading.mistake, {});
    pattern = reading.buffer.pattern(text);
  }
  grammar::Reading reading;
  grammar::Pattern pattern;
};

std::shared_ptr<const engine::Plan> plan_of(const detail::Call& call) {
  engine::PlanKey key;
  key.add(static_cast<std::int64_t>(call.op) | static_cast<std::int64_t>(call.reduction) << 8 |
          static_cast<std::int64_t>(call.stacked) << 16 | static_cast<std::int64_t>(call.operands.size()) << 32);
  key.add(call.options.max_intermediate);
  key.add(call.pattern);
  for (const AxisSize& size : call.sizes) {
    key.add(size.name);
    key.add(size.size);
  }
  for (const Shape& shape : call.packed_shapes) {
    key.add(static_cast<std::int64_t>(shape.rank()));
    for (std::int64_t size : shape) key.add(size);
  }
  for (const Tensor* operand : call.operands) key.add(*operand);
  const auto build = [&] {
    const ParsedPattern parsed(call.op, call.pattern);
    std::vector<OperandType> types;
    for (const Tensor* operand : call.operands) types.push_back({operand->shape(), operand->dtype()});
    return build_graph({call.op, parsed.pattern, call.sizes, call.reduction, call.packed_shapes, call.stacked}, types);
  };
  return engine::plan_for(key, call.operands, build, {call.options.max_intermediate});
}

}  // namespace

namespace detail {

std::vector<Tensor> run_all(const Call& call) { return engine::run(*plan_of(call), call.operands); }

Tensor run_one(const Call& call) { return std::move(run_all(call).front()); }

std::vector<const Tensor*> addresses(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

}  // namespace detail

ReductionArgument::ReductionArgument(std::string_view name) {
  const auto found = parse_reduction(name);
  if (!found) {
    throw Error(ErrorKind::reduction, "reduce: unknown reduction '" + std::string(name) +
                                          "'\n  help: one of sum, mean, max, min, prod, any, all, logsumexp, var, std");
  }
  reduction_ = *found;
}

Packed pack(std::span<const Tensor> xs, PatternText pattern) {
  const auto operands = detail::addresses(xs);
  Packed packed{detail::run_one({Operation::pack, pattern.text(), operands, {}}), {}};
  const ParsedPattern parsed(Operation::pack, pattern.text());
  std::vector<Shape> shapes;
  for (const Tensor& x : xs) shapes.push_back(x.shape());
  packed.shapes = packed_shapes(parsed.pattern, shapes);
  return packed;
}

std::vector<Tensor> unpack(const Tensor& x, std::span<const Shape> packed_shapes, PatternText pattern) {
  const Tensor* operand = &x;
  return detail::run_all({Operation::unpack, pattern.text(), {&operand, 1}, {}, Reduction::sum, packed_shapes});
}

NamedSizes parse_shape(const Tensor& x, PatternText pattern) {
  const ParsedPattern parsed(Operation::parse_shape, pattern.text());
  return NamedSizes(solve_shape(parsed.pattern, x.shape()));
}

std::int64_t NamedSizes::operator[](std::string_view name) const {
  for (const auto& [axis, size] : sizes_) {
    if (axis == name) return size;
  }
  throw Error(ErrorKind::axis_argument, "parse_shape: the pattern has no axis '" + std::string(name) + "'");
}

}  // namespace ein
