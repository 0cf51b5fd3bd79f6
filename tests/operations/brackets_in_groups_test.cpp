// An axis in brackets that is a part of a dimension, `(h [d])`: what is computed of it is what
// rearrange, the same operation on axes of their own, and rearrange back give.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/call.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/marked_axes.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace ein::literals;
using test::expect_error;
using test::get_values;

/// Sums may go in another order.
void expect_same(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  ASSERT_EQ(got.dtype(), want.dtype());
  const std::vector<double> a = get_values(got), b = get_values(want);
  const double error = is_floating(got.dtype()) ? test::tolerance(got.dtype()) : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // also infinities
    EXPECT_NEAR(a[i], b[i], error * (1 + std::abs(b[i]))) << i;
  }
}

class BracketsInGroups : public testing::Test {
 protected:
  const Tensor split = randn({2, 3, 4}).to(DType::f64);
  const Tensor x = split.view({2, 12}).clone();
  static Tensor joined(const Tensor& y) { return rearrange(y, "b h d -> b (h d)"); }
};

TEST_F(BracketsInGroups, WhatKeepsAllAxes) {
  const Tensor weight = arange(4).to(DType::f64), bias = ones({4}, DType::f64);
  expect_same(softmax(x, "b (h [d])", "h"_a = 3), joined(softmax(split, "b h [d]")));
  expect_same(log_softmax(x, "b (h [d])", "h"_a = 3), joined(log_softmax(split, "b h [d]")));
  expect_same(layer_norm(x, "b (h [d])", "h"_a = 3), joined(layer_norm(split, "b h [d]")));
  expect_same(layer_norm(x, weight, bias, "b (h [d])", 0.1, "h"_a = 3),
              joined(layer_norm(split, weight, bias, "b h [d]", 0.1)));
  expect_same(layer_norm(x, weight, bias, "b (h [d])", "h"_a = 3),
              joined(layer_norm(split, weight, bias, "b h [d]")));
  expect_same(rms_norm(x, "b (h [d])", "h"_a = 3), joined(rms_norm(split, "b h [d]")));
  expect_same(rms_norm(x, weight, "b (h [d])", "h"_a = 3),
              joined(rms_norm(split, weight, "b h [d]")));
  expect_same(cumsum(x, "b (h [d])", "h"_a = 3), joined(cumsum(split, "b h [d]")));
  expect_same(cumsum(x, "b (h [d])", as(DType::f32), "h"_a = 3),
              joined(cumsum(split, "b h [d]", as(DType::f32))));
  expect_same(cumprod(x, "b (h [d])", "h"_a = 3), joined(cumprod(split, "b h [d]")));
  expect_same(cummax(x, "b (h [d])", "h"_a = 3), joined(cummax(split, "b h [d]")));
  expect_same(cummin(x, "b (h [d])", "h"_a = 3), joined(cummin(split, "b h [d]")));
  expect_same(logcumsumexp(x, "b (h [d])", "h"_a = 3), joined(logcumsumexp(split, "b h [d]")));
  const Sorted got = sort(x, "b (h [d])", true, "h"_a = 3), want = sort(split, "b h [d]", true);
  expect_same(got.values, joined(want.values));
  expect_same(got.positions, joined(want.positions));
  expect_same(flip(x, "b (h [d])", "h"_a = 3), joined(flip(split, "b h [d]")));
  expect_same(roll(x, "b (h [d])", 1, "h"_a = 3), joined(roll(split, "b h [d]", 1)));
  expect_same(roll(x, "[b] (h [d])", PerAxis{1, -2}, "h"_a = 3),
              joined(roll(split, "[b] h [d]", {1, -2})));
  expect_same(roll(x, "[b] (h=3 [d])", {1, -2}), joined(roll(split, "[b] h [d]", {1, -2})));
  expect_same(tril(x, "[b] (h [d])", "h"_a = 3), joined(tril(split, "[b] h [d]")));
  expect_same(triu(x, "[b] (h [d])", 1, 0.5, "h"_a = 3), joined(triu(split, "[b] h [d]", 1, 0.5)));
}

