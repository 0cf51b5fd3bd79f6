// config.json and weights that are not what a decoder wants: each mistake is named. No data of
// others is needed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/safetensors.hpp>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"

namespace {

using ein::ErrorKind;
using ein::StateDict;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

nn::DecoderConfig read(const std::string& text) {
  const ein::test::ScratchDirectory directory;
  write(directory.path("config.json"), text);
  return nn::read_decoder_config(directory.path().string()).config;
}

void refuse(const std::string& text, const std::vector<std::string>& parts) {
  SCOPED_TRACE(text);
  expect_error([&] { read(text); }, ErrorKind::file, parts);
}

/// {"model_type": type, ...}
std::string of(const std::string& type, const std::string& more = "") {
  return "{\"model_type\": \"" + type + "\"" + (more.empty() ? "" : ", " + more) + "}";
}

TEST(DecoderConfig, AbsentKeysHaveTheDefaultsOfTheFamily) {
  EXPECT_EQ(read(of("gpt2")), nn::gpt2());
  nn::DecoderConfig llama = read(of("llama"));
  EXPECT_EQ(llama.norm.eps, 1e-6);
  EXPECT_EQ(llama.attention.key_heads, 32);
  EXPECT_FALSE(llama.tied);
  EXPECT_EQ(llama.attention.rotary, nn::Rotary{});
  EXPECT_EQ(read(of("mistral")).attention.window, 4096);
  EXPECT_EQ(read(of("mistral", "\"sliding_window\": null")).attention.window, 0);
  EXPECT_EQ(read(of("mixtral")).attention.window, 0);
  EXPECT_EQ(read(of("mixtral")).attention.rotary->base, 1e6);
  EXPECT_TRUE(read(of("qwen2")).attention.bias);
  EXPECT_FALSE(read(of("qwen2")).attention.output_bias);
  EXPECT_EQ(read(of("qwen3", "\"hidden_size\": 1024")).attention.head_size, 128);
  EXPECT_FALSE(read(of("qwen3_moe")).mixture->normalised);
  EXPECT_EQ(read(of("qwen3_moe")).mixture->experts, 128);
  const nn::DecoderConfig gemma2 = read(of("gemma2"));
  EXPECT_EQ(gemma2.attention_of(0).window, 4096);
  EXPECT_EQ(gemma2.attention_of(1).window, 0);
  EXPECT_EQ(gemma2.attention.soft_cap, 50);
  EXPECT_EQ(gemma2.logit_cap, 30);
  EXPECT_TRUE(gemma2.tied);
  EXPECT_EQ(read(of("gemma2", "\"attn_logit_softcapping\": null")).attention.soft_cap, 0);
  const nn::DecoderConfig gemma3 = read(of("gemma3_text"));
  EXPECT_EQ(gemma3.vocabulary, 262208);
  EXPECT_EQ(gemma3.attention_of(4).rotary->base, 10000);
  EXPECT_EQ(gemma3.attention_of(5).rotary->base, 1e6);
  EXPECT_EQ(gemma3.attention_of(5).window, 0);
  EXPECT_EQ(read(of("phi3")).norm.eps, 1e-5);
}

TEST(DecoderConfig, BothSpellingsOfRotaryPositions) {
  const std::string scaling =
      R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192)";
  const nn::DecoderConfig old = read(
      of("llama", R"("rope_theta": 500000, "rope_scaling": {"type": "llama3", )" + scaling + "}"));
  const nn::DecoderConfig now =
      read(of("llama", R"("rope_parameters": {"rope_theta": 500000, "rope_type": "llama3", )" +
                           scaling + "}"));
  EXPECT_EQ(old.attention.rotary, now.attention.rotary);
  EXPECT_EQ(old.attention.rotary, nn::llama3_8b().attention.rotary);
  const nn::DecoderConfig yarn = read(of(
      "qwen3",
      R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})"));
  EXPECT_EQ(yarn.attention.rotary->scaling.rule, nn::RotaryScaling::Rule::yarn);
  EXPECT_EQ(yarn.attention.rotary->scaling.original_positions, 32768);
  const nn::DecoderConfig gemma = read(of(
      "gemma3_text",
      R"("rope_parameters": {"full_attention": {"rope_theta": 2000000, "rope_type": "linear", "factor": 8},
                             "sliding_attention": {"rope_theta": 20000, "rope_type": "default"}})"));
  EXPECT_EQ(gemma.attention_of(0).rotary->base, 20000);
  EXPECT_EQ(gemma.attention_of(0).rotary->scaling, nn::RotaryScaling{});
  EXPECT_EQ(gemma.attention_of(5).rotary->base, 2e6);
  EXPECT_EQ(gemma.attention_of(5).rotary->scaling.factor, 8);
}

