// decoder.json: what is written is read back equal, and what is no config is refused by name.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <ein/error.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

#include "support/expect_error.hpp"
#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

nn::DecoderConfig read_back(const nn::DecoderConfig& config) {
  const test::ScratchDirectory directory;
  const std::string path = directory.path("decoder.json");
  nn::save_decoder_config(path, config);
  return nn::load_decoder_config(path);
}

TEST(DecoderFile, FamiliesAreReadBackEqual) {
  for (const nn::DecoderConfig& config :
       {nn::DecoderConfig{}, nn::gpt2(), nn::tinystories_33m(), nn::llama3_405b(),
        nn::smollm2_135m(), nn::mistral_7b(), nn::mixtral_8x7b(), nn::qwen2_7b(),
        nn::qwen3_30b_a3b(), nn::gemma2_9b(), nn::gemma3_27b(), nn::phi3_mini(), nn::deepseek_v3(),
        nn::gpt_oss_20b(), nn::cs336(), nn::without_norms(nn::cs336()),
        nn::with_norms_after(nn::cs336()), nn::without_positions(nn::cs336()),
        nn::without_gate(nn::cs336())}) {
    EXPECT_EQ(read_back(config), config) << nn::decoder_json(config);
  }
}

// Each field by itself, at a value that is not its default and that few decimal digits do not say.
TEST(DecoderFile, EachFieldIsReadBackEqual) {
  using Config = nn::DecoderConfig;
  const nn::Rotary turned{.layout = nn::Rotary::Layout::neighbours,
                          .base = 1.0 / 3,
                          .fraction = 0.1,
                          .scaling = {.rule = nn::RotaryScaling::Rule::yarn,
                                      .factor = 40.1,
                                      .original_positions = 4096.5,
                                      .low_frequency = 1.1,
                                      .high_frequency = 4.1,
                                      .beta_fast = 31.9,
                                      .beta_slow = 0.9,
                                      .truncate = false,
                                      .amplitude = 1.3465735902799727,
                                      .mscale = 0.707,
                                      .mscale_all = 0.1}};
  const nn::AttentionConfig attention{
      .heads = 6,
      .key_heads = 3,
      .head_size = 10,
      .window = 77,
      .soft_cap = 49.9,
      .scale = 0.1,
      .bias = false,
      .output_bias = false,
      .query_key_norm = nn::NormConfig{.kind = nn::NormConfig::Kind::rms, .adds_one = true},
      .rotary = turned,
      .dropout = 0.3};
  const nn::MixtureConfig mixture{.experts = 5,
                                  .chosen = 3,
                                  .expert = {.activation = nn::Activation::relu, .ratio = 8.0 / 3},
                                  .softmax_over_chosen = false,
                                  .normalised = false,
                                  .shared_width = 9,
                                  .capacity = 1.1};
  const std::vector<void (*)(Config&)> changes{
      [](Config& c) { c.vocabulary = 1 << 24; },
      [](Config& c) { c.positions = 1; },
      [](Config& c) { c.width = 3; },
      [](Config& c) { c.layers = 4096; },
      [](Config& c) {
        c.norm = {nn::NormConfig::Kind::none, 1e-300, false, true};
      },
      [](Config& c) { c.norm_place = Config::NormPlace::both; },
      [](Config& c) { c.position = Config::Positions::in_attention; },
      [](Config& c) {
        c.is_local = {true, false, true};
      },
      [](Config& c) { c.feed_forward = {nn::Activation::gelu_tanh, true, 7, 1.0 / 3, 64, false}; },
      [](Config& c) {
        c.is_mixture = {false, true};
      },
      [](Config& c) { c.tied = false; },
      [](Config& c) { c.logit_cap = 29.9; },
      [](Config& c) { c.embedding_scale = -55.4256; },
      [](Config& c) { c.dropout = std::nextafter(1.0, 0.0); },
      [](Config& c) { c.initial = Config::Initial::glorot; },
      [](Config& c) { c.initial_std = std::numeric_limits<double>::denorm_min(); }};
  Config all;
  for (const auto change : changes) {
    Config config;
    change(config);
    EXPECT_FALSE(config == Config{});
    EXPECT_EQ(read_back(config), config) << nn::decoder_json(config);
    change(all);
  }
  all.attention = attention;
  all.local_attention = attention;
  all.local_attention->rotary.reset();
  all.mixture = mixture;
  EXPECT_EQ(read_back(all), all) << nn::decoder_json(all);
}

class DecoderFileText : public testing::Test {
 protected:
  void refused(const std::string& text, const std::vector<std::string>& parts) const {
    test::expect_error([&] { read(text); }, ErrorKind::file, parts);
  }
  nn::DecoderConfig read(const std::string& text) const {
    const std::string path = directory_.path("decoder.json");
    std::ofstream(path) << text;
    return nn::load_decoder_config(path);
  }
  test::ScratchDirectory directory_;
};

