// New tensors: constants, ranges, random numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "nest/random.hpp"

namespace {

using ein::DType;
using ein::Error;
using ein::ErrorKind;
using ein::Shape;
using ein::Tensor;
using Values = std::vector<double>;
using Integers = std::vector<std::int64_t>;

constexpr DType every_dtype[] = {DType::f64,    DType::f32,    DType::f16, DType::bf16,
                                 DType::f8e4m3, DType::f8e5m2, DType::i64, DType::i32,
                                 DType::u8,     DType::boolean};
constexpr DType floating_dtypes[] = {DType::f64,  DType::f32,    DType::f16,
                                     DType::bf16, DType::f8e4m3, DType::f8e5m2};

void expect_error(const std::function<void()>& call, ErrorKind kind, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no Error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), text);
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << text;
  }
}

// The seed is the process's; a test leaves none behind.
class Create : public testing::Test {
 protected:
  void SetUp() override { ein::manual_seed(0); }
  void TearDown() override {
    ein::manual_seed(0);
    ein::set_num_threads(threads_);
  }

 private:
  int threads_ = ein::num_threads();
};

TEST_F(Create, Constants) {
  for (DType dtype : every_dtype) {
    EXPECT_EQ(ein::zeros({2, 3}, dtype).to_vector<double>(), Values(6, 0));
    EXPECT_EQ(ein::ones({2, 3}, dtype).to_vector<double>(), Values(6, 1));
    EXPECT_EQ(ein::full({5}, 1, dtype).to_vector<double>(), Values(5, 1));
    EXPECT_EQ(ein::empty({2, 3}, dtype).shape(), (Shape{2, 3}));
    EXPECT_EQ(ein::full({}, 1, dtype).dtype(), dtype);
    EXPECT_EQ(ein::zeros({0, 3}, dtype).numel(), 0);
  }
  EXPECT_TRUE(ein::zeros({3, 4}).is_contiguous());
  EXPECT_EQ(ein::full({2}, 0.1, DType::f32).to_vector<float>(), (std::vector<float>{0.1f, 0.1f}));
  EXPECT_EQ(ein::full({2}, 0.1, DType::f64).to_vector<double>(), (Values{0.1, 0.1}));
  EXPECT_EQ(ein::full({}, INT64_MAX, DType::i64).item<std::int64_t>(), INT64_MAX);
  EXPECT_EQ(ein::full({}, 2.9, DType::i32).item(), 2);
  EXPECT_EQ(ein::full({}, -2.9, DType::u8).item(), 0);  // out of range: the nearest
  EXPECT_EQ(ein::full({}, -1, DType::u8).item(), 255);  // modulo 2^8
  EXPECT_EQ(ein::full({}, true, DType::f32).item(), 1);
  EXPECT_EQ(ein::full({}, UINT64_MAX, DType::f64).item(), 0x1p64);
  EXPECT_TRUE(std::isnan(ein::full({}, NAN, DType::f16).item()));
  EXPECT_EQ(ein::full({}, -0.0).item(), 0);
  EXPECT_TRUE(std::signbit(ein::full({}, -0.0).item()));
}

TEST_F(Create, ImpossibleShapes) {
  expect_error([] { ein::zeros({2, -1}); }, ErrorKind::shape, "shape (2, -1) has a negative size");
  expect_error([] { ein::empty({-1}); }, ErrorKind::shape, "shape (-1,) has a negative size");
  expect_error(
      [] {
        ein::randn({INT64_MAX, 2});
      },
      ErrorKind::overflow, "shape (9223372036854775807, 2) needs more than 2^63 - 1 bytes");
  expect_error([] { ein::ones({std::int64_t{1} << 60}, DType::f64); }, ErrorKind::overflow,
               "shape (1152921504606846976,) needs more than 2^63 - 1 bytes");
  expect_error([] { ein::zeros({std::int64_t{1} << 60}, DType::u8); }, ErrorKind::memory,
               "cannot allocate 1152921504606846976 bytes");
  expect_error([] { ein::eye(-1); }, ErrorKind::shape, "shape (-1, -1) has a negative size");
  expect_error([] { ein::eye(INT64_MAX); }, ErrorKind::overflow,
               "shape (9223372036854775807, 9223372036854775807) needs more than 2^63 - 1 bytes");
}

