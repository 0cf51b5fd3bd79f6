// Functions of elements as users call them: values, dtypes, whole numbers, bits, slopes, mistakes.
// How near values are is in functions_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include "support/differences.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The values of `call`, eager and compiled, which must be of this dtype and these, with their
/// signs.
template <class Call>
void expect(const Call& call, const Tensor& x, DType dtype, const Values& want) {
  for (const Tensor& y : {call(x), compile(call)(x)}) {
    EXPECT_EQ(y.dtype(), dtype);
    const Values got = test::get_values(y);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(std::isnan(want[i])
                      ? std::isnan(got[i])
                      : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]))
          << "element " << i << " is " << got[i] << ", should be " << want[i];
    }
  }
}
void expect(Tensor (*call)(const Tensor&), const Tensor& x, DType dtype, const Values& want) {
  expect<Tensor (*)(const Tensor&)>(call, x, dtype, want);
}

TEST(ScalarFunctions, RoundToWholeNumbers) {
  const Tensor x = from_vector(Values{-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, infinity, nan});
  expect(floor, x, DType::f64, {-3, -2, -1, -0.0, 0, 1, 2, infinity, nan});
  expect(ceil, x, DType::f64, {-2, -1, -0.0, -0.0, 1, 2, 3, infinity, nan});
  expect(round, x, DType::f64, {-2, -2, -0.0, -0.0, 0, 2, 2, infinity, nan});
  expect(trunc, x, DType::f64, {-2, -1, -0.0, -0.0, 0, 1, 2, infinity, nan});
  expect(sign, x, DType::f64, {-1, -1, -1, 0, 1, 1, 1, 1, nan});
  const Tensor whole =
      from_vector(std::vector<std::int64_t>{-3, 0, (std::int64_t{1} << 40) + 1}, {3});
  using Of = Tensor (*)(const Tensor&);
  for (const Of f : std::initializer_list<Of>{floor, ceil, round, trunc})
    expect(f, whole, DType::i64, {-3, 0, 0x1p40 + 1});
  expect(sign, whole, DType::i64, {-1, 0, 1});
  expect(round, from_vector(Values{0.5, 1.5}).to(DType::bf16), DType::bf16, {0, 2});
}

TEST(ScalarFunctions, QuestionsAboutNumbers) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = from_vector(Values{1, 0, infinity, -infinity, nan}).to(dtype);
    expect(isnan, x, DType::boolean, {0, 0, 0, 0, 1});
    expect(isinf, x, DType::boolean, {0, 0, 1, 1, 0});
    expect(isfinite, x, DType::boolean, {1, 1, 0, 0, 0});
  }
  const Tensor whole = from_vector(Values{0, 7}).to(DType::i32);
  expect(isnan, whole, DType::boolean, {0, 0});
  expect(isinf, whole, DType::boolean, {0, 0});
  expect(isfinite, whole, DType::boolean, {1, 1});
}

TEST(ScalarFunctions, OfIntegersAreF32) {
  const Tensor x = from_vector(Values{0, 1}).to(DType::i64);
  expect(cos, x, DType::f32, {1, static_cast<double>(std::cos(1.F))});
  expect([](const Tensor& t) { return atan2(t, 1); }, x, DType::f32,
         {0, static_cast<double>(std::atan2(1.F, 1.F))});
  expect([](const Tensor& t) { return hypot(t * 3, 4); }, x, DType::f32, {4, 5});
}

TEST(ScalarFunctions, RemainderHasTheSignOfTheDivisor) {
  const Tensor x = from_vector(Values{-5, 5, -0.0, 5.5, 1, infinity, 3});
  expect([](const Tensor& t) { return t % 3; }, x, DType::f64, {1, 2, -0.0, 2.5, 1, nan, 0});
  expect([](const Tensor& t) { return t % -3; }, x, DType::f64, {-2, -1, -0.0, -0.5, -2, nan, 0});
  expect([](const Tensor& t) { return t % 0.0; }, x, DType::f64, Values(7, nan));
  for (DType dtype : {DType::i64, DType::i32}) {
    const Tensor whole = from_vector(Values{-7, 7, 0, -6}).to(dtype);
    expect([](const Tensor& t) { return t % 4; }, whole, dtype, {1, 3, 0, 2});
    expect([](const Tensor& t) { return t % -4; }, whole, dtype, {-3, -1, 0, -2});
    expect([](const Tensor& t) { return t % 0; }, whole, dtype, {0, 0, 0, 0});
    expect([](const Tensor& t) { return 10 % t; }, whole, dtype, {-4, 3, 0, -2});
  }
  const Tensor least = full({1}, std::numeric_limits<std::int64_t>::min(), DType::i64);
  expect([](const Tensor& t) { return t % -1; }, least, DType::i64, {0});
}

