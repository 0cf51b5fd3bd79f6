// cumprod, cummax, cummin and logcumsumexp: values and gradients are PyTorch's (2.15), but where
// its rounding differs, and where NaN is a factor of a slope, which is NaN then.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

void expect_same(const Values& got, const Values& want, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << what << " at " << i << ": " << got[i] << ", " << want[i];
  }
}

/// The gradient of f at x, its results weighted 1, 2, 3, ...
template <class F>
Values gradient_of(F f, const Values& x, DType dtype = DType::f64) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Tensor at = make_tensor(x, {n}, dtype);
  at.requires_grad(true);
  return get_values(gradients(f(at), (arange(n) + 1).to(dtype), std::vector<Tensor>{at}).front());
}
const auto product = [](const Tensor& x) { return cumprod(x, "[n]"); };
const auto greatest = [](const Tensor& x) { return cummax(x, "[n]"); };
const auto least = [](const Tensor& x) { return cummin(x, "[n]"); };

TEST(Cumulative, Values) {
  const Tensor x = make_tensor({1, 9, 3, 4, 2, 7, 8, -1}, {2, 4});
  EXPECT_EQ(get_values(cumprod(x, "a [b]")), (Values{1, 9, 27, 108, 2, 14, 112, -112}));
  EXPECT_EQ(get_values(cumprod(x, "[a] b")), (Values{1, 9, 3, 4, 2, 63, 24, -4}));
  EXPECT_EQ(get_values(cummax(x, "a [b]")), (Values{1, 9, 9, 9, 2, 7, 8, 8}));
  EXPECT_EQ(get_values(cummin(x, "[a] b")), (Values{1, 9, 3, 4, 1, 7, 3, -1}));
  EXPECT_EQ(cummax(zeros({2, 0}), "a [b]").shape(), (Shape{2, 0}));
}

TEST(Cumulative, NaNStays) {
  const Tensor x = make_tensor({1, 1, 0, 2, 2, -0.0, nan, 3, nan, 5, 2}, {11});
  expect_same(get_values(greatest(x)), {1, 1, 1, 2, 2, 2, nan, nan, nan, nan, nan}, "cummax");
  expect_same(get_values(least(x)), {1, 1, 0, 0, 0, 0, nan, nan, nan, nan, nan}, "cummin");
  expect_same(get_values(product(x)), {1, 1, 0, 0, 0, 0, nan, nan, nan, nan, nan}, "cumprod");
}

TEST(Cumulative, DTypes) {
  EXPECT_EQ(product(full({3}, 100, DType::u8)).dtype(), DType::i64);
  EXPECT_EQ(product(full({3}, 100, DType::u8)).to_vector<std::int64_t>().back(), 1000000);
  EXPECT_EQ(product(full({2}, std::uint64_t{1} << 63, DType::u64)).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{std::uint64_t{1} << 63, 0}));
  EXPECT_EQ(cumprod(full({3}, 100, DType::u8), "[n]", as(DType::u8)).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{100, 16, 64}));
  EXPECT_EQ(greatest(from_vector(std::vector<bool>{false, true, false}, {3})).to_vector<bool>(),
            (std::vector<bool>{false, true, true}));
  EXPECT_EQ(greatest(from_vector(std::vector<std::uint64_t>{1, UINT64_MAX, 5}, {3}))
                .to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{1, UINT64_MAX, UINT64_MAX}));
  EXPECT_EQ(least(from_vector(std::vector<std::int8_t>{1, -128, 5}, {3})).to_vector<std::int8_t>(),
            (std::vector<std::int8_t>{1, -128, -128}));
  test::expect_error(
      [] {
        cumprod(ones({2, 2}), runtime("[a b]"));
      },
      ErrorKind::pattern, {"cumprod"});
}

TEST(Cumulative, GradientsOfProductsWithZeros) {
  expect_same(gradient_of(product, {1, 2, 3, 4}), {119, 59, 38, 24}, "no zero");
  expect_same(gradient_of(product, {2, 0, 3, 4}), {1, 118, 0, 0}, "one");
  expect_same(gradient_of(product, {2, 0, 3, 0, 5}), {1, 22, 0, 0, 0}, "two");
  expect_same(gradient_of(product, {0, 0, 3}), {1, 0, 0}, "at the beginning");
  expect_same(gradient_of(product, {0, 2, 3}), {23, 0, 0}, "the first");
  expect_same(gradient_of(product, {2, nan, 3}), {nan, 22, nan}, "NaN");
  expect_same(gradient_of(product, {2, 0, nan, 3}), {nan, nan, 0, nan}, "NaN after a zero");
  // The products of what is not zero would overflow.
  expect_same(gradient_of(product, {1e30, 0, 1e30, 1e30}, DType::f32), {1, infinity, 0, 0},
              "large");
  expect_same(gradient_of(product, {2, 0, 3, 4}, DType::bf16), {1, 118, 0, 0}, "bf16");
}

