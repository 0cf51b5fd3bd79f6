// Decoders from model directories: logits, losses and greedy tokens of small models of each family,
// which transformers computed in f64.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/safetensors.hpp>

#include "support/shared_data.hpp"

namespace {

using ein::StateDict;
using ein::Tensor;
namespace nn = ein::nn;
using Tokens = std::vector<std::int64_t>;

const char* const models[] = {"gpt2",
                              "gpt_neo",
                              "llama-gqa-llama3rope",
                              "llama-mqa-tied-bias",
                              "mistral-window",
                              "mixtral",
                              "phi3-partial-rotary",
                              "qwen2-bias",
                              "qwen3-qknorm",
                              "qwen3-moe",
                              "gemma2",
                              "gemma3"};
constexpr std::int64_t parameters[] = {30592, 30400, 21664, 17984, 21664, 49568,
                                       21664, 18720, 27872, 37344, 24864, 35840};

std::string directory(const std::string& model) {
  return ein::test::shared_data("tiny-models/" + model);
}
ein::Safetensors expected(const std::string& model) {
  return ein::load_safetensors(directory(model) + "/expected.safetensors");
}
Tensor row(const Tokens& tokens) {
  return ein::from_vector(tokens, {1, static_cast<std::int64_t>(tokens.size())});
}
std::int64_t best(const Tensor& logits) {
  return argmax(logits.reshape({logits.numel()}), "[v]").item<std::int64_t>();
}

#define NEEDS_DATA SKIP_WITHOUT_SHARED_DATA("tiny-models")

TEST(DecoderFiles, LogitsAndLosses) {
  NEEDS_DATA;
  for (std::size_t m = 0; m < std::size(models); ++m) {
    SCOPED_TRACE(models[m]);
    const auto model = nn::load_decoder(directory(models[m]));
    EXPECT_FALSE(model->is_training());
    EXPECT_EQ(model->parameter_count(), parameters[m]);
    const ein::Safetensors wanted = expected(models[m]);
    const Tensor tokens = wanted.tensors.at("token_ids").to(ein::DType::i64);
    const Tensor logits = (*model)(tokens).detach();
    const std::vector<double> got = logits.to_vector<double>(),
                              want = wanted.tensors.at("logits").to_vector<double>();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << i;
    const Tensor loss = cross_entropy(logits.at({ein::every, ein::slice(0, 15)}),
                                      tokens.at({ein::every, ein::slice(1, 16)}), "b s [v], b s");
    EXPECT_NEAR(loss.item(), std::stod(wanted.metadata.at("loss")), 1e-5);
    // The same in one program, but for mixtures, which compute every expert there.
    auto compiled = ein::compile([&](const Tensor& x) { return (*model)(x); });
    EXPECT_TRUE(all_close(compiled(tokens), logits, 1e-4, 1e-5));
  }
}

/// 8 tokens, and the 8 that follow by the largest logits.
template <class NextLogits>
Tokens greedy(const Tokens& prompt, const NextLogits& next_logits) {
  Tokens tokens = prompt, fresh = prompt;
  while (tokens.size() < 16) {
    fresh = {best(next_logits(tokens, fresh))};
    tokens.push_back(fresh[0]);
  }
  return tokens;
}

TEST(DecoderFiles, GreedyTokensWithAndWithoutACache) {
  NEEDS_DATA;
  for (const char* name : models) {
    SCOPED_TRACE(name);
    const auto model = nn::load_decoder(directory(name));
    const Tokens wanted = expected(name).tensors.at("greedy").to_vector<std::int64_t>();
    const Tokens prompt(wanted.begin(), wanted.begin() + 8);
    const ein::NoGrad no_grad;
    EXPECT_EQ(greedy(prompt,
                     [&](const Tokens& all, const Tokens&) {
                       return (*model)(row(all)).at({0, -1});
                     }),
              wanted);
    std::vector<nn::KVCache> cache = model->make_cache(1, 16);
    EXPECT_EQ(
        greedy(prompt, [&](const Tokens&,
                           const Tokens& fresh) { return model->next_logits(row(fresh), cache); }),
        wanted);
    // One program for every position.
    const std::vector<nn::KVCache> held = model->make_cache(1, 16);
    const Tensor position = ein::zeros({}, ein::DType::i64);
    auto next = ein::compile([&](const Tensor& fresh) {
      const Tensor logits = model->next_logits(fresh, held, position);
      position.copy_from(position + fresh.shape()[1]);
      return logits;
    });
    EXPECT_EQ(greedy(prompt, [&](const Tokens&, const Tokens& fresh) { return next(row(fresh)); }),
              wanted);
  }
}

TEST(DecoderFiles, AWindowsCacheHoldsTheWindow) {
  NEEDS_DATA;
  const auto model = nn::load_decoder(directory("gemma3"));
  const std::vector<nn::KVCache> cache = model->make_cache(1, 16);
  EXPECT_EQ(cache[0].keys.shape(), (ein::Shape{1, 2, 5, 16}));
  EXPECT_EQ(cache[2].keys.shape(), (ein::Shape{1, 2, 16, 16}));
}

}  // namespace