// As NumPy's floor_divide, but for what is by 0.
TEST(ScalarFunctions, QuotientsAreRoundedDown) {
  const auto by = [](Scalar b) { return [b](const Tensor& t) { return floor_divide(t, b); }; };
  for (DType dtype : {DType::i64, DType::i32, DType::i16, DType::i8}) {
    const Tensor x = from_vector(Values{-7, 7, 0, -6, -8}).to(dtype);
    expect(by(4), x, dtype, {-2, 1, 0, -2, -2});
    expect(by(-4), x, dtype, {1, -2, 0, 1, 2});
    expect(by(0), x, dtype, {0, 0, 0, 0, 0});
    expect([](const Tensor& t) { return floor_divide(10, t); }, x, dtype, {-2, 1, 0, -2, -2});
  }
  const Tensor x = from_vector(Values{-5, 5, -0.0, 5.5, -1, infinity, 3});
  expect(by(3), x, DType::f64, {-2, 1, -0.0, 1, -1, nan, 1});
  expect(by(-3), x, DType::f64, {1, -2, 0, -2, 0, nan, -1});
  expect(by(0.0), x, DType::f64,
         {-infinity, infinity, nan, infinity, -infinity, infinity, infinity});
  expect(by(infinity), x, DType::f64, {-1, 0, -0.0, 0, -1, nan, 0});
  expect(by(0.1), from_vector(Values{1, 0.3}), DType::f64, {9, 2});  // 1 % 0.1 is nearly 0.1
}

TEST(ScalarFunctions, QuotientsOfTheGreatestIntegers) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(),
                 most = std::numeric_limits<std::int64_t>::max();
  const Tensor x = from_vector(std::vector<std::int64_t>{least, least + 1, most, most - 1});
  for (const std::int64_t b : {std::int64_t{1}, std::int64_t{-1}, std::int64_t{7}, least, most}) {
    const Tensor quotients = floor_divide(x, b), back = quotients * b + x % b;
    EXPECT_EQ(back.to_vector<std::int64_t>(), x.to_vector<std::int64_t>()) << b;
    EXPECT_EQ(quotients.to_vector<std::int64_t>()[2], b == -1 ? -most : b == least ? -1 : most / b);
  }
  const Tensor u = from_vector(std::vector<std::uint64_t>{UINT64_MAX, 1, 0});
  EXPECT_EQ(floor_divide(u, 3).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{UINT64_MAX / 3, 0, 0}));
  EXPECT_EQ(floor_divide(u, UINT64_MAX).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{1, 0, 0}));
  EXPECT_EQ(floor_divide(u, 0).to_vector<std::uint64_t>(), (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST(ScalarFunctions, LogarithmsOfSums) {
  const double log2 = std::log(2.0);
  expect([](const Tensor& t) { return logaddexp(t, t); },
         from_vector(Values{0, 1000, -1000, infinity, -infinity, nan}), DType::f64,
         {log2, 1000 + log2, -1000 + log2, infinity, -infinity, nan});
  expect([](const Tensor& t) { return logaddexp(t, -infinity); },
         from_vector(Values{-3, 1e300, infinity, nan}), DType::f64, {-3, 1e300, infinity, nan});
  expect(softplus, from_vector(Values{-infinity, -1000, 0, 1000, infinity, nan}), DType::f64,
         {0, 0, log2, 1000, infinity, nan});
  expect(log_sigmoid, from_vector(Values{-infinity, -1000, 0, 1000, infinity, nan}), DType::f64,
         {-infinity, -1000, -log2, -0.0, -0.0, nan});
  expect(softplus, from_vector(Values{0, 100}).to(DType::i32), DType::f32,
         {static_cast<double>(std::log(2.F)), 100});
}

// Within some units in the last place at all magnitudes; where a sum of logarithms cancels, of its
// greater term. In f32 the errors are those of exp and log1p.
TEST(ScalarFunctions, LogarithmsOfSumsKeepTheirDigits) {
  constexpr unsigned seed = 20261127;
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  Values a, b;
  for (int i = 0; i < 20000; ++i) {
    const double size = std::pow(10, std::uniform_real_distribution<double>(-6, 3)(random));
    a.push_back(random() % 2 == 0 ? size : -size);
    b.push_back(a.back() + std::uniform_real_distribution<double>(-40, 40)(random));
  }
  const auto exact = [](double x, double y) {
    const auto most = static_cast<long double>(std::max(x, y));
    return most + std::log1p(std::exp(static_cast<long double>(std::min(x, y)) - most));
  };
  const auto units = [](double got, long double want, double term, DType dtype) {
    return static_cast<double>(std::abs(static_cast<long double>(got) - want)) /
           std::max(static_cast<double>(std::abs(want)), term) / finfo(dtype).eps;
  };
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x = from_vector(a).to(dtype), y = from_vector(b).to(dtype);
    const Values u = test::get_values(x), v = test::get_values(y),
                 sums = test::get_values(logaddexp(x, y)), plus = test::get_values(softplus(x)),
                 logs = test::get_values(log_sigmoid(x));
    double worst = 0, worst_plus = 0, worst_log = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      // A difference that is rounded shifts the slope, 1/2 at most, by its error.
      const double term = std::max(std::abs(u[i]), std::abs(v[i]));
      worst = std::max(worst, units(sums[i], exact(u[i], v[i]), std::min(term, 1e30), dtype));
      if (u[i] < (dtype == DType::f32 ? -80 : -700)) continue;  // results are subnormal or 0
      worst_plus = std::max(worst_plus, units(plus[i], exact(u[i], 0), 0, dtype));
      if (u[i] < (dtype == DType::f32 ? 80 : 700))
        worst_log = std::max(worst_log, units(logs[i], -exact(-u[i], 0), 0, dtype));
    }
    EXPECT_LT(worst, 4) << name(dtype);
    EXPECT_LT(worst_plus, 4) << name(dtype);
    EXPECT_LT(worst_log, 4) << name(dtype);
  }
}

