// Derivatives of functions of an element: against the true ones, from -1e38 to 1e38, and where two
// choices meet.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using Real = long double;
using Values = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Real density(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>); }
Real normal(Real x) { return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2; }
Real logistic(Real x) { return 1 / (1 + std::exp(-x)); }

/// A function of tensors as a value: its name alone is also that of typed ones.
using Of = Tensor (*)(const Tensor&);

struct Function {
  std::string name;
  Of call;
  std::function<Real(Real)> slope;  // NaN where there is none
  double room = 1;                  // the value is this much larger than the slope
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {"neg", [](const Tensor& x) { return -x; }, [](Real) { return -1; }},
      {"abs", abs, [](Real x) { return x < 0   ? -1
                                       : x > 0 ? 1
                                               : nan; }},
      {"sqrt", sqrt, [](Real x) { return x > 0 ? 1 / (2 * std::sqrt(x)) : nan; }},
      {"rsqrt", rsqrt, [](Real x) { return x > 0 ? -1 / (2 * x * std::sqrt(x)) : nan; }},
      {"exp", exp, [](Real x) { return std::exp(x); }},
      {"log", log, [](Real x) { return x > 0 ? 1 / x : nan; }},
      {"tanh", tanh, [](Real x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
      {"erf", erf,
       [](Real x) { return 2 / std::sqrt(std::numbers::pi_v<Real>) * std::exp(-x * x); }},
      {"sigmoid", sigmoid, [](Real x) { return logistic(x) * logistic(-x); }},
      {"exp2", exp2, [](Real x) { return std::exp2(x) * std::numbers::ln2_v<Real>; }, 1.45},
      {"expm1", expm1, [](Real x) { return std::exp(x); }},
      {"log2", log2, [](Real x) { return x > 0 ? 1 / (x * std::numbers::ln2_v<Real>) : nan; }},
      {"log1p", log1p, [](Real x) { return x > -1 ? 1 / (1 + x) : nan; }},
      {"sin", sin, [](Real x) { return std::cos(x); }},
      {"cos", cos, [](Real x) { return -std::sin(x); }},
      {"asin", asin,
       [](Real x) { return std::abs(x) < 1 ? 1 / std::sqrt((1 - x) * (1 + x)) : nan; }},
      {"acos", acos,
       [](Real x) { return std::abs(x) < 1 ? -1 / std::sqrt((1 - x) * (1 + x)) : nan; }},
      {"atan", atan, [](Real x) { return 1 / (1 + x * x); }},
      {"sinh", sinh, [](Real x) { return std::cosh(x); }, 1.01},
      {"cosh", cosh, [](Real x) { return std::sinh(x); }, 1.01},
      {"floor", floor, [](Real) { return 0; }},
      {"ceil", ceil, [](Real) { return 0; }},
      {"round", round, [](Real) { return 0; }},
      {"trunc", trunc, [](Real) { return 0; }},
      {"relu", relu, [](Real x) { return x > 0 ? 1 : 0; }},
      {"gelu", gelu, [](Real x) { return normal(x) + x * density(x); }},
      {"silu", silu,
       [](Real x) {
         return logistic(x) + (logistic(-x) == 0 ? 0 : x * logistic(x) * logistic(-x));
       }},
      {"clamp", [](const Tensor& x) { return clamp(x, -2, 0.5); },
       [](Real x) { return x >= -2 && x <= 0.5 ? 1 : 0; }},
      {"maximum", [](const Tensor& x) { return maximum(x, 0.25); },
       [](Real x) { return x > 0.25   ? 1
                           : x < 0.25 ? 0
                                      : 0.5; }},
      {"minimum", [](const Tensor& x) { return minimum(0.25, x); },
       [](Real x) { return x < 0.25   ? 1
                           : x > 0.25 ? 0
                                      : 0.5; }},
      {"square", [](const Tensor& x) { return x * x; }, [](Real x) { return 2 * x; }},
      {"pow 3", [](const Tensor& x) { return pow(x, 3); }, [](Real x) { return 3 * x * x; }},
      {"pow 1/2", [](const Tensor& x) { return pow(x, 0.5); },
       [](Real x) { return x > 0 ? 1 / (2 * std::sqrt(x)) : nan; }},
      {"2 to the x", [](const Tensor& x) { return pow(2, x); },
       [](Real x) { return std::exp2(x) * std::numbers::ln2_v<Real>; }, 1.45},
      {"reciprocal", [](const Tensor& x) { return 1 / x; },
       [](Real x) { return x == 0 ? nan : -1 / (x * x); }},
      {"where", [](const Tensor& x) { return where(x > 1, x * 2, x * 3); },
       [](Real x) { return x > 1 ? 2 : 3; }},
  };
  return all;
}

/// The derivative at each element.
Tensor slopes(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor at = x.detach().requires_grad(true);
  std::vector<Tensor> inputs{at};
  const Tensor value = f(at);
  return gradients(value, ones(value.shape(), value.dtype()), inputs)[0];
}

TEST(Derivatives, AreFiniteAndRightWhereTheTrueOnesAre) {
  constexpr unsigned seed = 20261122;
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  Values points{0, -0.0, 1e38, -1e38, -88.7, -88.8, 88.8, -104, -709.8, -746};
  while (points.size() < 100'000) {
    const auto uniform = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const double size =
        random() % 2 == 0 ? std::pow(10, uniform(-38, 38)) : std::exp(uniform(-5, 8));
    points.push_back(random() % 2 == 0 ? size : -size);
  }
  struct Kind {
    DType dtype;
    double most, least, relative;
  };
  // With the errors of values that are kept for the backward pass in few bits.
  for (const Kind& kind : {Kind{DType::f32, 3.4e38, 1.2e-38, 1e-5},
                           {DType::f64, 1.7e308, 2.3e-308, 1e-12},
                           {DType::bf16, 3.3e38, 1.2e-38, 0.03},
                           {DType::f16, 65000, 6.2e-5, 0.005}}) {
    const Tensor x = from_vector(points).to(kind.dtype);
    const Values at = test::get_values(x);
    for (const Function& f : functions()) {
      const auto slope = [&](const Tensor& t) { return slopes(f.call, t); };
      const Values eager = test::get_values(slope(x)), traced = test::get_values(compile(slope)(x));
      int wrong = 0;
      for (std::size_t i = 0; i < at.size() && wrong < 3; ++i) {
        const Real want = std::isfinite(at[i]) ? f.slope(at[i]) : nan;
        if (!(std::abs(want) * f.room <= kind.most)) continue;
        // What is kept may have lost all its digits, as tanh has near 1; a subnormal argument has
        // few.
        const Real tolerance = kind.relative * std::max<Real>(1, std::abs(want));
        const bool is_subnormal = at[i] != 0 && std::abs(at[i]) < kind.least;
        for (double got : {eager[i], traced[i]}) {
          if (std::isfinite(got) && (is_subnormal || std::abs(got - want) <= tolerance)) continue;
          ++wrong;
          ADD_FAILURE() << f.name << " of " << name(kind.dtype) << " at " << at[i] << ": " << got
                        << ", should be " << want;
        }
      }
    }
  }
}

/// The gradients of the sum of f(x, y).
Values pair(const std::function<Tensor(const Tensor&, const Tensor&)>& f, double x, double y) {
  const Tensor a = from_vector(Values{x}).requires_grad(true),
               b = from_vector(Values{y}).requires_grad(true);
  std::vector<Tensor> inputs{a, b};
  const std::vector<Tensor> found = gradients(f(a, b), ones({1}, DType::f64), inputs);
  return {found[0].item<double>(), found[1].item<double>()};
}
void expect_same(const Values& got, const Values& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << what << ": " << got[i] << ", should be " << want[i];
  }
}

