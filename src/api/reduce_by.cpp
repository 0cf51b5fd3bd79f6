// Reductions by a function of one's own.
#include <string>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include <ein/ops.hpp>

#include "graph/build.hpp"
#include "graph/diagnostic.hpp"
#include "graph/solve.hpp"
#include "runtime/call.hpp"
#include "runtime/call_pattern.hpp"

namespace ein {
namespace {

/// The operand with the elements that become one along a first dimension, and the result's
/// dimensions behind it.
Graph graph_of_rows(const detail::PatternArgument& pattern, std::span<const AxisSize> sizes,
                    const OperandType& operand) {
  const CallPattern parsed(Operation::reduce, pattern, sizes, {&operand.shape, 1});
  require_valid({.op = Operation::reduce,
                 .pattern = parsed.pattern,
                 .sizes = sizes,
                 .is_checked = pattern.is_checked()},
                1);
  const Solved solved = solve(Operation::reduce, parsed.pattern, {&operand.shape, 1}, sizes);
  DimIndex reduced;
  Size length = 1;
  for (int axis = static_cast<int>(solved.axes.size()); axis-- > 0;) {
    if (uses(solved.write, axis)) continue;
    reduced.terms.insert(reduced.terms.begin(), {axis, length});
    length *= solved.axes[static_cast<std::size_t>(axis)].size;
  }
  if (length == 0) {
    fail(ErrorKind::reduction, "reduce", "a function of one's own over no elements has no value",
         pattern.text(), {}, {show_operands({&operand.shape, 1})});
  }
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .dtype = operand.dtype, .shape = operand.shape});
  Op op{.kind = OpKind::reindex, .dtype = operand.dtype, .shape = {length}, .inputs = {0}};
  op.axes = solved.axes;
  op.reads = {solved.reads[0]};
  op.write.push_back(reduced);
  for (const DimIndex& dim : solved.write) op.write.push_back(dim);
  for (const Size size : solved.shape) op.shape.push_back(size);
  drop_unused_axes(op);
  graph.outputs.push_back(append(graph, std::move(op)));
  verify(graph);
  return graph;
}

Tensor rows_of(const Tensor& x, const detail::PatternArgument& pattern,
               std::span<const AxisSize> sizes) {
  engine::PlanKey key;
  add(key, engine::KeyKind::reduce_by);
  key.add(pattern, sizes);
  const Tensor* const operand = &x;
  const auto build = [&](engine::Operands like) {
    return graph_of_rows(pattern, sizes, types_of(like).front());
  };
  const auto what = [&] { return "reduce \"" + std::string(pattern.text()) + "\""; };
  const engine::Operands operands(&operand, 1);
  return std::move(engine::run(*engine::plan_for(key, operands, what, build), operands).front());
}

}  // namespace

Tensor detail::reduce_by(const Tensor& x, const PatternArgument& pattern,
                         std::span<const AxisSize> sizes,
                         Tensor (*combine)(const void* context, const Tensor& a, const Tensor& b),
                         const void* context) {
  Tensor rest = rows_of(x, pattern, sizes);
  const Shape shape = [&] {
    Shape behind;
    for (std::size_t d = 1; d < rest.rank(); ++d) behind.push_back(rest.shape()[d]);
    return behind;
  }();
  const auto combined = [&](const Tensor& a, const Tensor& b) {
    Tensor result = combine(context, a, b);
    if (result.shape() == a.shape()) return result;
    throw Error(ErrorKind::shape, "reduce \"" + std::string(pattern.text()) +
                                      "\": the function makes shape " + result.shape().to_string() +
                                      " of two tensors of shape " + a.shape().to_string());
  };
  std::vector<Tensor> left_over;  // the last ones of odd lengths
  for (Size length = rest.shape()[0]; length > 1; length = length / 2) {
    const Size even = length / 2 * 2;
    if (even < length) left_over.push_back(rest.at({slice(even, length)}));
    rest = combined(rest.at({slice(0, even, 2)}), rest.at({slice(1, even, 2)}));
  }
  for (; !left_over.empty(); left_over.pop_back()) rest = combined(rest, left_over.back());
  return rest.view(shape);
}

}  // namespace ein
