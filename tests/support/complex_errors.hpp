// Functions of complex numbers and their derivatives beside the C library's in long double: where
// to compare them, and by how many units of the larger part of the exact result they are off.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/scalar_expr.hpp>

namespace ein::test {

using WideComplex = std::complex<long double>;

struct ComplexFunction {
  std::string name;
  ScalarOp op;
  Tensor (*call)(const Tensor&);
  WideComplex (*value)(WideComplex);
  WideComplex (*slope)(WideComplex);
  /// What a unit is of, for a slope that is a sum with a root; else nothing.
  WideComplex (*terms)(WideComplex) = nullptr;
  /// Of exp2, beyond this the angle is known to too few digits in long double.
  long double most_imag = std::numeric_limits<long double>::infinity();

  bool is_known(WideComplex z) const { return std::abs(z.imag()) <= most_imag; }
};

namespace wide {

using Z = WideComplex;
inline constexpr long double ln2 = std::numbers::ln2_v<long double>;
/// (1 - z)·(1 + z), on the side of the real axis that z is on.
inline Z one_less_square(Z z) {
  const Z left(1 - z.real(), -z.imag()), right(1 + z.real(), z.imag());
  return std::sqrt(left) * std::sqrt(right);
}
inline Z log1p(Z z) {
  const long double x = z.real(), y = z.imag();
  const long double angle = std::atan2(y, 1 + x);
  if (std::max(std::abs(x), std::abs(y)) < 0.5L)
    return {std::log1p(x * (2 + x) + y * y) / 2, angle};
  return {std::log(Z(1 + x, y)).real(), angle};
}
inline Z expm1(Z z) {
  const long double s = std::sin(z.imag() / 2);
  if (z.real() > 40) return std::exp(z);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * s * s,
          std::exp(z.real()) * std::sin(z.imag())};
}
inline Z sech(Z z) { return 1.0L / std::cosh(z); }
inline Z exp2(Z z) { return std::exp2(z.real()) * std::exp(Z(0, z.imag() * ln2)); }
/// Near the poles, where 1 + e^-z loses its digits, by cosh.
inline Z sigmoid(Z z) {
  if (z.real() > 64) return 1.0L / (1.0L + std::exp(-z));
  if (z.real() < -64) return std::exp(z) / (1.0L + std::exp(z));
  return std::exp(z / 2.0L) * sech(z / 2.0L) / 2.0L;
}
inline Z sigmoid_slope(Z z) { return sech(z / 2.0L) * sech(z / 2.0L) / 4.0L; }

}  // namespace wide

inline const std::vector<ComplexFunction>& complex_functions() {
  using Z = WideComplex;
  namespace e = wide;
  static const std::vector<ComplexFunction> all{
      {"sqrt", ScalarOp::sqrt, ein::sqrt, [](Z z) { return std::sqrt(z); },
       [](Z z) { return 0.5L / std::sqrt(z); }},
      {"rsqrt", ScalarOp::rsqrt, ein::rsqrt, [](Z z) { return 1.0L / std::sqrt(z); },
       [](Z z) { return -0.5L / std::sqrt(z) / z; }},
      {"exp", ScalarOp::exp, ein::exp, [](Z z) { return std::exp(z); },
       [](Z z) { return std::exp(z); }},
      {"exp2", ScalarOp::exp2, ein::exp2, e::exp2, [](Z z) { return e::ln2 * e::exp2(z); }, nullptr,
       512},
      {"expm1", ScalarOp::expm1, ein::expm1, e::expm1, [](Z z) { return std::exp(z); }},
      {"log", ScalarOp::log, ein::log, [](Z z) { return std::log(z); },
       [](Z z) { return 1.0L / z; }},
      {"log2", ScalarOp::log2, ein::log2, [](Z z) { return std::log(z) / e::ln2; },
       [](Z z) { return 1.0L / e::ln2 / z; }},
      {"log1p", ScalarOp::log1p, ein::log1p, e::log1p,
       [](Z z) { return 1.0L / Z(1 + z.real(), z.imag()); }},
      {"sin", ScalarOp::sin, ein::sin, [](Z z) { return std::sin(z); },
       [](Z z) { return std::cos(z); }},
      {"cos", ScalarOp::cos, ein::cos, [](Z z) { return std::cos(z); },
       [](Z z) { return -std::sin(z); }},
      {"tan", ScalarOp::tan, ein::tan, [](Z z) { return std::tan(z); },
       [](Z z) { return 1.0L / std::cos(z) / std::cos(z); }},
      {"asin", ScalarOp::asin, ein::asin, [](Z z) { return std::asin(z); },
       [](Z z) { return 1.0L / e::one_less_square(z); }},
      {"acos", ScalarOp::acos, ein::acos, [](Z z) { return std::acos(z); },
       [](Z z) { return -1.0L / e::one_less_square(z); }},
      {"atan", ScalarOp::atan, ein::atan, [](Z z) { return std::atan(z); },
       [](Z z) { return 1.0L / Z(1 - z.imag(), z.real()) / Z(1 + z.imag(), -z.real()); }},
      {"sinh", ScalarOp::sinh, ein::sinh, [](Z z) { return std::sinh(z); },
       [](Z z) { return std::cosh(z); }},
      {"cosh", ScalarOp::cosh, ein::cosh, [](Z z) { return std::cosh(z); },
       [](Z z) { return std::sinh(z); }},
      {"tanh", ScalarOp::tanh, ein::tanh, [](Z z) { return std::tanh(z); },
       [](Z z) { return e::sech(z) * e::sech(z); }},
      {"sigmoid", ScalarOp::sigmoid, ein::sigmoid, e::sigmoid, e::sigmoid_slope},
      {"silu", ScalarOp::silu, ein::silu, [](Z z) { return z * e::sigmoid(z); },
       [](Z z) { return e::sigmoid(z) + z * e::sigmoid_slope(z); },
       [](Z z) { return std::abs(e::sigmoid(z)) + std::abs(z * e::sigmoid_slope(z)) + Z(0); }},
  };
  return all;
}

