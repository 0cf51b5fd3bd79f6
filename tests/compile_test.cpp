// Compiled functions against the same calls made one by one.
#include <gtest/gtest.h>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/optim.hpp>

namespace ein {
namespace {

Tensor numbers(const Shape& shape, double scale) { return (randn(shape) * scale).detach(); }

/// Two layers, AdamW: the losses of some steps.
template <class Run>
std::vector<double> losses(int steps, Run&& run) {
  manual_seed(3);
  const Tensor w1 = numbers({8, 16}, 0.3).requires_grad(true), w2 = numbers({16, 1}, 0.3).requires_grad(true);
  optim::AdamW optimizer({w1, w2}, {.learning_rate = 0.01});
  const Tensor x = randn({32, 8}), y = reduce(x, "b d -> b 1", "sum");
  const auto step = [&](const Tensor& a, const Tensor& b) {
    optimizer.zero_grad();
    const Tensor h = dropout(gelu(einsum(a, w1, "b d, d h -> b h")), 0.25);
    const Tensor loss = mse_loss(einsum(h, w2, "b h, h o -> b o"), b);
    loss.backward();
    clip_grad_norm(optimizer.parameters(), 1);
    optimizer.step();
    return loss;
  };
  return run(step, x, y, steps);
}

std::vector<double> eager_losses(int steps) {
  return losses(steps, [](const auto& step, const Tensor& x, const Tensor& y, int n) {
    std::vector<double> found;
    for (int i = 0; i < n; ++i) found.push_back(step(x, y).item());
    return found;
  });
}
std::vector<double> compiled_losses(int steps) {
  return losses(steps, [](const auto& step, const Tensor& x, const Tensor& y, int n) {
    auto compiled = compile(step);
    std::vector<double> found;
    for (int i = 0; i < n; ++i) found.push_back(compiled(x, y).item());
    return found;
  });
}

TEST(Compile, TrainingAgreesWithEagerAndWithItself) {
  const std::vector<double> eager = eager_losses(12), compiled = compiled_losses(12);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(compiled[i], eager[i], 1e-5 * eager[i]) << "step " << i;
  EXPECT_LT(eager.back(), eager.front());
  EXPECT_EQ(compiled, compiled_losses(12));  // the same seed, the same bits; dropout included
}

TEST(Compile, RunsAllocateNothingButResultsThatAreHeld) {
  auto f = compile([](const Tensor& x) { return softmax(einsum(x, x, "i k, j k -> i j"), "i [j]"); });
  const Tensor x = randn({64, 32});
  Tensor y = f(x);
  const std::size_t before = memory_allocated();
  y = Tensor();
  reset_max_memory_allocated();
  for (int i = 0; i < 3; ++i) f(x);
  EXPECT_LE(max_memory_allocated(), before);
}

TEST(Compile, AHeldResultKeepsItsElements) {
  auto f = compile([](const Tensor& x) { return x * 2; });
  const Tensor first = f(ones({4})), second = f(full({4}, 3));
  EXPECT_EQ(first.to_vector<float>(), std::vector<float>(4, 2));
  EXPECT_EQ(second.to_vector<float>(), std::vector<float>(4, 6));
}

TEST(Compile, EqualOperationsAreComputedOnce) {
  auto f = compile([](const Tensor& x) { return exp(x) + exp(x); });
  f(ones({8}));
  EXPECT_EQ(f.cost().count(ScalarOp::exp), Count(8));
}

TEST(Compile, StateIsReadAnewAndAssigned) {
  const Tensor counter = zeros({}), other = ones({});
  auto f = compile([&](const Tensor& x) {
    const Tensor before = counter + x;
    // Exchanged: neither sees the other's new value.
    const Tensor swapped = other + 0;
    other.copy_from(counter);
    counter.copy_from(swapped);
    return before;
  });
  EXPECT_EQ(f(zeros({})).item(), 0);
  EXPECT_EQ(counter.item(), 1);
  EXPECT_EQ(other.item(), 0);
  counter.fill(5);
  EXPECT_EQ(f(ones({})).item(), 6);
  EXPECT_EQ(other.item(), 5);
  EXPECT_EQ(f.graph().assignments.size(), 2u);
}

TEST(Compile, ASignatureIsTracedOnce) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1;
  });
  f(ones({2}));
  f(ones({2}));
  EXPECT_EQ(traces, 1);
  f(ones({3}));
  EXPECT_EQ(traces, 2);
}

TEST(Compile, RefusesWhatATraceCannotKnow) {
  auto f = compile([](const Tensor& x) { return x * x.item(); });
  EXPECT_THROW(f(ones({})), Error);
  EXPECT_THROW(compile([](const Tensor& x) { return x; }).graph(), Error);
  auto g = compile([](const Tensor& x) { return x + 1; });
  EXPECT_THROW(g(ones({2}).requires_grad(true)), Error);
}

TEST(Compile, ValuesShareMemory) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = einsum(y, y, "i j, j k -> i k");
    return y;
  });
  f(eye(32));
  EXPECT_LE(f.memory().arena, 2u * 32 * 32 * 4);
  EXPECT_EQ(f.memory().unshared, 5u * 32 * 32 * 4);
}

}  // namespace
}  // namespace ein