TEST_F(BracketsInGroups, WhatDropsThem) {
  const auto rows = [](const Tensor& y) { return rearrange(y, "b h -> b (h)"); };
  expect_same(argmax(x, "b (h [d])", "h"_a = 3), rows(argmax(split, "b h [d]")));
  expect_same(argmin(x, "b ([h] d)", "h"_a = 3), rows(argmin(split, "b [h] d")));
  expect_same(argmax(x, "[b] ([h] d)", "h"_a = 3), argmax(split, "[b h] d"));
  expect_same(median(x, "b (h [d])", "h"_a = 3), rows(median(split, "b h [d]")));
  expect_same(quantile(x, "b (h [d])", 0.3, Interpolation::lower, "h"_a = 3),
              rows(quantile(split, "b h [d]", 0.3, Interpolation::lower)));
  // A group without axes is a dimension of size 1.
  expect_same(argmax(x, "b ([d])"), rearrange(argmax(x, "b [d]"), "b -> b 1"));
  expect_same(argmax(x, "b ([h d])", "h"_a = 3), rearrange(argmax(x, "b [d]"), "b -> b 1"));
}

TEST_F(BracketsInGroups, WhatHasOthersInTheirPlace) {
  const Sorted got = top_k(x, "b (h [d])", 2, "h"_a = 3), want = top_k(split, "b h [d]", 2);
  EXPECT_EQ(got.values.shape(), (Shape{2, 6}));
  expect_same(got.values, joined(want.values));
  expect_same(got.positions, joined(want.positions));
  expect_same(pad(x, "b (h [d])", 1, 2, -1.5, "h"_a = 3),
              joined(pad(split, "b h [d]", 1, 2, -1.5)));
  expect_same(pad(x, "b ([h] d)", 1, 2, PadMode::reflect, "h"_a = 3),
              joined(pad(split, "b [h] d", 1, 2, PadMode::reflect)));
  expect_same(quantile(x, "b (h [d])", std::vector<double>{0.1, 0.5, 0.7}, "h"_a = 3),
              joined(quantile(split, "b h [d]", {0.1, 0.5, 0.7})));
  expect_same(histogram(x, "b (h [d])", 5, -1, 1, "h"_a = 3),
              joined(histogram(split, "b h [d]", 5, -1, 1)));
  manual_seed(3);
  const Tensor drawn = multinomial(softmax(x, "b [c]"), "b (h [d])", 5, "h"_a = 3);
  manual_seed(3);
  expect_same(drawn, joined(multinomial(softmax(x, "b [c]").view({2, 3, 4}), "b h [d]", 5)));
  manual_seed(3);
  expect_same(multinomial(softmax(x, "b [c]"), runtime("b (h [d])"), 5, axis("h", 3)), drawn);
  manual_seed(3);
  expect_same(multinomial(softmax(x, "b [c]"), runtime("b (h=3 [d])"), 5), drawn);
  expect_error([&] { multinomial(x, runtime("b (h=3 [d])"), 5, axis("k", 3)); },
               ErrorKind::axis_argument, {"k"});
  const Tensor matrices = randn({6, 8});  // two of 3 x 4
  const Tensor apart = rearrange(matrices, "(h i) (w j) -> h i w j", "h"_a = 2, "w"_a = 2);
  expect_same(diagonal(matrices, "(h [i]) (w [j])", 1, "h"_a = 2, "w"_a = 2),
              rearrange(diagonal(apart, "h [i] w [j]", 1), "h i w -> (h i) w"));
  expect_same(diagonal(matrices, "(h [i j]) k", "h"_a = 2, "i"_a = 3),
              rearrange(diagonal(rearrange(matrices, "(h i j) k -> h i j k", "h"_a = 2, "i"_a = 3),
                                 "h [i j] k"),
                        "h i k -> (h i) k"));
}

TEST_F(BracketsInGroups, OfSeveralOperands) {
  const Tensor table = randn({6, 5}), at = (arange(4) % 3).view({2, 2});
  const Tensor tables = rearrange(table, "(h v) d -> h v d", "h"_a = 2);
  expect_same(gather(table, at, "(h [v]) d, h s -> h s d"),
              gather(tables, at, "h [v] d, h s -> h s d"));
  const Tensor values = randn({2, 2, 5});
  expect_same(
      scatter_add(values, at, "h s d, h s -> (h [v]) d", "v"_a = 3),
      rearrange(scatter_add(values, at, "h s d, h s -> h [v] d", "v"_a = 3), "h v d -> (h v) d"));
  expect_same(
      scatter_max(values, at, "h s d, h s -> d ([v] h)", "v"_a = 3),
      rearrange(scatter_max(values, at, "h s d, h s -> d [v] h", "v"_a = 3), "d v h -> d (v h)"));
  expect_same(one_hot(at, "h s -> (h [v]) s", "v"_a = 3),
              rearrange(one_hot(at, "h s -> h [v] s", "v"_a = 3), "h v s -> (h v) s"));
  const Tensor edges = sort(x, "b (h [d])", "h"_a = 3).values;
  const Tensor asked = randn({2, 5}).to(DType::f64);
  expect_same(searchsorted(edges, asked, "b (h [e]), b s -> b h s", "h"_a = 3),
              searchsorted(edges.view({2, 3, 4}), asked, "b h [e], b s -> b h s"));
  const Tensor targets = (arange(6) % 4).view({2, 3}), weights = rand({4}).to(DType::f64);
  expect_same(cross_entropy(x, targets, "b (h [v]), b h"),
              cross_entropy(split, targets, "b h [v], b h"));
  expect_same(
      cross_entropy(x, targets, "b (h [v]), b h -> h",
                    CrossEntropyOptions{.weights = weights, .smoothing = 0.1}),
      cross_entropy(split, targets, "b h [v], b h -> h", {.weights = weights, .smoothing = 0.1}));
  expect_same(cross_entropy(x, softmax(x, "b (h [v])", "h"_a = 3), "b (h [v]), b (h v)", "h"_a = 3),
              cross_entropy(split, softmax(split, "b h [v]"), "b h [v], b h v"));
}

