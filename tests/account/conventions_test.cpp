// FLOPs of a token: counted of the graph, and by the conventions of others, as integers.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include <ein/account.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

#include "support/expect_error.hpp"

namespace {

using ein::Account;
using ein::Count;
namespace nn = ein::nn;

Account at(const nn::DecoderConfig& config, std::int64_t context) {
  return ein::account(config, {.context = context});
}

void expect_lines(const Account& root, const std::string& prefix,
                  const std::map<std::string, std::int64_t>& lines) {
  for (const auto& [key, value] : lines) EXPECT_EQ(root.count(prefix + key), Count(value)) << key;
}

TEST(AccountConventions, OfGpt2) {
  expect_lines(at(nn::gpt2(), 1024), "flops_per_token.training.",
               {{"counted", 854438400},
                {"causal", 797870592},
                {"6N", 510336000},
                {"6N_total", 746638848},
                {"kaplan", 566959104},
                {"palm", 859885056},
                {"nanogpt", 855166464},
                {"torchtitan", 859885056},
                {"torchtitan_windows", 859885056},
                {"narayanan", 854438400},
                {"narayanan_recomputed", 1062056448},
                {"megatron", 797815296},
                {"deepseek_llm", 622854144},
                {"chinchilla", 1087349760},
                {"chinchilla_body", 624181248},
                {"eleutherai", 700051968},
                {"eleutherai_recomputed", 907670016}});
}

TEST(AccountConventions, OfLlama3) {
  expect_lines(at(nn::llama3_8b(), 8192), "flops_per_token.training.",
               {{"counted", 57912852480},
                {"causal", 51471187968},
                {"6N", 41877528576},
                {"6N_total", 48181567488},
                {"kaplan", 48319979520},
                {"palm", 61066469376},
                {"nanogpt", 61066469376},
                {"torchtitan", 57914449920},
                {"narayanan", 54691627008},
                {"megatron", 51470401536},
                {"deepseek_llm", 51539607552},
                {"chinchilla", 54697918464},
                {"chinchilla_body", 48393879552},
                {"eleutherai", 55811522560},
                {"eleutherai_recomputed", 74065133568}});
}

TEST(AccountConventions, PublishedFigures) {
  // Insights into DeepSeek-V3, by the rule that gives its own figure: 405B at 4096.
  const Account llama = at(nn::llama3_405b(), 4096);
  EXPECT_NEAR(llama.count("flops_per_token.training.deepseek_v3").approximate(), 2473.2e9, 0.1e9);
  // Its own: 250 GFLOP.
  EXPECT_EQ(at(nn::deepseek_v3(), 4096).count("flops_per_token.training.deepseek_v3"),
            Count(250455926784));
  // torchtitan's pull request 4300.
  const Account qwen = at(nn::qwen3_30b_a3b(), 8192);
  EXPECT_EQ(qwen.count("flops_per_token.training.torchtitan"), Count(37578559488));
  // What says nothing of experts is left out.
  EXPECT_EQ(qwen.find("flops_per_token.training.narayanan"), nullptr);
}

/// 6 FLOPs for each weight of a norm, which is no matrix, are all that lies between the two.
TEST(AccountConventions, Qwen3MixtureTermByTerm) {
  const Account root = at(nn::qwen3_30b_a3b(), 8192);
  const std::string layers = "flops_per_token.training.counted.full_mixture.";
  const std::int64_t d = 2048, q = 32 * 128, k = 4 * 128, T = 8192;
  const Count projections = Count(6 * 48) * Count(d * (q + 2 * k) + q * d),
              attention = Count(6 * 48) * Count(2 * q * T),
              network = Count(6 * 48) * Count(d * 128 + 8 * 3 * d * 768),
              head = Count(6) * Count(d * 151936);
  EXPECT_EQ(root.count(layers + "projections"), projections);
  EXPECT_EQ(root.count(layers + "attention"), attention);
  EXPECT_EQ(root.count(layers + "network"), network);
  EXPECT_EQ(root.count("flops_per_token.training.counted.head"), head);
  const Count counted = root.count("flops_per_token.training.counted");
  EXPECT_EQ(counted, projections + attention + network + head);
  const Count norms =
      root.count("parameters.total.full_mixture.norms") + root.count("parameters.total.last_norm");
  EXPECT_EQ(norms, Count(210944));
  EXPECT_EQ(root.count("flops_per_token.training.torchtitan") - counted, Count(6) * norms);
}

TEST(AccountConventions, DecodeAndPrefill) {
  EXPECT_EQ(at(nn::gpt2(), 1024).count("flops_per_token.decode.counted"), Count(284812800));
  struct Row {
    nn::DecoderConfig (*config)();
    std::int64_t context, decode, prefill;
  };
  const Row rows[] = {{nn::gpt2, 1024, 284812800, 193369597440},
                      {nn::llama3_8b, 8192, 19304284160, 131944593489920},
                      {nn::qwen3_30b_a3b, 8192, 12525764608, 71128501977088},
                      {nn::mistral_7b, 8192, 16368271360, 127544684707840},
                      {nn::gemma3_27b, 8192, 56230576128, 431605190131712},
                      // With the cache of low ranks: absorbed.
                      {nn::deepseek_v3, 8192, 212432977920, 752572532523008}};
  for (const Row& row : rows) {
    const Account root = at(row.config(), row.context);
    EXPECT_EQ(root.count("flops_per_token.decode.counted"), Count(row.decode)) << row.decode;
    EXPECT_EQ(root.count("flops.prefill"), Count(row.prefill)) << row.decode;
  }
  // Of windows the mean of the tokens is no whole number.
  EXPECT_EQ(at(nn::llama3_8b(), 8192).count("flops.training"), Count(421651971833856));
  EXPECT_EQ(at(nn::mistral_7b(), 8192).count("flops.training"), Count(389075718635520));
  EXPECT_EQ(at(nn::gemma3_27b(), 8192).count("flops.training"), Count(1364093256597504));
  EXPECT_EQ(at(nn::qwen3_30b_a3b(), 8192).count("flops.training"), Count(228678017482752));
  EXPECT_EQ(at(nn::deepseek_v3(), 8192).count("flops.training"), Count(2303260165668864));
}

}  // namespace
