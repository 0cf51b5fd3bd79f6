// What tensors remember, and what backward() leaves where.
#include <gtest/gtest.h>

#include <cmath>

#include <ein/autograd.hpp>
#include <ein/cost.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/memory.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>

namespace ein {
namespace {

using Values = std::vector<double>;

Tensor leaf(const Values& values, DType dtype = DType::f64) {
  const Tensor x = from_vector(values).to(dtype);
  x.requires_grad(true);
  return x;
}
Tensor sum(const Tensor& x) { return reduce(x, "... ->", Reduction::sum); }
Values values(const Tensor& x) { return x.to_vector<double>(); }

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// --- leaves ---

TEST(Autograd, GradientsAddUpInLeaves) {
  const Tensor x = leaf({1, 2, 3});
  EXPECT_FALSE(x.has_grad());
  sum(x * x).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 4, 6}));
  sum(3 * x).backward();
  EXPECT_EQ(values(x.grad()), (Values{5, 7, 9}));
}

TEST(Autograd, ATensorUsedManyTimes) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  sum(y * y + y * x + x).backward();  // x⁴ + x³ + x
  EXPECT_EQ(values(x.grad()), (Values{4 * 8 + 3 * 4 + 1}));
}

TEST(Autograd, CopiesOfTheHandleShareTheGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor copy = x;
  sum(x * 2).backward();
  sum(copy * 3).backward();
  EXPECT_EQ(values(copy.grad()), (Values{5, 5}));
  copy.zero_grad();
  EXPECT_FALSE(x.has_grad());
}

TEST(Autograd, ZeroGradFreesMemory) {
  const Tensor x = zeros({1000}).requires_grad(true);
  const std::size_t before = memory_allocated();
  sum(x * x).backward();
  EXPECT_EQ(memory_allocated() - before, 4000u);
  x.zero_grad();
  EXPECT_EQ(memory_allocated(), before);
}

TEST(Autograd, LeavesDoNotShareOneGradient) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  sum(x + y).backward();
  EXPECT_FALSE(x.grad().same_storage(y.grad()));
  x.grad().fill(0);
  EXPECT_EQ(values(y.grad()), (Values{1, 1}));
}

TEST(Autograd, AGradientIsNoViewOfTheCotangent) {
  const Tensor x = leaf({1, 2});
  const Tensor cotangent = from_vector(Values{5, 6});
  (x + 0.0).backward(cotangent);
  cotangent.fill(0);
  EXPECT_EQ(values(x.grad()), (Values{5, 6}));
  const Tensor y = leaf({1, 2});
  y.backward(cotangent);
  cotangent.fill(7);
  EXPECT_EQ(values(y.grad()), (Values{0, 0}));
}

TEST(Autograd, AGradientThatSomeoneHoldsStays) {
  const Tensor x = leaf({1, 2});
  sum(x).backward();
  const Tensor held = x.grad();
  sum(x).backward();
  EXPECT_EQ(values(held), (Values{1, 1}));
  EXPECT_EQ(values(x.grad()), (Values{2, 2}));
}

TEST(Autograd, SetGrad) {
  const Tensor x = leaf({1, 2});
  x.set_grad(from_vector(Values{7, 8}));
  sum(x).backward();
  EXPECT_EQ(values(x.grad()), (Values{8, 9}));
  expect_error(ErrorKind::shape, "set_grad", [&] { x.set_grad(zeros({3}, DType::f64)); });
  expect_error(ErrorKind::dtype, "set_grad: the gradient is f32, the tensor f64",
               [&] { x.set_grad(zeros({2}, DType::f32)); });
  expect_error(ErrorKind::value, "does not require", [&] { zeros({2}).set_grad(zeros({2})); });
}

// --- where gradients flow ---

TEST(Autograd, OnlyWhatDependsOnALeafRequiresAGradient) {
  const Tensor x = leaf({1}), c = from_vector(Values{2});
  EXPECT_TRUE((x * c).requires_grad());
  EXPECT_FALSE((c * c).requires_grad());
  EXPECT_FALSE((x > c).requires_grad());
  EXPECT_FALSE(x.to(DType::i32).requires_grad());
  EXPECT_FALSE(zeros({2}).requires_grad());
}

TEST(Autograd, OtherTensorsGetNoGradient) {
  const Tensor x = leaf({1, 2}), c = from_vector(Values{3, 4});
  const Tensor y = x * c;
  const Tensor loss = sum(y);
  loss.backward();
  EXPECT_FALSE(c.has_grad());
  EXPECT_FALSE(y.has_grad());
  EXPECT_FALSE(loss.has_grad());
  expect_error(ErrorKind::value, "does not require one", [&] { c.grad(); });
  expect_error(ErrorKind::value, "computed from others", [&] { y.grad(); });
  const Tensor fresh = leaf({1});
  expect_error(ErrorKind::value, "no backward()", [&] { fresh.grad(); });
}