// The table of docs/derivatives.md.
TEST(Derivatives, WhereChoicesMeet) {
  expect_same(pair([](const Tensor& x, const Tensor& y) { return maximum(x, y); }, 1, 1),
              {0.5, 0.5}, "maximum");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return minimum(x, y); }, 1, 1),
              {0.5, 0.5}, "minimum");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return maximum(x, y); }, 2, 1), {1, 0},
              "maximum");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return minimum(x, y); }, 2, 1), {0, 1},
              "minimum");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return pow(x, y); }, 0, 0), {0, 0},
              "0^0");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return pow(x, y); }, 0, 2), {0, 0},
              "0^2");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return pow(x, y); }, 0, 1), {1, 0},
              "0^1");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return pow(x, y); }, 0, 0.5),
              {infinity, 0}, "0^0.5");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return pow(x, y); }, -1, 2), {-2, nan},
              "(-1)^2");
  expect_same(pair([](const Tensor& x, const Tensor& y) { return x / y; }, 0, 0), {infinity, nan},
              "0/0");
  const auto one = [](const std::function<Tensor(const Tensor&)>& f, const Values& x) {
    return test::get_values(slopes(f, from_vector(x)));
  };
  expect_same(one([](const Tensor& x) { return clamp(x, -1, 1); }, {-1.5, -1, 0, 1, 1.5}),
              {0, 1, 1, 1, 0}, "clamp");
  expect_same(one(Of(relu), {-1, -0.0, 0, 1}), {0, 0, 0, 1}, "relu");
  expect_same(one([](const Tensor& x) { return abs(x); }, {-1, 0, 1}), {-1, 0, 1}, "abs");
  expect_same(one([](const Tensor& x) { return sqrt(x); }, {0}), {infinity}, "sqrt");
  expect_same(one([](const Tensor& x) { return sqrt(abs(x)); }, {0}), {nan}, "sqrt of abs");
  expect_same(one([](const Tensor& x) { return sqrt(x * x); }, {0}), {nan}, "sqrt of a square");
  expect_same(one([](const Tensor& x) { return where(x > 0, log(x), 0.0); }, {0}), {nan},
              "where of log");
  expect_same(one([](const Tensor& x) { return maximum(x, x); }, {3}), {1}, "maximum of one twice");
  const auto reduced = [](const char* how, const Values& x) {
    return test::get_values(
        grad([how](const Tensor& t) { return reduce(t, "a ->", runtime(how)); })(from_vector(x)));
  };
  expect_same(reduced("std", {2, 2}), {0, 0}, "std");
  expect_same(reduced("max", {1, 1, 0}), {0.5, 0.5, 0}, "max");
  expect_same(reduced("logsumexp", {-infinity, 1}), {0, 1}, "logsumexp");
  expect_same(reduced("prod", {0, 3, 2}), {6, 0, 0}, "prod");
}

