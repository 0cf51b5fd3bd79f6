// Reductions by a function of one's own.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
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

using namespace literals;

namespace {

using test::expect_error;
using test::get_values;
using Values = std::vector<double>;

/// Of probabilities: that any of independent events happens.
Tensor any_of(const Tensor& a, const Tensor& b) { return a + b - a * b; }

TEST(ReduceBy, CombinesAllElements) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 31, 100}) {
    const Tensor x = rand({3, n}, DType::f64);
    const Values values = get_values(x), got = get_values(reduce(x, "b s -> b", any_of));
    for (std::size_t b = 0; b < 3; ++b) {
      double none = 1;
      for (std::int64_t s = 0; s < n; ++s)
        none *= 1 - values[b * static_cast<std::size_t>(n) + static_cast<std::size_t>(s)];
      EXPECT_NEAR(got[b], 1 - none, 1e-14) << n;
    }
  }
}

TEST(ReduceBy, IsLikeTheReductionsThatThereAre) {
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  const auto greater = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  test::for_seeds(50, [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto size = [&] { return static_cast<std::int64_t>(1 + random() % 6); };
    const std::int64_t h = size(), w = size();
    const Shape shape{size(), 2 * h, 3 * w, size()};
    const Tensor x =
        test::scattered_tensor(shape, DType::i64, {false, false, false, false}, random);
    Values values(static_cast<std::size_t>(x.numel()));
    for (double& value : values) value = static_cast<int>(random() % 100) - 50;
    test::set_values(x, values);
    const char* const pattern = "b (h 2) (w q) c -> c (b h) w";
    EXPECT_EQ(get_values(reduce(x, runtime(pattern), add, "q"_a = 3)),
              get_values(reduce(x, runtime(pattern), "sum", "q"_a = 3)));
    EXPECT_EQ(get_values(reduce(x, runtime(pattern), greater, "q"_a = 3)),
              get_values(reduce(x, runtime(pattern), "max", "q"_a = 3)));
  });
}

TEST(ReduceBy, KeepsTheOrderOfElements) {
  const auto first_above_zero = [](const Tensor& a, const Tensor& b) { return where(a > 0, a, b); };
  const Tensor x = tensor({{0, 0, 3, 0, 5}, {7, 0, 0, 0, 1}, {0, 0, 0, 0, 9}});
  EXPECT_EQ(get_values(reduce(x, "b s -> b", first_above_zero)), (Values{3, 7, 9}));
  const auto last_above_zero = [](const Tensor& a, const Tensor& b) { return where(b > 0, b, a); };
  EXPECT_EQ(get_values(reduce(x, "b s -> b", last_above_zero)), (Values{5, 1, 9}));
  EXPECT_EQ(get_values(reduce(x, "b s -> ", first_above_zero)), (Values{3}));
}

TEST(ReduceBy, IsDifferentiatedAndCompiled) {
  const Tensor x = rand({2, 5}, DType::f64).requires_grad(true);
  const auto f = [](const Tensor& p) { return reduce(p, "b s -> b", any_of); };
  reduce(f(x), "b ->", "sum").backward();
  const Values values = get_values(x.detach()), gradient = get_values(x.grad());
  for (std::size_t i = 0; i < 10; ++i) {
    double others = 1;
    for (std::size_t s = i / 5 * 5; s < i / 5 * 5 + 5; ++s) others *= s == i ? 1 : 1 - values[s];
    EXPECT_NEAR(gradient[i], others, 1e-14);
  }
  auto compiled = compile(f);
  EXPECT_EQ(get_values(compiled(x.detach())), get_values(f(x.detach())));
}

TEST(ReduceBy, MistakesAreErrors) {
  const auto keep = [](const Tensor& a, const Tensor&) { return a; };
  expect_error(
      [&] {
        reduce(zeros({2, 0}), "b s -> b", keep);
      },
      ErrorKind::reduction, {"over no elements", "b s -> b", "(2, 0)"});
  EXPECT_EQ(reduce(zeros({0, 2}), "b s -> b", keep).shape(), (Shape{0}));
  expect_error(
      [&] {
        reduce(zeros({4, 2}), "b s -> s",
               [](const Tensor& a, const Tensor&) { return reduce(a, "b s -> b", "sum"); });
      },
      ErrorKind::shape, {"reduce \"b s -> s\"", "(2,)", "(2, 2)"});
  expect_error(
      [&] {
        reduce(zeros({2, 3}), runtime("b s c -> b"), keep);
      },
      ErrorKind::rank, {"b s c"});
}

}  // namespace
}  // namespace ein
