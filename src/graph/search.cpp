// multinomial, searchsorted and histogram: positions among elements that are in order.
#include <cmath>

#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

Ex both(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::logical_and, a, b); }
Ex either(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::logical_or, a, b); }
Ex negated(const Ex& a) { return Ex::apply(ScalarOp::logical_not, a); }
Ex is_less(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::lt, a, b); }
Ex is_at_most(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::le, a, b); }

/// Whether a comes before b in order, where NaN is the greatest.
Ex is_before(const Ex& a, const Ex& b) {
  const Ex only_b_is_nan = both(Ex::apply(ScalarOp::ne, b, b), Ex::apply(ScalarOp::eq, a, a));
  return either(is_less(a, b), only_b_is_nan);
}

/// How many elements along the axis in brackets lie before each value, which goes_behind says of an
/// element (input 0) and a value (input 1): those that do come first. By bisection: after each step
/// a value's position is as far on as multiples of the step's width can bring it.
NamedValue count_before(NamedBuild& b, const NamedValue& sorted, const NamedValue& values,
                        const Ex& goes_behind, const Place& place, const std::vector<Axis>& axes,
                        DType compute) {
  const auto map = [&](const std::vector<NamedValue>& inputs, const Ex& formula, DType in) {
    Op op = op_of(OpKind::map, inputs, place, DType::i64);
    op.axes = axes;
    op.expr = formula;
    op.compute = in;
    return b.add(std::move(op));
  };
  const Size size = b.size_of_axis(b.marked_axis());
  const auto dim = static_cast<std::size_t>(b.marked_dim(sorted.access));
  const Ex position = Ex::input(2);
  NamedValue found = map({}, Ex::integer(0), DType::i64);
  std::int64_t widest = ask_equal(size, 0) ? 0 : 1;
  while (widest > 0 && widest <= size - widest) widest *= 2;
  for (std::int64_t width = widest; width > 0; width /= 2) {
    const Ex next = position + Ex::integer(width);
    NamedValue at = sorted;  // the element before the next position
    if (width == widest) {
      at.access[dim] = {width - 1, {}};
    } else {
      const Ex limit = Ex::size(size), there = Ex::input(0) + Ex::integer(width);
      const Ex before = where(is_less(limit, there), limit, there) - Ex::integer(1);
      at = b.gather(sorted, map({found}, before, DType::i64), place, axes);
    }
    const Ex moves = both(is_at_most(next, Ex::size(size)), goes_behind);
    found = map({at, values, found}, where(moves, next, position), compute);
  }
  return found;
}

}  // namespace

/// Position i of a row with the sums s_i is drawn by a uniform u where s_(i-1) <= u · s_last < s_i:
/// the number of sums up to u · s_last, which is below s_last as u is below 1. All in f64, where a
/// subnormal product may be rounded to s_last: half of that takes its place.
Graph build_multinomial(NamedBuild& b) {
  b.require_floating();
  const auto axis = b.marked_axis();
  const Size samples = b.number();
  if (samples < 0)
    b.complain(ErrorKind::value,
               "the number of samples is " + to_string(samples) + ", at least 0 is wanted",
               b.marks_of_brackets());
  const Place full = b.full();
  const auto dim = static_cast<std::size_t>(b.marked_dim(full.access));
  Place result = full;
  result.shape[dim] = samples;
  const auto drawn = static_cast<int>(b.solved().axes.size());
  result.access[dim] = {0, {{drawn, 1}}};
  std::vector<Axis> axes = b.solved().axes;
  axes.push_back({"samples", samples});
  const auto with_axes = [&](Op op) {
    op.axes = axes;
    return b.add(std::move(op));
  };
  if (b.operand_count() != 2 || !ask_equal(b.operand_type(1).shape, result.shape))
    b.complain(ErrorKind::shape, "a uniform number for each draw is wanted");
  const NamedValue uniform{1, result.access};
  if (ask_equal(b.size_of_axis(axis), 0)) {
    if (numel(result.shape) > 0)
      b.complain(ErrorKind::reduction, "there are no elements to draw from", b.marks_of_brackets());
    Op none = op_of(OpKind::map, {uniform}, result, DType::i64);
    none.expr = Ex::input(0);
    none.compute = DType::f64;
    return b.finish({with_axes(std::move(none))});
  }

  Op scan = op_of(OpKind::scan, {b.operand(0)}, full, DType::f64);
  scan.axis = axis;
  const NamedValue sums = b.add(std::move(scan));
  NamedValue last = sums;
  last.access[dim] = {b.size_of_axis(axis) - 1, {}};
  Op drawn_number = op_of(OpKind::map, {uniform, last}, result, DType::f64);
  const Ex product = Ex::input(0) * Ex::input(1);
  drawn_number.expr = where(is_less(product, Ex::input(1)), product, Ex::input(1) * Ex(0.5));
  drawn_number.compute = DType::f64;
  const NamedValue number = with_axes(std::move(drawn_number));
  const NamedValue count = count_before(b, sums, number, is_at_most(Ex::input(0), Ex::input(1)),
                                        result, axes, DType::f64);
  Op position = op_of(OpKind::map, {count, last}, result, DType::i64);
  const Ex total = Ex::input(1);
  position.expr =
      where(both(is_less(Ex(0.0), total), is_less(total, Ex(INFINITY))), Ex::input(0), Ex(-1.0));
  position.compute = DType::f64;
  return b.finish({with_axes(std::move(position))});
}

