// Arithmetic on elements: broadcasting, dtypes, exactness, accuracy; triangles; matmul.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <ein/ein.hpp>

namespace {

using ein::arange;
using ein::DType;
using ein::Error;
using ein::ErrorKind;
using ein::from_vector;
using ein::full;
using ein::ones;
using ein::Shape;
using ein::Tensor;
using ein::zeros;
using Values = std::vector<double>;
using Integers = std::vector<std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t beyond = (std::int64_t{1} << 53) + 1;  // no double

Tensor floats(const Values& values) { return from_vector(values).to(DType::f32); }
Tensor integers(const Integers& values) { return from_vector(values); }

void expect_error(const std::function<void()>& call, ErrorKind kind, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no Error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), text);
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << text;
  }
}

// --- values ---

// What lies across the others is turned first.
TEST(Elementwise, OperandsOfEveryDtypeThatLieAcross) {
  int pairs = 0;
  for (const DType dtype : ein::all_dtypes) {
    if (ein::is_complex(dtype)) continue;
    const Tensor whole = (arange(60000) % 5).to(dtype).view({200, 300}), lies = whole.transpose();
    for (const DType other : ein::all_dtypes) {
      if (ein::is_complex(other)) continue;
      const Tensor one = ones({300, 200}, other);
      Tensor sum;
      try {
        sum = lies + one;
      } catch (const Error&) {
        continue;  // they are not for each other
      }
      ++pairs;
      EXPECT_EQ(sum.transpose().to(DType::f64).to_vector<double>(),
                (whole + ones({200, 300}, other)).to(DType::f64).to_vector<double>())
          << ein::name(dtype) << ' ' << ein::name(other);
    }
  }
  EXPECT_GT(pairs, 50);
}

TEST(Elementwise, TheLecturesRows) {
  const Tensor x = floats({1, 4, 9});
  EXPECT_EQ(ein::pow(x, 2).to_vector<double>(), (Values{1, 16, 81}));
  EXPECT_EQ(ein::sqrt(x).to_vector<double>(), (Values{1, 2, 3}));
  EXPECT_EQ(ein::rsqrt(x).to_vector<float>(), (std::vector<float>{1, 0.5f, 1.0f / 3}));
  EXPECT_EQ((x + x).to_vector<double>(), (Values{2, 8, 18}));
  EXPECT_EQ((x * 2).to_vector<double>(), (Values{2, 8, 18}));
  EXPECT_EQ((x / 0.5).to_vector<double>(), (Values{2, 8, 18}));
  EXPECT_EQ(ein::triu(ones({3, 3}), "... [i j]").to_vector<double>(),
            (Values{1, 1, 1, 0, 1, 1, 0, 0, 1}));
}

TEST(Elementwise, OperatorsTakeTensorsAndNumbersOnEitherSide) {
  const Tensor x = integers({1, 2, 3}), y = integers({3, 2, 1});
  EXPECT_EQ((x - y).to_vector<double>(), (Values{-2, 0, 2}));
  EXPECT_EQ((10 - x).to_vector<double>(), (Values{9, 8, 7}));
  EXPECT_EQ((-x).to_vector<double>(), (Values{-1, -2, -3}));
  EXPECT_EQ((6.0 / x).to_vector<double>(), (Values{6, 3, 2}));
  EXPECT_EQ((x < y).to_vector<double>(), (Values{1, 0, 0}));
  EXPECT_EQ((x <= 2).to_vector<double>(), (Values{1, 1, 0}));
  EXPECT_EQ((2 < x).to_vector<double>(), (Values{0, 0, 1}));
  EXPECT_EQ((x >= y).to_vector<double>(), (Values{0, 1, 1}));
  EXPECT_EQ((x > y).to_vector<double>(), (Values{0, 0, 1}));
  EXPECT_EQ((x == y).to_vector<double>(), (Values{0, 1, 0}));
  EXPECT_EQ((x != 2).to_vector<double>(), (Values{1, 0, 1}));
  EXPECT_EQ((x - 1 && y - 1).to_vector<double>(), (Values{0, 1, 0}));
  EXPECT_EQ((x - 1 || y - 3).to_vector<double>(), (Values{0, 1, 1}));
  EXPECT_EQ(ein::logical_not(x - 1).to_vector<double>(), (Values{1, 0, 0}));
  EXPECT_EQ(ein::abs(x - 2).to_vector<double>(), (Values{1, 0, 1}));
  EXPECT_EQ(ein::minimum(x, y).to_vector<double>(), (Values{1, 2, 1}));
  EXPECT_EQ(ein::maximum(x, 2).to_vector<double>(), (Values{2, 2, 3}));
  EXPECT_EQ(ein::relu(x - 2).to_vector<double>(), (Values{0, 0, 1}));
  EXPECT_EQ(ein::clamp(x, 2, 2).to_vector<double>(), (Values{2, 2, 2}));
}

TEST(Elementwise, NumbersAlone) {
  EXPECT_EQ(ein::add(2, 3).item(), 5);
  EXPECT_EQ(ein::add(2, 3).dtype(), DType::i64);
  EXPECT_EQ(ein::div(1, 2).item(), 0.5);
  EXPECT_EQ(ein::div(1, 2).dtype(), DType::f32);
  EXPECT_EQ(ein::mul(2, 0.25).item(), 0.5);
}

