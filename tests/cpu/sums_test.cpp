// Sums of many elements: as exact however they are summed.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/parallel.hpp>

#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;

/// scatter_add of n elements to one position.
Tensor scattered(const Tensor& x) {
  return scatter_add(x, zeros({x.numel()}, DType::u8), "n, n -> [k]", "k"_a = 1);
}

// f32 has no 2^24 + 1, bf16 no 257, f16 no 2049.
TEST(Sums, OnesPastTheDigitsOfTheirType) {
  const auto count = [](DType dtype, std::int64_t n, Tensor (*sum)(const Tensor&)) {
    return sum(ones({n}, dtype)).to(DType::f64)(0).item<double>();
  };
  constexpr std::int64_t many = (1 << 24) + (1 << 12);
  EXPECT_EQ(count(DType::f32, many, scattered), many);
  EXPECT_EQ(count(DType::bf16, 1 << 20, scattered), 1 << 20);
  EXPECT_EQ(count(DType::f16, 1 << 15, scattered), 1 << 15);
  const auto of_rows = [](const Tensor& x) {
    const Tensor rows = repeat(x, "n -> n d", "d"_a = 5);
    return scatter_add(rows, zeros({x.numel()}, DType::i32), "n d, n -> d [k]", "k"_a = 2)(4);
  };
  EXPECT_EQ(count(DType::f32, many, of_rows), many);
  EXPECT_EQ(count(DType::bf16, 1 << 20, of_rows), 1 << 20);
}

/// Products of few rows or columns, whose first term is 2^24 and others 1: what is added to it one
/// by one is lost.
TEST(Sums, ProductsPastTheDigits) {
  constexpr std::int64_t depth = 1 << 20, most_lost = 1 << 15;
  const auto operand = [](DType dtype, std::int64_t count, bool along_depth) {
    const Tensor x = ones(along_depth ? Shape{count, depth} : Shape{depth, count}, dtype);
    for (std::int64_t i = 0; i < count; ++i) (along_depth ? x(i, 0) : x(0, i)).fill(4096);
    return x;
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::c64}) {
    for (const auto& [rows, cols] : {std::pair{1, 2}, {2, 2}, {3, 5}, {7, 1}, {8, 20}}) {
      for (const int layout : {0, 1, 2, 3}) {
        const bool a_along = layout % 2 == 1, b_along = layout / 2 == 1;
        const std::string pattern =
            std::string(a_along ? "m k, " : "k m, ") + (b_along ? "n k" : "k n") + " -> m n";
        const Tensor c = einsum(operand(dtype, rows, a_along), operand(dtype, cols, b_along),
                                runtime(pattern), as(dtype == DType::c64 ? dtype : DType::f32));
        for (const double sum : test::get_values(dtype == DType::c64 ? real(c) : c)) {
          ASSERT_NEAR(sum, 0x1p24 + depth - 1, most_lost)
              << pattern << " of " << rows << " and " << cols << " in " << name(dtype);
        }
      }
    }
  }
}

TEST(Sums, GradientOfGatherPastTheDigits) {
  constexpr std::int64_t many = (1 << 24) + (1 << 12);
  const Tensor at = zeros({many}, DType::u8);
  const Tensor g = grad([&](const Tensor& table) {
    return reduce(gather(table, at, "[v], n -> n"), "n ->", "sum");
  })(ones({2}));
  EXPECT_EQ(test::get_values(g), (std::vector<double>{many, 0}));
}

/// The error of a sum in digits of its dtype, of the sum of magnitudes.
double error(const Tensor& sum, __float128 exact, __float128 magnitudes) {
  const double digit = sum.dtype() == DType::f64 ? 0x1p-53 : 0x1p-24;
  return std::abs(static_cast<double>((sum.item<double>() - exact) / magnitudes)) / digit;
}

// Few positions and many, rows and single elements, beside the exact sums.
TEST(Sums, ScatteredErrorsDoNotGrow) {
  test::for_seeds(12, [](unsigned seed) {
    std::mt19937_64 random(seed);
    const DType dtype = random() % 2 == 0 ? DType::f32 : DType::f64;
    const std::int64_t n = 1 + static_cast<std::int64_t>(random() % 200000),
                       k = 1 + static_cast<std::int64_t>(random() % 300),
                       d = 1 + static_cast<std::int64_t>(random() % 6);
    std::normal_distribution<double> normal(1, 1);
    std::vector<double> x(static_cast<std::size_t>(n * d));
    std::vector<std::int64_t> at(static_cast<std::size_t>(n));
    for (double& value : x)
      value = dtype == DType::f32 ? static_cast<float>(normal(random)) : normal(random);
    for (std::int64_t& position : at)
      position = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(k));
    std::vector<__float128> sums(static_cast<std::size_t>(k * d)), magnitudes(sums.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto cell = static_cast<std::size_t>(at[i / static_cast<std::size_t>(d)] * d) +
                        i % static_cast<std::size_t>(d);
      sums[cell] += x[i];
      magnitudes[cell] += std::abs(x[i]);
    }
    const Tensor found = scatter_add(from_vector(x, {n, d}).to(dtype), from_vector(at, {n}),
                                     "n d, n -> [k] d", axis("k", k))
                             .reshape({k * d});
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (magnitudes[i] == 0) continue;
      // Up to 32 values are added one by one.
      ASSERT_LT(error(found(static_cast<std::int64_t>(i)), sums[i], magnitudes[i]), 32)
          << n << " to " << k << " of " << d;
    }
  });
}

TEST(Sums, ScattersGiveTheSameBitsOnAnyNumberOfThreads) {
  test::for_seeds(6, [](unsigned seed) {
    std::mt19937_64 random(seed);
    const std::int64_t n = 60000, k = 1 + static_cast<std::int64_t>(random() % 900),
                       d = 1 + static_cast<std::int64_t>(random() % 40);
    std::vector<std::int64_t> at(static_cast<std::size_t>(n));
    for (std::int64_t& position : at)
      position = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(k));
    manual_seed(random());
    const Tensor x = randn({n, d}), positions = from_vector(at, {n});
    const auto run = [&](int threads) {
      set_num_threads(threads);
      return scatter_add(x, positions, "n d, n -> [k] d", axis("k", k)).to_vector<float>();
    };
    const int before = num_threads();
    const auto one = run(1), three = run(3);
    set_num_threads(before);
    EXPECT_EQ(one, three);
  });
}

TEST(Sums, ScattersKeepInfinityNaNAndZero) {
  const double inf = INFINITY;
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (std::int64_t n : {3, 100}) {
      const auto of = [&](double first, double rest) {
        std::vector<double> x(static_cast<std::size_t>(n), rest);
        x[0] = first;
        return scattered(from_vector(x, {n}).to(dtype))(0).to(DType::f64).item<double>();
      };
      EXPECT_EQ(of(inf, 1), inf);
      EXPECT_EQ(of(-inf, 1), -inf);
      EXPECT_TRUE(std::isnan(of(-inf, inf)));
      EXPECT_TRUE(std::isnan(of(NAN, 1)));
      EXPECT_FALSE(std::signbit(of(-0.0, -0.0)));
    }
  }
}

}  // namespace
}  // namespace ein
