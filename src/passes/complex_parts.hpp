// What the formulas of functions of complex numbers are made of.
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "passes/complex_functions.hpp"

namespace ein {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
/// Where a function is its first term: the next one is 2^-60 of it, or less.
inline constexpr double tiny = 0x1p-30, huge = 0x1p100;

inline Real hypot(Real a, Real b) { return apply(ScalarOp::hypot, a, b); }
inline Real atan2(Real y, Real x) { return apply(ScalarOp::atan2, y, x); }
inline Real sqrt_of(Real a) { return apply(ScalarOp::sqrt, a); }
inline Real exp_of(Real a) { return apply(ScalarOp::exp, a); }
inline Real log_of(Real a) { return apply(ScalarOp::log, a); }
inline Real log1p_of(Real a) { return apply(ScalarOp::log1p, a); }
inline Real expm1_of(Real a) { return apply(ScalarOp::expm1, a); }
inline Real sin_of(Real a) { return apply(ScalarOp::sin, a); }
inline Real cos_of(Real a) { return apply(ScalarOp::cos, a); }

inline Real larger_part(const Complex& z) {
  return z.imag ? larger(abs(z.real), abs(*z.imag)) : abs(z.real);
}
/// Of -0, too.
inline Real is_below_zero(Real a) { return either(a < 0.0, 1.0 / a < 0.0); }
/// `size` with the sign of `sign`.
inline Real with_sign(Real size, Real sign) { return where(is_below_zero(sign), -size, size); }

inline Complex one_like(const Complex& z) { return {z.real.number(1.0)}; }

/// value + ∂value/∂x · dx of the real parts of x.
inline void add(std::optional<Real>& sum, Real x, Real slope) {
  const Real term = apply(ScalarOp::along, x, slope);
  sum = sum ? *sum + term : term;
}
inline Real sloped(Real value, const std::optional<Real>& slopes) {
  return slopes ? apply(ScalarOp::with_slope, value, *slopes) : value;
}
/// f(x) with df = s·dx for each x and s of `slopes`: of s + i·t and da + i·db that is
/// (s·da - t·db) + i·(t·da + s·db).
inline Complex sloped(const Complex& value,
                      const std::vector<std::pair<Complex, Complex>>& slopes) {
  std::optional<Real> real, imag;
  for (const auto& [x, slope] : slopes) {
    add(real, x.real, slope.real);
    if (x.imag) add(imag, *x.imag, slope.real);
    if (!slope.imag) continue;
    add(imag, x.real, *slope.imag);
    if (x.imag) add(real, *x.imag, -*slope.imag);
  }
  Complex result{sloped(value.real, real)};
  if (value.imag) result.imag = sloped(*value.imag, imag);
  return result;
}

/// A number as the sum of two, of which the higher has so few bits that its products are exact.
struct Halves {
  Real high, low;
};
/// `by` is 2^n where the lower part is to have the lowest n bits. A product with a power of 2 is
/// exact, so that a kernel may take it and the sum as one multiply-add (unlike Veltkamp's).
inline Halves halves(Real x, double by) {
  const Real large = x * by, high = (x + large) - large;
  return {high, x - high};
}
/// a + b + rest, of exact products a and b and a small rest, as if rounded once (Knuth's TwoSum).
inline Real sum_of_exact(Real a, Real b, Real rest) {
  const Real sum = a + b, of_b = sum - a;
  return sum + (((a - (sum - of_b)) + (b - of_b)) + rest);
}

/// One of three, as `size` is above the limit, below 1 / limit, or between.
inline Real chosen(Real size, double limit, double above, double below, double between) {
  return where(size > limit, above,
               where(size < 1 / limit, size.number(below), size.number(between)));
}

/// Numbers between 1 / limit and limit can be squared; `up` and `down` bring others there, and
/// their roots are powers of 2, too. Between -exponent and exponent exp does not overflow, nor is
/// it subnormal. halves() by `half` have exact squares.
struct ComplexFunctions::Range {
  double limit, up, down, exponent, half;
};
/// `value` of z, whose derivative is slope(functions).
template <class Slope>
Complex ComplexFunctions::with_slope(const Complex& value, const Complex& z, Slope slope) const {
  return order_ == 0 ? value : sloped(value, {{z, slope(next())}});
}

}  // namespace ein