TEST(Elementwise, WhereChooses) {
  const Tensor condition = from_vector<bool>({true, false, true});
  EXPECT_EQ(ein::where(condition, floats({1, 2, 3}), -1).to_vector<double>(), (Values{1, -1, 3}));
  EXPECT_EQ(ein::where(condition, 1, 0.5).to_vector<double>(), (Values{1, 0.5, 1}));
  // Any number but zero is true, NaN as well; what is not chosen does not matter.
  EXPECT_EQ(ein::where(floats({0, -2, nan}), floats({nan, 1, 1}), floats({5, nan, nan}))
                .to_vector<double>(),
            (Values{5, 1, 1}));
  // The condition's dtype takes no part.
  EXPECT_EQ(
      ein::where(zeros({2}, DType::f64), zeros({2}, DType::f16), zeros({2}, DType::f16)).dtype(),
      DType::f16);
  // All three broadcast.
  const Tensor y =
      ein::where(from_vector<bool>({true, false}, {2, 1}), floats({1, 2, 3}), full({1, 1, 1}, 7));
  EXPECT_EQ(y.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(y.to_vector<double>(), (Values{1, 2, 3, 7, 7, 7}));
}

TEST(Elementwise, NotANumber) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor x = from_vector<double>({nan, 1, nan}).to(dtype),
                 y = from_vector<double>({1, nan, nan}).to(dtype);
    for (const Tensor& z :
         {ein::minimum(x, y), ein::maximum(x, y), x + y, ein::relu(ein::minimum(x, y))}) {
      for (double v : z.to_vector<double>()) EXPECT_TRUE(std::isnan(v));
    }
    EXPECT_TRUE(std::isnan(ein::relu(x).to_vector<double>()[0]));
    EXPECT_TRUE(std::isnan(ein::clamp(x, 0, 1).to_vector<double>()[0]));
    for (const Tensor& z : {x<y, x <= y, x> y, x >= y, x == y})
      EXPECT_EQ(z.to_vector<double>(), (Values{0, 0, 0}));
    EXPECT_EQ((x != y).to_vector<double>(), (Values{1, 1, 1}));
    EXPECT_EQ((x && 1).to_vector<double>(), (Values{1, 1, 1}));
  }
}

TEST(Elementwise, EndsOfTheNumberLine) {
  for (DType dtype : {DType::f64, DType::f32}) {
    // In vectors, so that both vector code and its remainder are met.
    const auto at = [&](Tensor (*f)(const Tensor&), double v) {
      const Values results = f(full({19}, v, dtype)).to_vector<double>();
      for (double r : results)
        EXPECT_TRUE(r == results[0] || (std::isnan(r) && std::isnan(results[0])));
      return results[0];
    };
    EXPECT_EQ(at(ein::exp, infinity), infinity);
    EXPECT_EQ(at(ein::exp, -infinity), 0);
    EXPECT_EQ(at(ein::exp, -1e4), 0);
    EXPECT_EQ(at(ein::exp, 1e4), infinity);
    EXPECT_EQ(at(ein::exp, 0), 1);
    EXPECT_EQ(at(ein::log, 0), -infinity);
    EXPECT_EQ(at(ein::log, infinity), infinity);
    EXPECT_EQ(at(ein::log, 1), 0);
    EXPECT_TRUE(std::isnan(at(ein::log, -1)));
    EXPECT_EQ(at(ein::tanh, infinity), 1);
    EXPECT_EQ(at(ein::tanh, -infinity), -1);
    EXPECT_EQ(at(ein::erf, infinity), 1);
    EXPECT_EQ(at(ein::erf, -infinity), -1);
    EXPECT_EQ(at(ein::sqrt, infinity), infinity);
    EXPECT_EQ(at(ein::sqrt, 0), 0);
    EXPECT_TRUE(std::isnan(at(ein::sqrt, -1)));
    EXPECT_EQ(at(ein::rsqrt, 0), infinity);
    EXPECT_EQ(at(ein::rsqrt, infinity), 0);
    EXPECT_EQ(at(ein::sigmoid, -1e4), 0);
    EXPECT_EQ(at(ein::sigmoid, 1e4), 1);
    EXPECT_EQ(at(ein::silu, 1e4), 1e4);
    EXPECT_EQ(at(ein::silu, -1e4), 0);
    EXPECT_EQ(at(ein::gelu, 1e4), 1e4);
    EXPECT_EQ(at(ein::gelu, -1e4), 0);
    using Of = Tensor (*)(const Tensor&);
    for (const Of f : std::initializer_list<Of>{ein::exp, ein::log, ein::tanh, ein::erf, ein::sqrt,
                                                ein::rsqrt, ein::sigmoid, ein::silu, ein::gelu}) {
      EXPECT_TRUE(std::isnan(at(f, nan)));
    }
    EXPECT_EQ(at([](const Tensor& x) { return x / 0; }, 1), infinity);
    EXPECT_TRUE(std::isnan(at([](const Tensor& x) { return x / 0; }, 0)));
    EXPECT_EQ(at([](const Tensor& x) { return ein::pow(x, 0); }, nan), 1);
    EXPECT_EQ(at([](const Tensor& x) { return ein::pow(x, -1); }, 0), infinity);
  }
}

// --- accuracy ---

// The distance from `value` to the exact result, in units of the last place of T there.
template <class T>
double error_in_ulp(T value, long double exact) {
  const T nearest = static_cast<T>(exact);
  if (value == nearest) return 0;
  if (!std::isfinite(value) || !std::isfinite(nearest)) return infinity;
  const T ulp =
      std::nextafter(std::abs(nearest), std::numeric_limits<T>::infinity()) - std::abs(nearest);
  return static_cast<double>(std::abs(value - exact) / ulp);
}

