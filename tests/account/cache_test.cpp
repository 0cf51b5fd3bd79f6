// Bytes of caches, beside figures of others that were wrong and have been put right.
#include <gtest/gtest.h>

#include <string>

#include <ein/account.hpp>
#include <ein/nn.hpp>

namespace {

using ein::Account;
using ein::Count;
namespace nn = ein::nn;

Account at(const nn::DecoderConfig& config, std::int64_t context) {
  return ein::account(config, {.context = context});
}

TEST(AccountCache, OfATokenAndOfAContext) {
  struct Row {
    nn::DecoderConfig (*config)();
    std::int64_t context, token, bytes;
  };
  const Row rows[] = {
      {nn::gpt2, 1024, 36864, 37748736},
      {nn::gpt2_xl, 1024, 307200, 314572800},
      {nn::tinystories_33m, 2048, 4 * 3072, 14155776},
      {nn::smollm2_135m, 8192, 23040, 188743680},
      {nn::llama2_7b, 8192, 524288, 4294967296},
      {nn::llama3_8b, 8192, 131072, 1073741824},
      {nn::llama3_70b, 8192, 327680, 2684354560},
      {nn::llama3_405b, 8192, 516096, 4227858432},
      {nn::qwen2_0_5b, 8192, 12288, 100663296},
      {nn::qwen2_7b, 8192, 57344, 469762048},
      {nn::qwen3_0_6b, 8192, 114688, 939524096},
      {nn::qwen3_8b, 8192, 147456, 1207959552},
      {nn::qwen3_30b_a3b, 8192, 98304, 805306368},
      {nn::mistral_7b, 8192, 131072, 536870912},
      {nn::mixtral_8x7b, 8192, 131072, 1073741824},
      {nn::gemma2_9b, 8192, 42 * 8192, 2113929216},
      {nn::gemma3_1b, 8192, 26 * 1024, 45088768},
      {nn::gemma3_27b, 8192, 62 * 8192, 1107296256},
      {nn::phi3_mini, 4096, 393216, 804913152},
      // In GiB 10.40625 and 4.375, where others say 81.38 and 2.19.
      {nn::gemma3_27b, 131072, 62 * 8192, 11173625856},
      {nn::qwen3_0_6b, 40960, 114688, 4697620480},
      // 70.272 thousand bytes a token by its paper; 10.723 GiB, where others say 2.08.
      {nn::gpt_oss_20b, 8192, 24 * 2048, 204472320},
      {nn::deepseek_v3, 8192, 70272, 575668224},
      {nn::deepseek_v3, 163840, 70272, 11513364480},
  };
  for (const Row& row : rows) {
    const Account root = at(row.config(), row.context);
    EXPECT_EQ(root.count("kv_bytes_per_token"), Count(row.token)) << row.bytes;
    EXPECT_EQ(root.count("kv_bytes"), Count(row.bytes));
  }
}

TEST(AccountCache, ByLayersAndDtype) {
  const Account root = ein::account(nn::gemma3_27b(), {.context = 8192, .dtype = ein::DType::f32});
  EXPECT_EQ(root.count("kv_bytes.window_1024"), Count(52 * 1024 * std::int64_t{16384}));
  EXPECT_EQ(root.count("kv_bytes.full"), Count(10 * 8192 * std::int64_t{16384}));
  EXPECT_EQ(root.count("kv_bytes_per_token.full"), Count(10 * 16384));
}

}  // namespace
