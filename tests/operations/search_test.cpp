// searchsorted, histogram, nonzero and unique against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();

// Expected: NumPy 2.
TEST(SearchTest, KnownAnswers) {
  const Tensor sorted = make_tensor({1, 3, 3, 5, nan}, {5});
  const Tensor values = make_tensor({0, 1, 3, 4, 6, nan}, {2, 3});
  EXPECT_EQ(get_values(searchsorted(sorted, values, "[e], a b -> a b")),
            (Values{0, 0, 1, 3, 4, 4}));
  EXPECT_EQ(get_values(searchsorted(sorted, values, "[e], a b -> b a", true)),
            (Values{0, 3, 1, 4, 3, 5}));
  EXPECT_EQ(get_values(searchsorted(zeros({0}), values, "[e], a b -> a b")), Values(6, 0));
  const Tensor x = make_tensor({0, 0.5, 1, 1.5, 2, -1, 3, nan}, {2, 4});
  EXPECT_EQ(get_values(histogram(x, "a [b]", 2, 0, 2)), (Values{2, 2, 0, 1}));
  EXPECT_EQ(get_values(histogram(x, "[a] b", 1, 0, 2)), (Values{2, 1, 1, 1}));
}

TEST(SearchTest, AgreesWithPlainLoops) {
  const unsigned seed = 20264;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  constexpr DType dtypes[] = {DType::f64, DType::f32, DType::bf16,
                              DType::i64, DType::u8,  DType::u64};
  for (int round = 0; round < 200; ++round) {
    const DType dtype = dtypes[below(std::size(dtypes))];
    const std::int64_t rows = 1 + below(4), edges = below(round % 10 == 0 ? 400 : 20),
                       count = 1 + below(30);
    Values in_order, values;
    for (std::int64_t r = 0; r < rows; ++r) {
      Values row;
      for (std::int64_t e = 0; e < edges; ++e) row.push_back(static_cast<double>(below(12)));
      std::sort(row.begin(), row.end());
      in_order.insert(in_order.end(), row.begin(), row.end());
    }
    for (std::int64_t i = 0; i < rows * count; ++i)
      values.push_back(static_cast<double>(below(14)));
    const Tensor sorted = make_tensor(in_order, {rows, edges}, dtype),
                 x = make_tensor(values, {rows, count}, dtype);
    SCOPED_TRACE(std::string(name(dtype)) + " " + sorted.shape().to_string() + " " +
                 x.shape().to_string());
    for (bool right : {false, true}) {
      Values expected;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto begin = in_order.begin() + r * edges, end = begin + edges;
        for (std::int64_t i = 0; i < count; ++i) {
          const double value = values[static_cast<std::size_t>(r * count + i)];
          expected.push_back(static_cast<double>(
              (right ? std::upper_bound(begin, end, value) : std::lower_bound(begin, end, value)) -
              begin));
        }
      }
      const auto find = [&](const Tensor& s, const Tensor& v) {
        return searchsorted(s, v, "r [e], r n -> r n", right);
      };
      ASSERT_EQ(get_values(find(sorted, x)), expected);
      ASSERT_EQ(find(sorted, x).dtype(), DType::i64);
      ASSERT_EQ(get_values(compile(find)(sorted, x)), expected);
    }

    const std::int64_t bins = 1 + below(9);
    const double low = static_cast<double>(below(5)) - 1,
                 high = low + 1 + static_cast<double>(below(9));
    const auto edge = [&](std::int64_t i) {
      return low + static_cast<double>(i) * ((high - low) / static_cast<double>(bins));
    };
    Values counts(static_cast<std::size_t>(rows * bins));
    for (std::int64_t i = 0; i < rows * count; ++i) {
      const double value = values[static_cast<std::size_t>(i)];
      if (value < low || value > high) continue;
      std::int64_t bin = bins - 1;
      while (bin > 0 && value < edge(bin)) --bin;
      ++counts[static_cast<std::size_t>(i / count * bins + bin)];
    }
    const auto count_bins = [&](const Tensor& t) { return histogram(t, "r [n]", bins, low, high); };
    ASSERT_EQ(get_values(count_bins(x)), counts);
    ASSERT_EQ(count_bins(x).dtype(), DType::i64);
    ASSERT_EQ(get_values(compile(count_bins)(x)), counts);
  }
}

TEST(SearchTest, OfAnyLength) {
  const auto call = [](const Tensor& sorted, const Tensor& x) {
    return std::vector{searchsorted(sorted, x, "[e], a b -> a b"), histogram(x, "a [b]", 4, -1, 1),
                       quantile(x, "a [b]", 0.3)};
  };
  auto f = compile(call, {"e", "a b"});
  for (const auto& [edges, shape] : {std::pair(9, Shape{4, 7}), {12, {5, 9}}, {40, {3, 30}}}) {
    const Tensor sorted = sort(randn({edges}), "[e]").values, x = randn(shape);
    const std::vector<Tensor> found = f(sorted, x), expected = call(sorted, x);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(get_values(found[i]), get_values(expected[i]));
  }
}

