// argmax, argmin, cumsum, sort and top_k.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include "support/marked_axes.hpp"

namespace ein {
namespace {

using test::get_values;
using test::make_tensor;
using test::rows_along;
using Values = std::vector<double>;

const double nan = std::nan("");

// Expected positions: PyTorch 2.
TEST(NamedOrderTest, KnownAnswers) {
  const Tensor x = make_tensor({1, nan, 3, nan, 2, 7, 7, -1, 5, 5, 5, 5}, {3, 4});
  EXPECT_EQ(get_values(argmax(x, "a [b]")), (Values{1, 1, 0}));
  EXPECT_EQ(get_values(argmax(x, "[a] b")), (Values{2, 0, 1, 0}));
  EXPECT_EQ(get_values(argmin(x, "a [b]")), (Values{1, 3, 0}));
  EXPECT_EQ(get_values(argmin(x, "[a] b")), (Values{0, 0, 0, 0}));
  EXPECT_EQ(argmax(x, "a [b]").dtype(), DType::i64);
  EXPECT_EQ(get_values(sort(x, "a [b]").positions), (Values{0, 2, 1, 3, 3, 0, 1, 2, 0, 1, 2, 3}));
  EXPECT_EQ(get_values(sort(x, "a [b]", true).positions),
            (Values{1, 3, 2, 0, 1, 2, 0, 3, 0, 1, 2, 3}));
  const Tensor y = make_tensor({1, 9, 3, 4, 2, 7, 8, -1}, {2, 4});
  const Sorted top = top_k(y, "a [b]", 2);
  EXPECT_EQ(get_values(top.values), (Values{9, 4, 8, 7}));
  EXPECT_EQ(get_values(top.positions), (Values{1, 3, 2, 1}));
  EXPECT_EQ(get_values(top_k(y, "[a] b", 1).values), (Values{2, 9, 8, 4}));
  EXPECT_EQ(top_k(y, "a [b]", 0).values.shape(), (Shape{2, 0}));
  EXPECT_EQ(get_values(cumsum(y, "a [b]")), (Values{1, 10, 13, 17, 2, 9, 17, 16}));
  EXPECT_EQ(get_values(cumsum(y, "[a] b")), (Values{1, 9, 3, 4, 3, 16, 11, 3}));
}

// A dimension of size 1 that no axis has stays, as it does in all that keeps the axes.
TEST(NamedOrderTest, DimensionsOfSizeOneStay) {
  const Tensor x = make_tensor({1, 2, 4, 3}, {1, 2, 1, 2});
  EXPECT_EQ(argmax(x, "1 a 1 [b]").shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(get_values(argmax(x, "1 a 1 [b]")), (Values{1, 0}));
  EXPECT_EQ(get_values(argmin(x, "1 [a] 1 b")), (Values{0, 0}));
  EXPECT_EQ(argmin(x, "1 [a] 1 b").shape(), (Shape{1, 1, 2}));
}

// Positions and integers beyond what an f32 holds.
TEST(NamedOrderTest, LargeIntegersAreExact) {
  const std::int64_t large = std::int64_t{1} << 62;
  const Tensor x = from_vector<std::int64_t>({large, large + 1, large - 1}, {3});
  EXPECT_EQ(argmax(x, "[n]").item<std::int64_t>(), 1);
  EXPECT_EQ(argmin(x, "[n]").item<std::int64_t>(), 2);
  EXPECT_EQ(sort(x, "[n]").values.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{large - 1, large, large + 1}));
  EXPECT_EQ(cumsum(x.at({slice(0, 1)}), "[n]").item<std::int64_t>(), large);
}

TEST(NamedOrderTest, AgreesWithPlainLoops) {
  const unsigned seed = 20253;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const auto [axis, shape, marked, pattern] = test::MarkedAxis::random(random);
    constexpr DType dtypes[] = {DType::f64,  DType::f32, DType::f16,
                                DType::bf16, DType::i64, DType::i32};
    const DType dtype = dtypes[random() % 6];
    const Tensor x = test::scattered_values(shape, dtype, random);
    // Small whole numbers, so that there are equal ones and sums are exact.
    Values in = get_values(x);
    for (double& value : in) value = std::round(value);
    test::set_values(x, in);
    const auto rows = rows_along(shape, marked);
    const std::int64_t k =
        static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[axis] + 1));
    Values greatest, least, sums(in.size()), up(in.size()), down(in.size());
    std::vector<Values> top(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto& row = rows[r];
      const auto less = [&](std::size_t i, std::size_t j) {
        return std::pair(in[row[i]], i) < std::pair(in[row[j]], j);
      };
      const auto more = [&](std::size_t i, std::size_t j) {
        return std::pair(-in[row[i]], i) < std::pair(-in[row[j]], j);
      };
      std::vector<std::size_t> places(row.size());
      std::iota(places.begin(), places.end(), 0);
      std::vector<std::size_t> ascending = places, descending = places;
      std::sort(ascending.begin(), ascending.end(), less);
      std::sort(descending.begin(), descending.end(), more);
      greatest.push_back(static_cast<double>(descending[0]));
      least.push_back(static_cast<double>(ascending[0]));
      double sum = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        sums[row[i]] = sum += in[row[i]];
        up[row[i]] = static_cast<double>(ascending[i]);
        down[row[i]] = static_cast<double>(descending[i]);
      }
    }
    SCOPED_TRACE(pattern + " " + shape.to_string() + " " + std::string(name(dtype)));
    const auto text = runtime(pattern);
    ASSERT_EQ(get_values(argmax(x, text)), greatest);
    ASSERT_EQ(get_values(argmin(x, text)), least);
    ASSERT_EQ(get_values(cumsum(x, text)), sums);
    ASSERT_EQ(get_values(sort(x, text).positions), up);
    const Sorted sorted = sort(x, text, true);
    ASSERT_EQ(get_values(sorted.positions), down);
    ASSERT_EQ(sorted.values.dtype(), dtype);
    const Values values = get_values(sorted.values);
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i)
        ASSERT_EQ(values[row[i]], in[row[static_cast<std::size_t>(down[row[i]])]]);
    }
    const Sorted first = top_k(x, text, k);
    Slice ranges[] = {every, every, every};
    ranges[axis] = slice(0, k);
    ASSERT_EQ(get_values(first.values),
              get_values(sorted.values.at({ranges[0], ranges[1], ranges[2]})));
    ASSERT_EQ(get_values(first.positions),
              get_values(sorted.positions.at({ranges[0], ranges[1], ranges[2]})));
  }
}

