// Products of matrices whose depth is tens of millions, beside f128.
//
// The engines add some hundreds of products one by one, and such sums within a part of the depth;
// parts are added up in levels of 64. Errors of equal numbers do not cancel, but add up: of those
// the bound is 256 half digits of the sum of magnitudes, and 64 of others, as in
// long_reductions_test.cpp. A sum one by one is off by thousands.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include <ein/complex.hpp>
#include <ein/ein.hpp>

#include "support/repeated_memory.hpp"

namespace ein {
namespace {

using Wide = __float128;

/// Elements repeat so many numbers, which no stride and no count of lanes divides.
constexpr std::int64_t period = 7;
using Numbers = std::array<double, period>;
struct Data {
  Numbers left, right;
  int half_digits;
};
constexpr Data many_numbers{
    {0.1, 0.7, 0.3, 0.9, 0.2, 0.6, 0.4}, {0.8, 0.5, 0.55, 0.35, 0.15, 0.95, 0.25}, 64};
constexpr Data equal_numbers{
    {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, {0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3}, 512};

/// A matrix of `count` rows; its depth is one axis, or two, the last of which has `inner` steps.
struct Side {
  std::int64_t count, by_row, by_step, by_inner;

  std::int64_t place(std::int64_t row, std::int64_t step, std::int64_t inner) const {
    return row * by_row + step * by_step + inner * by_inner;
  }
};
struct Case {
  std::string what;
  std::int64_t steps, inner;
  Side left, right;
};

Tensor repeated(const Numbers& numbers, DType dtype, const Side& side, const Case& c) {
  return visit(real_dtype(dtype), [&]<class T>(std::type_identity<T>) {
    const std::size_t parts = is_complex(dtype) ? 2 : 1;
    std::array<T, 2 * period> block{};
    for (std::size_t i = 0; i < period; ++i) {
      block[i * parts] = convert<T>(numbers[i]);
      if (parts == 2) block[i * parts + 1] = convert<T>(1 - numbers[i]);
    }
    const auto last =
        static_cast<std::size_t>(side.place(side.count - 1, c.steps - 1, c.inner - 1));
    return Tensor(
        test::repeated_memory(
            {reinterpret_cast<const std::byte*>(block.data()), period * parts * sizeof(T)},
            (last + 1) * parts * sizeof(T)),
        dtype, {side.count, c.steps, c.inner}, {side.by_row, side.by_step, side.by_inner});
  });
}

struct Sums {
  Wide re = 0, im = 0, magnitudes = 0;
};

/// What the dtype holds of the numbers, times each other.
Sums expected(const Data& data, const Case& c, DType dtype, std::int64_t i, std::int64_t j) {
  const auto part = [&](double x) {
    return visit(real_dtype(dtype), [&]<class T>(std::type_identity<T>) {
      return Wide(convert<double>(convert<T>(x)));
    });
  };
  const auto times = [](std::int64_t of, std::int64_t r) {
    return Wide(of / period + (r < of % period));
  };
  Sums sums;
  for (std::int64_t s = 0; s < period; ++s) {
    for (std::int64_t l = 0; l < period; ++l) {
      const double x = data.left[static_cast<std::size_t>(c.left.place(i, s, l) % period)],
                   y = data.right[static_cast<std::size_t>(c.right.place(j, s, l) % period)];
      const Wide count = times(c.steps, s) * times(c.inner, l);
      if (!is_complex(dtype)) {
        sums.re += count * part(x) * part(y);
        continue;
      }
      const Wide xr = part(x), xi = part(1 - x), yr = part(y), yi = part(1 - y);
      sums.re += count * (xr * yr - xi * yi);
      sums.im += count * (xr * yi + xi * yr);
      sums.magnitudes += count * (xr * yr + xi * yi + xr * yi + xi * yr);
    }
  }
  if (!is_complex(dtype)) sums.magnitudes = sums.re;
  return sums;
}

void expect_product(const Data& data, const Case& c, DType dtype) {
  SCOPED_TRACE(c.what);
  const Tensor x = repeated(data.left, dtype, c.left, c),
               y = repeated(data.right, dtype, c.right, c);
  const Tensor z = einsum(x, y, "i k l, j k l -> i j");
  for (std::int64_t i = 0; i < c.left.count; ++i) {
    for (std::int64_t j = 0; j < c.right.count; ++j) {
      const auto got = z(i, j).to(DType::c128).item<std::complex<double>>();
      const Sums want = expected(data, c, dtype, i, j);
      const Wide last_digit = z.dtype() == DType::bf16 ? 0x1p-8 : 0,  // of the result
          allowed = (data.half_digits * 0x1p-24 + last_digit) * want.magnitudes;
      ASSERT_NEAR(got.real(), static_cast<double>(want.re), static_cast<double>(allowed));
      ASSERT_NEAR(got.imag(), static_cast<double>(want.im), static_cast<double>(allowed));
    }
  }
}

class LongProducts : public testing::TestWithParam<DType> {};

TEST_P(LongProducts, AreNoSumsOneByOne) {
  constexpr std::int64_t depth = std::int64_t{1} << 24, some = 300007;
  const Case cases[] = {
      {"a dot product", depth + 5, 1, {1, 0, 1, 0}, {1, 0, 1, 0}},
      {"vectors that lie apart", depth + 5, 1, {1, 0, 2, 0}, {1, 0, 3, 0}},
      {"a vector and columns", depth + 5, 1, {1, 0, 1, 0}, {2, 1, 2, 0}},
      {"a vector and rows", some, 1, {1, 0, 1, 0}, {3, some, 1, 0}},
      {"a vector and a few columns", some, 1, {1, 0, 1, 0}, {2, 1, 2, 0}},
      {"few rows along the depth", depth + 5, 1, {2, depth + 6, 1, 0}, {3, depth + 8, 1, 0}},
      {"few rows across the depth", depth + 5, 1, {2, 1, 2, 0}, {3, 1, 3, 0}},
      {"a block across the depth", depth / 64 + 5, 1, {24, 1, 24, 0}, {20, 1, 20, 0}},
      {"a block along the depth", depth / 64, 1, {24, depth / 64 + 3, 1, 0}, {20, 1, 20, 0}},
      {"two axes of the depth", 4099, 8191, {2, 1, 8191 * 2, 2}, {3, 4099 * 8191, 1, 4099}},
  };
  for (const Case& c : cases) {
    expect_product(many_numbers, c, GetParam());
    expect_product(equal_numbers, c, GetParam());
  }
}

TEST(LongProductsOfABatch, AreNoSumsOneByOne) {
  constexpr std::int64_t depth = std::int64_t{1} << 24;
  const Tensor x = full({2, depth}, 0.1f), z = einsum(x, x, "b k, b k -> b");
  const double want = static_cast<double>(0.1f) * static_cast<double>(0.1f) * depth;
  for (std::int64_t b = 0; b < 2; ++b) EXPECT_NEAR(z(b).item<float>(), want, want * 0x1p-15);
}

INSTANTIATE_TEST_SUITE_P(, LongProducts, testing::Values(DType::f32, DType::c64, DType::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace ein