// The limits of the slopes, and as in PyTorch NaN where there is none.
TEST(Derivatives, AtInfinity) {
  const auto expect = [](const std::function<Tensor(const Tensor&)>& f, const Values& x,
                         const Values& want, const std::string& what) {
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      // Long rows take another engine than short ones.
      for (std::int64_t rows : {1, 4000}) {
        const Tensor at = (zeros({rows, 1}, dtype) + from_vector(x).to(dtype)).detach();
        const auto slope = [&](const Tensor& t) { return slopes(f, t); };
        Values all;
        for (std::int64_t i = 0; i < rows; ++i) all.insert(all.end(), want.begin(), want.end());
        expect_same(test::get_values(slope(at)), all, what + " of " + std::string(name(dtype)));
        expect_same(test::get_values(compile(slope)(at)), all,
                    what + " of " + std::string(name(dtype)) + ", compiled");
      }
    }
  };
  expect(Of(gelu), {-infinity, infinity, nan}, {0, 1, nan}, "gelu");
  expect(Of(silu), {-infinity, infinity, nan}, {0, 1, nan}, "silu");
  for (const Of f : {Of(sigmoid), Of(tanh), Of(erf)})
    expect(f, {-infinity, infinity, nan}, {0, 0, nan}, "a sigmoid curve");
  const auto log_sum = [](const Tensor& x) { return reduce(x, "a b -> a", "logsumexp"); };
  const auto soft = [](const Tensor& x) { return softmax(x, "a [b]"); };
  const auto log_soft = [](const Tensor& x) { return log_softmax(x, "a [b]"); };
  expect(log_sum, {-infinity, 1}, {0, 1}, "logsumexp");
  expect(soft, {-infinity, 1}, {0, 0}, "softmax");
  expect(log_soft, {-infinity, 1}, {1, -1}, "log_softmax");
  for (const Values& x : {Values{-infinity, -infinity}, {infinity, infinity}}) {
    expect(log_sum, x, {nan, nan}, "logsumexp");
    expect(soft, x, {nan, nan}, "softmax");
    expect(log_soft, x, {nan, nan}, "log_softmax");
  }
  expect(log_sum, {infinity, 1}, {nan, 0}, "logsumexp");
  expect(soft, {infinity, 1}, {nan, nan}, "softmax");
  expect(log_soft, {infinity, 1}, {nan, nan}, "log_softmax");
}

TEST(Derivatives, OfSigmoidInRowsAndBehindProducts) {
  // Long rows take another engine than short ones.
  const Tensor row = full({4096}, -100.0, DType::f32);
  for (double slope : test::get_values(slopes(Of(sigmoid), row))) ASSERT_NEAR(slope, 0, 1e-40);
  for (double slope : test::get_values(slopes(Of(silu), row))) ASSERT_NEAR(slope, 0, 1e-40);
  const auto loss = [](const Tensor& w) {
    return reduce(silu(einsum(full({3, 2}, -50.0, DType::f32), w, "a b, b c -> a c")), "a c ->",
                  "sum");
  };
  for (double slope : test::get_values(grad(loss)(ones({2, 2}, DType::f32))))
    EXPECT_NEAR(slope, 0, 1e-30);
}

}  // namespace
}  // namespace ein
