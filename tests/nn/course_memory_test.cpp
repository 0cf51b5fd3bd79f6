// CS336, assignment 2, section 1: sums in 16 bits, dtypes under autocast, and what is kept for a
// backward pass, by a norm and by checkpoints.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/nn.hpp>

namespace {

using ein::DType;
using ein::Tensor;
namespace nn = ein::nn;

/// 0.01 of dtype `term`, converted to `cast`, 1,000 times added to a sum.
double added(DType sum, DType term, DType cast) {
  Tensor s = ein::zeros({}, sum);
  const Tensor hundredth = ein::full({}, 0.01, term).to(cast);
  for (int i = 0; i < 1000; ++i) s = (s + hundredth).to(sum);
  return s.item<double>();
}

TEST(CourseMixedPrecision, AThousandHundredths) {
  EXPECT_NEAR(added(DType::f32, DType::f32, DType::f32), 10.0001335, 5e-8);
  EXPECT_EQ(added(DType::f16, DType::f16, DType::f16), 9.953125);
  EXPECT_NEAR(added(DType::f32, DType::f16, DType::f16), 10.002136, 5e-7);
  EXPECT_EQ(added(DType::f32, DType::f16, DType::f32), added(DType::f32, DType::f16, DType::f16));
  EXPECT_EQ(ein::full({}, 0.01, DType::f16).item<double>(), 0.01000213623046875);
}

TEST(CourseMixedPrecision, DtypesOfAModelUnderAutocast) {
  const nn::Linear fc1(8, 10, false), fc2(10, 4, false);
  const nn::LayerNorm ln(10);
  const ein::Autocast scope(DType::f16);
  const Tensor first = fc1(ein::randn({16, 8})), normed = ln(ein::relu(first)),
               logits = fc2(normed);
  const Tensor loss = cross_entropy(logits, ein::zeros({16}, DType::i64), "b [v], b");
  loss.backward();
  EXPECT_EQ(fc1.weight.dtype(), DType::f32);
  EXPECT_EQ(first.dtype(), DType::f16);
  EXPECT_EQ(normed.dtype(), DType::f32);
  EXPECT_EQ(logits.dtype(), DType::f16);
  EXPECT_EQ(loss.dtype(), DType::f32);
  for (const Tensor& p : {fc1.weight, fc2.weight, ln.weight})
    EXPECT_EQ(p.grad().dtype(), DType::f32);
}

// PyTorch keeps three tensors of 20 MiB where it is not fused, and one where it is.
TEST(CourseMemory, AnRmsNormKeepsItsInputItsGainAndANumberARow) {
  const std::size_t before = ein::memory_allocated();
  const Tensor gain = ein::ones({2560}).requires_grad(true);
  Tensor x = ein::empty({4, 512, 2560}).requires_grad(true);
  x.detach().fill(0.5);
  const Tensor y = ein::rms_norm(x, gain, "b s [c]");
  x = Tensor();
  const std::size_t kept = ein::memory_allocated() - before - y.nbytes();
  EXPECT_LE(kept, (20u << 20) + (8u << 10) + 4 * 2560);
  EXPECT_GE(kept, (20u << 20) + 4 * 2560);
}

struct Layer : nn::Layer {
  explicit Layer(std::int64_t dim) : up(dim, 4 * dim, false), down(4 * dim, dim, false) {}
  Tensor forward(const Tensor& x) const override { return x + down(ein::tanh(up(x))); }
  nn::Linear up, down;
  EIN_MODULES(up, down);
};

// Eager: what the tape holds of four blocks whose input is every second kept is two inputs, beside
// the result.
TEST(CourseMemory, TwoCheckpointsOfTwoBlocksKeepTwoInputs) {
  nn::ModuleList<Layer> blocks;
  for (int i = 0; i < 4; ++i) blocks.emplace_back(64);
  const std::size_t before = ein::memory_allocated();
  Tensor x = ein::randn({512, 64});
  const std::size_t input = x.nbytes();
  const Tensor y = nn::through_checkpoints(blocks, x, 2);
  x = Tensor();
  EXPECT_EQ(ein::memory_allocated() - before - y.nbytes(), 2 * input);
}

// A step computes again what its checkpoints left out: one forward pass, whatever their number.
TEST(CourseMemory, CheckpointsCostOneForwardPass) {
  constexpr int count = 16;
  nn::ModuleList<Layer> blocks;
  for (int i = 0; i < count; ++i) blocks.emplace_back(16);
  const Tensor x = ein::randn({256, 16});
  std::vector<std::size_t> arenas;
  for (const std::size_t each : {1, 4, 16}) {
    auto step = ein::compile([&] {
      for (Layer& block : blocks) block.zero_grad();
      const Tensor y = nn::through_checkpoints(blocks, x, each);
      reduce(y * y, "b c ->", "mean").backward();
      std::vector<Tensor> gradients;
      for (const Layer& block : blocks)
        for (const Tensor& p : block.parameters()) gradients.push_back(p.grad());
      return gradients;
    });
    step.prepare();
    const ein::Count forward = step.bill().forward.matmul_only,
                     again = step.bill().recompute.matmul_only;
    EXPECT_GT(again, ein::Count(0));
    EXPECT_LE(again, forward);
    // Of a block's second product, whose result is added alone, nothing is needed again in the
    // last.
    EXPECT_GE(again.approximate(), forward.approximate() * (0.5 - 1.0 / count));
    arenas.push_back(step.memory().arena);
  }
  EXPECT_LT(arenas[1], arenas[2]);
}

}  // namespace