TEST_F(BracketsInGroups, Matrices) {
  const Tensor some = randn({2, 3, 3}).to(DType::f64);
  const Tensor apart = einsum(some, some, "h i k, h j k -> h i j") + eye(3).to(DType::f64);
  const Tensor m = rearrange(apart, "h i j -> (h i) j");
  const auto back = [](const Tensor& y) { return rearrange(y, "h i j -> (h i) j"); };
  expect_same(inverse(m, "(h [i]) [j]", "h"_a = 2),
              rearrange(inverse(apart, "h [i] [j]"), "h j i -> (h j) i"));
  expect_same(det(m, "(h [i]) [j]", "h"_a = 2), det(apart, "h [i j]"));
  expect_same(cholesky(m, "(h [i]) [j]", "h"_a = 2), back(cholesky(apart, "h [i j]")));
  const Tensor sides = randn({6, 2}).to(DType::f64);
  const Tensor of_each = rearrange(sides, "(h i) k -> h i k", "h"_a = 2);
  expect_same(solve(m, sides, "(h [n]) [m], (h [n]) k -> k (h [m])", "h"_a = 2),
              rearrange(solve(apart, of_each, "h [n m], h [n] k -> h [m] k"), "h m k -> k (h m)"));
  expect_same(lstsq(m, of_each, "(h [n]) [m], h [n] k -> h [m] k"),
              lstsq(apart, of_each, "h [n m], h [n] k -> h [m] k"));
  const QrFactors qr_got = qr(m, "(h [i]) [j]", "h"_a = 2), qr_want = qr(apart, "h [i j]");
  expect_same(qr_got.q, back(qr_want.q));
  expect_same(qr_got.r, back(qr_want.r));
  const SvdFactors svd_got = svd(m, "(h [i]) [j]", "h"_a = 2), svd_want = svd(apart, "h [i j]");
  expect_same(svd_got.u, back(svd_want.u));
  expect_same(svd_got.s, rearrange(svd_want.s, "h r -> (h r)"));
  expect_same(svd_got.vt, back(svd_want.vt));
  const Eigenpairs got = eigh(m, "(h [i]) [j]", "h"_a = 2), want = eigh(apart, "h [i j]");
  expect_same(got.values, rearrange(want.values, "h j -> (h j)"));
  expect_same(got.vectors, back(want.vectors));
}

TEST_F(BracketsInGroups, WhereverTheyStand) {
  const Tensor flat = x.view({24});
  const auto in = [&](const Tensor& y) { return y.view({24}); };
  const Tensor want = in(softmax(split, "b [h] d"));
  expect_same(softmax(flat, "(b ([h] d))", "b"_a = 2, "d"_a = 4), want);
  expect_same(softmax(flat, "(b=2 [3] d)"), want);
  expect_same(softmax(flat, runtime("(b 1 [h] (d))"), axis("b", 2), axis("d", 4)), want);
  expect_same(softmax(x, "... ([h] d)", "d"_a = 4), want.view({2, 12}));
  expect_same(softmax(x.view({2, 1, 12}), "b 1 ([h] d)", "d"_a = 4), want.view({2, 1, 12}));
  expect_same(argmax(x.view({2, 1, 12}), "... ([h] d)", "d"_a = 4),
              argmax(split, "b [h] d").view({2, 1, 4}));
  expect_same(softmax(x, "[b] (h [d])", "h"_a = 3), joined(softmax(split, "[b] h [d]")));
  expect_same(softmax(x.transpose(), "(h [d]) b", "h"_a = 3),
              joined(softmax(split, "b h [d]")).transpose());
  expect_same(softmax(zeros({0, 12}), "b (h [d])", "h"_a = 3), zeros({0, 12}));
  expect_same(softmax(zeros({2, 0}), "b (h [d])", "h"_a = 3), zeros({2, 0}));
}