template <class T>
void expect_accuracy(std::string_view what, Tensor (*f)(const Tensor&),
                     const std::function<long double(long double)>& exact, double low, double high,
                     double most_ulp) {
  const unsigned seed = 9;
  std::mt19937 random(seed);
  std::vector<T> xs;
  const auto uniform = [&](double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(random);
  };
  for (int i = 0; i < 20'000; ++i) {
    xs.push_back(static_cast<T>(uniform(low, high)));
    // Small numbers of either sign, evenly by exponent.
    const double small = std::exp(uniform(std::log(1e-12), std::log(std::min(high, 1.0))));
    xs.push_back(static_cast<T>(low < 0 && i % 2 ? -small : small));
  }
  const std::vector<T> ys = f(from_vector(xs)).template to_vector<T>();
  double worst = 0;
  T where = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (static_cast<double>(xs[i]) < low) continue;
    const double error = error_in_ulp(ys[i], exact(xs[i]));
    if (error > worst) {
      worst = error;
      where = xs[i];
    }
  }
  EXPECT_LE(worst, most_ulp) << what << " in " << 8 * sizeof(T) << " bits, at " << where
                             << ", seed " << seed;
}

TEST(Elementwise, FunctionsAreAccurate) {
  using Real = long double;
  const auto check = [](std::string_view what, Tensor (*f)(const Tensor&),
                        const std::function<Real(Real)>& exact, double low, double high,
                        double ulp32, double ulp64) {
    expect_accuracy<float>(what, f, exact, low, high, ulp32);
    expect_accuracy<double>(what, f, exact, low, high, ulp64);
  };
  check(
      "exp", ein::exp, [](Real x) { return std::exp(x); }, -85, 85, 5, 2);
  check(
      "log", ein::log, [](Real x) { return std::log(x); }, 1e-12, 1e6, 1.5, 1.5);
  check(
      "tanh", ein::tanh, [](Real x) { return std::tanh(x); }, -20, 20, 5, 3);
  check(
      "erf", ein::erf, [](Real x) { return std::erf(x); }, -7, 7, 6, 2);
  check(
      "sqrt", ein::sqrt, [](Real x) { return std::sqrt(x); }, 0, 1e6, 0.501, 0.501);
  check(
      "rsqrt", ein::rsqrt, [](Real x) { return 1 / std::sqrt(x); }, 1e-12, 1e6, 1.5, 1.5);
  check(
      "sigmoid", ein::sigmoid, [](Real x) { return 1 / (1 + std::exp(-x)); }, -80, 40, 6, 4);
  check(
      "silu", ein::silu, [](Real x) { return x / (1 + std::exp(-x)); }, -80, 40, 7, 4);
  const auto gelu = [](Real x) { return x * std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2; };
  check("gelu", ein::gelu, gelu, 0, 10, 6, 3);
  // To the left of 0, 1 + erf cancels: the error is relative to x, not to the result.
  const Tensor x = ein::arange(-10.0, 0.0, 1.0 / 1024);
  const std::vector<float> xs = x.to_vector<float>(), ys = ein::gelu(x).to_vector<float>();
  for (std::size_t i = 0; i < xs.size(); ++i) {
    EXPECT_LE(std::abs(ys[i] - gelu(xs[i])), std::abs(xs[i]) * 0x1p-22) << xs[i];
  }
}

TEST(Elementwise, SquareRootsAreCorrectlyRounded) {
  for (std::int64_t n : {1, 5, 31, 1000}) {
    const Tensor squares = arange(n) * arange(n);
    EXPECT_EQ(ein::sqrt(squares.to(DType::f64)).to_vector<double>(), arange(n).to_vector<double>());
    EXPECT_EQ(ein::sqrt(squares).to_vector<double>(), arange(n).to_vector<double>());
  }
  std::mt19937 random(2);
  std::vector<float> xs, roots;
  for (int i = 0; i < 10'000; ++i) {
    xs.push_back(std::exp(std::uniform_real_distribution<float>(-100, 80)(random)));
    roots.push_back(std::sqrt(xs.back()));
  }
  EXPECT_EQ(ein::sqrt(from_vector(xs)).to_vector<float>(), roots);
}

TEST(Elementwise, PowersAreThoseOfTheStandardLibrary) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> base(0, 10), exponent(-5, 5);
  Values a, b, expected;
  for (int i = 0; i < 1000; ++i) {
    a.push_back(base(random));
    b.push_back(exponent(random));
    expected.push_back(std::pow(a.back(), b.back()));
  }
  EXPECT_EQ(ein::pow(from_vector(a), from_vector(b)).to_vector<double>(), expected);
  EXPECT_EQ(ein::pow(floats({-2, -2, 4}), floats({3, -1, 0.5})).to_vector<double>(),
            (Values{-8, -0.5, 2}));
  EXPECT_EQ(ein::pow(2, floats({3, 0.5})).to_vector<float>(),
            (std::vector<float>{8, std::sqrt(2.0f)}));
}

