// Functions of complex numbers, their gradients and second gradients beside the C library's in long
// double, over all exponents, near poles and branch points, and on both sides of the cuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/complex_errors.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::WideComplex;

template <class T>
WideComplex wide(std::complex<T> z) {
  return {z.real(), z.imag()};
}
template <class T>
std::string text_of(std::complex<T> z) {
  char text[80];
  std::snprintf(text, sizeof text, "(%a, %a)", static_cast<double>(z.real()),
                static_cast<double>(z.imag()));
  return text;
}

template <class T>
void expect_few_units(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto points = test::complex_points<T>(4000, random);
  for (const test::ComplexFunction& f : test::complex_functions()) {
    const auto errors = test::measure(f, points);
    EXPECT_LE(errors.value, test::most_units) << f.name << " of " << text_of(errors.value_at);
    EXPECT_LE(errors.gradient, test::most_units)
        << "the gradient of " << f.name << " of " << text_of(errors.gradient_at);
  }
}
TEST(ComplexFunctions, AreAFewUnitsOffInC64) { test::for_seeds(3, expect_few_units<float>); }
TEST(ComplexFunctions, AreAFewUnitsOffInC128) { test::for_seeds(3, expect_few_units<double>); }

/// A number of any exponent, as Python writes it.
std::complex<double> exact_number(const std::string& real, const std::string& imag) {
  return {std::strtod(real.c_str(), nullptr), std::strtod(imag.c_str(), nullptr)};
}
WideComplex wide_number(const std::string& real, const std::string& imag) {
  return {std::strtold(real.c_str(), nullptr), std::strtold(imag.c_str(), nullptr)};
}

// tests/fixtures/complex/make_functions.py has the same functions. What the others are measured by,
// the C library in long double, is compared, too.
TEST(ComplexFunctions, AsMpmath) {
  std::ifstream file(EIN_TEST_DATA "/complex/functions.tsv");
  std::map<std::string, std::size_t> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    std::string name, at[6];
    text >> name;
    for (std::string& number : at) text >> number;
    ++rows[name];
    const std::complex<double> z = exact_number(at[0], at[1]);
    const WideComplex value = wide_number(at[2], at[3]), slope = wide_number(at[4], at[5]);
    const auto& all = test::complex_functions();
    const auto f =
        std::find_if(all.begin(), all.end(), [&](const auto& g) { return g.name == name; });
    ASSERT_NE(f, all.end()) << name;
    const WideComplex terms = f->terms ? f->terms(wide(z)) : slope;

    const Tensor x = tensor({z}).requires_grad(true);
    const Tensor y = f->call(x), one = full(y.shape(), std::complex<double>(1), y.dtype());
    const auto gradient =
        gradients(y, one, std::span(&x, 1)).front().to_vector<std::complex<double>>().front();
    EXPECT_LE(test::error_in_units(y.to_vector<std::complex<double>>().front(), value, value),
              test::most_units)
        << name << " of " << text_of(z);
    EXPECT_LE(test::error_in_units(gradient, std::conj(slope), terms), test::most_units)
        << "the gradient of " << name << " of " << text_of(z);

    if (!f->is_known(wide(z))) continue;
    EXPECT_LE(test::units_off<double>(f->value(wide(z)), value, value), 0.05)
        << "long double: " << name << " of " << text_of(z);
    EXPECT_LE(test::units_off<double>(f->slope(wide(z)), slope, terms), 0.05)
        << "long double: the derivative of " << name << " of " << text_of(z);
  }
  EXPECT_EQ(rows.size(), test::complex_functions().size());
  for (const auto& [name, count] : rows) EXPECT_GE(count, 20u) << name;
}