TEST(SearchTest, NonzeroAgreesWithPlainLoops) {
  EXPECT_EQ(get_values(nonzero(make_tensor({0, 2, nan, 0, 0, -1}, {2, 3}))),
            (Values{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(nonzero(zeros({2, 0})).shape(), (Shape{0, 2}));
  EXPECT_EQ(nonzero(ones({})).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(zeros({})).shape(), (Shape{0, 0}));
  const unsigned seed = 20265;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    Shape shape;
    for (int d = 0; d < 3; ++d) shape.push_back(static_cast<std::int64_t>(1 + random() % 6));
    const DType dtype = round % 3 == 0 ? DType::boolean : round % 3 == 1 ? DType::f16 : DType::i64;
    const Tensor x = test::scattered_tensor(shape, dtype, {false, false, false}, random);
    Values in(static_cast<std::size_t>(numel(shape))), expected;
    for (double& value : in) value = static_cast<double>(random() % 2);
    test::set_values(x, in);
    for (std::int64_t i = 0; i < numel(shape); ++i) {
      if (in[static_cast<std::size_t>(i)] == 0) continue;
      const std::int64_t plane = shape[1] * shape[2];
      for (std::int64_t at :
           {i / plane, i % plane / std::int64_t{shape[2]}, i % std::int64_t{shape[2]}})
        expected.push_back(static_cast<double>(at));
    }
    ASSERT_EQ(get_values(nonzero(x)), expected);
  }
}

TEST(SearchTest, UniqueAgreesWithAMap) {
  const Unique some = unique(make_tensor({3, nan, 1, 3, nan, -inf}, {2, 3}));
  EXPECT_EQ(get_values(some.positions), (Values{2, 3, 1, 2, 3, 0}));
  EXPECT_EQ(get_values(some.counts), (Values{1, 1, 2, 2}));
  EXPECT_TRUE(std::isnan(get_values(some.values)[3]));
  EXPECT_EQ(some.positions.shape(), (Shape{2, 3}));
  EXPECT_EQ(unique(zeros({0, 2})).values.shape(), (Shape{0}));
  EXPECT_EQ(unique(zeros({0, 2})).positions.shape(), (Shape{0, 2}));
  EXPECT_EQ(unique(ones({})).counts.item(), 1);
  const unsigned seed = 20266;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    constexpr DType dtypes[] = {DType::f64, DType::bf16, DType::i64, DType::u8, DType::boolean};
    const DType dtype = dtypes[round % 5];
    const Shape shape{static_cast<std::int64_t>(1 + random() % 9),
                      static_cast<std::int64_t>(1 + random() % 9)};
    const Tensor x = test::scattered_tensor(shape, dtype, {false, false}, random);
    Values in(static_cast<std::size_t>(numel(shape)));
    for (double& value : in) value = test::stored(static_cast<double>(random() % 9), dtype);
    test::set_values(x, in);
    std::map<double, double> counts;
    for (double value : in) ++counts[value];
    const Unique found = unique(x);
    ASSERT_EQ(found.values.dtype(), dtype);
    const Values values = get_values(found.values), positions = get_values(found.positions),
                 count = get_values(found.counts);
    ASSERT_EQ(values.size(), counts.size());
    std::size_t i = 0;
    for (const auto& [value, times] : counts) {
      ASSERT_EQ(values[i], value);
      ASSERT_EQ(count[i++], times);
    }
    for (std::size_t e = 0; e < in.size(); ++e)
      ASSERT_EQ(values[static_cast<std::size_t>(positions[e])], in[e]);
  }
}

TEST(SearchTest, Errors) {
  expect_error([] { searchsorted(zeros({3}), zeros({2}, DType::f64), "[e], n -> n"); },
               ErrorKind::dtype, {"searchsorted: operands have different dtypes", "f32", "f64"});
  expect_error([] { histogram(zeros({3}), "[n]", 0, 0, 1); }, ErrorKind::value,
               {"histogram: the number of bins is 0, at least 1 is wanted", "[n]\n   ^\n   3"});
  expect_error([] { histogram(zeros({3}), "[n]", 2, 1, 1); }, ErrorKind::value,
               {"bins from 1 to 1"});
  expect_error([] { histogram(zeros({3}), "[n]", 2, 0, inf); }, ErrorKind::value, {"finite"});
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return nonzero(x); },
           [](const Tensor& x) { return unique(x).values; }}) {
    expect_error([&] { compile([&](const Tensor& x) { return f(x); })(ones({3})); },
                 ErrorKind::value, {"the size of the result depends on the elements", "(3,)"});
  }
}

}  // namespace
}  // namespace ein
