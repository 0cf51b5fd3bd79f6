// Published language models as values of one struct: what each has and costs, before there is any
// memory for it; then a small one of the course's kind, with its cache.
#include <cstdio>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

namespace nn = ein::nn;

struct Account {
  double parameters = 0, flops = 0, cache = 0;
};

/// Parameters; FLOPs in products of a forward pass, and bytes of a cache in bf16, both of so many
/// tokens.
Account account(const nn::DecoderConfig& config, std::int64_t tokens) {
  const ein::ShapesOnly shapes;
  const nn::Decoder model(config);
  const ein::Tensor logits = model(ein::empty({1, tokens}, ein::DType::i64));
  double elements = 0;
  for (const nn::KVCache& layer : model.make_cache(1, tokens))
    elements += static_cast<double>(layer.keys.numel() + layer.values.numel());
  return {static_cast<double>(model.parameter_count()),
          shapes.cost(logits).matmul_only.approximate(), 2 * elements};
}

int main() {
  const std::pair<const char*, nn::DecoderConfig> models[] = {
      {"GPT-2", nn::gpt2()},
      {"SmolLM2 135M", nn::smollm2_135m()},
      {"Llama 3.1 8B", nn::llama3_8b()},
      {"Llama 3.1 405B", nn::llama3_405b()},
      {"Mistral 7B", nn::mistral_7b()},
      {"Mixtral 8x7B", nn::mixtral_8x7b()},
      {"Qwen 3 30B-A3B", nn::qwen3_30b_a3b()},
      {"Gemma 3 27B", nn::gemma3_27b()}};
  const std::int64_t tokens = 1024;
  std::printf("%-16s %14s %20s %12s\n", "", "parameters", "TFLOP of 1024 tokens", "cache, MB");
  for (const auto& [name, config] : models) {
    const Account a = account(config, tokens);
    std::printf("%-16s %14.0f %20.3f %12.1f\n", name, a.parameters, a.flops / 1e12, a.cache / 1e6);
  }

  ein::manual_seed(0);
  const nn::Decoder model(
      nn::cs336({.vocabulary = 50, .context = 32, .width = 32, .layers = 2, .heads = 4}));
  std::vector<nn::KVCache> cache = model.make_cache();
  ein::Tensor token = ein::zeros({1, 1}, ein::DType::i64);
  std::printf("tokens of a model that has learned nothing:");
  for (int i = 0; i < 12; ++i) {
    token = ein::argmax(model.next_logits(token, cache), "b [v]").view({1, 1});
    std::printf(" %d", static_cast<int>(token.item<std::int64_t>()));
  }
  std::printf("\n");
  return 0;
}
