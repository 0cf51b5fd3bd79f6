// einsum whose result goes into, or is added to, a tensor that is there.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;
using Values = std::vector<double>;

/// alpha · a b + beta · c of matrices in rows.
Values expected(const Values& a, const Values& b, const Values& c, std::int64_t rows,
                std::int64_t depth, std::int64_t cols, double alpha, double beta) {
  Values result(c.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum +=
            a[static_cast<std::size_t>(i * depth + k)] * b[static_cast<std::size_t>(k * cols + j)];
      const auto at = static_cast<std::size_t>(i * cols + j);
      result[at] = alpha == 0 ? 0 : alpha * sum;
      if (beta != 0) result[at] += beta * c[at];
    }
  }
  return result;
}

/// Small whole numbers, so that sums are exact in every dtype.
Values whole_numbers(std::int64_t count, std::mt19937& random) {
  Values values(static_cast<std::size_t>(count));
  for (double& value : values) value = static_cast<int>(random() % 5) - 2;
  return values;
}

TEST(EinsumInto, IsAlphaTimesTheSumsAndBetaTimesWhatWasThere) {
  test::for_seeds(300, [](unsigned seed) {
    std::mt19937 random(seed);
    constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16,
                                DType::f16, DType::i32, DType::i64};
    const DType dtype = dtypes[random() % std::size(dtypes)];
    const std::int64_t rows = random() % 20, depth = random() % 8, cols = random() % 40;
    const double factors[] = {0, 1, -1, 2, 3}, alpha = factors[random() % 5],
                 beta = factors[random() % 5];
    const Values a = whole_numbers(rows * depth, random), b = whole_numbers(depth * cols, random),
                 c = whole_numbers(rows * cols, random);
    const auto lay = [&](const Values& values, const Shape& shape) {
      const Tensor x = test::scattered_tensor(shape, dtype, {false, false}, random);
      test::set_values(x, values);
      return x;
    };
    const Tensor x = lay(a, {rows, depth}), y = lay(b, {depth, cols}), z = lay(c, {rows, cols});
    const Tensor again = z.clone();
    const Values want = expected(a, b, c, rows, depth, cols, alpha, beta);
    SCOPED_TRACE(std::string(name(dtype)) + " alpha " + std::to_string(alpha) + " beta " +
                 std::to_string(beta));
    for (int call = 0; call < 2; ++call) {  // planned, and from the kept plan
      test::set_values(z, c);
      einsum_into(z, x, y, "i k, k j -> i j", alpha, beta);
      EXPECT_EQ(get_values(z), want);
    }
    auto compiled = compile([&](const Tensor& p, const Tensor& q) {
      einsum_into(again, p, q, "i k, k j -> i j", alpha, beta);
    });
    compiled(x, y);
    EXPECT_EQ(get_values(again), want);
  });
}

TEST(EinsumInto, TakesOneTwoThreeAndAnyNumberOfOperands) {
  const Tensor a = arange(6).to(DType::f32).view({2, 3}), b = arange(3).to(DType::f32),
               d = arange(2).to(DType::f32), c = ones({2});
  einsum_into(c, a, "i k -> i", 2, 1);
  EXPECT_EQ(get_values(c), (Values{7, 25}));
  einsum_into(c, a, b, "i k, k -> i");
  EXPECT_EQ(get_values(c), (Values{5, 14}));
  einsum_into(c, a, b, d, "i k, k, i -> i", 1, -1);
  EXPECT_EQ(get_values(c), (Values{-5, 0}));
  einsum_into(c, std::vector{a, b}, "i k, k -> i", 1, 1);
  EXPECT_EQ(get_values(c), (Values{0, 14}));
}

TEST(EinsumInto, WritesToAPartOfATensor) {
  const Tensor c = zeros({4, 3}), a = ones({2, 5}), b = ones({5, 3});
  einsum_into(c.at({slice(0, 4, 2)}), a, b, "i k, k j -> i j", 1, 1);
  EXPECT_EQ(get_values(c), (Values{5, 5, 5, 0, 0, 0, 5, 5, 5, 0, 0, 0}));
}