// Expected positions: numpy.argmax of the axes together.
TEST(NamedOrderTest, PositionsAlongSeveralAxes) {
  const Tensor x = make_tensor({3, 1, 4, 1, 5, 9, 2, 9, 5, 3, 5, 8}, {2, 3, 2});
  EXPECT_EQ(get_values(argmax(x, "a [b c]")), (Values{5, 1}));
  EXPECT_EQ(get_values(argmax(x, "[a] b [c]")), (Values{3, 2, 1}));
  EXPECT_EQ(get_values(argmax(x, "[...]")), (Values{5}));
  EXPECT_EQ(get_values(argmin(x, "[a b] c")), (Values{3, 0}));
  EXPECT_EQ(get_values(argmin(x.to(DType::u8), "[a b c]")), (Values{1}));
  EXPECT_EQ(argmax(x, "[a] [b] c").shape(), (Shape{2}));
  EXPECT_EQ(argmax(zeros({0, 2, 0}), "a [b] [c]").shape(), (Shape{0}));
  EXPECT_THROW(argmax(zeros({2, 2, 0}), "a [b] [c]"), Error);
}

TEST(NamedOrderTest, LongRows) {
  for (const DType dtype : {DType::u8, DType::i64, DType::f32, DType::f64, DType::bf16}) {
    for (const std::int64_t size : {70000, 1 << 20}) {
      for (const std::int64_t at : {std::int64_t{0}, std::int64_t{65537}, size - 1}) {
        const Tensor x = ones({size}, dtype);
        x.at({at}).fill(3);
        EXPECT_EQ(argmax(x, "[n]").item<std::int64_t>(), at);
        x.at({at}).fill(0);
        EXPECT_EQ(argmin(x, "[n]").item<std::int64_t>(), at);
      }
    }
  }
}

TEST(NamedOrderTest, TheLeast) {
  const Tensor x = make_tensor({1, 9, nan, 1, 2, 7, 8, -1}, {2, 4});
  const Sorted least = top_k(x, "a [b]", 2, true);
  EXPECT_EQ(get_values(least.values), (Values{1, 1, -1, 2}));
  EXPECT_EQ(get_values(least.positions), (Values{0, 3, 3, 0}));
  const auto f = [](const Tensor& t) {
    return reduce(top_k(t, "[n]", 2, true).values, "n ->", "sum");
  };
  EXPECT_EQ(get_values(grad(f)(make_tensor({3, 1, 2}, {3}))), (Values{0, 1, 1}));
  EXPECT_THROW(top_k(x, "a [b]", 5, true), Error);
}

TEST(NamedOrderTest, EmptyAxes) {
  EXPECT_EQ(argmax(zeros({0, 3}), "a [b]").shape(), (Shape{0}));
  EXPECT_EQ(argmax(zeros({0, 0}), "a [b]").shape(), (Shape{0}));
  EXPECT_THROW(argmax(zeros({2, 0}), "a [b]"), Error);
  EXPECT_EQ(sort(zeros({2, 0}), "a [b]").values.shape(), (Shape{2, 0}));
  EXPECT_EQ(cumsum(zeros({2, 0}), "a [b]").shape(), (Shape{2, 0}));
  EXPECT_EQ(top_k(zeros({2, 0}), "a [b]", 0).positions.shape(), (Shape{2, 0}));
}

}  // namespace
}  // namespace ein