// Of the sum of weighted products: ∂²/∂x_i∂x_m is, of the products that have both, the others.
TEST(Cumulative, SecondDerivativesOfProductsWithZeros) {
  const auto sum = [](const Tensor& x) {
    const Tensor weights = (arange(x.numel()) + 1).to(DType::f64);
    return reduce(product(x) * weights, "i ->", "sum");
  };
  for (const Values& x : {Values{2, 3, 5, 7}, Values{2, 0, 5, 3}, Values{0, 4, 5, 3},
                          Values{2, 0, 0, 3}, Values{3, 0, 5, 0, 2}, Values{0, 7, 0, 0, 2}}) {
    const Tensor at = make_tensor(x, {static_cast<std::int64_t>(x.size())}, DType::f64);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto slope = [&](const Tensor& t) { return grad(sum)(t).at({static_cast<int>(i)}); };
      const Values found = get_values(grad(slope)(at));
      for (std::size_t m = 0; m < x.size(); ++m) {
        double expected = 0;
        for (std::size_t j = std::max(i, m); j < x.size() && m != i; ++j) {
          double others = static_cast<double>(1 + j);
          for (std::size_t k = 0; k <= j; ++k) others *= k == i || k == m ? 1 : x[k];
          expected += others;
        }
        EXPECT_NEAR(found[m], expected, 1e-12) << "element " << i << ", " << m;
      }
    }
  }
}

const auto log_sum = [](const Tensor& x) { return logcumsumexp(x, "[n]"); };

TEST(Cumulative, LogarithmsOfSums) {
  const auto expect_near = [](const Values& got, const Values& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(got[i] == want[i] ||
                  std::abs(got[i] - want[i]) < 1e-15 * std::abs(want[i]) + 1e-15 ||
                  (std::isnan(got[i]) && std::isnan(want[i])))
          << i << ": " << got[i] << ", " << want[i];
    }
  };
  const auto of = [](const Values& x) {
    return get_values(log_sum(make_tensor(x, {static_cast<std::int64_t>(x.size())}, DType::f64)));
  };
  expect_near(
      of({1, -infinity, 3, 2, 2.5, -1000, 1000}),
      {1, 1, 3.1269280110429727, 3.4076059644443806, 3.7465672691737915, 3.7465672691737915, 1000});
  expect_near(of({-infinity, -infinity, 1, infinity, 2}),
              {-infinity, -infinity, 1, infinity, infinity});
  expect_near(of({-infinity, -1000, -1e30}), {-infinity, -1000, -1000});
  expect_near(of({1, nan, 2}), {1, nan, nan});
  EXPECT_EQ(logcumsumexp(zeros({2, 0}), "a [b]").shape(), (Shape{2, 0}));
  EXPECT_EQ(logcumsumexp(zeros({2, 3}, DType::bf16), "[a] b").dtype(), DType::bf16);
  test::expect_error([] { logcumsumexp(zeros({2}, DType::i64), "[n]"); }, ErrorKind::dtype,
                     {"logcumsumexp", "i64"});
}

// The results of many small steps are as exact as one of them.
TEST(Cumulative, LogarithmsOfLongSumsKeepTheirDigits) {
  constexpr std::int64_t n = 100000;
  for (const double step : {1e-7, 1e-3, -1e-4}) {
    const Tensor x = (arange(n).to(DType::f64) * step).to(DType::f32);
    const Values elements = get_values(x), sums = get_values(log_sum(x));
    long double most = -infinity, sum = 0;
    double worst = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto e = static_cast<long double>(elements[i]);
      sum = e > most ? sum * std::exp(most - e) + 1 : sum + std::exp(e - most);
      most = std::max(most, e);
      const long double want = most + std::log(sum);
      worst =
          std::max(worst, static_cast<double>(std::abs(static_cast<long double>(sums[i]) - want) /
                                              std::max<long double>(1, std::abs(want))));
    }
    EXPECT_LT(worst, 1e-7) << step;
  }
}

TEST(Cumulative, GradientsOfLogarithmsOfSums) {
  // PyTorch's.
  expect_same(gradient_of(log_sum, {-infinity, 1, -1000}), {nan, 5, 0}, "-infinity");
  const Values found = gradient_of(log_sum, {0.5, -1, 2, 700, 1.5});
  double total = 0;
  for (const double slope : found) total += slope;
  EXPECT_NEAR(total, 15, 1e-13);  // those of one result are 1 together
  EXPECT_NEAR(found[3], 9, 1e-13);
}

TEST(Cumulative, GradientsOfExtremesGoToTheLastOfEqualElements) {
  const Values x{1, 1, 0, 2, 2, -0.0, nan, 3, nan, 5, 2}, y{3, 1, 3, 3, 0, 0, 5, 1};
  for (DType dtype : {DType::f64, DType::f32, DType::f16}) {
    expect_same(gradient_of(greatest, x, dtype), {1, 5, 0, 4, 11, 0, 15, 0, 30, 0, 0}, "cummax");
    expect_same(gradient_of(least, x, dtype), {1, 2, 12, 0, 0, 6, 15, 0, 30, 0, 0}, "cummin");
    expect_same(gradient_of(greatest, y, dtype), {3, 0, 3, 15, 0, 0, 15, 0}, "cummax");
    expect_same(gradient_of(least, y, dtype), {1, 9, 0, 0, 5, 21, 0, 0}, "cummin");
  }
}

TEST(Cumulative, TheSameInsideACompiledFunction) {
  const Tensor x = rand({7, 300}) - 0.5;
  auto f = compile([](const Tensor& a) {
    return maximum(cummax(a, "a [b]") - cummin(a, "[a] b"), cumprod(a + 1, "a [b]"));
  });
  EXPECT_EQ(get_values(f(x)),
            get_values(maximum(cummax(x, "a [b]") - cummin(x, "[a] b"), cumprod(x + 1, "a [b]"))));
}

}  // namespace
}  // namespace ein
