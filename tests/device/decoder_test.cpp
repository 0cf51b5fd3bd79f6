// Decoders on a GPU: losses, gradients and caches are the CPU's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

namespace ein {
namespace {

nn::DecoderConfig small() {
  nn::DecoderConfig config = nn::gemma3_form();
  config.vocabulary = 13;
  config.positions = 16;
  config.width = 16;
  config.layers = 2;
  config.attention.heads = 4;
  config.attention.key_heads = 2;
  config.attention.head_size = 8;
  config.embedding_scale = 4;
  config.feed_forward.width = 12;
  nn::add_windows(config, 5, 2, nn::Rotary{});
  return config;
}

nn::DecoderConfig mixture() {
  nn::DecoderConfig config = small();
  config.mixture = nn::MixtureConfig{.experts = 4, .chosen = 2, .expert = config.feed_forward};
  return config;
}

std::vector<std::vector<double>> step(const nn::DecoderConfig& config, Device device) {
  manual_seed(71);
  nn::Decoder model(config);
  const Tensor tokens = (rand({2, 8}) * 13).to(DType::i64).to(device);
  model.to(device);
  auto compiled = compile([&](const Tensor& x) {
    model.zero_grad();
    const Tensor loss = cross_entropy(model(x), x, "b s [v], b s");
    loss.backward();
    std::vector<Tensor> all{loss.detach()};
    for (const Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
    return all;
  });
  std::vector<std::vector<double>> values;
  for (const Tensor& x : compiled(tokens)) values.push_back(x.to_vector<double>());
  // Then token after token, past the window.
  std::vector<nn::KVCache> cache = model.make_cache(2);
  for (std::int64_t at = 0; at < 8; ++at)
    values.push_back(
        model.next_logits(tokens.at({every, slice(at, at + 1)}), cache).to_vector<double>());
  return values;
}

TEST(OnDevice, DecodersTrainAndDecode) {
  for (const nn::DecoderConfig& config : {small(), mixture()}) {
    const auto wanted = step(config, cpu), got = step(config, cuda);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), wanted[i].size());
      for (std::size_t k = 0; k < got[i].size(); ++k)
        ASSERT_NEAR(got[i][k], wanted[i][k], 2e-5) << i;
    }
  }
}

}  // namespace
}  // namespace ein
