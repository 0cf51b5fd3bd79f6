// Sums of squares that neither overflow nor underflow: those of rows whose plain sum does are taken
// again, of the same numbers times a power of two.
#pragma once

#include <limits>
#include <vector>

#include "graph/build.hpp"

namespace ein {

/// Σ (x · scale)² for each row, and its scale, a power of two: 1 where the plain sum is in range.
struct SumOfSquares {
  NamedValue sum, scale;
};

/// Powers of two between which sums of squares in f32 or f64 keep their digits, whatever 2^32 or
/// fewer numbers they are of: sums beyond f32 or f64 are of numbers times `down`, those below
/// `tiny` of numbers times `up`.
struct SquareRange {
  double down, up, tiny;
};
constexpr SquareRange square_range(DType wide) {
  return wide == DType::f64 ? SquareRange{0x1p-600, 0x1p600, 0x1p-900}
                            : SquareRange{0x1p-80, 0x1p90, 0x1p-80};
}

/// `plain` is a sum of squares for each row. `scaled(s)` is what is squared, times s: a formula of
/// `inputs`, elements and values of rows. `b` has map_full, map_row and sum_row, values in its wide
/// type. With `also_small` rows of tiny sums are taken again too. The scale is a constant to
/// differentiation, as no result depends on it.
template <class Builder, class Scaled>
SumOfSquares in_range(Builder& b, const NamedValue& plain, std::vector<NamedValue> inputs,
                      const Scaled& scaled, bool also_small) {
  const SquareRange range = square_range(b.wide());
  const Ex sum = Ex::input(0), one(1.0);
  const Ex small =
      also_small ? where(Ex::apply(ScalarOp::lt, sum, Ex(range.tiny)), Ex(range.up), one) : one;
  const Ex is_finite = Ex::apply(ScalarOp::eq, sum - sum, Ex(0.0));
  const NamedValue scale = b.map_row({plain}, where(is_finite, small, Ex(range.down)));
  b.detach(scale);
  const Ex factor = Ex::input(static_cast<int>(inputs.size()));
  inputs.push_back(scale);
  const Ex element = scaled(factor);
  // The sum of rows that are in range is 0: kernels see it without a look at them (skipped_sum).
  const Ex is_taken_again = Ex::apply(ScalarOp::ne, factor, one);
  const NamedValue again =
      b.sum_row(b.map_full(inputs, where(is_taken_again, element * element, Ex(0.0))));
  const Ex is_again = Ex::apply(ScalarOp::ne, Ex::input(2), one);
  return {b.map_row({plain, again, scale}, where(is_again, Ex::input(1), Ex::input(0))), scale};
}

/// The deviations of rows' elements from their mean.
struct Deviations {
  NamedValue mean;
  std::vector<NamedValue> sums;  ///< as `mean_square` wants them, the scale at last
};

/// A power of two by which elements are multiplied so that their sum is finite where they are.
constexpr double sum_scale(DType wide) { return wide == DType::f64 ? 0x1p-64 : 0x1p-32; }

/// sum / count / sum_scale, finite where elements are: of equal ones it may be rounded up.
inline Ex mean_of_scaled(const Ex& sum, const Ex& count, DType wide) {
  const double scale = sum_scale(wide);
  const double most = (wide == DType::f64 ? std::numeric_limits<double>::max()
                                          : std::numeric_limits<float>::max()) *
                      scale;
  const Ex mean = Ex::apply(ScalarOp::min, sum / count, Ex(most));
  return Ex::apply(ScalarOp::max, mean, Ex(-most)) * Ex(1 / scale);
}

/// Deviations d = x - c from a centre c near the mean: Σd / n + c is the mean and (Σd² - (Σd)² / n)
/// the sum of squares, whatever c is (Chan, Golub, LeVeque 1983, equation 1.7). That the centre is
/// rounded costs no digits so, and equal elements deviate by exactly 0 from the mean. As nothing
/// depends on c, neither do derivatives. `only` is a formula of x, input 0, or 0 for elements that
/// are left out; `count` the number of elements as a formula of its arguments, which are kept.
template <class Builder, class Only, class Count>
Deviations deviations_of(Builder& b, const NamedValue& x, const Only& only, const Count& count,
                         bool also_small) {
  const auto total = [&](const std::vector<NamedValue>& inputs, const Ex& formula) {
    return b.sum_row(b.map_full(inputs, only(formula)));
  };
  const Ex first = Ex::input(0), second = Ex::input(1), third = Ex::input(2);
  std::vector<NamedValue> inputs{total({x}, first * Ex(sum_scale(b.wide())))};
  const Ex elements = count(inputs);
  const NamedValue centre = b.map_row(inputs, mean_of_scaled(first, elements, b.wide()));
  b.detach(centre);
  const Ex d = first - second;
  const NamedValue sum = total({x, centre}, d), squares = total({x, centre}, d * d);
  inputs = {centre, sum};
  const Ex correction = second / count(inputs);
  const NamedValue mean = b.map_row(inputs, first + correction);
  // To first order nothing depends on what deviations are from, when that is the mean.
  const NamedValue about = b.stationary(mean);
  // Up after the difference, down before it, where that could overflow.
  const auto scaled = [&](const Ex& scale) {
    const Ex down = Ex::apply(ScalarOp::min, scale, Ex(1.0)),
             up = Ex::apply(ScalarOp::max, scale, Ex(1.0));
    return only((first * down - second * down) * up);
  };
  const SumOfSquares again = in_range(b, squares, {x, about}, scaled, also_small);
  const Ex is_again = Ex::apply(ScalarOp::ne, third, Ex(1.0));
  const NamedValue other =
      b.sum_row(b.map_full({x, about, again.scale}, where(is_again, scaled(third), Ex(0.0))));
  const NamedValue of_scaled = b.map_row({sum, other, again.scale}, where(is_again, second, first));
  return {mean, {again.sum, of_scaled, again.scale}};
}

/// A sum of squares of which rounding may leave less than nothing; NaN stays NaN.
inline Ex not_negative(const Ex& value) {
  return where(Ex::apply(ScalarOp::lt, value, Ex(0.0)), Ex(0.0), value);
}

/// From its `sums` as inputs 0 and 1: the sum of the squares of deviations, times the squared
/// scale.
inline Ex squares_of_deviations(const Ex& count) {
  const Ex sum = Ex::input(1);
  return not_negative(Ex::input(0) - sum * (sum / count));
}

}  // namespace ein