TEST(Autograd, RetainGrad) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  y.retain_grad();
  sum(y * 3).backward();
  EXPECT_EQ(values(y.grad()), (Values{3, 3}));
  EXPECT_EQ(values(x.grad()), (Values{6, 12}));
  expect_error(ErrorKind::value, "retain_grad", [] { zeros({2}).retain_grad(); });
}

TEST(Autograd, NoGradScopesNest) {
  const Tensor x = leaf({1});
  EXPECT_TRUE(grad_is_enabled());
  {
    const NoGrad none;
    EXPECT_FALSE(grad_is_enabled());
    EXPECT_FALSE((x * x).requires_grad());
    {
      const EnableGrad some;
      EXPECT_TRUE((x * x).requires_grad());
    }
    EXPECT_FALSE((x * x).requires_grad());
  }
  EXPECT_TRUE((x * x).requires_grad());
}

TEST(Autograd, DetachSharesElementsAndStopsGradients) {
  const Tensor x = leaf({2});
  const Tensor y = (x * x).detach();
  EXPECT_FALSE(y.requires_grad());
  sum(y * x).backward();
  EXPECT_EQ(values(x.grad()), (Values{4}));
  EXPECT_TRUE(x.detach().same_storage(x));
}

TEST(Autograd, RequiresGradCanBeTakenBack) {
  const Tensor x = leaf({1});
  x.requires_grad(false);
  EXPECT_FALSE(x.requires_grad());
  EXPECT_FALSE((x * x).requires_grad());
}

TEST(Autograd, RequiresGradErrors) {
  expect_error(ErrorKind::dtype, "i64", [] { arange(3).requires_grad(true); });
  expect_error(ErrorKind::dtype, "bool", [] { zeros({2}, DType::boolean).requires_grad(true); });
  const Tensor x = leaf({1});
  const Tensor y = x * x;
  expect_error(ErrorKind::value, "computed from others", [&] { y.requires_grad(false); });
  expect_error(ErrorKind::value, "computed from others", [&] { y.requires_grad(true); });
}

// --- backward ---

TEST(Autograd, BackwardOfWhatIsNoScalarWantsACotangent) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x;
  expect_error(ErrorKind::shape, "is no scalar", [&] { y.backward(); });
  expect_error(ErrorKind::shape, "the cotangent is f64 (2,)",
               [&] { y.backward(ones({2}, DType::f64)); });
  expect_error(ErrorKind::shape, "the cotangent is f32", [&] { y.backward(ones({3})); });
  y.backward(from_vector(Values{1, 10, 100}));
  EXPECT_EQ(values(x.grad()), (Values{2, 40, 600}));
}

TEST(Autograd, BackwardOfAConstant) {
  expect_error(ErrorKind::value, "computed from no tensor", [] { zeros({}).backward(); });
  const Tensor x = leaf({1});
  const NoGrad none;
  expect_error(ErrorKind::value, "computed from no tensor", [&] { sum(x).backward(); });
}

TEST(Autograd, BackwardOfALeaf) {
  const Tensor x = full({}, 3.0, DType::f64).requires_grad(true);
  x.backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(Autograd, BackwardTwice) {
  const Tensor x = leaf({3});
  const Tensor y = sum(x * x);
  y.backward();
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{12}));
}

TEST(Autograd, BackwardLeavesNothingToDifferentiate) {
  const Tensor x = leaf({3});
  sum(x * x * x).backward();
  EXPECT_FALSE(x.grad().requires_grad());
}

TEST(Autograd, DeepChains) {
  const Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = y + x;
    sum(y).backward();
  }
  EXPECT_EQ(values(x.grad()), (Values{100'001}));
}

TEST(Autograd, ADeepChainThatNoOneAsksFor) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100'000; ++i) y = y * 1.0;
  y = x;  // lets go of it all
  EXPECT_EQ(values(y), (Values{1}));
}

TEST(Autograd, SavedTensorsAreLetGoOfWithTheResult) {
  const Tensor x = zeros({1000}).requires_grad(true);
  const std::size_t before = memory_allocated();
  {
    const Tensor y = exp(exp(x));
    EXPECT_GT(memory_allocated(), before);
  }
  EXPECT_EQ(memory_allocated(), before);
}

// --- writes ---

TEST(Autograd, AWriteToWhatTheGradientNeedsIsAnError) {
  const Tensor x = leaf({1, 2}), c = from_vector(Values{3, 4});
  const Tensor y = sum(x * c);
  c.fill(0);
  expect_error(ErrorKind::value, "operand 2 of mul", [&] { y.backward(); });
  EXPECT_FALSE(x.has_grad());
}

TEST(Autograd, AWriteThroughAViewIsSeen) {
  const Tensor x = leaf({1, 2}), c = from_vector(Values{3, 4});
  const Tensor y = sum(x * c);
  c[1] = 0;
  expect_error(ErrorKind::value, "was written to since the call", [&] { y.backward(); });
}

TEST(Autograd, AWriteToWhatNoGradientNeedsIsFine) {
  const Tensor x = leaf({1, 2}), c = from_vector(Values{3, 4});
  const Tensor y = sum(x + c);
  c.fill(0);
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 1}));

  // x · w needs w for x alone, and only w wants a gradient.
  const Tensor w = leaf({5, 6}), input = from_vector(Values{1, 2});
  const Tensor z = einsum(input, w, "i, i ->");
  {
    const NoGrad none;
    w.fill(0);
  }
  z.backward();
  EXPECT_EQ(values(w.grad()), (Values{1, 2}));
}

