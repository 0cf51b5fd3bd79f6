// argmax, argmin, scans, sort and top_k: along one axis.
#include <cmath>
#include <optional>

#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// The position of a point along all axes in brackets, in row-major order.
Ex row_major_position(const NamedBuild& b) {
  std::optional<Ex> position;
  for (const std::size_t dim : b.marked_dims()) {
    const int axis = b.operand(0).access[dim].terms[0].axis;
    const Ex index = Ex::index(axis);
    position = position ? *position * Ex::size(b.size_of_axis(axis)) + index : index;
  }
  return *position;
}

}  // namespace

/// The least position at which x equals the maximum. NaN equals nothing, but the maximum is NaN
/// only if an element is. Positions are numbers of the type that elements are compared in, so that
/// both reductions read x alone, and nothing of x's size is kept.
Graph build_argmax(NamedBuild& b) {
  const Place rows = b.unmarked();
  Size size = 1;
  for (const Size marked : b.marked_sizes()) size *= marked;
  if (ask_equal(size, 0) && numel(rows.shape) > 0) {
    b.complain(ErrorKind::reduction, "there is no position among no elements",
               b.marks_of_brackets());
  }
  // Exact for positions up to 2^53 and for every element.
  const DType compute = is_floating(b.dtype()) ? DType::f64 : compute_type(b.dtype());
  if (ask_equal(size, 0)) return b.finish({b.map({}, Ex::integer(0), rows, DType::i64, compute)});
  const NamedValue extreme = b.reduce(b.how(), b.operand(0), rows, b.dtype());
  const Ex x = Ex::input(0);
  const Ex is_it = Ex::apply(ScalarOp::logical_or, Ex::apply(ScalarOp::eq, x, Ex::input(1)),
                             Ex::apply(ScalarOp::ne, x, x));
  const Ex position = where(is_it, row_major_position(b), Ex::size(size));
  const NamedValue positions = b.map({b.operand(0), extreme}, position, b.full(), compute, compute);
  return b.finish(
      {b.converted(b.reduce(Combine::min, positions, rows, compute), rows, DType::i64)});
}

Graph build_scan(NamedBuild& b) {
  Op op = op_of(OpKind::scan, {b.operand(0)}, b.full(), b.sum_dtype());
  op.combine = b.how();
  op.axis = b.marked_axis();
  return b.finish({b.converted(b.add(std::move(op)), b.full(), b.result_dtype())});
}

/// m + log s with the greatest element m up to each and s = Σ exp(x - m), a linear recurrence:
/// where m rises, what was summed before shrinks by the factor exp(m before - m). In f64, as many
/// factors meet. s does not depend on m, which is a constant to differentiation; where it is
/// infinite, 0 takes its place.
Graph build_logcumsumexp(NamedBuild& b) {
  b.require_floating();
  const Place all = b.full();
  const int axis = b.marked_axis();
  const std::vector<Axis>& axes = b.solved().axes;
  if (ask_equal(numel(all.shape), 0)) return b.finish({b.reindex(b.operand(0), all, axes)});
  const auto scan = [&](const std::vector<NamedValue>& from, Combine how) {
    Op op = op_of(OpKind::scan, from, all, DType::f64);
    op.combine = how;
    op.axis = axis;
    return b.add(std::move(op));
  };
  const auto map = [&](const std::vector<NamedValue>& from, const Ex& formula) {
    return b.map(from, formula, all, DType::f64, DType::f64);
  };
  const auto exp = [](const Ex& x) { return Ex::apply(ScalarOp::exp, x); };
  const auto equal = [](const Ex& x, const Ex& y) { return Ex::apply(ScalarOp::eq, x, y); };
  const Ex x = Ex::input(0), y = Ex::input(1);
  const NamedValue most = scan({b.operand(0)}, Combine::max);
  b.detach(most);
  const NamedValue before{b.add(shift_op(most, all, axes, axis, false, DType::f64)).id, all.access};
  const NamedValue factors = map({before, most}, where(equal(x, y), Ex(1.0), exp(x - y)));
  const NamedValue base =
      map({most}, where(equal(Ex::apply(ScalarOp::abs, x), Ex(INFINITY)), Ex(0.0), x));
  const NamedValue sums = scan({map({b.operand(0), base}, exp(x - y)), factors}, Combine::sum);
  return b.finish(
      {b.map({sums, base}, Ex::apply(ScalarOp::log, x) + y, all, b.dtype(), DType::f64)});
}

Graph build_sort(NamedBuild& b) {
  const NamedValue positions = b.argsort(b.call().named.descending);
  return b.finish({b.gather(b.operand(0), positions, b.full(), b.solved().axes), positions});
}

Graph build_top_k(NamedBuild& b) {
  const std::int64_t k = b.call().named.k;
  const int axis = b.marked_axis();
  if (k < 0 || k > b.size_of_axis(axis)) {
    b.complain(ErrorKind::value,
               "there are no " + std::to_string(k) +
                   (b.call().named.descending ? " greatest" : " least") + " of " +
                   to_string(b.size_of_axis(axis)) + " elements",
               b.marks_of_brackets());
  }
  Place place = b.full();
  place.shape[static_cast<std::size_t>(b.marked_dim(place.access))] = k;
  std::vector<Axis> axes = b.solved().axes;
  axes[static_cast<std::size_t>(axis)].size = k;
  const NamedValue positions = b.reindex(b.argsort(b.call().named.descending), place, axes);
  return b.finish({b.gather(b.operand(0), positions, place, axes), positions});
}

}  // namespace ein