// 16- and 8-bit floats are computed in f32 and rounded once to be stored.
TEST(Elementwise, NarrowFloatsAreComputedInF32) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> a, b;
  for (int i = 0; i < 500; ++i) {
    a.push_back(normal(random));
    b.push_back(normal(random));
  }
  const auto check = [&]<class T>(std::type_identity<T>) {
    std::vector<float> sums;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float x = ein::convert<float>(ein::convert<T>(a[i])),
                  y = ein::convert<float>(ein::convert<T>(b[i]));
      sums.push_back(ein::convert<float>(ein::convert<T>(x + y)));
    }
    const Tensor x = from_vector(a).to(ein::dtype_of<T>), y = from_vector(b).to(ein::dtype_of<T>);
    EXPECT_EQ((x + y).dtype(), ein::dtype_of<T>);
    EXPECT_EQ((x + y).template to_vector<float>(), sums);
  };
  check(std::type_identity<ein::f16>());
  check(std::type_identity<ein::bf16>());
  check(std::type_identity<ein::f8e4m3>());
  check(std::type_identity<ein::f8e5m2>());
}

// --- integers ---

TEST(Elementwise, IntegersAreExactBeyondDoubles) {
  const Tensor x = integers({beyond, -beyond, INT64_MAX});
  EXPECT_EQ((x + 1).to_vector<std::int64_t>(),
            (Integers{beyond + 1, -beyond + 1, INT64_MIN}));  // wraps
  EXPECT_EQ((x - 1).to_vector<std::int64_t>(), (Integers{beyond - 1, -beyond - 1, INT64_MAX - 1}));
  EXPECT_EQ((x * 3).to_vector<std::int64_t>()[0], 3 * beyond);
  EXPECT_EQ((-x).to_vector<std::int64_t>(), (Integers{-beyond, beyond, -INT64_MAX}));
  EXPECT_EQ(ein::abs(x).to_vector<std::int64_t>(), (Integers{beyond, beyond, INT64_MAX}));
  EXPECT_EQ((x == beyond - 1).to_vector<double>(), (Values{0, 0, 0}));
  EXPECT_EQ((x > beyond - 1).to_vector<double>(), (Values{1, 0, 1}));
  EXPECT_EQ(ein::minimum(x, beyond - 1).to_vector<std::int64_t>(),
            (Integers{beyond - 1, -beyond, beyond - 1}));
  EXPECT_EQ(ein::maximum(x, beyond + 1).to_vector<std::int64_t>(),
            (Integers{beyond + 1, beyond + 1, INT64_MAX}));
  EXPECT_EQ(ein::where(x > 0, x, beyond).to_vector<std::int64_t>(),
            (Integers{beyond, beyond, INT64_MAX}));
  EXPECT_EQ(ein::clamp(x, -beyond + 1, beyond - 1).to_vector<std::int64_t>(),
            (Integers{beyond - 1, -beyond + 1, beyond - 1}));
  EXPECT_EQ(ein::relu(x).to_vector<std::int64_t>(), (Integers{beyond, 0, INT64_MAX}));
  EXPECT_EQ(ein::triu(full({2, 2}, beyond, DType::i64), "... [i j]").to_vector<std::int64_t>(),
            (Integers{beyond, beyond, 0, beyond}));
  EXPECT_EQ(ein::abs(integers({INT64_MIN})).item<std::int64_t>(), INT64_MIN);  // wraps
}

TEST(Elementwise, IntegerPowersAreExact) {
  const auto power = [](std::int64_t a, std::int64_t b) {
    return ein::pow(integers({a}), b).item<std::int64_t>();
  };
  EXPECT_EQ(power(3, 39), 4052555153018976267);
  EXPECT_EQ(power(-7, 21), -558545864083284007);
  EXPECT_EQ(power(2, 62), std::int64_t{1} << 62);
  EXPECT_EQ(power(2, 63), INT64_MIN);  // wraps
  EXPECT_EQ(power(2, 64), 0);
  EXPECT_EQ(power(0, 0), 1);
  EXPECT_EQ(power(10, INT64_MAX), 0);
  // A negative exponent truncates toward zero, as integer division would.
  EXPECT_EQ(power(2, -1), 0);
  EXPECT_EQ(power(1, -5), 1);
  EXPECT_EQ(power(-1, -5), -1);
  EXPECT_EQ(power(-1, INT64_MIN), 1);
  EXPECT_EQ(ein::pow(2, arange(5)).to_vector<std::int64_t>(), (Integers{1, 2, 4, 8, 16}));
  EXPECT_EQ(ein::pow(integers({4}), 0.5).item(), 2);
}

TEST(Elementwise, NarrowIntegersWrap) {
  const Tensor u = from_vector<std::uint8_t>({250, 3}),
               i = from_vector<std::int32_t>({INT32_MAX, INT32_MIN});
  EXPECT_EQ((u + 10).to_vector<double>(), (Values{4, 13}));
  EXPECT_EQ((u - 5).to_vector<double>(), (Values{245, 254}));
  EXPECT_EQ((-u).to_vector<double>(), (Values{6, 253}));
  EXPECT_EQ((u * u).to_vector<double>(), (Values{36, 9}));
  EXPECT_EQ((i + 1).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{INT32_MIN, INT32_MIN + 1}));
  EXPECT_EQ((i * i).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 0}));
  // Comparisons do not wrap.
  EXPECT_EQ((u < 300).to_vector<double>(), (Values{1, 1}));
  EXPECT_EQ((u > -1).to_vector<double>(), (Values{1, 1}));
}

TEST(Elementwise, BoolsAreNumbersOfOneBit) {
  const Tensor a = from_vector<bool>({false, false, true, true}),
               b = from_vector<bool>({false, true, false, true});
  EXPECT_EQ((a + b).to_vector<double>(), (Values{0, 1, 1, 1}));
  EXPECT_EQ((a * b).to_vector<double>(), (Values{0, 0, 0, 1}));
  EXPECT_EQ(ein::maximum(a, b).dtype(), DType::boolean);
  EXPECT_EQ((a + 1).to_vector<double>(), (Values{1, 1, 2, 2}));
  EXPECT_EQ((a + 1).dtype(), DType::i64);
  EXPECT_EQ((a / 2).to_vector<double>(), (Values{0, 0, 0.5, 0.5}));
}