TEST_F(BracketsInGroups, GradientsAndCompiledFunctions) {
  const auto of_groups = [](const Tensor& y) {
    return softmax(cumsum(y, "b (h [d])", "h"_a = 3), "b ([h] d)", "h"_a = 3);
  };
  const auto of_axes = [](const Tensor& y) {
    const Tensor apart = rearrange(y, "b (h d) -> b h d", "h"_a = 3);
    return rearrange(softmax(cumsum(apart, "b h [d]"), "b [h] d"), "b h d -> b (h d)");
  };
  const auto gradient = [&](const auto& f) {
    Tensor y = x.clone();
    y.requires_grad(true);
    reduce(f(y) * x, "... ->", "sum").backward();
    return y.grad();
  };
  expect_same(gradient(of_groups), gradient(of_axes));
  expect_same(compile(of_groups)(x), of_axes(x));
}

TEST_F(BracketsInGroups, CountsAsAxesOfTheirOwn) {
  const auto bill = [](std::string_view pattern, const Shape& shape) {
    return cost(graph_of(Operation::softmax, runtime(pattern), {shape}));
  };
  const Tally<Count> got = bill("b (h=3 [d])", {2, 12}), want = bill("b h [d]", {2, 3, 4});
  EXPECT_TRUE(got.model == want.model);
  EXPECT_TRUE(got.strict() == want.strict());
}

TEST_F(BracketsInGroups, TypesOfResults) {
  const Scope names;
  const Float<"heads"> heads = ones({3});
  const Float<"dim"> dim = ones({4});
  const Float<"batch heads*dim"> y = x.to(DType::f32);
  const auto kept = softmax(y, "b (h=3 [d])");
  static_assert(std::is_same_v<decltype(kept), const Float<"batch heads*dim">>);
  const auto beside = softmax(y, "b (h [d])", "h"_a = 3);
  static_assert(std::is_same_v<decltype(beside), const Float<"batch heads*dim">>);
  expect_same(kept, joined(softmax(split.to(DType::f32), "b h [d]")));
  expect_same(beside, kept);
  const Float<"batch 12"> sized = y;
  const auto best = argmax(sized, "b (h=3 [d])"_p);
  static_assert(std::is_same_v<decltype(best), const Long<"batch h=3">>);
  const auto some = top_k<"b (h=3 [d])">(sized, 2);
  static_assert(std::is_same_v<decltype(some.values), Float<"batch _">>);
  const auto none = argmax<"b ([d])">(sized);
  static_assert(std::is_same_v<decltype(none), const Long<"batch 1">>);
  const auto loss = cross_entropy<"b (h [v]), b h -> b">(sized, Long<"batch 3">(best));
  static_assert(std::is_same_v<decltype(loss), const Float<"batch">>);
  EXPECT_EQ(best.shape(), (Shape{2, 3}));
  EXPECT_EQ(some.values.shape(), (Shape{2, 6}));
  EXPECT_EQ(none.shape(), (Shape{2, 1}));
  EXPECT_EQ(loss.shape(), (Shape{2}));
}

TEST_F(BracketsInGroups, Mistakes) {
  expect_error([&] { softmax(x, "b (h [d])", "h"_a = 5); }, ErrorKind::divisibility,
               {"axis '(h [d])' of size 12 in operand 1 cannot be split: 5 does not divide it"});
  expect_error([&] { softmax(x, runtime("b (h [d])")); }, ErrorKind::inference,
               {"more than one size is unknown in '(h [d])'"});
  expect_error([&] { softmax(x, runtime("b (h d)")); }, ErrorKind::pattern,
               {"a group '( )' has no meaning here"});
  expect_error([&] { from_diagonal(x, runtime("b (h=3 [d])")); }, ErrorKind::pattern,
               {"from_diagonal puts two axes in the place of one"});
  expect_error([&] { layer_norm(x, ones({12}), ones({12}), "b (h [d])", "h"_a = 3); },
               ErrorKind::shape, {"weight has shape (12,), the axes in brackets have (4,)"});
  expect_error(
      [&] {
        roll(x, "b (h [d])", PerAxis{1, 2}, "h"_a = 3);
      },
      ErrorKind::arity, {"2 shifts are given for 1 axis in brackets"});
}

}  // namespace
}  // namespace ein