/// The error of f(z, w), and of its gradients by both, in units.
template <class T, class F, class Value, class Slopes, class Limit>
void expect_few_units_of_two(const std::string& name, F f, Value value, Slopes slopes, Limit limit,
                             const std::vector<std::complex<T>>& z,
                             const std::vector<std::complex<T>>& w) {
  using C = std::complex<T>;
  const std::vector<Tensor> x{from_vector(z).requires_grad(true),
                              from_vector(w).requires_grad(true)};
  const Tensor y = f(x[0], x[1]);
  const std::vector<C> values = y.template to_vector<C>();
  const std::vector<Tensor> found = gradients(y, full(y.shape(), C(1), y.dtype()), x);
  const std::vector<C> by_z = found[0].template to_vector<C>(),
                       by_w = found[1].template to_vector<C>();
  for (std::size_t i = 0; i < z.size(); ++i) {
    const WideComplex a = wide(z[i]), b = wide(w[i]), wanted = value(a, b);
    const auto [slope_z, slope_w] = slopes(a, b);
    const double most = limit(a, b);
    const auto expect = [&](C got, WideComplex want, const char* what) {
      EXPECT_LE(test::error_in_units(got, want, want), most)
          << what << name << " of " << text_of(z[i]) << " and " << text_of(w[i]) << " is "
          << text_of(got);
    };
    expect(values[i], wanted, "");
    expect(by_z[i], std::conj(slope_z), "the gradient by z of ");
    expect(by_w[i], std::conj(slope_w), "the gradient by w of ");
  }
}

template <class T>
void expect_quotients(unsigned seed) {
  std::mt19937_64 random(seed);
  auto z = test::complex_points<T>(3000, random), w = test::complex_points<T>(3000, random);
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (w[i] == std::complex<T>()) w[i] = 1;
  }
  expect_few_units_of_two<T>(
      "the quotient", [](const Tensor& a, const Tensor& b) { return a / b; },
      [](WideComplex a, WideComplex b) { return a / b; },
      [](WideComplex a, WideComplex b) { return std::pair(WideComplex(1) / b, -(a / b) / b); },
      [](WideComplex, WideComplex) { return test::most_units; }, z, w);
}
TEST(ComplexFunctions, Quotients) {
  test::for_seeds(3, expect_quotients<float>);
  test::for_seeds(3, expect_quotients<double>);
}

template <class T>
void expect_powers(unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<T> uniform(-5, 5);
  std::vector<std::complex<T>> z, w;
  for (std::complex<T> point : test::complex_points<T>(3000, random)) {
    if (point == std::complex<T>()) continue;
    z.push_back(point);
    w.emplace_back(uniform(random), random() % 2 ? uniform(random) : T(0));
  }
  // In c128 log z and the angle are rounded, and the power multiplies that.
  const auto limit = [](WideComplex a, WideComplex b) {
    const double most = static_cast<double>((std::abs(b) + 1) * (std::abs(std::log(a)) + 1));
    return sizeof(T) == 4 ? 4 : 6 + 3 * most;
  };
  expect_few_units_of_two<T>(
      "the power", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
      [](WideComplex a, WideComplex b) { return std::exp(b * std::log(a)); },
      [](WideComplex a, WideComplex b) {
        return std::pair(b * std::exp((b - 1.0L) * std::log(a)),
                         std::exp(b * std::log(a)) * std::log(a));
      },
      limit, z, w);
}
TEST(ComplexFunctions, Powers) {
  test::for_seeds(3, expect_powers<float>);
  test::for_seeds(3, expect_powers<double>);
}

template <class T>
void expect_sizes(unsigned seed) {
  using C = std::complex<T>;
  std::mt19937_64 random(seed);
  const auto points = test::complex_points<T>(4000, random);
  const Tensor z = from_vector(points).requires_grad(true), size = abs(z);
  const std::vector<T> sizes = size.template to_vector<T>();
  const std::vector<C> slopes = gradients(size, ones(size.shape(), size.dtype()), std::span(&z, 1))
                                    .front()
                                    .template to_vector<C>();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const WideComplex at = wide(points[i]);
    const long double wanted = std::abs(at);
    EXPECT_LE(test::error_in_units(C(sizes[i]), wanted, wanted), 1.5) << text_of(points[i]);
    const WideComplex slope = wanted == 0 ? WideComplex() : at / wanted;
    EXPECT_LE(test::error_in_units(slopes[i], slope, WideComplex(1)), 4) << text_of(points[i]);
  }
}
TEST(ComplexFunctions, Sizes) {
  test::for_seeds(3, expect_sizes<float>);
  test::for_seeds(3, expect_sizes<double>);
}

