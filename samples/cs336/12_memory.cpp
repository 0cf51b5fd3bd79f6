// Assignment 2, section 1: what a step holds. Kept for the backward pass are: by an RMS norm its
// input and its gain; by a block what ein's compiled step keeps, with no matrix of
// scores.
#include <cstdio>
#include <string>

#include <ein/account.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace nn = ein::nn;
using ein::Tensor;
constexpr double MiB = 1 << 20;

/// Bytes that stay when all but the result's history is dropped.
void of_a_norm() {
  const std::size_t before = ein::memory_allocated();
  const Tensor gain = ein::ones({2560}).requires_grad(true);
  Tensor x = ein::randn({4, 512, 2560}).requires_grad(true);
  Tensor y = ein::rms_norm(x, gain, "b s [c]");
  const std::size_t result = y.nbytes();
  x = Tensor();
  const std::size_t kept = ein::memory_allocated() - before - result;
  std::printf("an RMS norm of (4, 512, 2560) keeps %zu bytes: x %d, its gain %zu, and %zu more\n",
              kept, 20 << 20, gain.nbytes(), kept - (20 << 20) - gain.nbytes());
  y = Tensor();
}

void largest_values() {
  const double b = 4, t = 2048, d = 2560, f = 10240, h = 32;
  std::printf("xl at 2,048 tokens: scores of a layer %.0f MiB, FFN %.0f MiB, residual %.0f MiB\n",
              4 * b * h * t * t / MiB, 4 * b * t * f / MiB, 4 * b * t * d / MiB);
}

/// What a layer keeps in ein's compiled step, counted from graphs; nothing runs.
void of_a_block() {
  nn::DecoderConfig config = nn::cs336({.vocabulary = 10000,
                                        .context = 2048,
                                        .width = 2560,
                                        .layers = 32,
                                        .heads = 16,
                                        .inner = 10240});
  const ein::Account account = ein::account(
      config, {.context = 2048, .batch = 4, .dtype = ein::DType::f32, .of_serving = false});
  const double all = account.count("memory.training.activations").approximate();
  std::printf("32 blocks of width 2560, 4 x 2,048 tokens: ein keeps %.2f MiB each, %.1f GiB\n",
              all / 32 / MiB, all / 1024 / MiB);
  std::printf("  PyTorch 2's compiled block keeps 3651.31 MiB, 114.1 GiB (the handout's figure)\n");
}

void timeline() {
  const nn::Decoder model(
      nn::cs336({.vocabulary = 500, .context = 128, .width = 64, .layers = 2, .heads = 4}));
  ein::optim::AdamW optimizer(model.parameters());
  for (const std::int64_t t : {32, 128}) {
    const Tensor x = ein::zeros({4, t}, ein::DType::i64);
    auto forward = ein::compile([&] {
      const ein::NoGrad none;
      return ein::cross_entropy(model(x), x, "b s [v], b s");
    });
    auto step = ein::compile([&] {
      optimizer.zero_grad();
      const Tensor loss = ein::cross_entropy(model(x), x, "b s [v], b s");
      loss.backward();
      optimizer.step();
      return loss;
    });
    forward();
    step();
    std::printf("%lld tokens: a forward pass holds %.2f MB at most, a step %.2f MB\n",
                static_cast<long long>(t), static_cast<double>(forward.memory().peak()) / 1e6,
                static_cast<double>(step.memory().peak()) / 1e6);
    if (t == 128) std::printf("%s", to_string(step.bill()).c_str());
  }
}

int main() {
  of_a_norm();
  largest_values();
  of_a_block();
  timeline();
}
