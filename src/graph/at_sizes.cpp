#include "graph/at_sizes.hpp"

namespace ein {

void put_sizes(Shape& shape, SizesAt& sizes) {
  for (Size& size : shape) sizes.put(size);
}

void put_sizes(ScalarExpr& expr, SizesAt& sizes) {
  for (ScalarStep& step : expr.steps) {
    if (step.op != ScalarOp::size) continue;
    const ScalarExpr constant = Ex::integer(sizes(step.size));
    step = constant.steps[0];
  }
}

void put_sizes(Graph& graph, SizesAt& sizes) {
  const auto put_access = [&](Access& access) {
    for (DimIndex& dim : access) {
      sizes.put(dim.offset);
      for (DimIndex::Term& term : dim.terms) sizes.put(term.coefficient);
    }
  };
  for (Op& op : graph.ops) {
    put_sizes(op.shape, sizes);
    for (Axis& axis : op.axes) sizes.put(axis.size);
    for (Access& read : op.reads) put_access(read);
    put_access(op.write);
    put_sizes(op.expr, sizes);
  }
}

}  // namespace ein
