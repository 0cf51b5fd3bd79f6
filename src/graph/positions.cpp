// gather, scatters and one_hot: integers as positions along an axis.
#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {

Graph build_gather(NamedBuild& b) {
  return b.finish({b.gather(b.operand(0), b.positions(1), b.result(), b.solved().axes)});
}

Graph build_scatter(NamedBuild& b) {
  const NamedValue positions = b.positions(1);
  const NamedValue values = b.converted(b.operand(0), b.full(), b.sum_dtype());
  Op op = op_of(OpKind::scatter, {values, positions}, b.result(), b.sum_dtype());
  op.combine = b.how();
  op.dim = b.marked_dim(op.write);
  op.write[static_cast<std::size_t>(op.dim)].terms.clear();
  return b.finish({b.converted(b.add(std::move(op)), b.result(), b.result_dtype())});
}

Graph build_one_hot(NamedBuild& b) {
  const Ex is_there = Ex::apply(ScalarOp::eq, Ex::input(0), Ex::index(b.marked_axis()));
  return b.finish({b.map({b.positions(0)}, is_there, b.result(),
                         b.call().named.dtype.value_or(DType::f32), DType::i64)});
}

}  // namespace ein
