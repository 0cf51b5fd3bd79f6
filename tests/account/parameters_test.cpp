// Parameters of accounts: those of the published configs, as integers, and by module.
#include <gtest/gtest.h>

#include <string>

#include <ein/account.hpp>
#include <ein/nn.hpp>
#include <ein/nn/hugging_face.hpp>
#include <ein/shapes_only.hpp>

#include "support/shared_data.hpp"

namespace {

using ein::Account;
using ein::Count;
namespace nn = ein::nn;

Account account_of_file(const std::string& name) {
  const std::string path = ein::test::shared_data("configs/" + name + ".json");
  return ein::account(nn::read_decoder_config_file(path).config);
}

struct Counts {
  const char* file;
  std::int64_t total, active, without_input_tables, without_tables;
};
const Counts published[] = {
    {"gpt2", 124439808, 124439808, 123653376, 85056000},
    {"gpt2-xl", 1557611200, 1557611200, 1555972800, 1475561600},
    {"tinystories-33m", 68514048, 68514048, 66941184, 28343808},
    {"smollm2-135m", 134515008, 134515008, 134515008, 106203456},
    {"llama-2-7b", 6738415616, 6738415616, 6607343616, 6476271616},
    {"llama-3.1-8b", 8030261248, 8030261248, 7504924672, 6979588096},
    {"llama-3.1-70b", 70553706496, 70553706496, 69503033344, 68452360192},
    {"llama-3.1-405b", 405853388800, 405853388800, 403752042496, 401650696192},
    {"qwen2.5-0.5b", 494032768, 494032768, 494032768, 357898112},
    {"qwen2.5-7b", 7615616512, 7615616512, 7070619136, 6525621760},
    {"qwen3-0.6b", 596049920, 596049920, 596049920, 440467456},
    {"qwen3-8b", 8190735360, 8190735360, 7568405504, 6946075648},
    {"qwen3-30b-a3b", 30532122624, 3353032704, 3041867776, 29909792768},
    {"mistral-7b-v0.1", 7241732096, 7241732096, 7110660096, 6979588096},
    {"mixtral-8x7b", 46702792704, 12879925248, 12748853248, 46440648704},
    {"gemma-2-9b", 9241705984, 9241705984, 9241705984, 8324201984},
    {"gemma-3-1b-it", 999885952, 999885952, 999885952, 697896064},
    {"gemma-3-27b-it", 27009346304, 27009346304, 27009346304, 25599716096},
    {"phi-3-mini-4k", 3821079552, 3821079552, 3722578944, 3624078336},
    {"gpt-oss-20b", 20914757184, 4187440704, 3608307264, 19756490304},
    {"deepseek-v3", 671026404352, 37552282624, 36625603584, 669173046272},
};

TEST(AccountParameters, OfPublishedConfigs) {
  SKIP_WITHOUT_SHARED_DATA("configs");
  for (const Counts& of : published) {
    const Account root = account_of_file(of.file);
    EXPECT_EQ(root.count("parameters.total"), Count(of.total)) << of.file;
    EXPECT_EQ(root.count("parameters.active"), Count(of.active)) << of.file;
    EXPECT_EQ(root.count("parameters.active_without_input_tables"), Count(of.without_input_tables))
        << of.file;
    EXPECT_EQ(root.count("parameters.without_tables"), Count(of.without_tables)) << of.file;
  }
}

/// Each line that is a sum is that of its parts.
void expect_sums(const Account& line, const std::string& path) {
  Count sum = 0;
  for (const Account& part : line.parts) {
    expect_sums(part, path + "." + part.key);
    if (line.is_sum) sum += std::get<Count>(part.value);
  }
  if (line.is_sum) {
    EXPECT_EQ(std::get<Count>(line.value), sum) << path;
  }
}

TEST(AccountParameters, PartsAddUp) {
  for (const nn::DecoderConfig& config :
       {nn::gpt2(), nn::llama3_70b(), nn::gemma3_27b(), nn::qwen3_30b_a3b(), nn::phi3_mini()})
    expect_sums(ein::account(config), "");
  nn::DecoderConfig shared = nn::mixtral_8x7b();
  shared.mixture->shared_width = 77;
  shared.is_mixture = std::vector<bool>(32, true);
  shared.is_mixture[3] = false;
  const Account root = ein::account(shared);
  expect_sums(root, "");
  const ein::ShapesOnly shapes;
  EXPECT_EQ(root.count("parameters.total"), Count(nn::Decoder(shared).parameter_count()));
}

TEST(AccountParameters, OfOnesOwnModule) {
  const nn::Linear layer(4, 5);
  const Account root = layer.account();
  EXPECT_EQ(root.count("parameters"), Count(25));
  EXPECT_EQ(root.count("parameters.weight"), Count(20));
  EXPECT_EQ(root.find("parameters.weight")->note, "(4, 5) f32");
  EXPECT_EQ(root.count("bytes"), Count(100));

  const ein::ShapesOnly shapes;
  const nn::Decoder model(nn::gpt2());
  const Account decoder = model.account();
  EXPECT_EQ(decoder.count("parameters"), Count(124439808));
  EXPECT_EQ(decoder.count("parameters.transformer.h.11.attn.c_attn"), Count(768 * 2304 + 2304));
  expect_sums(decoder, "");
}

}  // namespace