TEST(DecoderConfig, WindowsByLayer) {
  const nn::DecoderConfig types =
      read(of("qwen3", R"("num_hidden_layers": 3, "sliding_window": 9, "use_sliding_window": true,
                          "layer_types": ["full_attention", "sliding_attention", "full_attention"])"));
  EXPECT_EQ(types.attention_of(0).window, 0);
  EXPECT_EQ(types.attention_of(1).window, 9);
  const nn::DecoderConfig from =
      read(of("qwen2", R"("num_hidden_layers": 3, "sliding_window": 9, "use_sliding_window": true,
                          "max_window_layers": 2)"));
  EXPECT_EQ(from.attention_of(1).window, 0);
  EXPECT_EQ(from.attention_of(2).window, 9);
  const nn::DecoderConfig neo =
      read(of("gpt_neo",
              R"("num_layers": 3, "attention_types": [[["local", "global"], 1], [["local"], 1]])"));
  EXPECT_EQ(neo.attention_of(0).window, 256);
  EXPECT_EQ(neo.attention_of(1).window, 0);
  EXPECT_EQ(neo.attention_of(2).window, 256);
}

TEST(DecoderConfig, WhatItCannotBeIsNamed) {
  refuse("{", {"config.json", "it is no JSON"});
  refuse("[1]", {"it is no object"});
  refuse("{}", {"'model_type'", "llama"});
  refuse(of("mamba"), {"'model_type'", "'mamba'", "qwen3_moe"});
  refuse(of("llama", "\"num_attention_heads\": 0"), {"'num_attention_heads' is 0", "from 1"});
  refuse(of("llama", "\"num_hidden_layers\": 9223372036854775808"),
         {"'num_hidden_layers' is 9223372036854775808", "to 65536"});
  refuse(of("llama", "\"num_hidden_layers\": 65537"), {"'num_hidden_layers'"});
  refuse(of("llama", "\"hidden_size\": -1"), {"'hidden_size' is -1"});
  refuse(of("llama", "\"hidden_size\": 2147483648"), {"'hidden_size'", "2147483647"});
  refuse(of("llama", "\"hidden_size\": 8.5"), {"'hidden_size' is no whole number"});
  refuse(of("llama", "\"hidden_size\": \"8\""), {"'hidden_size' is no whole number"});
  refuse(of("llama", "\"rms_norm_eps\": -1"), {"'rms_norm_eps' is -1"});
  refuse(of("llama", "\"rms_norm_eps\": true"), {"'rms_norm_eps' is no number"});
  refuse(of("llama", "\"tie_word_embeddings\": 1"), {"'tie_word_embeddings'", "neither"});
  refuse(of("llama", "\"hidden_act\": \"mish\""), {"'hidden_act'", "'mish'"});
  refuse(of("llama", "\"rope_theta\": 1"), {"'rope_theta' is 1"});
  refuse(of("llama", "\"rope_scaling\": 3"), {"'rope_scaling' is no object"});
  refuse(of("llama", R"("rope_scaling": {"rope_type": "dynamic", "factor": 2})"),
         {"'rope_scaling.rope_type'", "'dynamic'", "yarn"});
  refuse(of("phi3", R"("rope_scaling": {"type": "longrope", "short_factor": [1]})"),
         {"'rope_scaling.type'", "'longrope'"});
  refuse(
      of("llama", R"("rope_scaling": {"rope_type": "linear", "factor": 2, "mrope_section": [1]})"),
      {"'rope_scaling.mrope_section'", "does not know"});
  refuse(of("llama", R"("rope_scaling": {"rope_type": "linear", "factor": 0})"),
         {"'rope_scaling.factor' is 0"});
  refuse(of("llama", "\"quantization_config\": {\"quant_method\": \"mxfp4\"}"),
         {"'quantization_config'", "does not know"});
  refuse(of("llama", "\"residual_multiplier\": 0.22"), {"'residual_multiplier'", "does not know"});
  refuse(of("llama", R"("num_hidden_layers": 1, "layer_types": ["sliding_attention"])"),
         {"'sliding_window'"});
  refuse(of("gemma2", R"("num_hidden_layers": 2, "layer_types": ["full_attention"])"),
         {"'layer_types' is of 1 layers", "2"});
  refuse(of("gemma2", R"("num_hidden_layers": 1, "layer_types": ["linear_attention"])"),
         {"'linear_attention'"});
  refuse(of("gpt2", "\"scale_attn_by_inverse_layer_idx\": true"),
         {"'scale_attn_by_inverse_layer_idx' is true"});
  refuse(of("gpt_neo", R"("num_layers": 2, "attention_layers": ["global", "sideways"])"),
         {"'sideways'"});
  refuse(of("gpt_neo", R"("num_layers": 2, "attention_types": [3])"), {"'attention_types'"});
  refuse(of("mixtral", R"("num_local_experts": 2, "num_experts_per_tok": 3)"),
         {"'num_experts_per_tok' is 3", "2 experts"});
  expect_error([] { nn::read_decoder_config("/nowhere"); }, ErrorKind::file,
               {"/nowhere/config.json"});
  // These say nothing.
  EXPECT_NO_THROW(
      read(of("llama", R"("new_thing": null, "other": false, "more": [], "dtype": "x")")));
}

constexpr const char* small =
    R"("vocab_size": 7, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
       "intermediate_size": 4, "max_position_embeddings": 16)";

/// Weights of the small Llama, by its names.
StateDict weights() {
  StateDict state;
  const auto add = [&](const std::string& name, const ein::Shape& shape) {
    state.emplace(name + ".weight", ein::randn(shape));
  };
  add("model.embed_tokens", {7, 8});
  add("model.norm", {8});
  add("lm_head", {7, 8});
  const std::string layer = "model.layers.0.";
  add(layer + "input_layernorm", {8});
  add(layer + "post_attention_layernorm", {8});
  for (const char* name : {"q", "k", "v", "o"}) add(layer + "self_attn." + name + "_proj", {8, 8});
  add(layer + "mlp.gate_proj", {4, 8});
  add(layer + "mlp.up_proj", {4, 8});
  add(layer + "mlp.down_proj", {8, 4});
  return state;
}

class Directory {
 public:
  explicit Directory(const std::string& config) { write(directory_.path("config.json"), config); }
  std::string path() const { return directory_.path().string(); }
  void save(const StateDict& state) const {
    ein::save_safetensors(directory_.path("model.safetensors"), state, {{"format", "pt"}});
  }

 private:
  ein::test::ScratchDirectory directory_;
};

TEST(DecoderWeights, LoadsAndLeavesBuffersAlone) {
  const Directory directory(of("llama", small));
  StateDict state = weights();
  state.emplace("model.layers.0.self_attn.rotary_emb.inv_freq", ein::ones({2}));
  directory.save(state);
  const auto model = nn::load_decoder(directory.path(), {.mmap = false});
  const StateDict mine = model->state_dict();
  EXPECT_EQ(mine.at("transformer.wte.weight").to_vector<float>(),
            state.at("model.embed_tokens.weight").to_vector<float>());
  EXPECT_EQ(mine.at("lm_head.weight").to_vector<float>(),
            rearrange(state.at("lm_head.weight"), "v c -> c v").to_vector<float>());
}

TEST(DecoderWeights, ConvertsToTheDtypeOfTheDecoder) {
  const Directory directory(of("llama", small));
  StateDict state = weights();
  for (auto& [name, tensor] : state) tensor = tensor.to(ein::DType::bf16);
  directory.save(state);
  const auto model = nn::load_decoder(directory.path());
  EXPECT_EQ(model->state_dict().at("transformer.wte.weight").to_vector<float>(),
            state.at("model.embed_tokens.weight").to(ein::DType::f32).to_vector<float>());
}

TEST(DecoderWeights, EveryNameThatDoesNotFitIsNamed) {
  const Directory directory(of("llama", small));
  const auto refuse = [&](const auto& change, const std::vector<std::string>& parts) {
    StateDict state = weights();
    change(state);
    directory.save(state);
    expect_error([&] { nn::load_decoder(directory.path()); }, ErrorKind::value, parts);
  };
  refuse([](StateDict& s) { s.erase("model.layers.0.self_attn.k_proj.weight"); },
         {"missing: model.layers.0.self_attn.k_proj.weight"});
  refuse([](StateDict& s) { s.emplace("model.layers.1.input_layernorm.weight", ein::ones({8})); },
         {"unexpected: model.layers.1.input_layernorm.weight"});
  refuse([](StateDict& s) { s.emplace("model.layers.0.self_attn.q_proj.bias", ein::ones({8})); },
         {"unexpected: model.layers.0.self_attn.q_proj.bias"});
  refuse([](StateDict& s) { s.insert_or_assign("model.norm.weight", ein::ones({9})); },
         {"of another shape: model.norm.weight (9,) for (8,)"});
  refuse(
      [](StateDict& s) {
        s.clear();
        s.emplace("a", ein::ones({1}));
      },
      {"missing: model.embed_tokens.weight", "unexpected: a"});
  // A mask of a name that GPT-2 has, in Llama.
  refuse(
      [](StateDict& s) {
        s.emplace("model.layers.0.attn.bias", ein::ones({1, 1, 4, 4}));
      },
      {"unexpected: model.layers.0.attn.bias"});
}

TEST(DecoderWeights, ATiedHeadIsAbsentOrTheTable) {
  const Directory directory(of("llama", std::string(small) + ", \"tie_word_embeddings\": true"));
  StateDict state = weights();
  directory.save(state);
  expect_error([&] { nn::load_decoder(directory.path()); }, ErrorKind::value,
               {"lm_head.weight", "is not the table of tokens"});
  state.insert_or_assign("lm_head.weight", state.at("model.embed_tokens.weight"));
  directory.save(state);
  const std::int64_t with = nn::load_decoder(directory.path())->parameter_count();
  state.erase("lm_head.weight");
  directory.save(state);
  EXPECT_EQ(nn::load_decoder(directory.path())->parameter_count(), with);
}

// Memory is asked for when the weights are known to be there.
TEST(DecoderWeights, AnAbsurdConfigTakesNoMemory) {
  const Directory directory(
      of("llama", R"("vocab_size": 2147483647, "hidden_size": 2147483646, "num_hidden_layers": 1000,
                     "num_attention_heads": 2, "intermediate_size": 2147483647)"));
  directory.save(weights());
  try {
    nn::load_decoder(directory.path());
    ADD_FAILURE() << "no error";
  } catch (const ein::Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::value || error.kind() == ErrorKind::overflow)
        << error.what();
  }
}

}  // namespace