Graph build_searchsorted(NamedBuild& b) {
  if (b.dtype(0) != b.dtype(1)) {
    b.complain(
        ErrorKind::dtype,
        "operands have different dtypes: " + std::string(name(b.dtype(0))) + " in operand 1, " +
            std::string(name(b.dtype(1))) + " in operand 2",
        {mark_side(b.call().pattern, b.call().pattern.sides[0], std::string(name(b.dtype(0)))),
         mark_side(b.call().pattern, b.call().pattern.sides[1], std::string(name(b.dtype(1))))},
        "cast one with .to(dtype)");
  }
  // Exact for each element and each position.
  const DType compute = is_floating(b.dtype()) ? DType::f64 : compute_type(b.dtype());
  const Place result = b.result();
  const NamedValue sorted = b.operand(0), values = b.operand(1);
  const Ex element = Ex::input(0), value = Ex::input(1);
  const Ex goes_behind =
      b.call().named.right ? negated(is_before(value, element)) : is_before(element, value);
  return b.finish({count_before(b, sorted, values, goes_behind, result, b.solved().axes, compute)});
}

/// Bin i holds x from low + i · width to below low + (i + 1) · width, the last one `high` as well;
/// one more, which is cut off, all others.
Graph build_histogram(NamedBuild& b) {
  const detail::NamedOptions& options = b.call().named;
  const Size bins = b.number();
  const bool has_range = options.reals.size() == 2;
  const double low = has_range ? options.reals[0] : 0, high = has_range ? options.reals[1] : 0;
  if (bins < 1)
    b.complain(ErrorKind::value,
               "the number of bins is " + to_string(bins) + ", at least 1 is wanted",
               b.marks_of_brackets());
  if (!(low < high) || !std::isfinite(high - low)) {
    b.complain(ErrorKind::value,
               "there are no bins from " + show(low) + " to " + show(high) +
                   ": low < high and a finite high - low are wanted",
               b.marks_of_brackets());
  }
  const Place full = b.full();
  const auto dim = static_cast<std::size_t>(b.marked_dim(full.access));
  const Ex x = Ex::input(0), count = Ex::size(bins), first(low), last(high);
  const Ex width = Ex(high - low) / count;
  const auto edge = [&](const Ex& i) { return first + i * width; };
  const Ex estimate = Ex::apply(ScalarOp::floor, (x - first) / width);
  const Ex most = count - Ex(1.0);
  const Ex bin = where(is_less(most, estimate), most, estimate);
  const Ex lowered = where(is_less(x, edge(bin)), bin - Ex(1.0), bin);
  const Ex is_in_next = both(is_less(lowered, most), is_at_most(edge(lowered + Ex(1.0)), x));
  const Ex right_bin = where(is_in_next, lowered + Ex(1.0), lowered);
  const Ex is_inside = both(is_at_most(first, x), is_at_most(x, last));
  // An element's bin needs four bytes.
  const DType of_bins = bins < std::int64_t{1} << 31 ? DType::i32 : DType::i64;
  const NamedValue positions =
      b.map({b.operand(0)}, where(is_inside, right_bin, count), full, of_bins, DType::f64);
  const NamedValue one = b.map({}, Ex::integer(1), {}, DType::i64, DType::i64);

  std::vector<Axis> axes = b.solved().axes;
  Place counts = full;
  counts.shape[dim] = bins + 1;
  Op scatter = op_of(OpKind::scatter, {one, positions}, counts, DType::i64);
  scatter.dim = static_cast<int>(dim);
  scatter.write[dim].terms.clear();
  NamedValue all = b.add(std::move(scatter));
  all.access = full.access;
  counts.shape[dim] = bins;
  axes[static_cast<std::size_t>(b.marked_axis())].size = bins;
  return b.finish({b.reindex(all, counts, axes)});
}

}  // namespace ein