TEST_F(Create, Ranges) {
  EXPECT_EQ(ein::arange(5).to_vector<std::int64_t>(), (Integers{0, 1, 2, 3, 4}));
  EXPECT_EQ(ein::arange(5).dtype(), DType::i64);
  EXPECT_EQ(ein::arange(2, 11, 3).to_vector<std::int64_t>(), (Integers{2, 5, 8}));
  EXPECT_EQ(ein::arange(2, 12, 3).to_vector<std::int64_t>(), (Integers{2, 5, 8, 11}));
  EXPECT_EQ(ein::arange(5, 0, -2).to_vector<std::int64_t>(), (Integers{5, 3, 1}));
  EXPECT_EQ(ein::arange(5, 1, -2).to_vector<std::int64_t>(), (Integers{5, 3}));
  EXPECT_EQ(ein::arange(0).numel(), 0);
  EXPECT_EQ(ein::arange(-3).numel(), 0);
  EXPECT_EQ(ein::arange(3, 3).numel(), 0);
  EXPECT_EQ(ein::arange(0, 5, -1).numel(), 0);
  EXPECT_EQ(ein::arange(2.5).to_vector<double>(), (Values{0, 1, 2}));
  EXPECT_EQ(ein::arange(2.5).dtype(), DType::f32);
  EXPECT_EQ(ein::arange(0, 1, 0.25).to_vector<double>(), (Values{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(ein::arange(1.0, 0.0, -0.25).to_vector<double>(), (Values{1, 0.75, 0.5, 0.25}));
  // start + i · step, each rounded once from f64: steps do not add up their errors.
  const Tensor x = ein::arange(0.0, 1000.0, 0.1);
  ASSERT_EQ(x.numel(), 10'000);
  EXPECT_EQ(x.to_vector<float>()[9999], static_cast<float>(9999 * 0.1));
}

TEST_F(Create, RangesAreExactBeyondDoubles) {
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(ein::arange(large, large + 3).to_vector<std::int64_t>(),
            (Integers{large, large + 1, large + 2}));
  EXPECT_EQ(ein::arange(INT64_MAX - 1, INT64_MAX).to_vector<std::int64_t>(),
            (Integers{INT64_MAX - 1}));
  EXPECT_EQ(ein::arange(INT64_MIN, INT64_MAX, INT64_MAX).to_vector<std::int64_t>(),
            (Integers{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(ein::arange(INT64_MAX, INT64_MIN, INT64_MIN).to_vector<std::int64_t>(),
            (Integers{INT64_MAX, -1}));
}

TEST_F(Create, RangesThatAreNone) {
  expect_error([] { ein::arange(0, 5, 0); }, ErrorKind::value,
               "arange: from 0 to 5 by 0: the step must not be 0, and all three must be finite");
  expect_error([] { ein::arange(0.0, INFINITY); }, ErrorKind::value,
               "arange: from 0 to inf by 1: the step must not be 0, and all three must be finite");
  expect_error([] { ein::arange(NAN); }, ErrorKind::value,
               "arange: from 0 to nan by 1: the step must not be 0, and all three "
               "must be finite");
  expect_error(
      [] { ein::arange(INT64_MIN, INT64_MAX); }, ErrorKind::value,
      "arange: from -9223372036854775808 to 9223372036854775807 by 1 has too many elements");
  expect_error([] { ein::arange(0.0, 1e300, 1e-10); }, ErrorKind::value,
               "arange: from 0 to 1e+300 by 1e-10 has too many elements");
  expect_error([] { ein::arange(INT64_MAX); }, ErrorKind::overflow,
               "shape (9223372036854775807,) needs more than 2^63 - 1 bytes");
}

TEST_F(Create, Identities) {
  EXPECT_EQ(ein::eye(3).to_vector<double>(), (Values{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  for (DType dtype : every_dtype)
    EXPECT_EQ(ein::eye(2, dtype).to_vector<double>(), (Values{1, 0, 0, 1}));
  EXPECT_EQ(ein::eye(0).shape(), (Shape{0, 0}));
  EXPECT_EQ(ein::eye(1).item(), 1);
}

TEST_F(Create, AnIdentityInACompiledFunction) {
  auto f = ein::compile([](const Tensor& x) { return x + ein::eye(2); });
  EXPECT_EQ(f(ein::ones({2, 2})).to_vector<double>(), (Values{2, 1, 1, 2}));
}

TEST_F(Create, FromVectors) {
  EXPECT_EQ(ein::from_vector<float>({1, 2}).dtype(), DType::f32);
  EXPECT_EQ(ein::from_vector<bool>({true, false}).dtype(), DType::boolean);
  EXPECT_EQ(ein::from_vector<std::uint8_t>({1, 2, 3, 4}, {2, 2}).at({1, 0}).item(), 3);
  EXPECT_EQ(ein::from_vector<double>({}).shape(), Shape{0});
  EXPECT_EQ(ein::from_vector<double>({7}, {}).item(), 7);
  EXPECT_EQ(ein::from_vector<float>({}, {3, 0}).shape(), (Shape{3, 0}));
  expect_error([] { ein::from_vector<float>({1}, {0}); }, ErrorKind::shape,
               "from_vector: shape (0,) wants 0 values, got 1");
  expect_error([] { ein::from_vector<float>({1}, {-1}); }, ErrorKind::shape,
               "shape (-1,) has a negative size");
}

// --- random numbers ---

// Element i of random tensor number k is number i of stream k of the seed.
TEST_F(Create, RandomNumbersAreThoseOfTheirStream) {
  ein::manual_seed(42);
  const std::vector<double> a = ein::randn({3, 5}, DType::f64).to_vector<double>();
  const std::vector<double> b = ein::rand({1000}, DType::f64).to_vector<double>();
  const std::vector<float> c = ein::randn({700}).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i], ein::random::normal_of_uniform(ein::random::uniform(42, 0, i)));
  }
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i], ein::random::uniform(42, 1, i));
  for (std::size_t i = 0; i < c.size(); ++i) {
    EXPECT_EQ(c[i],
              static_cast<float>(ein::random::normal_of_uniform(ein::random::uniform(42, 2, i))));
  }
}

// What the first numbers are, so that no change makes every seeded run another one unnoticed. The
// uniform of (seed 0, stream 0, index 0) is that of random_test.cpp's table.
TEST_F(Create, FirstNumbersStayTheSame) {
  EXPECT_EQ(ein::rand({1}, DType::f64).item(), 0x1.c2d38b1acc4fdp-1);
  ein::manual_seed(0);
  EXPECT_EQ(ein::randn({2}, DType::f64).to_vector<double>(),
            (Values{0x1.2d769e93cb521p+0, 0x1.11fbd69d8e303p-2}));
  ein::manual_seed(0);
  EXPECT_EQ(ein::randn({2}).to_vector<float>(),
            (std::vector<float>{0x1.2d769ep+0f, 0x1.11fbd6p-2f}));
}

TEST_F(Create, TheSameSeedGivesTheSameNumbers) {
  const auto draw = [] {
    return std::vector{ein::randn({7}).to_vector<double>(), ein::rand({7}).to_vector<double>(),
                       ein::trunc_normal({7}).to_vector<double>()};
  };
  ein::manual_seed(5);
  const auto first = draw(), second = draw();
  EXPECT_NE(first, second);
  ein::manual_seed(5);
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(draw(), second);
  ein::manual_seed(6);
  EXPECT_NE(draw(), first);
}

TEST_F(Create, ThreadsDoNotMatter) {
  constexpr std::int64_t n = 1'000'003;
  std::vector<std::vector<float>> drawn;
  for (int threads : {1, 2, 3, 8}) {
    ein::set_num_threads(threads);
    ein::manual_seed(1);
    std::vector<float> numbers = ein::randn({n}).to_vector<float>();
    const std::vector<float> more = ein::trunc_normal({n / 3}, 0.5, -1, 1).to_vector<float>();
    numbers.insert(numbers.end(), more.begin(), more.end());
    drawn.push_back(std::move(numbers));
  }
  for (const auto& numbers : drawn) EXPECT_TRUE(numbers == drawn[0]);
}

// Rounded after each operation, on every processor.
TEST_F(Create, TruncatedNormalNumbersAreThoseOfSingleOperations) {
  ein::manual_seed(5);
  const Values uniform = ein::rand({5000}, DType::f64).to_vector<double>();
  ein::manual_seed(5);
  const Values got = ein::trunc_normal({5000}, 0.5, -1, 0.75, DType::f64).to_vector<double>();
  const double from = ein::random::normal_cdf(-2), width = ein::random::normal_cdf(1.5) - from;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const volatile double product = uniform[i] * width;
    const double x = ein::random::normal_quantile(from + product) * 0.5;
    ASSERT_EQ(got[i], std::min(std::max(x, -1.0), 0.75)) << i;
  }
}

// A shape only says how the same numbers are cut.
TEST_F(Create, ShapesDoNotMatter) {
  ein::manual_seed(2);
  const Values flat = ein::rand({60}).to_vector<double>();
  ein::manual_seed(2);
  EXPECT_EQ(ein::rand({3, 4, 5}).to_vector<double>(), flat);
}

struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY;
};
Moments moments_of(const Tensor& x) {
  Moments m;
  const Values values = x.to_vector<double>();
  for (double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (double v : values)
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Within five standard errors, with n = 10^6: that of a mean is deviation / 1000.
TEST_F(Create, MomentsAreTheDistributions) {
  const Shape shape{1000, 1000};
  for (DType dtype : {DType::f32, DType::f64}) {
    const Moments normal = moments_of(ein::randn(shape, dtype));
    EXPECT_NEAR(normal.mean, 0, 0.005);
    EXPECT_NEAR(normal.deviation, 1, 0.005);
    EXPECT_GT(normal.high, 4);
    EXPECT_LT(normal.low, -4);
    const Moments uniform = moments_of(ein::rand(shape, dtype));
    EXPECT_NEAR(uniform.mean, 0.5, 0.0015);
    EXPECT_NEAR(uniform.deviation, std::sqrt(1.0 / 12), 0.0015);
    EXPECT_GE(uniform.low, 0);
    EXPECT_LT(uniform.high, 1);
    EXPECT_GT(uniform.high, 0.999);
  }
}

TEST_F(Create, UniformNumbersStayBelowOne) {
  for (DType dtype : floating_dtypes) {
    const Moments m = moments_of(ein::rand({200'000}, dtype));
    EXPECT_GE(m.low, 0) << name(dtype);
    EXPECT_LT(m.high, 1) << name(dtype);
    EXPECT_NEAR(m.mean, 0.5, 0.02) << name(dtype);
  }
}

// The mean and variance of a normal distribution conditioned on an interval (Johnson, Kotz and
// Balakrishnan, Continuous Univariate Distributions, volume 1, section 13.10.1), computed with
// std::erfc.
TEST_F(Create, TruncatedNormalNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  const struct {
    double std, a, b;
  } cases[] = {{1, -2, 2},  {0.5, -3, 3},  {2, -1, 3},    {1, 0.5, 1},
               {1, 3, inf}, {1, -inf, -1}, {0.01, -3, 3}, {1, -inf, inf}};
  for (const auto& c : cases) {
    const Moments m = moments_of(ein::trunc_normal({1000, 1000}, c.std, c.a, c.b, DType::f64));
    EXPECT_GE(m.low, c.a);
    EXPECT_LE(m.high, c.b);
    const auto density = [](double x) {
      return std::isinf(x) ? 0 : std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
    };
    // On the right, tails are exact, differences of values near 1 are not.
    const auto mass = [&](double a, double b) {
      return a > 0 ? (std::erfc(a / std::sqrt(2.0)) - std::erfc(b / std::sqrt(2.0))) / 2
                   : (std::erfc(-b / std::sqrt(2.0)) - std::erfc(-a / std::sqrt(2.0))) / 2;
    };
    const double a = c.a / c.std, b = c.b / c.std, z = mass(a, b);
    const double mean = (density(a) - density(b)) / z;
    const double edge = (std::isinf(a) ? 0 : a * density(a)) - (std::isinf(b) ? 0 : b * density(b));
    const double deviation = std::sqrt(1 + edge / z - mean * mean);
    EXPECT_NEAR(m.mean, c.std * mean, 0.005 * c.std * deviation)
        << c.std << " " << c.a << " " << c.b;
    EXPECT_NEAR(m.deviation, c.std * deviation, 0.005 * c.std * deviation)
        << c.std << " " << c.a << " " << c.b;
  }
}

// Far in a tail, where the distribution function has no digits left, numbers still lie in the
// interval.
TEST_F(Create, TruncatedNormalNumbersOfTheTails) {
  const Moments right = moments_of(ein::trunc_normal({10'000}, 1, 10, 11, DType::f64));
  EXPECT_GE(right.low, 10);
  EXPECT_LE(right.high, 11);
  EXPECT_NEAR(right.mean, 10 + 0.0981,
              0.01);  // the tail falls off as exp(-10 x): a mean excess near 1/10
  const Moments left = moments_of(ein::trunc_normal({10'000}, 1, -11, -10, DType::f64));
  EXPECT_NEAR(left.mean, -right.mean, 0.01);
  EXPECT_EQ(ein::trunc_normal({1}, 1, 100, 101, DType::f64).item(), 100);
  // Bounds are values, not multiples of std; in a narrow dtype, as it rounds them.
  const Moments narrow = moments_of(ein::trunc_normal({10'000}, 0.02, -3, 3, DType::bf16));
  EXPECT_NEAR(narrow.deviation, 0.02, 0.001);
  const Moments f32 = moments_of(ein::trunc_normal({100'000}, 10, -0.1, 0.1));
  EXPECT_GE(f32.low, -0.1f);
  EXPECT_LE(f32.high, 0.1f);
}

TEST_F(Create, RandomNumbersAreFloats) {
  for (DType dtype : floating_dtypes) {
    EXPECT_EQ(ein::randn({2}, dtype).dtype(), dtype);
    EXPECT_EQ(ein::rand({2}, dtype).dtype(), dtype);
    EXPECT_EQ(ein::trunc_normal({2}, 1, -2, 2, dtype).dtype(), dtype);
  }
  expect_error([] { ein::randn({2}, DType::i64); }, ErrorKind::dtype,
               "randn: i64 is not a floating-point dtype");
  expect_error([] { ein::rand({2}, DType::boolean); }, ErrorKind::dtype,
               "rand: bool is not a floating-point dtype");
  expect_error([] { ein::trunc_normal({2}, 1, -1, 1, DType::u8); }, ErrorKind::dtype,
               "trunc_normal: u8 is not a floating-point dtype");
  const std::string wants = "trunc_normal: wants std > 0 and a < b, got std = ";
  expect_error([] { ein::trunc_normal({2}, 0); }, ErrorKind::value, wants + "0, a = -2, b = 2");
  expect_error([] { ein::trunc_normal({2}, NAN); }, ErrorKind::value, wants + "nan, a = -2, b = 2");
  expect_error([] { ein::trunc_normal({2}, 1, 2, 2); }, ErrorKind::value,
               wants + "1, a = 2, b = 2");
  expect_error([] { ein::trunc_normal({2}, 1, NAN, 2); }, ErrorKind::value,
               wants + "1, a = nan, b = 2");
}

// A call that fails takes no number from the sequence.
TEST_F(Create, FailedCallsDrawNothing) {
  ein::manual_seed(3);
  const Values first = ein::rand({4}).to_vector<double>();
  ein::manual_seed(3);
  EXPECT_THROW(ein::rand({2}, DType::i32), Error);
  EXPECT_THROW(ein::rand({-2}), Error);
  EXPECT_EQ(ein::rand({4}).to_vector<double>(), first);
}

}  // namespace