// --- dtypes ---

// The result of mixed operands, a row per left operand; in the order of the columns.
TEST(Elementwise, DtypesPromote) {
  using enum DType;
  constexpr DType order[] = {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, u8, boolean};
  constexpr DType table[10][10] = {
      {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
      {f64, f32, f32, f32, f32, f32, f32, f32, f32, f32},
      {f64, f32, f16, f32, f16, f16, f16, f16, f16, f16},
      {f64, f32, f32, bf16, bf16, bf16, bf16, bf16, bf16, bf16},
      {f64, f32, f16, bf16, f8e4m3, f32, f8e4m3, f8e4m3, f8e4m3, f8e4m3},
      {f64, f32, f16, bf16, f32, f8e5m2, f8e5m2, f8e5m2, f8e5m2, f8e5m2},
      {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i64, i64, i64},
      {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i32, i32},
      {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, u8, u8},
      {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, u8, boolean},
  };
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j < 10; ++j) {
      const Tensor a = ones({2}, order[i]), b = ones({2}, order[j]);
      const std::string what = std::string(name(order[i])) + " and " + std::string(name(order[j]));
      EXPECT_EQ(name((a + b).dtype()), name(table[i][j])) << what;
      EXPECT_EQ(name(ein::minimum(a, b).dtype()), name(table[i][j])) << what;
      EXPECT_EQ(name(ein::where(a, a, b).dtype()), name(table[i][j])) << what;
      EXPECT_EQ((a == b).dtype(), DType::boolean) << what;
      EXPECT_EQ((a == b).to_vector<double>(), (Values{1, 1})) << what;
      const DType quotient = is_integral(table[i][j]) ? f32 : table[i][j];
      EXPECT_EQ(name((a / b).dtype()), name(quotient)) << what;
      EXPECT_EQ((a / b).to_vector<double>(), (Values{1, 1})) << what;
    }
  }
}

TEST(Elementwise, NumbersTakeTheTensorsDtype) {
  using enum DType;
  for (DType dtype : {f64, f32, f16, bf16, f8e4m3, f8e5m2}) {
    const Tensor x = ones({1}, dtype);
    EXPECT_EQ((x + 1).dtype(), dtype);
    EXPECT_EQ((x + 0.5).dtype(), dtype);
    EXPECT_EQ(ein::exp(x).dtype(), dtype);
    EXPECT_EQ(ein::clamp(x, 0, 0.5).dtype(), dtype);
  }
  for (DType dtype : {i64, i32, u8}) {
    const Tensor x = ones({1}, dtype);
    EXPECT_EQ((x + 1).dtype(), dtype);
    EXPECT_EQ((x + 0.5).dtype(), f32);
    EXPECT_EQ((x + 0.5).item(), 1.5);
    EXPECT_EQ(ein::exp(x).dtype(), f32);
    EXPECT_EQ(ein::relu(x).dtype(), dtype);
    EXPECT_EQ(ein::clamp(x, 0, 0.5).item(), 0.5);
    EXPECT_EQ((-x).dtype(), dtype);
  }
}

// --- broadcasting and layout ---

TEST(Elementwise, ShapesBroadcastAsNumPys) {
  const unsigned seed = 6;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  int fitted = 0;
  for (int round = 0; round < 3000; ++round) {
    Shape common;
    for (std::int64_t d = below(5); d > 0; --d) common.push_back(below(12) == 0 ? 0 : 1 + below(4));
    const auto operand = [&] {
      Shape shape;
      for (std::size_t d =
               static_cast<std::size_t>(below(static_cast<std::int64_t>(common.rank()) + 1));
           d < common.rank(); ++d) {
        shape.push_back(below(3) == 0 ? ein::Size(1) : below(40) == 0 ? ein::Size(5) : common[d]);
      }
      Tensor x =
          arange(ein::numel(shape)).to(DType::f64).view(shape) + static_cast<double>(below(100));
      if (shape.rank() == 2 && below(2)) x = x.transpose().contiguous().transpose();
      return x;
    };
    const Tensor a = operand(), b = operand();

    // Aligned at the right, sizes are equal or one of them is 1.
    const std::size_t rank = std::max(a.rank(), b.rank());
    Shape shape(rank, 1);
    bool fits = true;
    const auto size_of = [&](const Tensor& x, std::size_t d) {
      return d + x.rank() < rank ? ein::Size(1) : x.shape()[d + x.rank() - rank];
    };
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t m = size_of(a, d), n = size_of(b, d);
      fits &= m == n || m == 1 || n == 1;
      shape[d] = m == 1 ? n : m;
    }
    if (!fits) {
      EXPECT_THROW(a + b, Error);
      continue;
    }
    ++fitted;
    const Values x = a.to_vector<double>(), y = b.to_vector<double>();
    Values expected;
    for (std::int64_t i = 0; i < ein::numel(shape); ++i) {
      const auto place = [&](const Tensor& t) {
        std::int64_t rest = i, at = 0, step = 1;
        for (std::size_t d = rank; d-- > 0;) {
          const std::int64_t index = rest % shape[d];
          rest /= shape[d];
          if (size_of(t, d) > 1) at += index * step;
          step *= size_of(t, d);
        }
        return static_cast<std::size_t>(at);
      };
      expected.push_back(x[place(a)] - 2 * y[place(b)]);
    }
    const Tensor result = a - 2 * b;
    ASSERT_EQ(result.shape(), shape);
    ASSERT_EQ(result.to_vector<double>(), expected)
        << a.shape().to_string() << " and " << b.shape().to_string();
    ASSERT_TRUE(result.is_contiguous());
  }
  EXPECT_GT(fitted, 1500);
}

