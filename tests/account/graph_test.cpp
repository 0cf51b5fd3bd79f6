// Accounts beside the same architectures run through cost(), bill() and memory().
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/account.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/shapes_only.hpp>

#include "support/expect_error.hpp"

namespace {

using ein::Account;
using ein::Count;
using ein::DType;
using ein::Tensor;
namespace nn = ein::nn;

/// Small decoders of several kinds, of which each has six layers.
std::vector<nn::DecoderConfig> small_ones() {
  std::vector<nn::DecoderConfig> configs;
  for (nn::DecoderConfig config :
       {nn::gpt2_form(), nn::llama_form(), nn::gemma2_form(), nn::gemma3_form(),
        nn::qwen3_moe_form(), nn::mixtral_form(), nn::gpt_oss_form()}) {
    config.vocabulary = 60;
    config.positions = 64;
    config.width = 32;
    config.layers = 6;
    config.attention.heads = 4;
    config.attention.key_heads = 2;
    config.attention.head_size = 8;
    config.feed_forward.width = 48;
    if (config.mixture) {
      config.mixture->experts = 4;
      config.mixture->chosen = 2;
      config.mixture->expert.width = 24;
    }
    if (config.local_attention) nn::add_windows(config, 8, 3, nn::Rotary{});
    configs.push_back(config);
  }
  nn::DecoderConfig latent = nn::deepseek_v3_form();
  latent.vocabulary = 60;
  latent.positions = 64;
  latent.width = 32;
  latent.layers = 6;
  latent.attention.heads = 4;
  latent.attention.head_size = 12;
  latent.attention.latent = nn::LatentConfig{
      .rank = 16, .query_rank = 24, .turned = 4, .value_size = 6, .norm = latent.norm};
  latent.feed_forward.width = 48;
  latent.is_mixture = {false, true, true, true, true, true};
  latent.mixture->experts = 8;
  latent.mixture->groups = 4;
  latent.mixture->chosen_groups = 2;
  latent.mixture->chosen = 2;
  latent.mixture->expert.width = 24;
  latent.mixture->shared_width = 24;
  configs.push_back(latent);
  latent.is_mixture.clear();
  latent.mixture.reset();
  latent.attention.latent->query_rank = 0;
  configs.push_back(latent);
  configs[5].is_mixture = {false, true, true, false, true, true};
  configs[5].mixture->shared_width = 20;
  return configs;
}

TEST(AccountOfGraph, ProductsOfTheWholeModel) {
  std::vector<nn::DecoderConfig> configs = small_ones();
  for (const nn::DecoderConfig& published :
       {nn::gpt2(), nn::llama3_8b(), nn::qwen3_30b_a3b(), nn::gemma3_27b(), nn::mixtral_8x7b()})
    configs.push_back(published);
  for (const nn::DecoderConfig& config : configs) {
    const std::int64_t context = config.width < 100 ? 16 : 512;
    const Account root = ein::account(config, {.context = context, .of_training = false});
    const ein::ShapesOnly shapes;
    const nn::Decoder model(config);
    EXPECT_EQ(root.count("parameters.total"), Count(model.parameter_count()));
    const Tensor tokens = ein::empty({3, context}, DType::i64);
    const Tensor loss = cross_entropy(model(tokens), tokens, "b s [v], b s");
    EXPECT_EQ(root.count("flops_per_token.prefill.counted") * Count(3 * context),
              shapes.cost(loss).matmul_only);
    loss.backward();
    std::vector<Tensor> results{loss};
    for (const Tensor& parameter : model.parameters()) {
      if (parameter.has_grad()) results.push_back(parameter.grad());
    }
    EXPECT_EQ(root.count("flops_per_token.training.counted") * Count(3 * context),
              shapes.cost(results).matmul_only);
  }
}

TEST(AccountOfGraph, DecodeThatRuns) {
  for (const nn::DecoderConfig& config : small_ones()) {
    const std::int64_t context = 7;  // less than a window
    const Account root = ein::account(config, {.context = context, .of_training = false});
    const nn::Decoder model(config);
    std::vector<nn::KVCache> cache = model.make_cache(1, 32);
    model.next_logits(ein::zeros({1, context - 1}, DType::i64), cache);
    const ein::CostScope scope;
    model.next_logits(ein::zeros({1, 1}, DType::i64), cache);
    EXPECT_EQ(root.count("flops_per_token.decode.counted"), scope.total().matmul_only);
    // The cache holds a window and no more.
    const Account longer =
        ein::account(config, {.context = 32, .dtype = DType::f32, .of_training = false});
    std::int64_t bytes = 0;
    for (const nn::KVCache& layer : cache) bytes += 4 * (layer.keys.numel() + layer.values.numel());
    EXPECT_EQ(longer.count("kv_bytes"), Count(bytes));
  }
}

TEST(AccountOfGraph, TrainingStepThatRuns) {
  for (const nn::DecoderConfig& config : small_ones()) {
    if (config.mixture) continue;  // without capacity a compiled step computes all experts
    const Account root = ein::account(config, {.context = 16, .batch = 2, .dtype = DType::f32});
    const nn::Decoder model(config);
    const Tensor tokens = ein::zeros({2, 16}, DType::i64);
    auto step = ein::compile([&](const Tensor& x) {
      const Tensor loss = cross_entropy(model(x), x, "b s [v], b s");
      loss.backward();
      std::vector<Tensor> results{loss};
      for (const Tensor& parameter : model.parameters()) results.push_back(parameter.grad());
      return results;
    });
    step.prepare(tokens);
    const ein::StepBill bill = step.bill();
    EXPECT_EQ(root.count("memory.training.parameters"), Count(std::uint64_t{bill.parameters}));
    EXPECT_EQ(root.count("memory.training.activations") + root.count("memory.training.logits"),
              Count(std::uint64_t{bill.activations}));
    EXPECT_EQ(root.count("flops_per_token.training.counted") * Count(32),
              bill.forward.matmul_only + bill.backward.matmul_only);
    // The step's own account has the same.
    const Account own = step.account();
    EXPECT_EQ(own.count("kinds.activations"), Count(std::uint64_t{bill.activations}));
    EXPECT_EQ(own.count("products"), bill.forward.matmul_only + bill.backward.matmul_only);
    EXPECT_EQ(own.count("memory"), Count(std::uint64_t{step.memory().peak()}));
  }
}

TEST(AccountOfGraph, BadOptions) {
  using ein::ErrorKind;
  using ein::test::expect_error;
  nn::DecoderConfig config = nn::gpt2();
  expect_error([&] { ein::account(config, {.context = -1}); }, ErrorKind::value, {"context is -1"});
  expect_error([&] { ein::account(config, {.batch = 0}); }, ErrorKind::value, {"batch is 0"});
  expect_error([&] { ein::account(config, {.devices = 0}); }, ErrorKind::value, {"devices is 0"});
  expect_error([&] { ein::account(config, {.context = 1025}); }, ErrorKind::value,
               {"1025 positions", "1024"});
  config.attention.heads = 0;
  expect_error([&] { ein::account(config); }, ErrorKind::value, {"heads is 0"});
  config = nn::gpt2();
  config.layers = 0;
  expect_error([&] { ein::account(config); }, ErrorKind::value, {"layers is 0"});
  const Account root = ein::account(nn::gpt2());
  expect_error([&] { root.count("parameters"); }, ErrorKind::value, {"no count 'parameters'"});
  expect_error([&] { root.count("none.such"); }, ErrorKind::value, {"none.such"});
}

}  // namespace