TEST(Autograd, AnUpdateOfAParameterIsSeen) {
  const Tensor w = leaf({5, 6});
  const Tensor y = sum(w * w);
  {
    const NoGrad none;
    w.copy_from(w * 0.5);
  }
  expect_error(ErrorKind::value, "was written to", [&] { y.backward(); });
  sum(w * w).backward();
  EXPECT_EQ(values(w.grad()), (Values{5, 6}));
}

TEST(Autograd, AWriteThatGradientsWouldMissIsAnError) {
  const Tensor x = leaf({1, 2});
  expect_error(ErrorKind::value, "NoGrad", [&] { x.fill(0); });
  expect_error(ErrorKind::value, "NoGrad", [&] { x.copy_from(zeros({2}, DType::f64)); });
  expect_error(ErrorKind::value, "NoGrad", [&] { x[0] = 1; });
}

// --- views and conversions ---

TEST(Autograd, Views) {
  const Tensor x = from_vector(Values{1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad(true);
  sum(x.at({1, slice(0, 3, 2)})).backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 0, 0, 1, 0, 1}));
  x.zero_grad();
  const Tensor weights = from_vector(Values{1, 2, 3, 4, 5, 6}, {3, 2});
  sum(x.view({3, 2}) * weights).backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 2, 3, 4, 5, 6}));
  x.zero_grad();
  sum(x.transpose() * weights).backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 3, 5, 2, 4, 6}));
  x.zero_grad();
  sum(x.transpose().reshape({2, 3}) * weights.reshape({2, 3})).backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 3, 5, 2, 4, 6}));
  x.zero_grad();
  sum(x[0][2] * 5.0 + x.at({slice(2, 2)}).reshape({0, 3}).numel()).backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 0, 5, 0, 0, 0}));
  x.zero_grad();
  sum(x.transpose().contiguous() * weights + x.clone().view({3, 2})).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 4, 6, 3, 5, 7}));
}

TEST(Autograd, AViewOfALeafSharesItsElements) {
  const Tensor x = leaf({1, 2, 3, 4});
  EXPECT_TRUE(x.view({2, 2}).same_storage(x));
  EXPECT_TRUE(x.at({slice(1, 3)}).same_storage(x));
  EXPECT_TRUE(x.view({2, 2}).transpose().same_storage(x));
  EXPECT_TRUE(rearrange(x, "(a b) -> b a", axis("a", 2)).same_storage(x));
}

TEST(Autograd, GradientsHaveTheirTensorsDtype) {
  const Tensor x = leaf({1, 2}, DType::f32), h = leaf({3, 4}, DType::bf16);
  const Tensor y = x.to(DType::f64) * h.to(DType::f64);
  EXPECT_EQ(y.dtype(), DType::f64);
  sum(y).backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(h.grad().dtype(), DType::bf16);
  EXPECT_EQ(values(x.grad()), (Values{3, 4}));
  EXPECT_EQ(values(h.grad()), (Values{1, 2}));
}

TEST(Autograd, PromotedOperands) {
  const Tensor x = leaf({1, 2}, DType::f32), y = leaf({3, 4}, DType::f64);
  sum(x * y * from_vector(std::vector<std::int64_t>{5, 6})).backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(values(x.grad()), (Values{15, 24}));
  EXPECT_EQ(values(y.grad()), (Values{5, 12}));
}

// --- functions ---

TEST(Autograd, GradientsLeaveNoTrace) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4}), other = leaf({5, 6});
  const std::vector<Tensor> found = gradients(sum(x * y), std::vector{x, other});
  EXPECT_EQ(values(found[0]), (Values{3, 4}));
  EXPECT_EQ(values(found[1]), (Values{0, 0}));
  EXPECT_EQ(found[1].dtype(), DType::f64);
  for (const Tensor& t : {x, y, other}) EXPECT_FALSE(t.has_grad());
  expect_error(ErrorKind::value, "gradients", [&] { gradients(sum(x), std::vector{zeros({2})}); });
  expect_error(ErrorKind::shape, "gradients", [&] { gradients(x * y, std::vector{x}); });
}