TEST(Elementwise, ShapesThatDoNotFitAreNamed) {
  expect_error(
      [] {
        zeros({2, 3}) + zeros({4});
      },
      ErrorKind::size,
      "add: shapes (2, 3) and (4,) do not broadcast: 3 meets 4\n  help: sizes must be equal or 1, "
      "aligned at the right");
  expect_error(
      [] {
        zeros({3, 1, 3}) + zeros({5, 1, 1});
      },
      ErrorKind::size,
      "add: shapes (3, 1, 3) and (5, 1, 1) do not broadcast: 3 meets 5\n"
      "  help: sizes must be equal or 1, aligned at the right");
  expect_error(
      [] {
        ein::where(zeros({2}), zeros({3, 2}), zeros({2, 2}));
      },
      ErrorKind::size,
      "where: shapes (3, 2), (2, 2) and (2,) do not broadcast: 3 meets 2\n"
      "  help: sizes must be equal or 1, aligned at the right");
  expect_error([] { zeros({2}) * zeros({0}); }, ErrorKind::size,
               "mul: shapes (2,) and (0,) do not broadcast: 2 meets 0\n  help: sizes must be equal "
               "or 1, aligned at the right");
  const Tensor tall = ein::repeat(zeros({}), "-> 1099511627776 1"),
               wide = ein::repeat(zeros({}), "-> 1099511627776");
  expect_error([&] { tall + wide; }, ErrorKind::overflow,
               "shape (1099511627776, 1099511627776) needs more than 2^63 - 1 bytes");
}

// A size of 1 stretches to 0 as to anything.
TEST(Elementwise, NothingBroadcasts) {
  EXPECT_EQ((zeros({3, 1}) + zeros({0})).shape(), (Shape{3, 0}));
  EXPECT_EQ(ein::exp(zeros({0, 2})).shape(), (Shape{0, 2}));
}

// Long enough for vector code, threads and remainders, from rows, columns and every other element.
TEST(Elementwise, LayoutDoesNotMatter) {
  for (std::int64_t n : {1, 7, 64, 513, 1000}) {
    const Tensor x = (arange(2 * n * n).to(DType::f32) / 16).view({n, 2 * n});
    const Tensor y = x.at({ein::every, ein::slice(1, INT64_MAX, 2)}), t = y.transpose();
    const std::vector<float> a = y.to_vector<float>(), b = t.to_vector<float>();
    std::vector<float> expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(a[i] * b[i]);
    ASSERT_EQ((y * t).to_vector<float>(), expected) << n;
  }
}

// --- clamp, triangles ---

TEST(Elementwise, ClampWantsAnInterval) {
  const Tensor x = floats({-5, 0.25, 5});
  EXPECT_EQ(ein::clamp(x, -1, 1).to_vector<double>(), (Values{-1, 0.25, 1}));
  EXPECT_EQ(ein::clamp(x, -infinity, infinity).to_vector<double>(), (Values{-5, 0.25, 5}));
  expect_error([&] { ein::clamp(x, 2, 1); }, ErrorKind::value,
               "clamp: wants low <= high, got low = 2, high = 1");
  expect_error([&] { ein::clamp(x, 0.5, 0.25); }, ErrorKind::value,
               "clamp: wants low <= high, got low = 0.5, high = 0.25");
  expect_error([&] { ein::clamp(x, nan, 1); }, ErrorKind::value,
               "clamp: wants low <= high, got low = nan, high = 1");
  expect_error([&] { ein::clamp(arange(2), beyond, beyond - 1); }, ErrorKind::value,
               "clamp: wants low <= high, got low = 9007199254740993, high = 9007199254740992");
}