TEST_F(DecoderFileText, AnAbsentKeyHasItsDefault) {
  EXPECT_EQ(read("{}"), nn::DecoderConfig{});
  nn::DecoderConfig config;
  config.width = 12;
  config.norm.eps = 1;
  config.attention.rotary.emplace().base = 500;
  EXPECT_EQ(
      read(
          R"({"width": 12, "norm": {"eps": 1}, "attention": {"rotary": {"base": 500}}, "mixture": null})"),
      config);
}

TEST_F(DecoderFileText, AKeyThatIsNoFieldIsRefusedWhateverItSays) {
  for (const char* value : {"1", "null", "false", "{}", "[]", "\"x\""}) {
    refused(std::string(R"({"widht": )") + value + "}",
            {"decoder.json", "'widht' is a key that ein does not know"});
    refused(std::string(R"({"attention": {"rotary": {"scaling": {"faktor": )") + value + "}}}}",
            {"'attention.rotary.scaling.faktor' is a key that ein does not know"});
  }
}

TEST_F(DecoderFileText, NumbersOutsideTheirDomainsAreNamed) {
  const auto number = [&](const std::string& path, const std::string& value) {
    std::string text = value, name = path;
    for (std::size_t dot = 0; dot != std::string::npos;) {
      dot = name.rfind('.');
      text = "{\"" + name.substr(dot == std::string::npos ? 0 : dot + 1) + "\": " + text + "}";
      if (dot != std::string::npos) name.resize(dot);
    }
    refused(text, {"'" + path + "' is"});
  };
  for (const char* size : {"vocabulary", "positions", "width", "layers", "attention.heads",
                           "feed_forward.multiple", "mixture.experts", "mixture.chosen"}) {
    for (const char* value : {"0", "-1", "16777217", "1e3", "18446744073709551615",
                              "-9223372036854775808", "1e300", "\"3\"", "true", "[]"})
      number(size, value);
  }
  number("layers", "4097");
  for (const char* size : {"attention.key_heads", "attention.head_size", "attention.window",
                           "feed_forward.width", "mixture.shared_width"})
    for (const char* value : {"-1", "16777217", "0.5"}) number(size, value);
  for (const char* positive :
       {"attention.rotary.base", "attention.rotary.scaling.factor", "feed_forward.ratio"})
    for (const char* value : {"0", "-1", "\"1\""}) number(positive, value);
  for (const char* part : {"dropout", "attention.dropout", "local_attention.dropout"})
    for (const char* value : {"1", "-0.1", "2"}) number(part, value);
  number("norm.eps", "-1e-9");
  number("norm.kind", "\"batch\"");
  number("norm.kind", "1");
  number("feed_forward.activation", "\"gelu_new\"");
  number("tied", "1");
  number("norm", "[]");
  number("attention.rotary", "true");
  refused(R"({"is_local": [true, 1]})", {"'is_local' has something else"});
}

TEST_F(DecoderFileText, WhatIsNoJsonIsRefused) {
  refused("", {"it is no JSON"});
  refused("[]", {"it is no object"});
  refused("{\"width\": 1", {"it is no JSON"});
  refused("{\"width\": 1e999}", {"decoder.json"});
  refused(std::string(1 << 18, '[') + "1", {"nested too deep"});
  refused(std::string((1 << 20) + 1, ' '), {"is too long"});
  test::expect_error([] { nn::load_decoder_config("/nowhere/decoder.json"); }, ErrorKind::file,
                     {"/nowhere/decoder.json"});
}

TEST(DecoderFile, TheExampleOfThePageIsTheCoursesModel) {
  const std::string page = test::read_bytes((test::project / "docs" / "decoder.md").string());
  const std::size_t begin = page.find("```json\n") + 8;
  const test::ScratchDirectory directory;
  const std::string path = directory.path("decoder.json");
  test::write_bytes(path, page.substr(begin, page.find("```", begin) - begin));
  const nn::DecoderConfig config = nn::load_decoder_config(path),
                          course = nn::cs336({.vocabulary = 10000,
                                              .context = 256,
                                              .width = 512,
                                              .layers = 4,
                                              .heads = 16});
  const ShapesOnly shapes;
  EXPECT_EQ(nn::Decoder(config).parameter_count(), 22'696'448);
  EXPECT_EQ(nn::Decoder(course).parameter_count(), 22'696'448);
}

TEST(DecoderFile, NothingIsWrittenThatIsNotReadBack) {
  nn::DecoderConfig config;
  config.layers = 5000;
  test::expect_error([&] { nn::decoder_json(config); }, ErrorKind::value,
                     {"layers is 5000", "1 to 4096"});
  config = {};
  config.norm.eps = std::numeric_limits<double>::quiet_NaN();
  test::expect_error([&] { nn::decoder_json(config); }, ErrorKind::value, {"eps is nan"});
}

}  // namespace
}  // namespace ein
