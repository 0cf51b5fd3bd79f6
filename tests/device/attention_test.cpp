// Compiled attention, which a GPU computes without matrices of scores, gives what the CPU gives.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/attention_step.hpp"

namespace ein {
namespace {

struct Outcome {
  std::vector<Tensor> results;  // the loss, and the gradient of each parameter
  MemoryPlan memory;
};

struct Sizes {
  std::int64_t batch, positions, dim, heads;
};
/// A GPU takes large ones too, for which kernels have larger tiles.
std::vector<Sizes> sizes() {
  if (!std::getenv("EIN_TEST_GPU")) return {{2, 50, 64, 2}};
  return {{2, 50, 64, 2}, {1, 777, 256, 2}, {16, 640, 256, 4}, {3, 300, 512, 2}};
}

/// A training step of a layer of attention, without the update.
Outcome step_on(Device device, const Sizes& size, std::optional<DType> autocast) {
  manual_seed(5);
  nn::Attention layer(size.dim, size.heads);
  layer.to(device);
  const Shape shape{size.batch, size.positions, size.dim};
  const Tensor x = randn(shape, DType::f32, device), y = randn(shape, DType::f32, device);
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    return test::attention_step(layer, x, y, autocast);
  });
  Outcome outcome{step(x, y), step.memory()};
  for (Tensor& result : outcome.results) result = result.to(cpu);
  return outcome;
}

TEST(OnDevice, AttentionSteps) {
  for (const Sizes& size : sizes()) {
    const auto scores =
        static_cast<std::size_t>(size.batch * size.heads * size.positions * size.positions);
    for (const auto autocast : {std::optional<DType>(), std::optional(DType::bf16)}) {
      const Outcome here = step_on(cpu, size, autocast), there = step_on(cuda, size, autocast);
      ASSERT_EQ(here.results.size(), there.results.size());
      for (std::size_t i = 0; i < here.results.size(); ++i) {
        const double scale = reduce(abs(here.results[i]), "... -> ", Reduction::max).item<float>();
        EXPECT_TRUE(
            all_close(there.results[i], here.results[i], 0, scale * (autocast ? 0.02 : 5e-5)))
            << i << " of " << size.positions << " positions\n"
            << to_string(there.results[i]) << "\n"
            << to_string(here.results[i]);
      }
      // The scores, weights and their gradients: at least five matrices that there is no memory
      // for.
      EXPECT_GE(there.memory.unshared, 5 * scores * (autocast ? 2 : 4));
      EXPECT_LT(there.memory.arena, there.memory.unshared - 4 * scores * (autocast ? 2 : 4));
    }
  }
}

TEST(OnDevice, AttentionWithDropoutIsTheSame) {
  const auto run = [](Device device) {
    manual_seed(6);
    nn::Attention layer(32, 2, true, 0.25);
    layer.to(device);
    const Tensor x = randn({2, 20, 32}, DType::f32, device);
    auto forward = compile([&](const Tensor& x) { return layer(x).detach(); });
    return forward(x).to(cpu);
  };
  EXPECT_TRUE(all_close(run(cuda), run(cpu), 1e-5, 1e-5));
}

}  // namespace
}  // namespace ein