TEST(Elementwise, ClampTakesTensorsAsBounds) {
  const Tensor x = floats({-5, 0.25, 5});
  EXPECT_EQ(ein::clamp(x, floats({-1, 1, 6}), 7).to_vector<double>(), (Values{-1, 1, 6}));
  EXPECT_EQ(ein::clamp(x, -2, floats({-3, 0, 9})).to_vector<double>(), (Values{-3, 0, 5}));
  // One beyond the other: the upper. NaN: NaN.
  EXPECT_EQ(ein::clamp(x, floats({2}), floats({1})).to_vector<double>(), (Values{1, 1, 1}));
  for (const double value : ein::clamp(x, floats({nan}), 1).to_vector<double>())
    EXPECT_TRUE(std::isnan(value));
  for (const double value : ein::clamp(x, 0, floats({nan})).to_vector<double>())
    EXPECT_TRUE(std::isnan(value));
  EXPECT_TRUE(std::isnan(ein::clamp(floats({nan}), floats({0}), 1).to_vector<double>()[0]));
  // They broadcast, and dtypes promote.
  EXPECT_EQ(ein::clamp(x, zeros({2, 1}), 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(ein::clamp(arange(3), ones({}, DType::i32), 1).dtype(), DType::i64);
  EXPECT_EQ(ein::clamp(arange(3), ones({}), 1).dtype(), DType::f32);
  // The gradient goes to x from low to high, both included, as PyTorch's, and else to the bound.
  const Tensor values = from_vector<double>({-5, -1, 0, 1, 5}).requires_grad(true),
               low = full({5}, -1, DType::f64).requires_grad(true),
               high = full({5}, 1, DType::f64).requires_grad(true);
  const Tensor results = ein::clamp(values, low, high);
  results.backward(ones({5}, DType::f64));
  EXPECT_EQ(values.grad().to_vector<double>(), (Values{0, 1, 1, 1, 0}));
  EXPECT_EQ(low.grad().to_vector<double>(), (Values{1, 0, 0, 0, 0}));
  EXPECT_EQ(high.grad().to_vector<double>(), (Values{0, 0, 0, 0, 1}));
}

TEST(Elementwise, TrianglesOfEveryDiagonal) {
  for (const Shape& shape : {Shape{4, 4}, Shape{3, 5}, Shape{5, 3}, Shape{2, 2, 3}, Shape{1, 1},
                             Shape{0, 3}, Shape{2, 0}}) {
    for (DType dtype :
         {DType::f32, DType::f64, DType::i64, DType::u8, DType::bf16, DType::boolean}) {
      const Tensor x = (arange(ein::numel(shape)) + 1).to(dtype).view(shape);
      const Values values = x.to_vector<double>();
      for (std::int64_t diagonal :
           {INT64_MIN, std::int64_t{-9}, std::int64_t{-2}, std::int64_t{-1}, std::int64_t{0},
            std::int64_t{1}, std::int64_t{3}, std::int64_t{9}, INT64_MAX}) {
        Values upper = values, lower = values;
        const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::int64_t column = static_cast<std::int64_t>(i) % columns,
                             row = static_cast<std::int64_t>(i) / columns % rows;
          if (column - row < diagonal) upper[i] = 0;
          if (column - row > diagonal) lower[i] = 0;
        }
        ASSERT_EQ(ein::triu(x, "... [i j]", diagonal).to_vector<double>(), upper)
            << shape.to_string() << " " << diagonal;
        ASSERT_EQ(ein::tril(x, "... [i j]", diagonal).to_vector<double>(), lower)
            << shape.to_string() << " " << diagonal;
        ASSERT_EQ(ein::triu(x, "... [i j]", diagonal).dtype(), dtype);
      }
    }
  }
  // What is cut away does not matter.
  EXPECT_EQ(ein::tril(full({2, 2}, infinity), "... [i j]").to_vector<double>(),
            (Values{infinity, 0, infinity, infinity}));
}

// --- all_close ---

TEST(Elementwise, AllCloseComparesElementByElement) {
  const Tensor x = floats({1, 2});
  EXPECT_TRUE(ein::all_close(x, x + 1e-6));
  EXPECT_FALSE(ein::all_close(x, x + 1e-3));
  EXPECT_TRUE(ein::all_close(x, x + 1e-3, 0, 1e-2));
  EXPECT_FALSE(ein::all_close(x, floats({1, 2, 3})));
  EXPECT_FALSE(ein::all_close(x, x.view({2, 1})));
  EXPECT_FALSE(ein::all_close(x, x.to(DType::f64)));
  EXPECT_FALSE(ein::all_close(floats({nan}), floats({nan})));
  EXPECT_TRUE(ein::all_close(floats({infinity, -infinity}), floats({infinity, -infinity})));
  EXPECT_FALSE(ein::all_close(floats({infinity}), floats({-infinity})));
  EXPECT_FALSE(ein::all_close(floats({1}), floats({infinity})));
  EXPECT_FALSE(ein::all_close(floats({infinity}), floats({1})));
  EXPECT_TRUE(ein::all_close(zeros({0}), zeros({0})));
  EXPECT_FALSE(ein::all_close(integers({beyond}), integers({beyond - 1}), 0, 0));
  EXPECT_TRUE(ein::all_close(integers({beyond}), integers({beyond - 1}), 0, 1));
  EXPECT_FALSE(ein::all_close(integers({INT64_MIN}), integers({INT64_MAX}), 1, 0));
}

// --- matmul ---

TEST(Matmul, TheLecturesRows) {
  EXPECT_EQ(ein::matmul(ones({16, 32}), ones({32, 2})).shape(), (Shape{16, 2}));
  EXPECT_EQ(ein::matmul(ones({4, 8, 16, 32}), ones({32, 2})).shape(), (Shape{4, 8, 16, 2}));
  const Tensor x = ones({2, 2, 3});
  const Tensor y = ein::matmul(x, ein::rearrange(x, "b i j -> b j i"));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.to_vector<double>(), Values(8, 3));
}

