// The sign of zero, infinities and NaN: what is compiled keeps them as eager execution does.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "passes/simplify.hpp"

namespace ein {
namespace {

using F = std::function<Tensor(const Tensor&)>;

/// Each NaN as one, everything else by its bits.
std::vector<std::uint64_t> bits(const Tensor& x) {
  std::vector<std::uint64_t> all;
  for (double v : x.to_vector<double>())
    all.push_back(std::bit_cast<std::uint64_t>(std::isnan(v) ? std::nan("") : v));
  return all;
}

Tensor special_values(DType dtype) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  return from_vector<double>({-inf, -2, -1, -0.5, -0.0, 0.0, 0.5, 1, 2, inf, std::nan(""), -0.0},
                             {3, 4})
      .to(dtype);
}

void expect_same(const char* what, const F& f) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const Tensor x = special_values(dtype);
    EXPECT_EQ(bits(compile(f)(x)), bits(f(x)))
        << what << " in " << name(dtype) << "\neager " << to_string(f(x)) << "\ncompiled "
        << to_string(compile(f)(x));
  }
}

TEST(SignedZero, IsThatOfEagerExecution) {
  expect_same("x + 0.0", [](const Tensor& x) { return x + 0.0; });
  expect_same("x + -0.0", [](const Tensor& x) { return x + -0.0; });
  expect_same("x - 0.0", [](const Tensor& x) { return x - 0.0; });
  expect_same("x - -0.0", [](const Tensor& x) { return x - -0.0; });
  expect_same("0.0 + x", [](const Tensor& x) { return 0.0 + x; });
  expect_same("0.0 - x", [](const Tensor& x) { return 0.0 - x; });
  expect_same("-0.0 - x", [](const Tensor& x) { return -0.0 - x; });
  expect_same("x * 1.0", [](const Tensor& x) { return x * 1.0; });
  expect_same("x * 0.0", [](const Tensor& x) { return x * 0.0; });
  expect_same("x * -0.0", [](const Tensor& x) { return x * -0.0; });
  expect_same("x / 1.0", [](const Tensor& x) { return x / 1.0; });
  expect_same("0.0 / x", [](const Tensor& x) { return 0.0 / x; });
  expect_same("1.0 / (x + 0.0)", [](const Tensor& x) { return 1.0 / (x + 0.0); });
  expect_same("-(-x) + 0.0", [](const Tensor& x) { return -(-x) + 0.0; });
  expect_same("x - x", [](const Tensor& x) { return x - x; });
  expect_same("x / x", [](const Tensor& x) { return x / x; });
  expect_same("where of both zeros", [](const Tensor& x) { return where(x < 0.0, -0.0, 0.0); });
  expect_same("where of both zeros the other way",
              [](const Tensor& x) { return where(x < 0.0, 0.0, -0.0); });
  expect_same("nested where",
              [](const Tensor& x) { return where(x > 0.0, 1.0, where(x < 0.0, -0.0, 0.0)); });
  expect_same("tensors of both zeros", [](const Tensor& x) {
    return where(x < 0.0, full({3, 4}, -0.0, x.dtype()), zeros({3, 4}, x.dtype()));
  });
  expect_same("1 / tensors of both zeros", [](const Tensor& x) {
    return 1.0 / where(x < 0.0, full({3, 4}, -0.0, x.dtype()), zeros({3, 4}, x.dtype()));
  });
  expect_same("two constants in one expression", [](const Tensor& x) {
    return (abs(x) + 1.0) * -0.0 + where(x * 0.0 + 0.0 < 1.0, -0.0, 0.0);
  });
  expect_same("maximum with 0.0", [](const Tensor& x) { return maximum(x, 0.0); });
  expect_same("minimum with -0.0", [](const Tensor& x) { return minimum(x, -0.0); });
  expect_same("abs, sqrt", [](const Tensor& x) { return sqrt(abs(x) * -0.0); });
  expect_same("triu, then rsqrt",
              [](const Tensor& x) { return rsqrt(triu(where(x > 0.0, x, -0.0), "... [i j]")); });
  expect_same("pow 0.5", [](const Tensor& x) { return pow(x, 0.5); });
  expect_same("pow 2", [](const Tensor& x) { return pow(x, 2); });
  expect_same("pow 3", [](const Tensor& x) { return pow(x, 3); });
  expect_same("pow -1", [](const Tensor& x) { return pow(x, -1); });
  expect_same("relu", [](const Tensor& x) { return relu(x); });
  expect_same("sum of one", [](const Tensor& x) {
    return 1.0 / reduce(x.at({every, slice(0, 1)}), "a b -> a", "sum");
  });
  expect_same("sum", [](const Tensor& x) { return 1.0 / reduce(x * -0.0, "a b -> a", "sum"); });
  expect_same("product", [](const Tensor& x) { return reduce(x * -0.0, "a b -> a", "prod"); });
  expect_same("max", [](const Tensor& x) { return reduce(x * -0.0, "a b -> a", "max"); });
  expect_same("outer product", [](const Tensor& x) { return einsum(x, x, "a b, a c -> a b c"); });
  expect_same("scatter_add, each alone", [](const Tensor& x) {
    return scatter_add(x, arange(3), "a b, a -> [v] b", axis("v", 4));
  });
  expect_same("cumsum", [](const Tensor& x) { return cumsum(x * -0.0, "a [b]"); });
}

// A scatter begins with zeros, and 0 + -0 is 0.
TEST(SignedZero, AScatterOfOneValueAddsItToZero) {
  for (DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const Tensor x = full({3, 4}, -0.0, dtype), at = zeros({3, 4}, DType::i64);
    const F alone = [&](const Tensor& v) {
      return scatter_add(v, at, "a b, a b -> [v] b a", axis("v", 2));
    };
    const F summed = [&](const Tensor& v) {
      return scatter_add(v, at, "a b, a b -> [v] b", axis("v", 2));
    };
    for (const F& f : {alone, summed}) {
      for (const Tensor& y : {f(x), compile(f)(x)}) {
        for (double value : y.to_vector<double>()) EXPECT_FALSE(std::signbit(value)) << name(dtype);
      }
    }
  }
}

TEST(SignedZero, ConstantsAreFoldedInTheirOwnType) {
  // 2^24 + 1 has no place in f32.
  const F f = [](const Tensor& x) {
    return x * 0.0 + (full({3, 4}, 16777216.0, x.dtype()) + 1.0 - 16777216.0);
  };
  for (DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = ones({3, 4}, dtype);
    EXPECT_EQ(bits(compile(f)(x)), bits(f(x))) << name(dtype);
  }
}

TEST(SignedZero, StepsAreEqualIfTheirConstantsHaveTheSameBits) {
  const ScalarExpr zero = Ex(0.0), minus_zero = Ex(-0.0), nan = Ex(std::nan(""));
  EXPECT_FALSE(zero == minus_zero);
  EXPECT_TRUE(nan == nan);
}

}  // namespace
}  // namespace ein
