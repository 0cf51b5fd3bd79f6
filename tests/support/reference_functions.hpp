// The functions of an element: what they are in wider types, how they run, and values to the bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include <ein/scalar_expr.hpp>
#include "nest/random.hpp"

namespace ein::test {

/// 1 / (1 + e^-x), x / (1 + e^-x) and so on in a wide type, with the limits at the ends.
template <class T>
T logistic(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : T(1)) / (T(1) + e);
}
/// erfc(-x / √2) / 2. What is lost in rounding x / √2 would be x² times as much of the result:
/// nothing for floats, but half a unit for doubles, so the slope of erfc makes up for it. The
/// product with `high`, of 11 bits, is exact.
template <class T>
T normal(T x) {
  if constexpr (sizeof(T) == sizeof(double)) return std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
  constexpr T high = 0x1.6ap-1L, low = 0x1.3cccfe779921165f626cdd52afa7p-14L;
  const T by_high = x * high, by_low = x * low, at = by_high + by_low;
  if (!(std::abs(at) < 100)) return std::erfc(-at) / 2;
  const T lost = (by_high - at) + by_low;
  return std::erfc(-at) / 2 + lost * std::exp(-at * at) * std::numbers::inv_sqrtpi_v<T>;
}
template <class T>
T times_gate(T x, T gate) {
  return x == -std::numeric_limits<T>::infinity() ? -T(0) : x * gate;
}

/// x·φ(x), where φ is the density of the normal distribution. The square of `upper` is exact.
template <class T>
T times_density(T x) {
  if (std::abs(x) > 1000) return -T(0);
  const T upper = static_cast<float>(x), rest = x - upper;
  return x * std::exp(-upper * upper / 2) * std::exp(-rest * (x + upper) / 2) *
         std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
}

/// By Newton's method on erf, or where that is flat on erfc; a step doubles the 50 bits that it
/// begins with.
template <class T>
T inverse_of_erf(T y) {
  const long double x = y, size = std::abs(x);
  if (!(size < 1))
    return size == 1 ? static_cast<T>(x) * std::numeric_limits<T>::infinity()
                     : std::numeric_limits<T>::quiet_NaN();
  long double v = std::abs(random::normal_quantile(static_cast<double>((1 - size) / 2))) /
                  std::numbers::sqrt2_v<long double>;
  for (std::size_t i = 0; i < sizeof(T) / sizeof(double); ++i) {
    const long double error = size < 0.5 ? std::erf(v) - size : (1 - size) - std::erfc(v);
    v -= error * std::exp(v * v) / (2 * std::numbers::inv_sqrtpi_v<long double>);
  }
  return static_cast<T>(std::copysign(v, x));
}

enum class Course { rises, falls, neither };

/// What results are measured by: of floats in double, of doubles in long double.
template <class C>
using Wide = std::conditional_t<sizeof(C) == 4, double, long double>;

struct Function {
  ScalarOp op;
  Course course;
  double least, most;  // of its values
  double units;        // the most that results may be off, in units in the last place
  double (*wide)(double);
  long double (*wider)(long double);

  template <class C>
  Wide<C> exact(C x) const {
    if constexpr (sizeof(C) == 4)
      return wide(x);
    else
      return wider(x);
  }
  /// In a type, where floats may be off by a little more.
  template <class C>
  double most_units() const {
    return sizeof(C) == 4 && units >= 2 ? 2.5 : units;
  }
  struct At {
    double x, y;
  };
  std::vector<At> values;  // to the bit, but for NaN
  /// Of a sum that has a root: how large its terms are together. Results are measured by units of
  /// that.
  double (*terms)(double) = nullptr;
};

/// Whether strips call the C library for it, which is the same on every instruction set; erfinv is
/// plain code around its functions.
template <class C>
bool calls_library(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp2:
    case ScalarOp::expm1:
    case ScalarOp::log2:
    case ScalarOp::log1p:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tan:
    case ScalarOp::asin:
    case ScalarOp::acos:
    case ScalarOp::atan:
    case ScalarOp::sinh:
    case ScalarOp::cosh:
    case ScalarOp::erfinv:
      return true;
    case ScalarOp::erf:
      return sizeof(C) == sizeof(double);
    default:
      return false;
  }
}

#define EIN_BOTH(formula) \
  [](double x) -> double { return formula; }, [](long double x) -> long double { return formula; }

