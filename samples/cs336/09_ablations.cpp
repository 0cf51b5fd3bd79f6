// Assignment 1, section 7: the model without norms, with norms after, without positions, without
// the gate, each trained on the same batches.
#include <cmath>
#include <cstdio>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/text.hpp>

#include "stories.hpp"

namespace nn = ein::nn;
using ein::Tensor;

struct Trained {
  std::int64_t parameters = 0;
  double first = 0, last = 0;  // losses
};

Trained trained(const nn::DecoderConfig& config, const ein::Tokens& tokens, double rate) {
  ein::manual_seed(0);
  const nn::Decoder model(config);
  ein::optim::AdamW optimizer(model.parameters(), {.learning_rate = rate});
  auto step = ein::compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = ein::cross_entropy(model(x), y, "b s [v], b s");
    loss.backward();
    ein::clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
    return loss;
  });
  Trained result{.parameters = model.parameter_count()};
  for (std::uint64_t i = 0; i < 40; ++i) {
    const ein::Batch batch = ein::get_batch(tokens, 8, config.positions, 0, i);
    const double loss = step(batch.x, batch.y).item();
    if (i == 0) result.first = loss;
    result.last = loss;
  }
  return result;
}

int main() {
  const std::string text = stories(500);
  const ein::BpeTokenizer tokenizer =
      ein::train_bpe(text, {.vocabulary_size = 300, .special_tokens = {"<|endoftext|>"}});
  const ein::Tokens tokens(ein::from_vector(tokenizer.encode(text)));
  const nn::DecoderConfig config =
      nn::cs336({.vocabulary = 300, .context = 24, .width = 48, .layers = 2, .heads = 4});
  const std::pair<const char*, nn::DecoderConfig> models[] = {
      {"pre-norm, RoPE, SwiGLU", config},
      {"without norms", nn::without_norms(config)},
      {"norms after", nn::with_norms_after(config)},
      {"without positions", nn::without_positions(config)},
      {"SiLU without gate", nn::without_gate(config)}};
  for (const auto& [name, of] : models) {
    const Trained a = trained(of, tokens, 5e-3);
    std::printf("%-24s %6lld parameters\n", name, static_cast<long long>(a.parameters));
    std::printf("  loss %.3f, after 40 steps %.3f\n", a.first, a.last);
  }
  // Large rates: norms bear them.
  for (const double rate : {0.05, 0.5}) {
    const Trained with = trained(config, tokens, rate),
                  without = trained(nn::without_norms(config), tokens, rate);
    const auto fate = [](const Trained& run) {
      return run.last < run.first ? "learns" : "diverges";
    };
    std::printf("rate %g: with norms the model %s, without it %s\n", rate, fate(with),
                fate(without));
    std::printf("  losses %.3f and %.3g\n", with.last, without.last);
  }
}
