// Assignment 1, sections 5 and 7: a model of TinyStories' shape on synthetic stories, from the text
// to a validation loss. The handout's sizes are 10,000 tokens, 256 positions, width 512, 4 layers
// and 16 heads; `cs336_06_training full` takes those.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>
#include <ein/text.hpp>

#include "stories.hpp"

namespace nn = ein::nn;
namespace optim = ein::optim;
using ein::Tensor;

ein::Tokens encoded(const ein::BpeTokenizer& tokenizer, const std::string& text) {
  return ein::Tokens(ein::from_vector(tokenizer.encode(text)));
}

int main(int argc, char** argv) {
  const bool full = argc > 1 && std::string_view(argv[1]) == "full";
  const ein::BpeTokenizer tokenizer = ein::train_bpe(
      stories(2000), {.vocabulary_size = full ? 10000 : 320, .special_tokens = {"<|endoftext|>"}});
  const ein::Tokens train = encoded(tokenizer, stories(full ? 20000 : 2000)),
                    validation = encoded(tokenizer, stories(200, 2));
  const nn::CS336Sizes sizes = full ? nn::CS336Sizes{.vocabulary = 10000,
                                                     .context = 256,
                                                     .width = 512,
                                                     .layers = 4,
                                                     .heads = 16}
                                    : nn::CS336Sizes{.vocabulary = tokenizer.vocabulary_size(),
                                                     .context = 32,
                                                     .width = 64,
                                                     .layers = 2,
                                                     .heads = 4};
  const std::int64_t batch = full ? 64 : 16, steps = full ? 20000 : 120;
  ein::manual_seed(0);
  const nn::Decoder model(nn::cs336(sizes));
  optim::AdamW optimizer(model.parameters(), {.betas = {0.9, 0.95}, .weight_decay = 0.1});
  const optim::CosineWithWarmup schedule{.learning_rate = full ? 1e-3 : 1e-2,
                                         .min_learning_rate = 1e-4,
                                         .warmup_steps = steps / 20,
                                         .end = steps,
                                         .warm_up = optim::WarmUp::at_zero};

  const auto loss_of = [&](const Tensor& x, const Tensor& y) {
    return ein::cross_entropy(model(x), y, "b s [v], b s");
  };
  auto step = ein::compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(x, y);
    loss.backward();
    ein::clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
    return loss;
  });
  auto evaluate = ein::compile([&](const Tensor& x, const Tensor& y) {
    const ein::NoGrad none;
    return loss_of(x, y);
  });
  const auto validated = [&] {
    double sum = 0;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const ein::Batch b = ein::get_batch(validation, batch, sizes.context, 1, i);
      sum += evaluate(b.x, b.y).item();
    }
    return sum / 10;
  };
  std::printf("%lld parameters, %lld tokens a step\n",
              static_cast<long long>(model.parameter_count()),
              static_cast<long long>(batch * sizes.context));
  const double at_first = validated();
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    const ein::Batch b =
        ein::get_batch(train, batch, sizes.context, 0, static_cast<std::uint64_t>(i));
    optimizer.set_learning_rate(schedule(i + 1));
    const Tensor loss = step(b.x, b.y);
    if (i % (steps / 4) == 0)
      std::printf("step %3lld  loss %.3f\n", static_cast<long long>(i), loss.item());
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double at_last = validated();
  std::printf("validation: loss %.3f, then %.3f (perplexity %.2f)\n", at_first, at_last,
              std::exp(at_last));
  std::printf("below half of a uniform guess, log V: %s\n",
              at_last < 0.5 * std::log(static_cast<double>(sizes.vocabulary)) ? "yes" : "no");
  std::printf("%.0f tokens/s; products of a step: %s FLOPs\n",
              static_cast<double>(steps * batch * sizes.context) / seconds,
              to_string(step.cost().matmul_only).c_str());
}