TEST(Autograd, GradientsOfWhatIsBetween) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  const std::vector<Tensor> found = gradients(sum(y * y * x), std::vector{y, x});
  EXPECT_EQ(values(found[0]), (Values{2, 16}));
  EXPECT_EQ(values(found[1]), (Values{5, 80}));
}

TEST(Autograd, GradAsAFunction) {
  const auto f = [](const Tensor& x, const Tensor& y) { return sum(x * x * y); };
  const Tensor x = from_vector(Values{1, 2}), y = from_vector(Values{3, 4});
  const auto [dx, dy] = grad(f)(x, y);
  EXPECT_EQ(values(dx), (Values{6, 16}));
  EXPECT_EQ(values(dy), (Values{1, 4}));
  const auto [value, both] = value_and_grad(f)(x, y);
  EXPECT_EQ(value.item(), 19);
  EXPECT_FALSE(value.requires_grad());
  EXPECT_FALSE(x.requires_grad());
}

TEST(Autograd, GradOfGrad) {
  const auto cube = [](const Tensor& x) { return sum(x * x * x); };
  const auto first = grad(cube);
  const auto second = grad([&](const Tensor& x) { return sum(first(x)); });
  const auto third = grad([&](const Tensor& x) { return sum(second(x)); });
  const Tensor x = from_vector(Values{2, -1});
  EXPECT_EQ(values(first(x)), (Values{12, 3}));
  EXPECT_EQ(values(second(x)), (Values{12, -6}));
  EXPECT_EQ(values(third(x)), (Values{6, 6}));
}

TEST(Autograd, GradWorksInsideNoGradAndDoesNotTouchOuterGradients) {
  const Tensor x = leaf({2});
  const NoGrad none;
  const Tensor g = grad([](const Tensor& t) { return sum(t * t); })(x);
  EXPECT_EQ(values(g), (Values{4}));
  EXPECT_FALSE(g.requires_grad());
  EXPECT_FALSE(x.has_grad());
}

TEST(Autograd, CreateGraph) {
  const Tensor x = leaf({3});
  const std::vector<Tensor> once = gradients(sum(x * x * x), std::vector{x}, true);
  EXPECT_TRUE(once[0].requires_grad());
  sum(once[0] * once[0]).backward();  // d (3x²)² = 36x³
  EXPECT_EQ(values(x.grad()), (Values{36 * 27}));
  EXPECT_FALSE(gradients(sum(x * x), std::vector{x})[0].requires_grad());
}

// --- only what is needed ---

// Lecture 2: two layers of B 1024, D 256, K 64.
class TwoLayers : public testing::Test {
 protected:
  const Tensor x = zeros({1024, 256}), w1 = zeros({256, 256}), w2 = zeros({256, 64});
  /// The FLOPs of the contractions of a backward pass.
  Count backward_flops() const {
    w1.requires_grad(true);
    w2.requires_grad(true);
    const Tensor h1 = einsum(x, w1, "b d, d e -> b e");
    const Tensor loss = reduce(einsum(h1, w2, "b e, e k -> b k"), "b k ->", "mean");
    const CostScope scope;
    loss.backward();
    return scope.total().matmul_only;
  }
};

TEST_F(TwoLayers, BackwardWhereTheInputNeedsNoGradient) {
  EXPECT_EQ(backward_flops(), Count(201'326'592));
}

TEST_F(TwoLayers, BackwardOfEveryInput) {
  x.requires_grad(true);
  EXPECT_EQ(backward_flops(), Count(335'544'320));
}

TEST_F(TwoLayers, GradientsOfOneLayerAlone) {
  w1.requires_grad(true);
  w2.requires_grad(true);
  const Tensor h1 = einsum(x, w1, "b d, d e -> b e");
  const Tensor loss = reduce(einsum(h1, w2, "b e, e k -> b k"), "b k ->", "mean");
  const CostScope scope;
  gradients(loss, std::vector{w2});
  EXPECT_EQ(scope.total().matmul_only, Count(2 * 1024 * 256 * 64));
}

// As in PyTorch and JAX: zero times a slope that is undefined is undefined.
TEST(Autograd, ABranchThatIsNotTakenCanSpoilTheGradient) {
  const Tensor x = leaf({-1, 4});
  sum(where(x > 0, sqrt(x), 0)).backward();
  EXPECT_TRUE(std::isnan(values(x.grad())[0]));
  EXPECT_EQ(values(x.grad())[1], 0.25);
  x.zero_grad();
  sum(where(x > 0, sqrt(where(x > 0, x, 1)), 0)).backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 0.25}));
}

}  // namespace
}  // namespace ein