TEST(ScalarFunctions, Bits) {
  const Tensor x = from_vector(Values{12, 255, 0}).to(DType::u8);
  expect([](const Tensor& t) { return t & 10; }, x, DType::u8, {8, 10, 0});
  expect([](const Tensor& t) { return t | 1; }, x, DType::u8, {13, 255, 1});
  expect([](const Tensor& t) { return t ^ 5; }, x, DType::u8, {9, 250, 5});
  expect([](const Tensor& t) { return ~t; }, x, DType::u8, {243, 0, 255});
  expect([](const Tensor& t) { return t << 4; }, x, DType::u8, {192, 240, 0});
  expect([](const Tensor& t) { return t >> 2; }, x, DType::u8, {3, 63, 0});
  const Tensor signed_ones = from_vector(Values{-8, 8, 1}).to(DType::i64);
  expect([](const Tensor& t) { return t >> 1; }, signed_ones, DType::i64, {-4, 4, 0});
  expect([](const Tensor& t) { return t >> 64; }, signed_ones, DType::i64, {-1, 0, 0});
  expect([](const Tensor& t) { return t << 64; }, signed_ones, DType::i64, {0, 0, 0});
  expect([](const Tensor& t) { return t << -1; }, signed_ones, DType::i64, {0, 0, 0});
  expect([](const Tensor& t) { return 1 << t; }, signed_ones, DType::i64, {0, 256, 2});
  const Tensor truth = from_vector(Values{0, 1}).to(DType::boolean);
  expect([](const Tensor& t) { return ~t; }, truth, DType::boolean, {1, 0});
  expect([&](const Tensor& t) { return t ^ truth; }, truth, DType::boolean, {0, 0});
  const Tensor fraction = ones({2});
  test::expect_error([&] { fraction& fraction; }, ErrorKind::dtype, {"bitwise_and", "f32"});
  test::expect_error([&] { x << 0.5; }, ErrorKind::dtype, {"left_shift", "0.5"});
}

TEST(ScalarFunctions, SlopesOfTwoArguments) {
  std::mt19937_64 random(20261122);
  const test::OfTensors angle = [](const test::Tensors& x) { return atan2(x[0], x[1]); };
  const test::OfTensors side = [](const test::Tensors& x) { return hypot(x[0], x[1]); };
  const test::OfTensors rest = [](const test::Tensors& x) { return remainder(x[0], x[1]); };
  const Tensor a = from_vector(Values{0.3, -1.2, 2.5, -0.7}),
               b = from_vector(Values{1.1, 0.8, -0.9, -2});
  test::expect_gradients(angle, {a, b}, random);
  test::expect_gradients(side, {a, b}, random);
  test::expect_gradients(rest, {a, b}, random);
  test::expect_gradients([](const test::Tensors& x) { return erfinv(x[0]); },
                         {from_vector(Values{-0.8, -0.2, 0.0, 0.5, 0.7})}, random);
  test::expect_gradients([](const test::Tensors& x) { return tan(x[0]); },
                         {from_vector(Values{-1.2, 0.1, 1})}, random);
  // At the origin an angle has no slope; large sides do not overflow.
  const Tensor y = from_vector(Values{0, 1e300}).requires_grad(true),
               x = from_vector(Values{0, 1e300}).requires_grad(true);
  const std::vector<Tensor> slopes =
      gradients(atan2(y, x), ones({2}, DType::f64), std::vector<Tensor>{y, x});
  EXPECT_EQ(test::get_values(slopes[0])[0], 0);
  EXPECT_DOUBLE_EQ(test::get_values(slopes[0])[1], 5e-301);
}

}  // namespace
}  // namespace ein
