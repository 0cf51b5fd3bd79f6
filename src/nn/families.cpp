#include <ein/nn/families.hpp>

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ein/nn/hugging_face.hpp>

namespace ein::nn {
namespace {

/// Vocabulary, positions, width, layers, heads, key heads, features inside.
struct Sizes {
  std::int64_t vocabulary, positions, width, layers, heads, key_heads, inner;
};

DecoderConfig with(DecoderConfig config, const Sizes& sizes) {
  config.vocabulary = sizes.vocabulary;
  config.positions = sizes.positions;
  config.width = sizes.width;
  config.layers = sizes.layers;
  config.attention.heads = sizes.heads;
  config.attention.key_heads = sizes.key_heads;
  config.feed_forward.width = sizes.inner;
  return config;
}

constexpr RotaryScaling llama3_scaling{.rule = RotaryScaling::Rule::llama3, .factor = 8};

DecoderConfig llama3(const Sizes& sizes) {
  DecoderConfig config = with(llama_form(), sizes);
  config.norm.eps = 1e-5;
  config.attention.rotary = Rotary{.base = 500000, .scaling = llama3_scaling};
  return config;
}

DecoderConfig qwen(DecoderConfig form, const Sizes& sizes, bool tied) {
  DecoderConfig config = with(std::move(form), sizes);
  config.attention.rotary->base = 1e6;
  config.tied = tied;
  return config;
}

/// Gemma: what its versions have in common.
DecoderConfig gemma(const Sizes& sizes) {
  DecoderConfig config = with(llama_form(), sizes);
  config.norm.adds_one = true;
  config.norm_place = DecoderConfig::NormPlace::both;
  config.attention.head_size = 256;
  config.attention.scale = 1 / std::sqrt(256.0);
  config.feed_forward.activation = Activation::gelu_tanh;
  config.tied = true;
  config.embedding_scale = std::sqrt(static_cast<double>(sizes.width));
  return config;
}

DecoderConfig gemma3(const Sizes& sizes, std::int64_t window, const RotaryScaling& scaling) {
  DecoderConfig config = gemma3_form();
  config = with(config, sizes);
  config.embedding_scale = std::sqrt(static_cast<double>(sizes.width));
  config.attention.rotary->scaling = scaling;
  add_windows(config, window, 6, Rotary{});
  return config;
}

}  // namespace

void add_windows(DecoderConfig& config, std::int64_t window, std::int64_t every,
                 const std::optional<Rotary>& rotary) {
  config.local_attention = config.attention;
  config.local_attention->window = window;
  if (rotary) config.local_attention->rotary = rotary;
  config.is_local.clear();
  for (std::int64_t i = 0; i < config.layers; ++i) config.is_local.push_back((i + 1) % every != 0);
}

// --- forms ---

DecoderConfig gpt2_form() {
  DecoderConfig config;
  config.feed_forward.activation = Activation::gelu_tanh;
  return config;
}

DecoderConfig gpt_neo_form() {
  DecoderConfig config = with(gpt2_form(), {50257, 2048, 2048, 24, 16, 0, 0});
  config.attention.bias = false;
  config.attention.scale = 1;
  return config;
}

DecoderConfig llama_form() {
  return {.vocabulary = 32000,
          .positions = 2048,
          .width = 4096,
          .layers = 32,
          .norm = {.kind = NormConfig::Kind::rms, .eps = 1e-6},
          .position = DecoderConfig::Positions::in_attention,
          .attention = {.heads = 32, .bias = false, .output_bias = false, .rotary = Rotary{}},
          .feed_forward = {.activation = Activation::silu,
                           .gated = true,
                           .width = 11008,
                           .bias = false},
          .tied = false};
}

DecoderConfig mistral_form() {
  DecoderConfig config = with(llama_form(), {32000, 131072, 4096, 32, 32, 8, 14336});
  config.attention.window = 4096;
  return config;
}

DecoderConfig mixtral_form() {
  DecoderConfig config = mistral_form();
  config.norm.eps = 1e-5;
  config.attention.window = 0;
  config.attention.rotary->base = 1e6;
  config.mixture = MixtureConfig{.expert = config.feed_forward};
  return config;
}

DecoderConfig qwen2_form() {
  DecoderConfig config = with(llama_form(), {151936, 32768, 4096, 32, 32, 32, 22016});
  config.attention.bias = true;
  return config;
}

DecoderConfig qwen3_form() {
  DecoderConfig config = qwen2_form();
  config.attention.bias = false;
  config.attention.head_size = 128;
  config.attention.query_key_norm = config.norm;
  return config;
}

DecoderConfig qwen3_moe_form() {
  DecoderConfig config = with(qwen3_form(), {151936, 32768, 2048, 24, 32, 4, 6144});
  config.attention.head_size = 0;  // its class has none of its own
  config.mixture = MixtureConfig{.experts = 128,
                                 .chosen = 8,
                                 .expert = config.feed_forward,
                                 .softmax_over_chosen = false,
                                 .normalised = false};
  config.mixture->expert.width = 768;
  return config;
}

DecoderConfig gemma2_form() {
  DecoderConfig config = gemma({256000, 8192, 2304, 26, 8, 4, 9216});
  config.attention.soft_cap = 50;
  config.logit_cap = 30;
  add_windows(config, 4096, 2);
  return config;
}

DecoderConfig gemma3_form() {
  DecoderConfig config = gemma({262208, 131072, 2304, 26, 8, 4, 9216});
  config.attention.query_key_norm = config.norm;
  config.attention.rotary->base = 1e6;
  add_windows(config, 4096, 6, Rotary{});
  return config;
}

DecoderConfig phi3_form() {
  DecoderConfig config = with(llama_form(), {32064, 4096, 3072, 32, 32, 0, 8192});
  config.norm.eps = 1e-5;
  return config;
}

DecoderConfig deepseek_v3_form() {
  DecoderConfig config = with(llama_form(), {129280, 4096, 7168, 61, 128, 128, 18432});
  AttentionConfig& a = config.attention;
  a.head_size = 192;
  a.latent = LatentConfig{.query_rank = 1536, .norm = config.norm};
  a.rotary->layout = Rotary::Layout::neighbours;
  config.mixture = MixtureConfig{.experts = 256,
                                 .chosen = 8,
                                 .expert = config.feed_forward,
                                 .softmax_over_chosen = false,
                                 .shared_width = 2048,
                                 .sigmoid = true,
                                 .groups = 8,
                                 .chosen_groups = 4,
                                 .scaling = 2.5};
  config.mixture->expert.width = 2048;
  config.is_mixture.assign(61, true);
  for (const std::size_t layer : {0, 1, 2}) config.is_mixture[layer] = false;
  return config;
}

DecoderConfig gpt_oss_form() {
  DecoderConfig config = with(llama_form(), {201088, 131072, 2880, 36, 64, 8, 2880});
  config.norm.eps = 1e-5;
  AttentionConfig& a = config.attention;
  a.head_size = 64;
  a.bias = a.output_bias = a.sinks = true;
  a.rotary = Rotary{.base = 150000,
                    .scaling = {.rule = RotaryScaling::Rule::yarn,
                                .factor = 32,
                                .original_positions = 4096,
                                .truncate = false}};
  config.feed_forward.bias = true;
  config.feed_forward.limit = 7;
  config.mixture = MixtureConfig{
      .experts = 128, .chosen = 4, .expert = config.feed_forward, .router_bias = true};
  add_windows(config, 128, 2);
  return config;
}

// --- published ---

DecoderConfig gpt2() { return gpt2_form(); }
DecoderConfig gpt2_xl() { return with(gpt2_form(), {50257, 1024, 1600, 48, 25, 0, 0}); }
DecoderConfig tinystories_33m() {
  DecoderConfig config = with(gpt_neo_form(), {50257, 2048, 768, 4, 16, 0, 0});
  add_windows(config, 256, 2);
  for (std::size_t i = 0; i < config.is_local.size(); ++i) config.is_local[i] = i % 2 == 1;
  return config;
}

DecoderConfig llama2_7b() {
  DecoderConfig config = with(llama_form(), {32000, 4096, 4096, 32, 32, 0, 11008});
  config.norm.eps = 1e-5;
  return config;
}
DecoderConfig llama3_8b() { return llama3({128256, 131072, 4096, 32, 32, 8, 14336}); }
DecoderConfig llama3_70b() { return llama3({128256, 131072, 8192, 80, 64, 8, 28672}); }
DecoderConfig llama3_405b() { return llama3({128256, 131072, 16384, 126, 128, 8, 53248}); }
DecoderConfig smollm2_135m() {
  DecoderConfig config = with(llama_form(), {49152, 8192, 576, 30, 9, 3, 1536});
  config.norm.eps = 1e-5;
  config.attention.rotary->base = 1e5;
  config.tied = true;
  return config;
}

DecoderConfig mistral_7b() {
  DecoderConfig config = with(mistral_form(), {32000, 32768, 4096, 32, 32, 8, 14336});
  config.norm.eps = 1e-5;
  return config;
}
DecoderConfig mixtral_8x7b() {
  return with(mixtral_form(), {32000, 32768, 4096, 32, 32, 8, 14336});
}

DecoderConfig qwen2_0_5b() {
  return qwen(qwen2_form(), {151936, 32768, 896, 24, 14, 2, 4864}, true);
}
DecoderConfig qwen2_7b() {
  return qwen(qwen2_form(), {152064, 131072, 3584, 28, 28, 4, 18944}, false);
}
DecoderConfig qwen3_0_6b() {
  return qwen(qwen3_form(), {151936, 40960, 1024, 28, 16, 8, 3072}, true);
}
DecoderConfig qwen3_8b() {
  return qwen(qwen3_form(), {151936, 40960, 4096, 36, 32, 8, 12288}, false);
}
DecoderConfig qwen3_30b_a3b() {
  DecoderConfig config = qwen(qwen3_moe_form(), {151936, 40960, 2048, 48, 32, 4, 6144}, false);
  config.attention.head_size = 128;
  config.mixture->normalised = true;
  return config;
}

DecoderConfig gemma2_9b() {
  DecoderConfig config = gemma2_form();
  config = with(config, {256000, 8192, 3584, 42, 16, 8, 14336});
  config.embedding_scale = std::sqrt(3584.0);
  add_windows(config, 4096, 2);
  return config;
}
DecoderConfig gemma3_1b() { return gemma3({262144, 32768, 1152, 26, 4, 1, 6912}, 512, {}); }
DecoderConfig gemma3_27b() {
  DecoderConfig config = gemma3({262208, 131072, 5376, 62, 32, 16, 21504}, 1024,
                                {.rule = RotaryScaling::Rule::linear, .factor = 8});
  for (AttentionConfig* attention : {&config.attention, &*config.local_attention}) {
    attention->head_size = 128;
    attention->scale = 1 / std::sqrt(168.0);
  }
  return config;
}

DecoderConfig phi3_mini() {
  DecoderConfig config = phi3_form();
  config.attention.window = 2047;
  return config;
}

DecoderConfig deepseek_v3() {
  DecoderConfig config = deepseek_v3_form();
  config.positions = 163840;
  config.attention.rotary->scaling = {.rule = RotaryScaling::Rule::yarn,
                                      .factor = 40,
                                      .original_positions = 4096,
                                      .mscale = 1,
                                      .mscale_all = 1};
  // 1/√192 by the square of YaRN's factor of the amplitude.
  const double longer = 0.1 * std::log(40.0) + 1;
  config.attention.scale = longer * longer / std::sqrt(192.0);
  return config;
}

DecoderConfig gpt_oss_20b() {
  DecoderConfig config = gpt_oss_form();
  config.layers = 24;
  config.mixture->experts = 32;
  add_windows(config, 128, 2);
  return config;
}

DecoderConfig cs336(const CS336Sizes& sizes) {
  return {.vocabulary = sizes.vocabulary,
          .positions = sizes.context,
          .width = sizes.width,
          .layers = sizes.layers,
          .norm = {.kind = NormConfig::Kind::rms},
          .position = DecoderConfig::Positions::in_attention,
          .attention = {.heads = sizes.heads,
                        .bias = false,
                        .output_bias = false,
                        .rotary = Rotary{.layout = Rotary::Layout::neighbours}},
          .feed_forward = {.activation = Activation::silu,
                           .gated = true,
                           .width = sizes.inner,
                           .ratio = 8.0 / 3,
                           .multiple = 64,
                           .bias = false},
          .tied = false,
          .initial = DecoderConfig::Initial::glorot};
}
DecoderConfig without_norms(DecoderConfig config) {
  config.norm.kind = NormConfig::Kind::none;
  return config;
}
DecoderConfig with_norms_after(DecoderConfig config) {
  config.norm_place = DecoderConfig::NormPlace::after;
  return config;
}
DecoderConfig without_positions(DecoderConfig config) {
  config.position = DecoderConfig::Positions::none;
  config.attention.rotary.reset();
  if (config.local_attention) config.local_attention->rotary.reset();
  return config;
}
DecoderConfig without_gate(DecoderConfig config) {
  config.feed_forward = {.activation = Activation::silu, .bias = config.feed_forward.bias};
  return config;
}

namespace {

constexpr std::pair<const char*, DecoderConfig (*)()> published[] = {
    {"gpt2", gpt2},
    {"gpt2-xl", gpt2_xl},
    {"tinystories-33m", tinystories_33m},
    {"llama-2-7b", llama2_7b},
    {"llama-3.1-8b", llama3_8b},
    {"llama-3.1-70b", llama3_70b},
    {"llama-3.1-405b", llama3_405b},
    {"smollm2-135m", smollm2_135m},
    {"mistral-7b-v0.1", mistral_7b},
    {"mixtral-8x7b", mixtral_8x7b},
    {"qwen2.5-0.5b", qwen2_0_5b},
    {"qwen2.5-7b", qwen2_7b},
    {"qwen3-0.6b", qwen3_0_6b},
    {"qwen3-8b", qwen3_8b},
    {"qwen3-30b-a3b", qwen3_30b_a3b},
    {"gemma-2-9b", gemma2_9b},
    {"gemma-3-1b-it", gemma3_1b},
    {"gemma-3-27b-it", gemma3_27b},
    {"phi-3-mini-4k", phi3_mini},
    {"deepseek-v3", deepseek_v3},
    {"gpt-oss-20b", gpt_oss_20b},
};

}  // namespace

DecoderConfig decoder_config(const std::string& model) {
  for (const auto& [name, config] : published) {
    if (model == name) return config();
  }
  std::error_code failed;
  if (std::filesystem::is_directory(model, failed)) return read_decoder_config(model).config;
  return read_decoder_config_file(model).config;
}

}  // namespace ein::nn
