// How many kernels rows take: a softmax, a norm, a loss with its gradient.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include "support/fake_counts.hpp"

namespace ein {
namespace {

int kernels_run() { return test::fake_count("kernels"); }

class OneKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("EIN_TEST_GPU")) GTEST_SKIP() << "the stand-in for the driver counts";
  }
};

template <class F>
void expect_kernels(int kernels, F f, const std::vector<Tensor>& operands) {
  auto there = compile(f);
  std::vector<Tensor> moved;
  for (const Tensor& x : operands) moved.push_back(x.to(cuda));
  const auto call = [&](auto& g, const std::vector<Tensor>& x) { return g(x[0], x[1], x[2]); };
  there.prepare(moved[0], moved[1], moved[2]);
  const int before = kernels_run();
  const Tensor got = call(there, moved);
  EXPECT_EQ(kernels_run() - before, kernels) << there.text();
  EXPECT_EQ(there.memory().arena, 0u) << there.text();
  EXPECT_NE(there.text().find(" lanes, "), std::string::npos) << "its schedule: " << there.text();
  EXPECT_TRUE(all_close(got.to(cpu), call(f, operands), 1e-5, 1e-5));
}

TEST_F(OneKernel, OfEachRow) {
  const Tensor x = randn({6, 7, 40}), w = randn({40}), targets = (rand({6, 7}) * 39).to(DType::i64);
  const std::vector<Tensor> operands{x, w, targets};
  using T = const Tensor&;
  expect_kernels(
      1, [](T a, T, T) { return softmax(a, "b q [k]"); }, operands);
  expect_kernels(
      1, [](T a, T, T) { return reduce(a, "b q k -> b q", Reduction::logsumexp); }, operands);
  expect_kernels(
      1, [](T a, T b, T) { return rms_norm(a + b, b, "b q [k]"); }, operands);
  expect_kernels(
      1, [](T a, T b, T) { return gelu(layer_norm(a * 2, b, b, "b q [k]")); }, operands);
  expect_kernels(
      1, [](T a, T, T t) { return cross_entropy(a, t, "b q [k], b q -> b q"); }, operands);
  expect_kernels(
      1,
      [](T a, T, T t) {
        Tensor logits = a.detach();
        logits.requires_grad(true);
        const Tensor loss = cross_entropy(logits, t, "b q [k], b q");
        return gradients(loss, std::vector<Tensor>{logits})[0];
      },
      operands);
}

TEST_F(OneKernel, OfAnEagerCall) {
  const Tensor x = randn({300, 50}), there = x.to(cuda);
  softmax(there, "b [k]");
  const int before = kernels_run();
  const Tensor y = softmax(there, "b [k]");
  EXPECT_EQ(kernels_run() - before, 1);
  EXPECT_TRUE(all_close(y.to(cpu), softmax(x, "b [k]"), 1e-6, 1e-6));
}

}  // namespace
}  // namespace ein
