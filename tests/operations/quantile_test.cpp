// median and quantile against sorted plain arrays, with NumPy's linear interpolation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/marked_axes.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();

// Expected: NumPy 2.
TEST(QuantileTest, KnownAnswers) {
  const Tensor x = make_tensor({3, 1, 2, 10, 7, 8, 9, 5}, {2, 4});
  EXPECT_EQ(get_values(median(x, "a [b]")), (Values{2.5, 7.5}));
  EXPECT_EQ(get_values(median(x, "[a] b")), (Values{5, 4.5, 5.5, 7.5}));
  EXPECT_EQ(get_values(quantile(x, "a [b]", 0.25)), (Values{1.75, 6.5}));
  EXPECT_EQ(get_values(quantile(x, "a [b]", {0, 0.5, 1})), (Values{1, 2.5, 10, 5, 7.5, 9}));
  EXPECT_EQ(quantile(x, "[a] b", {0.1, 0.9, 1}).shape(), (Shape{3, 4}));
  EXPECT_EQ(quantile(x, "a [b]", std::vector<double>{}).shape(), (Shape{2, 0}));
  const Tensor with_ones = x.view({2, 1, 4, 1});
  EXPECT_EQ(median(with_ones, "a 1 [b] 1").shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(get_values(median(with_ones, "a 1 [b] 1")), (Values{2.5, 7.5}));
  EXPECT_EQ(quantile(with_ones, "a 1 [b] 1", {0.25, 1}).shape(), (Shape{2, 1, 2, 1}));
  const Tensor whole = from_vector<std::int64_t>({4, 1, 3, 2}, {4});
  EXPECT_EQ(median(whole, "[n]").dtype(), DType::f32);
  EXPECT_EQ(median(whole, "[n]").item(), 2.5);
  EXPECT_EQ(median(make_tensor({1, 0, 1}, {3}, DType::boolean), "[n]").item(), 1);
}

TEST(QuantileTest, NanAndInfinities) {
  EXPECT_TRUE(std::isnan(median(make_tensor({1, nan, 2}, {3}), "[n]").item()));
  EXPECT_TRUE(std::isnan(quantile(make_tensor({1, nan, 2}, {3}), "[n]", 0.0).item()));
  EXPECT_EQ(median(make_tensor({inf, inf, 2, inf}, {4}), "[n]").item(), inf);
  EXPECT_EQ(median(make_tensor({-inf, -inf}, {2}), "[n]").item(), -inf);
  EXPECT_EQ(median(make_tensor({1, inf}, {2}), "[n]").item(), inf);
  EXPECT_TRUE(std::isnan(median(make_tensor({-inf, inf}, {2}), "[n]").item()));
}

TEST(QuantileTest, AgreesWithSortedArrays) {
  const unsigned seed = 20263;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const auto [axis, shape, marked, pattern] = test::MarkedAxis::random(random);
    constexpr DType dtypes[] = {DType::f64,  DType::f32, DType::f16,
                                DType::bf16, DType::i64, DType::u8};
    const DType dtype = dtypes[random() % 6];
    const Tensor x = test::scattered_values(shape, dtype, random);
    const Values in = get_values(x);
    const double q = round % 4 == 0 ? 0.5 : std::uniform_real_distribution<>(0, 1)(random);
    Values expected;
    for (const auto& row : test::rows_along(shape, marked)) {
      Values sorted;
      for (std::size_t i : row) sorted.push_back(in[i]);
      std::sort(sorted.begin(), sorted.end());
      const double place = q * static_cast<double>(sorted.size() - 1);
      const auto below = static_cast<std::size_t>(place);
      const std::size_t above = std::min(below + 1, sorted.size() - 1);
      const double weight = place - static_cast<double>(below);
      expected.push_back(sorted[below] * (1 - weight) + sorted[above] * weight);
    }
    SCOPED_TRACE(pattern + " " + shape.to_string() + " " + std::string(name(dtype)) + ", q " +
                 std::to_string(q));
    const auto text = runtime(pattern);
    const auto expect = [&](const Values& found) {
      ASSERT_EQ(found.size(), expected.size());
      const double error = 256 * test::tolerance(is_floating(dtype) ? dtype : DType::f32);
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], error / 64 * (1 + std::abs(expected[i])));
    };
    const Tensor found = quantile(x, text, q);
    ASSERT_EQ(found.dtype(), is_floating(dtype) ? dtype : DType::f32);
    expect(get_values(found));
    const Tensor several = quantile(x, text, {0.0, q});
    ASSERT_EQ(several.shape()[axis], 2);
    Index first[] = {every, every, every};
    first[axis] = 1;
    ASSERT_EQ(get_values(several.at(first)), get_values(found));
    if (round % 4 == 0) {
      ASSERT_EQ(get_values(median(x, text)), get_values(found));
    }
    auto f = compile([&](const Tensor& t) { return quantile(t, text, q); });
    ASSERT_EQ(get_values(f(x)), get_values(found));
  }
}