// Where C99 says what both parts of a function of infinities are, they are that: an infinity of the
// same sign, a zero or a number.
TEST(ComplexFunctions, OfInfinitiesAsC99) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<std::complex<double>> points;
  for (const double x : {-inf, -2.0, -0.0, 0.0, 2.0, inf}) {
    for (const double y : {-inf, -2.0, -0.0, 0.0, 2.0, inf}) {
      if (std::isinf(x) || std::isinf(y)) points.emplace_back(x, y);
    }
  }
  for (const char* name : {"sqrt", "exp", "log", "sinh", "cosh", "tanh", "asin", "acos", "atan"}) {
    const auto& all = test::complex_functions();
    const auto f =
        std::find_if(all.begin(), all.end(), [&](const auto& g) { return g.name == name; });
    const auto found = f->call(from_vector(points)).to_vector<std::complex<double>>();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const WideComplex wanted = f->value(wide(points[i]));
      if (std::isnan(wanted.real()) || std::isnan(wanted.imag())) continue;
      const auto expect = [&](double got, long double want) {
        const bool is_near = std::isinf(want) ? got == static_cast<double>(want)
                                              : std::abs(got - want) <= 1e-15L * std::abs(want);
        EXPECT_TRUE(is_near) << name << " of " << text_of(points[i]) << " has " << got << ", not "
                             << static_cast<double>(want);
      };
      expect(found[i].real(), wanted.real());
      expect(found[i].imag(), wanted.imag());
    }
  }
}

// Second gradients are those of the functions, also where the formulas have a corner or a 0 / 0.
TEST(ComplexFunctions, SecondGradients) {
  using C = std::complex<double>;
  const std::vector<C> points{{0.25, 0.0}, {-0.25, -0.0}, {0.0, 0.5},   {-0.0, -0.5}, {1.5, 0.0},
                              {1.5, -0.0}, {-2.5, 0.0},   {-2.5, -0.0}, {0.0, 2.0},   {-0.0, -2.0},
                              {3, 4},      {-0.5, 0.5},   {1, 1},       {-1, 1e-3},   {30, 2},
                              {-30, 1},    {1e-3, 1e-3},  {0.6, 0.8}};
  for (const test::ComplexFunction& f : test::complex_functions()) {
    const Tensor z = from_vector(points).requires_grad(true);
    const Tensor y = f.call(z), one = full(y.shape(), C(1), y.dtype());
    const Tensor first = gradients(y, one, std::span(&z, 1), true).front();
    const auto second = gradients(first, one, std::span(&z, 1)).front().to_vector<C>();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const WideComplex at = wide(points[i]);
      const long double h = 1e-6L;
      const auto moved = [&](long double by) {
        return f.slope(WideComplex(at.real() + by, at.imag()));
      };
      const WideComplex wanted =
          std::conj((8.0L * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h));
      const double size = std::max(1.0, static_cast<double>(std::abs(wanted)));
      EXPECT_LE(std::abs(wide(second[i]) - wanted), 1e-9 * size)
          << f.name << " of " << text_of(points[i]) << ": " << second[i];
    }
  }
}
// Where the first derivative is finite at 0, so is the second.
TEST(ComplexFunctions, SecondGradientsAtZero) {
  using C = std::complex<double>;
  for (const test::ComplexFunction& f : test::complex_functions()) {
    if (!std::isfinite(std::abs(f.slope(WideComplex(0, 0))))) continue;
    const Tensor z = tensor({C(0, 0), C(-0.0, 0.0), C(0.0, -0.0)}).requires_grad(true);
    const Tensor y = f.call(z), one = full(y.shape(), C(1), y.dtype());
    const Tensor first = gradients(y, one, std::span(&z, 1), true).front();
    for (const C& value : gradients(first, one, std::span(&z, 1)).front().to_vector<C>())
      EXPECT_TRUE(std::isfinite(value.real()) && std::isfinite(value.imag())) << f.name << value;
  }
}

}  // namespace
}  // namespace ein
