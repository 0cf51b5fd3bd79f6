#include <ein/call.hpp>
#include <ein/ops.hpp>

#include "api/calls.hpp"
#include "passes/complex.hpp"
#include "runtime/autocast.hpp"
#include "runtime/call.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/mesh.hpp"

namespace ein {
namespace {

/// `operands` are the call's, maybe converted.
std::shared_ptr<const engine::Plan> plan_of(const detail::Call& call, engine::Operands operands) {
  const grammar::LoneSums lone_sums = lone_sums_of(call.pattern, call.options.sums_alone);
  engine::PlanKey key;
  key.add(static_cast<std::int64_t>(call.op) | static_cast<std::int64_t>(call.reduction) << 8 |
          static_cast<std::int64_t>(call.stacked) << 16 |
          static_cast<std::int64_t>(lone_sums) << 17 |
          static_cast<std::int64_t>(call.results) << 18 |
          static_cast<std::int64_t>(operands.size()) << 32);
  key.add(call.options.max_intermediate);
  key.add(call.dtype ? static_cast<std::int64_t>(*call.dtype) : -1);
  key.add(call.pattern, call.sizes);
  for (const Shape& shape : call.packed_shapes) key.add(shape);
  const auto what = [&] {
    const bool reduces = call.op == Operation::reduce;
    return std::string(name(call.op)) + " \"" + std::string(call.pattern.text()) + "\"" +
           (reduces ? " " + std::string(name(call.reduction)) : "");
  };
  const auto build = [&](engine::Operands like) {
    const CallPattern parsed(call.op, call.pattern, call.sizes, shapes_of(like), call.stacked);
    const Graph graph = build_graph({call.op,
                                     parsed.pattern,
                                     call.sizes,
                                     call.reduction,
                                     call.packed_shapes,
                                     call.stacked,
                                     call.pattern.is_checked(),
                                     {},
                                     call.dtype,
                                     lone_sums,
                                     call.results},
                                    types_of(like));
    if (!parsed.pattern.has_placements()) return graph;
    return engine::lying_as_written(what(), graph, parsed.pattern,
                                    engine::mesh_of_call(what(), operands));
  };
  return engine::plan_for(key, operands, what, build, {call.options.max_intermediate});
}

}  // namespace

std::shared_ptr<const engine::Plan> engine::plan_of_call(const detail::Call& call) {
  return plan_of(call, call.operands);
}

namespace detail {

std::vector<Tensor> run_all(const Call& call) {
  const engine::AutocastOperands converted(call.op, call.reduction, call.operands);
  const engine::Operands operands = converted.operands();
  return engine::run(*plan_of(call, operands), operands);
}

Tensor run_one(const Call& call) { return std::move(run_all(call).front()); }

}  // namespace detail

Graph graph_of(Operation op, RuntimeText pattern, const std::vector<Shape>& shapes,
               const CallOptions& options) {
  const bool takes_a_function = info(op).stands == OperationInfo::with_a_function;
  if (op == Operation::parse_shape || !(stands_alone(op) || takes_a_function))
    throw Error(ErrorKind::value, "graph_of: " + std::string(name(op)) + " computes nothing");
  if (takes_a_function)
    throw Error(ErrorKind::value, "graph_of: what map computes, its function says");
  const CallPattern parsed(op, detail::PatternArgument(pattern.text));
  std::vector<OperandType> types;
  for (const Shape& shape : shapes) {
    checked_numel(shape, static_cast<std::int64_t>(size_of(options.dtype)));
    types.push_back({shape, options.dtype});
  }
  std::vector<AxisSize> sizes;
  for (const auto& [name, size] : options.sizes) sizes.push_back({name, size});
  const Graph graph = build_graph({.op = op,
                                   .pattern = parsed.pattern,
                                   .sizes = sizes,
                                   .reduction = options.reduction,
                                   .packed_shapes = options.packed_shapes,
                                   .named = {.dtype = options.result},
                                   .dtype = options.result},
                                  types);
  return without_complex(graph, "graph_of");
}

Packed pack(std::span<const Tensor> xs,
            const PatternFor<Operation::pack, detail::Types<Tensor>>& pattern) {
  std::vector<const Tensor*> operands;
  std::vector<Shape> shapes;
  for (const Tensor& x : xs) {
    operands.push_back(&x);
    shapes.push_back(x.shape());
  }
  Packed packed{detail::run_one({Operation::pack, pattern, operands, {}}), {}};
  packed.shapes = packed_shapes(CallPattern(Operation::pack, pattern).pattern, shapes);
  return packed;
}

std::vector<Tensor> unpack(const Tensor& x, std::span<const Shape> packed_shapes,
                           const PatternFor<Operation::unpack, detail::Types<Tensor>>& pattern) {
  const Tensor* operand = &x;
  return detail::run_all(
      {Operation::unpack, pattern, {&operand, 1}, {}, Reduction::sum, packed_shapes});
}

NamedSizes parse_shape(const Tensor& x,
                       const PatternFor<Operation::parse_shape, detail::Types<Tensor>>& pattern) {
  const CallPattern parsed(Operation::parse_shape, pattern, {}, std::span(&x.shape(), 1));
  return NamedSizes(solve_shape(parsed.pattern, x.shape()));
}

Size NamedSizes::operator[](std::string_view name) const {
  for (const auto& [axis, size] : sizes_) {
    if (axis == name) return size;
  }
  throw Error(ErrorKind::axis_argument,
              "parse_shape: the pattern has no axis '" + std::string(name) + "'");
}

}  // namespace ein
