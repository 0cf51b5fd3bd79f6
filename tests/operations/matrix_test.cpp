// Triangles and diagonals of matrices by axis names, against plain loops.
#include <gtest/gtest.h>

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

TEST(MatrixTest, KnownAnswers) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(get_values(tril(x, "[i j]")), (Values{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(get_values(triu(x, "[i j]")), (Values{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(get_values(tril(x, "[i] [j]", 1, -1)), (Values{1, 2, -1, 4, 5, 6}));
  EXPECT_EQ(get_values(diagonal(x, "[i j]")), (Values{1, 5}));
  EXPECT_EQ(get_values(diagonal(x, "[i j]", 1)), (Values{2, 6}));
  EXPECT_EQ(get_values(diagonal(x, "[i j]", -1)), (Values{4}));
  EXPECT_EQ(diagonal(x, "[i j]", 3).shape(), (Shape{0}));
  EXPECT_EQ(diagonal(x, "[i j]", -9).shape(), (Shape{0}));
  EXPECT_EQ(diagonal(x, "[i j]", INT64_MIN).shape(), (Shape{0}));
  EXPECT_EQ(diagonal(x, "[i j]", INT64_MAX).shape(), (Shape{0}));
  EXPECT_EQ(get_values(tril(x, "[i j]", INT64_MIN)), Values(6, 0));
  EXPECT_TRUE(diagonal(x, "[i j]").same_storage(x));
  EXPECT_EQ(get_values(from_diagonal(make_tensor({7, 8}, {2}), "[i]")), (Values{7, 0, 0, 8}));
  EXPECT_EQ(get_values(from_diagonal(make_tensor({7, 8}, {2}), "[i]", -1)),
            (Values{0, 0, 0, 7, 0, 0, 0, 8, 0}));
  EXPECT_EQ(get_values(from_diagonal(zeros({0}), "[i]", 1)), (Values{0}));
}

TEST(MatrixTest, AgreesWithPlainLoops) {
  const unsigned seed = 20262;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16,     DType::bf16,
                              DType::i64, DType::u8,  DType::boolean, DType::u64};
  for (int round = 0; round < 300; ++round) {
    const auto rank = static_cast<std::size_t>(2 + below(3));
    const auto row = static_cast<std::size_t>(below(static_cast<std::int64_t>(rank) - 1));
    const auto column =
        row + 1 + static_cast<std::size_t>(below(static_cast<std::int64_t>(rank - row) - 1));
    Shape shape;
    std::string pattern;
    for (std::size_t d = 0; d < rank; ++d) {
      shape.push_back(below(12) == 0 ? 0 : 1 + below(7));
      const std::string name(1, "abcd"[d]);
      pattern += d == row || d == column ? " [" + name + "]" : " " + name;
    }
    const DType dtype = dtypes[below(std::size(dtypes))];
    const Tensor x = test::scattered_tensor(shape, dtype, std::vector<bool>(rank, false), random);
    Values in(static_cast<std::size_t>(numel(shape)));
    for (double& value : in) value = test::stored(static_cast<double>(below(100)), dtype);
    test::set_values(x, in);
    const std::int64_t offset = below(11) - 5;
    SCOPED_TRACE(pattern + " " + shape.to_string() + " " + std::string(name(dtype)) + ", offset " +
                 std::to_string(offset));
    const auto text = runtime(pattern);

    Values lower, upper, on_diagonal;
    for (std::int64_t i = 0; i < numel(shape); ++i) {
      std::vector<std::int64_t> at(rank);
      std::int64_t rest = i;
      for (std::size_t d = rank; d-- > 0;) {
        at[d] = rest % shape[d];
        rest /= shape[d];
      }
      const double value = in[static_cast<std::size_t>(i)];
      lower.push_back(at[column] - at[row] > offset ? 1 : value);
      upper.push_back(at[column] - at[row] < offset ? 0 : value);
    }
    EXPECT_EQ(get_values(tril(x, text, offset, 1)), lower);
    EXPECT_EQ(get_values(triu(x, text, offset)), upper);

    // Each diagonal by positions.
    const Tensor found = diagonal(x, text, offset);
    const std::int64_t count = std::max<std::int64_t>(
        0, std::min<std::int64_t>(shape[row] + std::min<std::int64_t>(offset, 0),
                                  shape[column] - std::max<std::int64_t>(offset, 0)));
    Shape wanted;
    for (std::size_t d = 0; d < rank; ++d) {
      if (d != column) wanted.push_back(d == row ? Size(count) : shape[d]);
    }
    ASSERT_EQ(found.shape(), wanted);
    for (std::int64_t i = 0; i < numel(wanted); ++i) {
      std::vector<std::int64_t> at(rank);
      std::int64_t rest = i;
      for (std::size_t d = rank; d-- > 0;) {
        if (d == column) continue;
        const Size size = d == row ? Size(count) : shape[d];
        at[d] = rest % size;
        rest /= size;
      }
      at[column] = at[row] + std::max<std::int64_t>(offset, 0);
      at[row] += std::max<std::int64_t>(-offset, 0);
      std::int64_t place = 0;
      for (std::size_t d = 0; d < rank; ++d) place = place * shape[d] + at[d];
      on_diagonal.push_back(in[static_cast<std::size_t>(place)]);
    }
    ASSERT_EQ(get_values(found), on_diagonal);

    // Back on the diagonal of zeros, and off it again.
    std::string vector;
    for (std::size_t d = 0; d < rank; ++d) {
      if (d != column) vector += d == row ? " [r]" : std::string(" ") + "abcd"[d];
    }
    const Tensor matrices = from_diagonal(found, runtime(vector), offset);
    std::string pair;
    for (std::size_t d = 0; d < rank; ++d) {
      if (d != column) pair += d == row ? " [r s]" : std::string(" ") + "abcd"[d];
    }
    ASSERT_EQ(matrices.shape()[row], count + std::abs(offset));
    EXPECT_EQ(get_values(diagonal(matrices, runtime(pair), offset)), on_diagonal);
    double sum = 0, sum_of_all = 0;
    for (double value : on_diagonal) sum += value;
    for (double value : get_values(matrices)) sum_of_all += value;
    EXPECT_EQ(sum, sum_of_all);

    auto f = compile([&](const Tensor& t) {
      return std::vector{tril(t, text, offset, 1), triu(t, text, offset), diagonal(t, text, offset),
                         from_diagonal(diagonal(t, text, offset), runtime(vector), offset)};
    });
    const std::vector<Tensor> compiled = f(x);
    EXPECT_EQ(get_values(compiled[0]), lower);
    EXPECT_EQ(get_values(compiled[1]), upper);
    EXPECT_EQ(get_values(compiled[2]), on_diagonal);
    EXPECT_EQ(get_values(compiled[3]), get_values(matrices));
  }
}

TEST(MatrixTest, Errors) {
  const Tensor x = zeros({2, 3}, DType::u8);
  expect_error([&] { tril(x, runtime("[i] j")); }, ErrorKind::pattern,
               {"two names or numbers are wanted in brackets: tril is of rows and columns", "^^^"});
  expect_error(
      [&] {
        diagonal(zeros({2, 3, 4}), runtime("[i j k]"));
      },
      ErrorKind::pattern, {"two names or numbers are wanted in brackets: diagonal"});
  expect_error([&] { triu(x, runtime("[...]")); }, ErrorKind::pattern, {"two names or numbers"});
  expect_error([&] { triu(x, "[i j]", 0, 0.5); }, ErrorKind::dtype, {"triu: u8 cannot hold 0.5"});
  expect_error([&] { from_diagonal(x, "b [i]", std::int64_t{1} << 40); }, ErrorKind::overflow,
               {"from_diagonal", "2^63"});
}

}  // namespace
}  // namespace ein