TEST(EinsumInto, OperandsMayShareMemoryWithTheResult) {
  const Values values{1, 2, 3, 4};
  const Tensor c = test::make_tensor(values, {2, 2});
  einsum_into(c, c, c, "i k, k j -> i j", 1, 1);
  EXPECT_EQ(get_values(c), (Values{8, 12, 18, 26}));
  einsum_into(c, c, "i j -> j i");
  EXPECT_EQ(get_values(c), (Values{8, 18, 12, 26}));
  const Tensor x = arange(6).to(DType::f32);
  einsum_into(x.at({slice(1, 6)}), x.at({slice(0, 5)}), "i -> i");
  EXPECT_EQ(get_values(x), (Values{0, 0, 1, 2, 3, 4}));
}

TEST(EinsumInto, DoesNotReadWhatBetaZeroLeavesOut) {
  const Tensor c = full({2, 2}, NAN), a = ones({2, 3});
  einsum_into(c, a, a, "i k, j k -> i j");
  EXPECT_EQ(get_values(c), (Values{3, 3, 3, 3}));
  einsum_into(c, full({2, 3}, NAN), a, "i k, j k -> i j", 0, 2);
  EXPECT_EQ(get_values(c), (Values{6, 6, 6, 6}));
}

TEST(EinsumInto, IsRoundedOnce) {
  const Tensor c = full({1}, 1, DType::bf16), a = full({3}, 0.00390625, DType::bf16),
               b = ones({3}, DType::bf16);
  einsum_into(c, a, b, "k, k -> 1", 1, 1);
  EXPECT_EQ(get_values(c), (Values{1.015625}));  // 1.01171875, rounded up; 1 would stay 1 by steps
}

TEST(EinsumInto, MistakesAreErrors) {
  const Tensor a = ones({2, 3}), b = ones({3, 4}), c = ones({2, 4});
  expect_error(
      [&] {
        einsum_into(ones({4, 2}), a, b, "i k, k j -> i j");
      },
      ErrorKind::shape, {"einsum_into", "(2, 4)", "(4, 2)", "^"});
  expect_error([&] { einsum_into(c, a, c, "i k, k j -> i j"); }, ErrorKind::size, {"k", "3", "2"});
  const Tensor whole = ones({2, 4}, DType::i32);
  expect_error([&] { einsum_into(whole, a, b, "i k, k j -> i j"); }, ErrorKind::dtype,
               {"i32", "f32"});
  expect_error(
      [&] { einsum_into(whole, a.to(DType::i32), b.to(DType::i32), "i k, k j -> i j", 0.5); },
      ErrorKind::value, {"alpha", "0.5", "i32"});
  const Tensor leaf = ones({2, 4}).requires_grad(true);
  expect_error([&] { einsum_into(leaf, a, b, "i k, k j -> i j"); }, ErrorKind::value,
               {"einsum_into", "NoGrad"});
  const Tensor source = ones({2, 3}).requires_grad(true);
  expect_error([&] { einsum_into(c, source, b, "i k, k j -> i j"); }, ErrorKind::value,
               {"einsum_into", "detach"});
  const NoGrad scope;
  einsum_into(c, source, b, "i k, k j -> i j");
  EXPECT_EQ(c(0, 0).item(), 3);
}

// They wrap only where c holds integers.
TEST(EinsumInto, IntegersAreAddedUpAsTheResultIs) {
  const Tensor a = full({2}, 4294967295, DType::u32),
               b = full({4}, std::int64_t{1} << 62, DType::i64);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto exact = [&](double x) { return dtype == DType::f32 ? double(float(x)) : x; };
    const Tensor products = zeros({2}, dtype), sum = ones({}, dtype);
    einsum_into(products, a, a, "i, i -> i");
    EXPECT_NEAR(products(0).item() / 18446744065119617025.0, 1, 1e-7);
    einsum_into(sum, b, "i ->", 0.5, 2);
    EXPECT_EQ(sum.item(), exact(0x1p63 + 2));
    auto traced = compile([&](const Tensor& x) { einsum_into(sum, x, "i ->"); });
    traced(b);
    EXPECT_EQ(sum.item(), 0x1p64);
  }
  const Tensor whole = zeros({}, DType::i64);
  einsum_into(whole, b, "i ->");
  EXPECT_EQ(whole.item<std::int64_t>(), 0);
}

}  // namespace
}  // namespace ein
