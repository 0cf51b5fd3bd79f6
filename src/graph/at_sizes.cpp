#include "graph/at_sizes.hpp"

namespace ein {
namespace {

/// Calls f for each size of an operation.
template <class F>
void for_each_size(Op& op, const F& f) {
  const auto of_access = [&](Access& access) {
    for (DimIndex& dim : access) {
      f(dim.offset);
      for (DimIndex::Term& term : dim.terms) f(term.coefficient);
    }
  };
  for (Size& size : op.shape) f(size);
  for (Axis& axis : op.axes) f(axis.size);
  for (Access& read : op.reads) of_access(read);
  of_access(op.write);
}

}  // namespace

Shape at_sizes(const Shape& shape, const SizeValues& values) {
  Shape numbers = shape;
  for (Size& size : numbers) size = evaluate(size, values);
  return numbers;
}

Graph at_sizes(Graph graph, const SizeValues& values) {
  if (values.empty()) return graph;
  for (Op& op : graph.ops) {
    for_each_size(op, [&](Size& size) { size = evaluate(size, values); });
    checked_numel(op.shape, static_cast<std::int64_t>(size_of(op.dtype)));
    for (ScalarStep& step : op.expr.steps) {
      if (step.op != ScalarOp::size) continue;
      const ScalarExpr constant = Ex::integer(evaluate(step.size, values));
      step = constant.steps[0];
    }
  }
  return graph;
}

}  // namespace ein