/// Numbers of all exponents, near branch points, poles and roots, about the unit circle, on both
/// sides of the axes.
template <class T>
std::vector<std::complex<T>> complex_points(std::size_t count, std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto sign = [&] { return below(2) ? 1.0 : -1.0; };
  constexpr int least = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits,
                most = std::numeric_limits<T>::max_exponent - 1;
  const auto of_exponent = [&](int e) {
    return static_cast<T>(sign() * std::ldexp(uniform(1, 2), std::clamp(e, least, most)));
  };
  const auto exponent = [&] { return least + static_cast<int>(below(most - least + 1)); };
  std::vector<std::complex<T>> points;
  while (points.size() < count) {
    T x{}, y{};
    switch (below(5)) {
      case 0: {  // any exponents
        const int e = exponent();
        x = of_exponent(e);
        y = of_exponent(below(2) ? exponent() : e - 8 + static_cast<int>(below(17)));
        break;
      }
      case 1: {  // beside a number
        const double half_pi = std::numbers::pi / 2 * static_cast<double>(below(12));
        const double of[] = {0, 1, -1, half_pi};
        x = static_cast<T>(of[below(4)]) + of_exponent(-static_cast<int>(below(60)));
        y = static_cast<T>(of[below(4)]) + of_exponent(-static_cast<int>(below(60)));
        break;
      }
      case 2: {
        const double size = below(2) ? 5 : 2 * std::log(std::numeric_limits<T>::max());
        x = static_cast<T>(uniform(-size, size));
        y = static_cast<T>(uniform(-size, size));
        break;
      }
      case 3: {  // about the unit circle
        const double angle = uniform(-4, 4), size = 1 + of_exponent(-static_cast<int>(below(60)));
        x = static_cast<T>(size * std::cos(angle));
        y = static_cast<T>(size * std::sin(angle));
        break;
      }
      default: {  // on an axis, or all but on it
        x = below(2) ? of_exponent(exponent()) : static_cast<T>(uniform(-3, 3));
        y = static_cast<T>(below(2) ? sign() * 0.0 : std::numeric_limits<T>::denorm_min() * sign());
        if (below(2)) std::swap(x, y);
      }
    }
    points.emplace_back(x, y);
  }
  return points;
}

/// By how many units of T in the last place of the larger part of `terms` a result is off; 0 where
/// that leaves the range of T.
template <class T>
double units_off(WideComplex found, WideComplex wanted, WideComplex terms) {
  using Limits = std::numeric_limits<T>;
  const long double larger = std::max(std::abs(terms.real()), std::abs(terms.imag()));
  if (!(larger <= static_cast<long double>(Limits::max()) / 2)) return 0;
  const int e = larger == 0 ? Limits::min_exponent : std::ilogb(larger) + 1;
  const long double unit = std::ldexp(1.0L, std::max(e, Limits::min_exponent) - Limits::digits);
  const long double error =
      std::max(std::abs(found.real() - wanted.real()), std::abs(found.imag() - wanted.imag()));
  return std::isnan(error) ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(error / unit);
}
template <class T>
double error_in_units(std::complex<T> found, WideComplex wanted, WideComplex terms) {
  return units_off<T>(WideComplex(found.real(), found.imag()), wanted, terms);
}

/// The largest errors of a function and of its gradient, and where they are.
template <class T>
struct ComplexErrors {
  double value = 0, gradient = 0;
  std::complex<T> value_at{}, gradient_at{};

  void take(double error, std::complex<T> at, bool of_gradient) {
    double& worst = of_gradient ? gradient : value;
    if (error <= worst) return;
    worst = error;
    (of_gradient ? gradient_at : value_at) = at;
  }
};

/// The gradients are those of the sum of real parts, and of imaginary ones.
template <class T>
ComplexErrors<T> measure(const ComplexFunction& f, const std::vector<std::complex<T>>& points) {
  using C = std::complex<T>;
  const Tensor z = from_vector(points).requires_grad(true);
  const Tensor y = f.call(z);
  const std::vector<C> values = y.template to_vector<C>();
  const auto gradient = [&](C cotangent) {
    return gradients(y, full(y.shape(), cotangent, y.dtype()), std::span(&z, 1))
        .front()
        .template to_vector<C>();
  };
  const std::vector<C> of_real = gradient(C(1, 0)), of_imag = gradient(C(0, 1));
  ComplexErrors<T> errors;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const WideComplex at(points[i].real(), points[i].imag());
    if (!f.is_known(at)) continue;
    const WideComplex value = f.value(at), slope = std::conj(f.slope(at));
    const WideComplex terms = f.terms ? f.terms(at) : slope;
    errors.take(error_in_units(values[i], value, value), points[i], false);
    errors.take(error_in_units(of_real[i], slope, terms), points[i], true);
    const WideComplex turned(-slope.imag(), slope.real());
    errors.take(error_in_units(of_imag[i], turned, terms), points[i], true);
  }
  return errors;
}

/// What the tests ask for.
inline constexpr double most_units = 4;

}  // namespace ein::test