// Against three loops, over small whole numbers, in every dtype that holds them.
TEST(Matmul, IsTheSumOfProducts) {
  const unsigned seed = 10;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 400; ++round) {
    const std::int64_t rows = below(8), inner = below(8), columns = below(8);
    Shape batch;
    for (std::int64_t d = below(3); d > 0; --d) batch.push_back(1 + below(3));
    const auto batch_of_operand = [&] {
      Shape shape;
      for (std::size_t d =
               static_cast<std::size_t>(below(static_cast<std::int64_t>(batch.rank()) + 1));
           d < batch.rank(); ++d) {
        shape.push_back(below(3) ? batch[d] : ein::Size(1));
      }
      return shape;
    };
    const bool row_vector = below(6) == 0, column_vector = below(6) == 0;
    Shape a_shape = row_vector ? Shape{} : batch_of_operand(),
          b_shape = column_vector ? Shape{} : batch_of_operand();
    if (!row_vector) a_shape.push_back(rows);
    a_shape.push_back(inner);
    b_shape.push_back(inner);
    if (!column_vector) b_shape.push_back(columns);
    constexpr DType dtypes[] = {DType::f32, DType::f64, DType::i64, DType::i32, DType::bf16};
    const DType dtype = dtypes[below(5)];
    const auto make = [&](const Shape& shape) {
      Values values;
      for (std::int64_t i = 0; i < ein::numel(shape); ++i)
        values.push_back(static_cast<double>(below(7) - 3));
      return from_vector(values, shape).to(dtype);
    };
    const Tensor a = make(a_shape), b = make(b_shape);
    const Tensor c = ein::matmul(a, b);

    // As matrices, with batch axes of size 1 in front.
    const auto as_matrices = [&](const Tensor& x, bool vector, bool left) {
      Shape shape = x.shape();
      if (vector) shape = left ? Shape{1, inner} : Shape{inner, 1};
      Shape longer(batch.rank() + 2 - shape.rank(), 1);
      for (std::int64_t size : shape) longer.push_back(size);
      return x.view(longer);
    };
    const Tensor am = as_matrices(a, row_vector, true), bm = as_matrices(b, column_vector, false);
    Shape full_batch;
    for (std::size_t d = 0; d < batch.rank(); ++d)
      full_batch.push_back(std::max(am.shape()[d], bm.shape()[d]));
    const std::int64_t m = row_vector ? 1 : rows, n = column_vector ? 1 : columns;
    Values expected;
    for (std::int64_t i = 0; i < ein::numel(full_batch); ++i) {
      const auto matrix = [&](const Tensor& x) {
        std::vector<ein::Index> at(batch.rank(), 0);
        std::int64_t rest = i;
        for (std::size_t d = batch.rank(); d-- > 0;) {
          at[d] = x.shape()[d] == 1 ? ein::Size(0) : rest % full_batch[d];
          rest /= full_batch[d];
        }
        return x.at(at).to_vector<double>();
      };
      const Values x = matrix(am), y = matrix(bm);
      for (std::int64_t r = 0; r < m; ++r) {
        for (std::int64_t s = 0; s < n; ++s) {
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k) {
            sum +=
                x[static_cast<std::size_t>(r * inner + k)] * y[static_cast<std::size_t>(k * n + s)];
          }
          expected.push_back(sum);
        }
      }
    }
    const std::string what =
        a_shape.to_string() + " times " + b_shape.to_string() + " in " + std::string(name(dtype));
    // A batch that only a vector's partner lacks is no axis of the result.
    Shape shape;
    const std::size_t batch_rank =
        std::max(row_vector ? 0 : a_shape.rank() - 2, column_vector ? 0 : b_shape.rank() - 2);
    for (std::size_t d = batch.rank() - batch_rank; d < batch.rank(); ++d)
      shape.push_back(full_batch[d]);
    if (!row_vector) shape.push_back(rows);
    if (!column_vector) shape.push_back(columns);
    ASSERT_EQ(c.shape(), shape) << what;
    ASSERT_EQ(c.dtype(), is_floating(dtype) ? dtype : DType::i64);  // a product of matrices sums
    ASSERT_EQ(c.to_vector<double>(), expected) << what;
  }
}

TEST(Elementwise, ZeroNegatedIsMinusZero) {
  for (DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (std::int64_t n : {1, 7, 100}) {
      for (double x : (-zeros({n}, dtype)).to_vector<double>())
        EXPECT_TRUE(std::signbit(x)) << name(dtype);
      for (double x : (-full({n}, -0.0, dtype)).to_vector<double>())
        EXPECT_FALSE(std::signbit(x)) << name(dtype);
    }
  }
}

TEST(Elementwise, AConditionThatIsAFractionHolds) {
  const Tensor condition = ein::from_vector<double>({0.5, 0.0, -0.25, 1e-300});
  const std::vector<std::int64_t> chosen{1, 2, 1, 1};
  for (DType dtype : {DType::i64, DType::i32, DType::u8, DType::f32, DType::bf16, DType::f64}) {
    const Tensor x = where(condition, ones({4}, dtype), full({4}, 2, dtype));
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(x.to_vector<std::int64_t>(), chosen) << name(dtype);
  }
}

TEST(Matmul, SaysWhatDoesNotFit) {
  expect_error(
      [] {
        ein::matmul(zeros({2, 3}), zeros({4, 5}));
      },
      ErrorKind::size, "matmul: 3 columns meet 4 rows in shapes (2, 3) and (4, 5)");
  expect_error([] { ein::matmul(zeros({3}), zeros({4})); }, ErrorKind::size,
               "matmul: 3 columns meet 4 rows in shapes (3,) and (4,)");
  expect_error([] { ein::matmul(zeros({}), zeros({4})); }, ErrorKind::rank,
               "matmul: wants no scalars, got shapes () and (4,)");
  expect_error(
      [] {
        ein::matmul(zeros({2, 2, 3}), zeros({3, 3, 4}));
      },
      ErrorKind::size,
      "matmul: the axes before the matrices do not broadcast, 2 meets 3 in shapes (2, 2, 3) and "
      "(3, 3, 4)");
  expect_error(
      [] {
        ein::matmul(zeros({2, 3}), zeros({3, 4}, DType::bf16));
      },
      ErrorKind::dtype,
      "matmul: operands have different dtypes: f32 and bf16\n  help: cast one with .to(dtype)");
}

}  // namespace