inline const std::vector<Function>& functions() {
  using enum Course;
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<Function> all{
      {ScalarOp::exp,
       rises,
       0,
       inf,
       1.5,
       EIN_BOTH(std::exp(x)),
       {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, 0}, {-1e30, 0}, {1e30, inf}}},
      {ScalarOp::log,
       rises,
       -inf,
       inf,
       1.5,
       EIN_BOTH(std::log(x)),
       {{0, -inf}, {-0.0, -inf}, {1, 0}, {inf, inf}, {-inf, nan}, {-1, nan}, {-1e-30, nan}}},
      {ScalarOp::tanh,
       rises,
       -1,
       1,
       2,
       EIN_BOTH(std::tanh(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, 1}, {-inf, -1}, {1e30, 1}, {-30, -1}}},
      {ScalarOp::erf,
       rises,
       -1,
       1,
       2,
       EIN_BOTH(std::erf(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, 1}, {-inf, -1}, {1e30, 1}, {-7, -1}}},
      {ScalarOp::sigmoid,
       rises,
       0,
       1,
       2,
       EIN_BOTH(logistic(x)),
       {{0, 0.5}, {-0.0, 0.5}, {inf, 1}, {-inf, 0}, {1e30, 1}, {-1e30, 0}}},
      {ScalarOp::silu,
       neither,
       -0.27846456,
       inf,
       2,
       EIN_BOTH(times_gate(x, logistic(x))),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-inf, -0.0}, {1e30, 1e30}, {-1e30, -0.0}}},
      {ScalarOp::normal_cdf,
       neither,
       0,
       1,
       2,
       EIN_BOTH(normal(x)),
       {{0, 0.5}, {-0.0, 0.5}, {inf, 1}, {-inf, 0}, {1e30, 1}, {-1e30, 0}}},
      {ScalarOp::gelu,
       neither,
       -0.16997123,
       inf,
       2,
       EIN_BOTH(times_gate(x, normal(x))),
       {{0, 0},
        {-0.0, -0.0},
        {inf, inf},
        {-inf, -0.0},
        {1e30, 1e30},
        {-1e10, -0.0},
        {-1e30, -0.0}}},
      {ScalarOp::gelu_slope,
       neither,
       -0.128904238,
       1.12890427,
       2,
       EIN_BOTH(normal(x) + times_density(x)),
       {{0, 0.5}, {-0.0, 0.5}, {inf, 1}, {-inf, -0.0}, {1e30, 1}, {-1e30, -0.0}},
       [](double x) { return normal(x) + std::abs(times_density(x)); }},
      {ScalarOp::sqrt,
       rises,
       -0.0,
       inf,
       0.5001,
       EIN_BOTH(std::sqrt(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-1, nan}, {-inf, nan}, {4, 2}}},
      {ScalarOp::rsqrt,
       falls,
       -inf,
       inf,
       1.5,
       EIN_BOTH(1 / std::sqrt(x)),
       {{0, inf}, {-0.0, -inf}, {inf, 0}, {-1, nan}, {4, 0.5}}},
      {ScalarOp::exp2,
       rises,
       0,
       inf,
       2,
       EIN_BOTH(std::exp2(x)),
       {{0, 1}, {-0.0, 1}, {10, 1024}, {inf, inf}, {-inf, 0}}},
      {ScalarOp::expm1,
       rises,
       -1,
       inf,
       2,
       EIN_BOTH(std::expm1(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-inf, -1}, {-1e30, -1}}},
      {ScalarOp::log2,
       rises,
       -inf,
       inf,
       2,
       EIN_BOTH(std::log2(x)),
       {{0, -inf}, {1, 0}, {1024, 10}, {inf, inf}, {-1, nan}}},
      {ScalarOp::log1p,
       rises,
       -inf,
       inf,
       2,
       EIN_BOTH(std::log1p(x)),
       {{0, 0}, {-0.0, -0.0}, {-1, -inf}, {inf, inf}, {-2, nan}}},
      {ScalarOp::sin,
       neither,
       -1,
       1,
       2,
       EIN_BOTH(std::sin(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, nan}, {-inf, nan}}},
      {ScalarOp::cos,
       neither,
       -1,
       1,
       2,
       EIN_BOTH(std::cos(x)),
       {{0, 1}, {-0.0, 1}, {inf, nan}, {-inf, nan}}},
      {ScalarOp::tan,
       neither,
       -inf,
       inf,
       2,
       EIN_BOTH(std::tan(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, nan}, {-inf, nan}}},
      {ScalarOp::asin,
       neither,
       -1.5707964,
       1.5707964,
       2,
       EIN_BOTH(std::asin(x)),
       {{0, 0}, {-0.0, -0.0}, {2, nan}, {inf, nan}}},
      {ScalarOp::acos,
       neither,
       0,
       3.1415928,
       2,
       EIN_BOTH(std::acos(x)),
       {{1, 0}, {2, nan}, {-inf, nan}}},
      {ScalarOp::atan,
       rises,
       -1.5707964,
       1.5707964,
       2,
       EIN_BOTH(std::atan(x)),
       {{0, 0}, {-0.0, -0.0}}},
      {ScalarOp::sinh,
       neither,
       -inf,
       inf,
       2,
       EIN_BOTH(std::sinh(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-inf, -inf}}},
      {ScalarOp::cosh,
       neither,
       1,
       inf,
       2,
       EIN_BOTH(std::cosh(x)),
       {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, inf}}},
      {ScalarOp::erfinv,
       neither,
       -inf,
       inf,
       2,
       EIN_BOTH(inverse_of_erf(x)),
       {{0, 0}, {-0.0, -0.0}, {1, inf}, {-1, -inf}, {2, nan}, {inf, nan}}},
      {ScalarOp::floor,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::floor(x)),
       {{0, 0}, {-0.0, -0.0}, {0.5, 0}, {-0.5, -1}, {inf, inf}, {1e30, 1e30}}},
      {ScalarOp::ceil,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::ceil(x)),
       {{0, 0}, {-0.0, -0.0}, {0.5, 1}, {-0.5, -0.0}, {-inf, -inf}}},
      {ScalarOp::round,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::nearbyint(x)),
       {{0.5, 0}, {1.5, 2}, {2.5, 2}, {-0.5, -0.0}, {-1.5, -2}, {inf, inf}}},
      {ScalarOp::trunc,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::trunc(x)),
       {{0.5, 0}, {-0.5, -0.0}, {-1.5, -1}, {inf, inf}}}};
  return all;
}

#undef EIN_BOTH

}  // namespace ein::test
