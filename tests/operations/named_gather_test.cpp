// gather, scatter_add and one_hot.
#include <gtest/gtest.h>

#include <random>

#include <ein/ein.hpp>
#include "support/marked_axes.hpp"

namespace ein {
namespace {

using namespace literals;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

TEST(NamedGatherTest, LooksUpRows) {
  const Tensor table = make_tensor({0, 1, 10, 11, 20, 21, 30, 31}, {4, 2});
  const Tensor tokens = from_vector<std::int64_t>({3, 0, 0, 2, 1, 3}, {2, 3});
  const Tensor x = gather(table, tokens, "[v] d, b s -> b s d");
  EXPECT_EQ(x.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(get_values(x), (Values{30, 31, 0, 1, 0, 1, 20, 21, 10, 11, 30, 31}));
  EXPECT_EQ(get_values(gather(table, tokens, "[v] d, b s -> d s b")),
            (Values{30, 20, 0, 10, 0, 30, 31, 21, 1, 11, 1, 31}));
  EXPECT_EQ(get_values(gather(table, tokens, "[v] d, b s -> (b s) d")), get_values(x));
  EXPECT_EQ(get_values(gather(table, tokens, "[v] (d e), b s -> e b s d", "d"_a = 2)),
            get_values(x));
  EXPECT_EQ(gather(table, tokens, "[4] d, ... -> ... d").shape(), (Shape{2, 3, 2}));
}

TEST(NamedGatherTest, PicksOneOfEachRow) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor picked = from_vector<std::int32_t>({2, 0}, {2});
  EXPECT_EQ(get_values(gather(x, picked, "b [v], b -> b")), (Values{3, 4}));
  EXPECT_EQ(get_values(gather(x, picked, "b [v], k -> b k")), (Values{3, 1, 6, 4}));
  EXPECT_EQ(get_values(gather(x, make_tensor({1}, {}, DType::u8), "[b] v, -> v")),
            (Values{4, 5, 6}));
}

TEST(NamedGatherTest, RefusesPositionsOutside) {
  const Tensor table = zeros({4, 2});
  for (std::int64_t position : {std::int64_t{4}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const Tensor at = full({3}, position, DType::i64);
    EXPECT_THROW(gather(table, at, "[v] d, b -> b d"), Error) << position;
    EXPECT_THROW(scatter_add(zeros({3, 2}), at, "b d, b -> [v] d", "v"_a = 4), Error) << position;
  }
  EXPECT_THROW(gather(zeros({0, 2}), zeros({1}, DType::i64), "[v] d, b -> b d"), Error);
  EXPECT_EQ(gather(zeros({0, 2}), zeros({0}, DType::i64), "[v] d, b -> b d").shape(),
            (Shape{0, 2}));
}

TEST(NamedGatherTest, ScatterAdds) {
  const Tensor values = make_tensor({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor at = from_vector<std::int64_t>({2, 0, 2}, {3});
  EXPECT_EQ(get_values(scatter_add(values, at, "n d, n -> [v] d", "v"_a = 4)),
            (Values{3, 4, 0, 0, 6, 8, 0, 0}));
  EXPECT_EQ(get_values(scatter_add(values, at, "n d, n -> d [v]", "v"_a = 3)),
            (Values{3, 0, 6, 4, 0, 8}));
  EXPECT_EQ(get_values(scatter_add(values, at, "n d, n -> [v]", "v"_a = 3)), (Values{7, 0, 14}));
  EXPECT_EQ(get_values(scatter_add(values, at, "n d, n -> [3] d")), (Values{3, 4, 0, 0, 6, 8}));
  EXPECT_EQ(get_values(scatter_add(values, at, "n d, n -> n [v] d", "v"_a = 3)),
            (Values{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6}));
  EXPECT_EQ(scatter_add(values, at, "n d, n -> [v] d", axis("v", 5)).shape(), (Shape{5, 2}));
}

// Both by loops over all indices. The axis in brackets is v, of x or of the output.
TEST(NamedGatherTest, AgreesWithPlainLoops) {
  const unsigned seed = 20254;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::int64_t sizes[] = {1 + below(5), 1 + below(5), 1 + below(5), 1 + below(5),
                                  1 + below(40)};  // a b c d v
    // Every axis but v is in x, in the positions, or in both; the result is some permutation.
    std::vector<int> in_x{4}, in_positions, in_result;
    for (int axis = 0; axis < 4; ++axis) {
      const auto where = below(4);
      if (where == 3) continue;
      if (where != 1) in_x.push_back(axis);
      if (where != 0) in_positions.push_back(axis);
      in_result.push_back(axis);
    }
    for (auto* axes : {&in_x, &in_positions, &in_result})
      std::shuffle(axes->begin(), axes->end(), random);
    const auto shape_of = [&](const std::vector<int>& axes) {
      Shape shape;
      for (int axis : axes) shape.push_back(sizes[axis]);
      return shape;
    };
    const auto text_of = [&](const std::vector<int>& axes) {
      std::string text;
      for (int axis : axes) text += axis == 4 ? "[v] " : std::string(1, "abcd"[axis]) + " ";
      return text;
    };
    const auto place_of = [&](const std::vector<int>& axes, const std::int64_t(&index)[5]) {
      std::int64_t place = 0;
      for (int axis : axes) place = place * sizes[axis] + index[axis];
      return static_cast<std::size_t>(place);
    };
    constexpr DType dtypes[] = {DType::f64,  DType::f32, DType::f16,
                                DType::bf16, DType::i64, DType::i32};
    const DType dtype = dtypes[random() % 6];
    const Tensor x = test::scattered_values(shape_of(in_x), dtype, random);
    const Tensor positions =
        test::scattered_values(shape_of(in_positions), below(2) ? DType::i64 : DType::i32, random);
    Values at(static_cast<std::size_t>(positions.numel()));
    for (double& position : at) position = static_cast<double>(below(sizes[4]));
    test::set_values(positions, at);
    const Values from = get_values(x);
    Values gathered(static_cast<std::size_t>(numel(shape_of(in_result))));
    // Values of the gathered shape go back to where they came from: how often each was picked.
    Values scattered(from.size(), 0.0);
    std::int64_t index[5] = {};
    for (index[0] = 0; index[0] < sizes[0]; ++index[0]) {
      for (index[1] = 0; index[1] < sizes[1]; ++index[1]) {
        for (index[2] = 0; index[2] < sizes[2]; ++index[2]) {
          for (index[3] = 0; index[3] < sizes[3]; ++index[3]) {
            bool counts = true;  // an axis that nothing has is visited once
            for (int axis = 0; axis < 4; ++axis) {
              counts &=
                  index[axis] == 0 || std::count(in_result.begin(), in_result.end(), axis) > 0;
            }
            if (!counts) continue;
            index[4] = static_cast<std::int64_t>(at[place_of(in_positions, index)]);
            gathered[place_of(in_result, index)] = from[place_of(in_x, index)];
            scattered[place_of(in_x, index)] += 1;
          }
        }
      }
    }
    const std::string there =
        text_of(in_x) + ", " + text_of(in_positions) + "-> " + text_of(in_result);
    SCOPED_TRACE(there + std::string(name(dtype)));
    const Tensor result = gather(x, positions, runtime(there));
    ASSERT_EQ(result.dtype(), dtype);
    ASSERT_EQ(get_values(result), gathered);
    const std::string back =
        text_of(in_result) + ", " + text_of(in_positions) + "-> " + text_of(in_x);
    const Tensor ones_there = make_tensor(Values(gathered.size(), 1.0), shape_of(in_result), dtype);
    ASSERT_EQ(get_values(scatter_add(ones_there, positions, runtime(back), axis("v", sizes[4]))),
              scattered);
  }
}

// Embedding tables are larger than what fits a cache, and tokens repeat.
TEST(NamedGatherTest, LargeTables) {
  constexpr std::int64_t rows = 3000, width = 96, count = 5000;
  std::mt19937 random(7);
  std::vector<float> table(rows * width);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 1021);
  std::vector<std::int64_t> tokens(count);
  for (auto& token : tokens) token = static_cast<std::int64_t>(random() % rows);
  const Tensor at = from_vector(tokens, {count});
  const std::vector<float> found =
      gather(from_vector(table, {rows, width}), at, "[v] d, n -> n d").to_vector<float>();
  std::vector<float> sums(rows * width, 0.0f);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const auto row = static_cast<std::size_t>(tokens[n]);
    for (std::size_t d = 0; d < width; ++d) {
      ASSERT_EQ(found[n * width + d], table[row * width + d]);
      sums[row * width + d] += found[n * width + d];
    }
  }
  EXPECT_EQ(scatter_add(from_vector(found, {count, width}), at, "n d, n -> [v] d", "v"_a = rows)
                .to_vector<float>(),
            sums);
}

TEST(NamedGatherTest, OneHot) {
  const Tensor at = from_vector<std::int64_t>({1, 0, 3, -1}, {4});
  const Values expected{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(get_values(one_hot(at, "n -> n [v]", "v"_a = 3)), expected);
  EXPECT_EQ(get_values(one_hot(at, "n -> n [3]")), expected);
  EXPECT_EQ(one_hot(at, "n -> n [3]").dtype(), DType::f32);
  EXPECT_EQ(one_hot(at, "n -> [v] n", "v"_a = 3, DType::boolean).dtype(), DType::boolean);
  EXPECT_EQ(get_values(one_hot(at, "n -> [v] n", "v"_a = 3)),
            (Values{0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(one_hot(zeros({2, 3}, DType::u8), "... -> ... [7]").shape(), (Shape{2, 3, 7}));
}

}  // namespace
}  // namespace ein
