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

/// `plain` is a sum of squares for each row, in f64. `scaled(s)` is what is squared, times s: a
/// formula of `inputs`, elements and values of rows. `b` has map_full, map_row and sum_row. Sums
/// that overflow are taken again of numbers times a power of two, and those below 2^-900, which may
/// have lost digits, of numbers times another. The scale is a constant to differentiation, as no
/// result depends on it.
template <class Builder, class Scaled>
SumOfSquares in_range(Builder& b, const NamedValue& plain, std::vector<NamedValue> inputs,
                      const Scaled& scaled) {
  const Ex sum = Ex::input(0), one(1.0);
  const Ex small = where(Ex::apply(ScalarOp::lt, sum, Ex(0x1p-900)), Ex(0x1p600), one);
  const Ex is_finite = Ex::apply(ScalarOp::eq, sum - sum, Ex(0.0));
  const NamedValue scale = b.map_row({plain}, where(is_finite, small, Ex(0x1p-600)));
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

/// A sum of squares of which rounding may leave less than nothing; NaN stays NaN.
inline Ex at_least_zero(const Ex& value) {
  return where(Ex::apply(ScalarOp::lt, value, Ex(0.0)), Ex(0.0), value);
}

}  // namespace ein
