// Whole compiled training steps on a GPU leave what they leave on the CPU: losses, norms of the
// gradient, and every parameter and moment.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace ein {
namespace {

struct StepOptions {
  DType dtype = DType::f32;  // of contractions
  double dropout = 0;
  double tolerance = 0;  // of numbers of about 1
};

/// What some steps leave: a row for each tensor.
std::vector<std::vector<double>> after_steps(Device device, const StepOptions& options) {
  manual_seed(11);
  nn::Transformer model({.vocab_size = 13,
                         .block_size = 8,
                         .n_layer = 2,
                         .n_head = 2,
                         .n_embd = 16,
                         .dropout = options.dropout});
  model.to(device);
  // A larger eps than usual: where a gradient is 0 but for rounding, as that of the keys' bias,
  // m / √v would make numbers of the order of 1 of the rounding.
  optim::AdamW optimizer(model.parameters(),
                         {.learning_rate = 0.02, .eps = 1e-2, .weight_decay = 0.1});
  const Tensor tokens = (rand({4, 9}) * 13).to(DType::i64).to(device);
  const Tensor x = tokens.at({every, slice(0, 8)}), y = tokens.at({every, slice(1, 9)});
  auto step = compile([&](const Tensor& a, const Tensor& b) -> std::vector<Tensor> {
    optimizer.zero_grad();
    const Tensor loss = [&] {
      const Autocast autocast(options.dtype);
      return cross_entropy(model(a), b, "b s [v], b s");
    }();
    loss.backward();
    const Tensor norm = clip_grad_norm(optimizer.parameters(), 0.5);
    optimizer.step();
    return {loss, norm};
  });
  std::vector<std::vector<double>> found(2);
  for (int i = 0; i < 5; ++i) {
    optimizer.set_learning_rate(0.02 / (1 + i));
    const std::vector<Tensor> results = step(x, y);
    for (std::size_t r = 0; r < 2; ++r) found[r].push_back(results[r].item());
  }
  for (const auto& [name, tensor] : model.state_dict()) found.push_back(tensor.to_vector<double>());
  for (const auto& [name, tensor] : optimizer.state_dict())
    found.push_back(tensor.to_vector<double>());
  return found;
}

void expect_same_steps(const StepOptions& options) {
  const auto here = after_steps(cpu, options), there = after_steps(cuda, options);
  ASSERT_EQ(there.size(), here.size());
  EXPECT_LT(here[0].back(), here[0].front());  // it learns
  EXPECT_GT(here[1].front(), 0.5);             // and gradients are clipped
  double largest = 0;
  for (std::size_t t = 0; t < here.size(); ++t) {
    ASSERT_EQ(there[t].size(), here[t].size());
    for (std::size_t i = 0; i < here[t].size(); ++i) {
      const double difference =
          std::abs(there[t][i] - here[t][i]) / std::max(1.0, std::abs(here[t][i]));
      largest = std::max(largest, difference);
      ASSERT_LE(difference, options.tolerance) << "tensor " << t << ", element " << i;
    }
  }
  testing::Test::RecordProperty("largest_difference", std::to_string(largest));
}

TEST(DeviceStep, MatchesTheCpu) { expect_same_steps({.tolerance = 1e-5}); }
TEST(DeviceStep, MatchesTheCpuWithDropout) {
  expect_same_steps({.dropout = 0.2, .tolerance = 1e-5});
}
TEST(DeviceStep, MatchesTheCpuInBf16) {
  // Sums of f32 that differ in their last place may become neighbours in bf16, 2⁻⁸ apart.
  expect_same_steps({.dtype = DType::bf16, .tolerance = 1e-2});
}

}  // namespace
}  // namespace ein