// Expected figures: numpy.quantile(x, q, axis=1, method=...).
TEST(QuantileTest, BetweenTwoElements) {
  const Tensor x = from_vector<double>({3, 1, 4, 1, 5, 9, 2, 7, 1, 8, 2, 8}, {2, 6});
  const auto of = [&](Interpolation interpolation) {
    return quantile(x, "a [b]", {0, 0.1, 0.3, 0.5, 0.7, 1}, interpolation).to_vector<double>();
  };
  EXPECT_EQ(of(Interpolation::lower), (Values{1, 1, 1, 3, 4, 9, 1, 1, 2, 2, 7, 8}));
  EXPECT_EQ(of(Interpolation::higher), (Values{1, 1, 3, 4, 5, 9, 1, 2, 2, 7, 8, 8}));
  EXPECT_EQ(of(Interpolation::nearest), (Values{1, 1, 3, 3, 5, 9, 1, 1, 2, 2, 8, 8}));
  EXPECT_EQ(of(Interpolation::midpoint), (Values{1, 1, 2, 3.5, 4.5, 9, 1, 1.5, 2, 4.5, 7.5, 8}));
  const auto slope = [&](Interpolation interpolation) {
    return grad([&](const Tensor& t) { return quantile(t, "[n]", 0.3, interpolation); })(
               from_vector<double>({5, 1, 3, 9}, {4}))
        .to_vector<double>();
  };
  EXPECT_EQ(slope(Interpolation::lower), (Values{0, 1, 0, 0}));
  EXPECT_EQ(slope(Interpolation::higher), (Values{0, 0, 1, 0}));
  EXPECT_EQ(slope(Interpolation::midpoint), (Values{0, 0.5, 0.5, 0}));
}

// As PyTorch's: by the weights of the two elements.
TEST(QuantileTest, GradientGoesToTheElementsBetween) {
  const Tensor x = from_vector<double>({5, 1, 3, 9}, {4});
  const auto gradient = [&](double q) {
    return grad([&](const Tensor& t) { return quantile(t, "[n]", q); })(x).to_vector<double>();
  };
  EXPECT_EQ(gradient(0.5), (Values{0.5, 0, 0.5, 0}));
  EXPECT_EQ(gradient(0.25), (Values{0, 0.25, 0.75, 0}));
  EXPECT_EQ(gradient(1), (Values{0, 0, 0, 1}));
}

TEST(QuantileTest, Errors) {
  expect_error(
      [] {
        quantile(zeros({2, 3}), "a [b]", 1.5);
      },
      ErrorKind::value, {"quantile: q is 1.5, 0 <= q <= 1 is wanted", "a [b]\n     ^\n     3"});
  expect_error([] { quantile(zeros({2, 3}), "a [b]", {0.5, nan}); }, ErrorKind::value, {"q is"});
  expect_error(
      [] {
        median(zeros({2, 0}), "a [b]");
      },
      ErrorKind::reduction, {"median: there is no quantile of no elements", "(2, 0)"});
  EXPECT_EQ(median(zeros({0, 3}), "a [b]").shape(), (Shape{0}));
}

}  // namespace
}  // namespace ein
