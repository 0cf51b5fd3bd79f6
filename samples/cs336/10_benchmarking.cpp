// Assignment 2, section 1: the sizes that are measured, as shapes alone; then mean and deviation of
// forward pass, backward pass and step of a small one, with warm-ups and without.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/shapes_only.hpp>

namespace nn = ein::nn;
using ein::Tensor;

void sizes() {
  struct Row {
    const char* name;
    std::int64_t width, inner, layers, heads;
  };
  std::printf(
      "| model | parameters | f32, GB | with AdamW, GB | forward, FLOPs | residual, MiB |\n");
  for (const Row& row : {Row{"small", 768, 3072, 12, 12}, Row{"medium", 1024, 4096, 24, 16},
                         Row{"large", 1280, 5120, 36, 20}, Row{"xl", 2560, 10240, 32, 32},
                         Row{"10B", 4608, 12288, 50, 36}}) {
    const ein::ShapesOnly shapes;
    const nn::Decoder model(nn::cs336({.vocabulary = 10000,
                                       .context = 512,
                                       .width = row.width,
                                       .layers = row.layers,
                                       .heads = row.heads,
                                       .inner = row.inner}));
    const Tensor logits = model(ein::empty({4, 512}, ein::DType::i64));
    const auto p = static_cast<double>(model.parameter_count());
    const Tensor residual = ein::empty({4, 512, row.width});
    std::printf("| %s | %.0f | %.4f | %.3f | %s | %.0f |\n", row.name, p, 4 * p / 1e9, 16 * p / 1e9,
                to_string(shapes.cost(logits).matmul_only).c_str(),
                4 * static_cast<double>(residual.numel()) / (1 << 20));
  }
}

/// Milliseconds of each of ten runs after so many others.
std::vector<double> times(const auto& run, int warm_ups) {
  for (int i = 0; i < warm_ups; ++i) run();
  std::vector<double> all;
  for (int i = 0; i < 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    all.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  return all;
}

void row(const char* what, int warm_ups, const std::vector<double>& all) {
  double sum = 0, squares = 0;
  for (const double x : all) sum += x;
  const double mean = sum / static_cast<double>(all.size());
  for (const double x : all) squares += (x - mean) * (x - mean);
  std::printf("| %s | %d | %.2f | %.2f |\n", what, warm_ups, mean,
              std::sqrt(squares / static_cast<double>(all.size() - 1)));
}

int main() {
  sizes();
  const nn::Decoder model(
      nn::cs336({.vocabulary = 1000, .context = 64, .width = 64, .layers = 2, .heads = 4}));
  ein::optim::AdamW optimizer(model.parameters());
  const Tensor x = ein::arange(256).view({4, 64}), y = x + 1;
  const auto loss_of = [&] { return ein::cross_entropy(model(x), y, "b s [v], b s"); };
  std::printf("| pass | warm-ups | mean, ms | deviation, ms |\n");
  for (const int warm_ups : {0, 1, 2, 5}) {
    // New functions: the first call of each traces and compiles it.
    auto forward = ein::compile([&] {
      const ein::NoGrad none;
      return loss_of();
    });
    auto backward = ein::compile([&] {
      optimizer.zero_grad();
      loss_of().backward();
      std::vector<Tensor> gradients;
      for (const Tensor& p : optimizer.parameters()) gradients.push_back(p.grad());
      return gradients;
    });
    auto step = ein::compile([&] {
      optimizer.zero_grad();
      const Tensor loss = loss_of();
      loss.backward();
      optimizer.step();
      return loss;
    });
    row("forward", warm_ups, times([&] { forward(); }, warm_ups));
    row("forward and backward", warm_ups, times([&] { backward(); }, warm_ups));
    row("step", warm_ups, times([&] { step(); }, warm_ups));
  }
}
