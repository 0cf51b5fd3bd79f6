// median and quantile: elements at places in order, and what lies between them.
#include <cmath>

#include "graph/named.hpp"
#include "size/ask.hpp"
#include "size/size_scope.hpp"

namespace ein {
namespace {

/// The element at `place` in order, of each row.
NamedValue in_order(NamedBuild& b, NamedValue order, std::int64_t place) {
  order.access[static_cast<std::size_t>(b.marked_dim(order.access))] = {place, {}};
  return b.gather(b.operand(0), order, b.unmarked(), b.solved().axes);
}

/// Between a and b, which are next to each other in order; as NumPy computes it, so that it is
/// never beyond either, but where their difference is infinite or, of infinities, NaN.
Ex between(const Ex& a, const Ex& b, double weight) {
  const Ex difference = b - a;
  const Ex value = weight < 0.5 ? a + difference * Ex(weight) : b - difference * Ex(1 - weight);
  const Ex sum = a * Ex(1 - weight) + b * Ex(weight);
  const Ex is_finite = Ex::apply(ScalarOp::eq, difference - difference, Ex(0.0));
  return where(is_finite, value, sum);
}

/// Where between elements `below` and `below + 1` a quantile lies: 0 is the former.
double weight_of(Interpolation interpolation, double linear, std::int64_t below) {
  if (linear == 0) return 0;
  switch (interpolation) {
    case Interpolation::linear:
      break;
    case Interpolation::lower:
      return 0;
    case Interpolation::higher:
      return 1;
    case Interpolation::nearest:
      return linear > 0.5 || (linear == 0.5 && below % 2 == 1) ? 1 : 0;
    case Interpolation::midpoint:
      return 0.5;
  }
  return linear;
}

}  // namespace

Graph build_quantile(NamedBuild& b) {
  const detail::NamedOptions& options = b.call().named;
  const int axis = b.marked_axis();
  const auto dim = static_cast<std::size_t>(b.marked_dim(b.operand(0).access));
  constexpr double half[] = {0.5};
  const std::span<const double> quantiles =
      b.call().op == Operation::median ? std::span<const double>(half) : options.reals;
  for (double q : quantiles) {
    if (q >= 0 && q <= 1) continue;
    b.complain(ErrorKind::value, "q is " + show(q) + ", 0 <= q <= 1 is wanted",
               b.marks_of_brackets());
  }
  const bool is_float = is_floating(b.dtype());
  const DType compute = is_float ? b.wide() : DType::f64;
  const DType dtype = is_float ? b.dtype() : DType::f32;
  // One place for each q along the axis, or none.
  Place place = b.full(), one = b.unmarked();
  place.shape[dim] = static_cast<std::int64_t>(quantiles.size());
  const bool keeps_axis = b.keeps_axis();
  if (keeps_axis) {
    one = place;
    one.shape[dim] = 1;
    one.access[dim] = {};
  } else {
    place = one;
  }
  // Also for no results: what has no order is an Error whatever its sizes.
  const NamedValue order = b.argsort(false);
  if (ask_equal(numel(place.shape), 0)) {
    Op nothing = op_of(OpKind::map, {}, place, dtype);
    nothing.expr = Ex(0.0);
    nothing.compute = compute;
    nothing.axes = b.solved().axes;
    nothing.axes[static_cast<std::size_t>(axis)].size = static_cast<std::int64_t>(quantiles.size());
    return b.finish({b.add(std::move(nothing))});
  }
  if (ask_equal(b.size_of_axis(axis), 0)) {
    b.complain(ErrorKind::reduction, "there is no quantile of no elements", b.marks_of_brackets());
  }
  const std::int64_t last = number_at_hand(b.size_of_axis(axis)) - 1;
  std::vector<NamedValue> parts;
  for (double q : quantiles) {
    const double exact = q * static_cast<double>(last);
    auto below = std::min(static_cast<std::int64_t>(exact), last);
    double weight = weight_of(options.interpolation, exact - static_cast<double>(below), below);
    if (weight == 1) {
      below = std::min(below + 1, last);
      weight = 0;
    }
    std::vector<NamedValue> inputs{in_order(b, order, below)};
    Ex value = Ex::input(0);
    if (weight > 0 && below < last) {
      inputs.push_back(in_order(b, order, below + 1));
      value = between(value, Ex::input(1), weight);
    }
    if (is_float) {  // NaN is the last in order
      const Ex greatest = Ex::input(static_cast<int>(inputs.size()));
      inputs.push_back(in_order(b, order, last));
      value = where(Ex::apply(ScalarOp::ne, greatest, greatest), greatest, value);
    }
    parts.push_back(b.map(inputs, value, one, dtype, compute));
  }
  return b.finish({keeps_axis ? b.concat(parts, dim, place) : parts[0]});
}

}  // namespace ein
