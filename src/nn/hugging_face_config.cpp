#include <algorithm>
#include <cmath>

#include <ein/nn/families.hpp>
#include <ein/nn/hugging_face.hpp>
#include "io/file.hpp"
#include "nn/config_reader.hpp"
#include "nn/require.hpp"

namespace ein::nn {
namespace {

using nlohmann::json;

constexpr std::uint64_t longest_config = 1 << 24;
constexpr int deepest = 16;
constexpr std::int64_t most_layers = 1 << 16;  // and experts

Activation activation_of(ConfigReader& reader, const std::string& key, const char* otherwise) {
  const std::string name = reader.text(key, otherwise);
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "relu") return Activation::relu;
  reader.fail(key, "is " + io::in_quotes(name) + ", a function that ein's decoders lack");
}

// --- rotary positions ---

/// `rope_scaling`, or an object of `rope_parameters`, which has the base and the fraction too.
void read_rotary(ConfigReader reader, Rotary& rotary, std::int64_t positions) {
  rotary.base = reader.number("rope_theta", rotary.base, above_one);
  rotary.fraction = reader.number("partial_rotary_factor", rotary.fraction,
                                  {.least = 0, .most = 1, .least_is_open = true});
  const char* const key = reader.has("rope_type") ? "rope_type" : "type";
  const std::string rule = reader.text(key, "default");
  reader.ignore({"rope_type", "type"});
  RotaryScaling& s = rotary.scaling;
  s = {};
  using Rule = RotaryScaling::Rule;
  if (rule == "default") {
    reader.ignore({"factor", "original_max_position_embeddings"});
    return reader.require_all_read();
  }
  s.factor = reader.number("factor", 1, at_least_one);
  if (rule == "linear") {
    s.rule = Rule::linear;
    reader.ignore({"original_max_position_embeddings"});
    return reader.require_all_read();
  }
  s.original_positions =
      static_cast<double>(reader.integer("original_max_position_embeddings", positions));
  if (rule == "llama3") {
    s.rule = Rule::llama3;
    s.low_frequency = reader.number("low_freq_factor", 1, positive);
    s.high_frequency =
        reader.number("high_freq_factor", 4, {.least = s.low_frequency, .least_is_open = true});
  } else if (rule == "yarn") {
    s.rule = Rule::yarn;
    s.beta_fast = reader.number("beta_fast", 32, positive);
    s.beta_slow = reader.number("beta_slow", 1, positive);
    s.truncate = reader.boolean("truncate", true);
    if (reader.has("attention_factor"))
      s.amplitude = reader.number("attention_factor", 1, positive);
    s.mscale = reader.number("mscale", 0, not_negative);
    s.mscale_all = reader.number("mscale_all_dim", 0, not_negative);
  } else {
    reader.fail(key, "is " + io::in_quotes(rule) +
                         ", a rule of rotary positions that ein lacks: it has default, linear, "
                         "llama3 and yarn");
  }
  reader.require_all_read();
}

/// Of the attention of all layers, and of those with a window.
void read_rotaries(ConfigReader& reader, DecoderConfig& config) {
  Rotary& rotary = *config.attention.rotary;
  std::optional<Rotary> local;
  if (config.local_attention) local = config.local_attention->rotary;
  rotary.base = reader.number("rope_theta", rotary.base, above_one);
  rotary.fraction = reader.number("partial_rotary_factor", rotary.fraction,
                                  {.least = 0, .most = 1, .least_is_open = true});
  if (local) local->base = reader.number("rope_local_base_freq", local->base, above_one);
  if (const json* const scaling = reader.object("rope_scaling"))
    read_rotary(reader.within("rope_scaling", *scaling), rotary, config.positions);
  if (const json* const parameters = reader.object("rope_parameters")) {
    ConfigReader inside = reader.within("rope_parameters", *parameters);
    const json* const full =
        inside.has("full_attention") ? inside.object("full_attention") : nullptr;
    if (full) {
      read_rotary(inside.within("full_attention", *full), rotary, config.positions);
      const json* const sliding = inside.object("sliding_attention");
      if (sliding) {
        if (!local) local = Rotary{};
        read_rotary(inside.within("sliding_attention", *sliding), *local, config.positions);
      }
      inside.require_all_read();
    } else {
      read_rotary(inside, rotary, config.positions);
    }
  }
  if (local && !config.local_attention) config.local_attention = config.attention;
  if (local) config.local_attention->rotary = local;
}

// --- windows ---

/// `layer_types`, or where it is absent what `otherwise` says of a layer: whether it has the
/// window.
template <class Otherwise>
void read_windows(ConfigReader& reader, DecoderConfig& config, std::int64_t window,
                  const Otherwise& otherwise) {
  const std::vector<std::string> types = reader.texts("layer_types");
  std::vector<bool> is_local;
  if (reader.has("layer_types")) {
    if (types.size() != static_cast<std::size_t>(config.layers))
      reader.fail("layer_types", "is of " + std::to_string(types.size()) +
                                     " layers, the model has " + std::to_string(config.layers));
    for (const std::string& type : types) {
      if (type != "full_attention" && type != "sliding_attention")
        reader.fail("layer_types", "has " + io::in_quotes(type) + ", which ein's decoders lack");
      is_local.push_back(type == "sliding_attention");
    }
  } else {
    for (std::int64_t i = 0; i < config.layers; ++i) is_local.push_back(otherwise(i));
  }
  const bool any = std::find(is_local.begin(), is_local.end(), true) != is_local.end();
  const bool all = std::find(is_local.begin(), is_local.end(), false) == is_local.end();
  if (any && window == 0) {
    reader.fail("sliding_window", "is absent, and layers have one");
  }
  std::optional<Rotary> rotary = config.attention.rotary;
  if (config.local_attention) rotary = config.local_attention->rotary;
  config.local_attention.reset();
  config.is_local.clear();
  config.attention.window = all ? window : 0;
  if (all) config.attention.rotary = rotary;
  if (!any || all) return;
  config.local_attention = config.attention;
  config.local_attention->window = window;
  config.local_attention->rotary = rotary;
  config.is_local = std::move(is_local);
}

// --- families ---

/// What says nothing of what is computed without dropout and without a loss of one's own.
constexpr std::string_view other_keys[] = {"architectures",
                                           "model_type",
                                           "torch_dtype",
                                           "dtype",
                                           "transformers_version",
                                           "use_cache",
                                           "_name_or_path",
                                           "name_or_path",
                                           "bos_token_id",
                                           "eos_token_id",
                                           "pad_token_id",
                                           "sep_token_id",
                                           "decoder_start_token_id",
                                           "unk_token_id",
                                           "initializer_range",
                                           "attention_dropout",
                                           "embd_pdrop",
                                           "attn_pdrop",
                                           "resid_pdrop",
                                           "embed_dropout",
                                           "resid_dropout",
                                           "hidden_dropout",
                                           "classifier_dropout",
                                           "classifier_pdrop",
                                           "gradient_checkpointing",
                                           "summary_activation",
                                           "summary_first_dropout",
                                           "summary_proj_to_labels",
                                           "summary_type",
                                           "summary_use_proj",
                                           "task_specific_params",
                                           "n_ctx",
                                           "reorder_and_upcast_attn",
                                           "output_attentions",
                                           "output_hidden_states",
                                           "return_dict",
                                           "pretraining_tp",
                                           "id2label",
                                           "label2id",
                                           "problem_type",
                                           "chunk_size_feed_forward",
                                           "is_encoder_decoder",
                                           "is_decoder",
                                           "output_router_logits",
                                           "router_aux_loss_coef",
                                           "router_jitter_noise",
                                           "auto_map",
                                           "attn_implementation",
                                           "_attn_implementation",
                                           "attn_implementation_internal",
                                           "_attn_implementation_autoset",
                                           "cache_implementation",
                                           "max_length",
                                           "min_length",
                                           "temperature",
                                           "top_k",
                                           "top_p",
                                           "do_sample",
                                           "unsloth_fixed",
                                           "unsloth_version",
                                           "is_llama_config",
                                           "transformers.js_config",
                                           "output_past"};

void read_gpt2(ConfigReader& reader, DecoderConfig& config) {
  config.vocabulary = reader.integer("vocab_size", config.vocabulary);
  config.positions = reader.integer("n_positions", config.positions);
  config.width = reader.integer("n_embd", config.width);
  config.layers = reader.integer("n_layer", config.layers, 1, most_layers);
  config.attention.heads = reader.integer("n_head", config.attention.heads);
  config.feed_forward.width = reader.integer("n_inner", 0);
  config.feed_forward.activation = activation_of(reader, "activation_function", "gelu_new");
  config.norm.eps = reader.number("layer_norm_epsilon", config.norm.eps, not_negative);
  if (!reader.boolean("scale_attn_weights", true)) config.attention.scale = 1;
  reader.require_boolean("scale_attn_by_inverse_layer_idx", false);
  reader.require_boolean("add_cross_attention", false);
}

/// [[["global", "local"], 2]]: the kinds in the brackets, so many times.
std::vector<std::string> neo_layers(ConfigReader& reader, std::int64_t layers) {
  std::vector<std::string> kinds = reader.texts("attention_layers");
  const json* const types = reader.array("attention_types");
  if (kinds.empty() && types) {
    for (const json& type : *types) {
      const bool reads = type.is_array() && type.size() == 2 && type[0].is_array() &&
                         !type[0].empty() && type[1].is_number_unsigned() &&
                         type[1].get<std::uint64_t>() <= 1 << 16;
      if (!reads) reader.fail("attention_types", "is no list of kinds and how often they come");
      // More kinds than layers are wrong already.
      const auto times = type[1].get<std::uint64_t>(), most = static_cast<std::uint64_t>(layers);
      for (std::uint64_t i = 0; i < times && kinds.size() <= most; ++i) {
        for (const json& kind : type[0])
          kinds.push_back(kind.is_string() ? kind.get<std::string>() : "");
      }
    }
  }
  if (kinds.empty()) {
    for (std::int64_t i = 0; i < layers; ++i) kinds.emplace_back(i % 2 == 1 ? "local" : "global");
  }
  if (kinds.size() != static_cast<std::size_t>(layers))
    reader.fail("attention_layers", "is of " + std::to_string(kinds.size()) +
                                        " layers, the model has " + std::to_string(layers));
  for (const std::string& kind : kinds) {
    if (kind != "global" && kind != "local")
      reader.fail("attention_layers", "has " + io::in_quotes(kind) + ", which ein's decoders lack");
  }
  return kinds;
}

void read_gpt_neo(ConfigReader& reader, DecoderConfig& config) {
  config.vocabulary = reader.integer("vocab_size", config.vocabulary);
  config.positions = reader.integer("max_position_embeddings", config.positions);
  config.width = reader.integer("hidden_size", config.width);
  config.layers = reader.integer("num_layers", config.layers, 1, most_layers);
  config.attention.heads = reader.integer("num_heads", config.attention.heads);
  config.feed_forward.width = reader.integer("intermediate_size", 0);
  config.feed_forward.activation = activation_of(reader, "activation_function", "gelu_new");
  config.norm.eps = reader.number("layer_norm_epsilon", config.norm.eps, not_negative);
  const std::int64_t window = reader.integer("window_size", 256);
  const std::vector<std::string> kinds = neo_layers(reader, config.layers);
  read_windows(reader, config, window,
               [&](std::int64_t i) { return kinds[static_cast<std::size_t>(i)] == "local"; });
}

/// What the families after Llama have in common.
void read_sizes(ConfigReader& reader, DecoderConfig& config) {
  AttentionConfig& a = config.attention;
  config.vocabulary = reader.integer("vocab_size", config.vocabulary);
  config.positions = reader.integer("max_position_embeddings", config.positions);
  config.width = reader.integer("hidden_size", config.width);
  config.layers = reader.integer("num_hidden_layers", config.layers, 1, most_layers);
  const std::int64_t heads = a.heads;
  a.heads = reader.integer("num_attention_heads", heads);
  // In the families whose class has as many key heads as heads.
  a.key_heads = reader.integer("num_key_value_heads", a.key_heads == 0 ? a.heads : a.key_heads);
  a.head_size = reader.integer("head_dim", a.head_size);
  config.feed_forward.width = reader.integer("intermediate_size", config.feed_forward.width);
  config.norm.eps = reader.number("rms_norm_eps", config.norm.eps, not_negative);
  if (a.query_key_norm) a.query_key_norm->eps = config.norm.eps;
}

void read_biases(ConfigReader& reader, DecoderConfig& config) {
  const bool bias = reader.boolean("attention_bias", config.attention.bias);
  config.attention.bias = config.attention.output_bias = bias;
}

void read_llama(ConfigReader& reader, DecoderConfig& config) {
  read_sizes(reader, config);
  read_biases(reader, config);
  config.feed_forward.bias = reader.boolean("mlp_bias", false);
  config.feed_forward.activation = activation_of(reader, "hidden_act", "silu");
  read_rotaries(reader, config);
}

void read_mistral(ConfigReader& reader, DecoderConfig& config) {
  read_sizes(reader, config);
  config.feed_forward.activation = activation_of(reader, "hidden_act", "silu");
  read_rotaries(reader, config);
}

void read_qwen(ConfigReader& reader, DecoderConfig& config) {
  read_sizes(reader, config);
  config.feed_forward.activation = activation_of(reader, "hidden_act", "silu");
  read_rotaries(reader, config);
  const bool uses = reader.boolean("use_sliding_window", false);
  const std::int64_t first = reader.integer("max_window_layers", 28, 0),
                     window = reader.integer("sliding_window", 4096);
  read_windows(reader, config, uses ? window : 0,
               [&](std::int64_t i) { return uses && i >= first; });
}

void read_experts(ConfigReader& reader, DecoderConfig& config) {
  MixtureConfig& m = *config.mixture;
  const char* const key = reader.has("num_experts") ? "num_experts" : "num_local_experts";
  m.experts = reader.integer(key, m.experts, 1, most_layers);
  reader.ignore({"num_experts", "num_local_experts"});
  m.chosen = reader.integer("num_experts_per_tok", m.chosen);
  if (m.chosen > m.experts)
    reader.fail("num_experts_per_tok", "is " + std::to_string(m.chosen) + ", there are " +
                                           std::to_string(m.experts) + " experts");
  m.expert.activation = config.feed_forward.activation;
}

void read_qwen3_moe(ConfigReader& reader, DecoderConfig& config) {
  read_biases(reader, config);
  read_qwen(reader, config);
  read_experts(reader, config);
  MixtureConfig& m = *config.mixture;
  m.expert.width = reader.integer("moe_intermediate_size", m.expert.width);
  m.normalised = reader.boolean("norm_topk_prob", false);
  const std::int64_t step = reader.integer("decoder_sparse_step", 1);
  config.is_mixture.assign(static_cast<std::size_t>(config.layers), true);
  for (std::int64_t i = 0; i < config.layers; ++i)
    config.is_mixture[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  if (const json* const plain = reader.array("mlp_only_layers")) {
    for (const json& layer : *plain) {
      if (!layer.is_number_unsigned())
        reader.fail("mlp_only_layers", "has something else than layers");
      const auto i = layer.get<std::uint64_t>();
      if (i < config.is_mixture.size()) config.is_mixture[i] = false;
    }
  }
  const std::vector<bool>& is = config.is_mixture;
  if (std::find(is.begin(), is.end(), false) == is.end()) config.is_mixture.clear();
}

void read_mixtral(ConfigReader& reader, DecoderConfig& config) {
  read_mistral(reader, config);
  read_experts(reader, config);
  config.mixture->expert = config.feed_forward;
}

void read_gemma(ConfigReader& reader, DecoderConfig& config) {
  read_sizes(reader, config);
  read_biases(reader, config);
  const char* const key = reader.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  config.feed_forward.activation = activation_of(reader, key, "gelu_pytorch_tanh");
  reader.ignore({"hidden_activation", "hidden_act"});
  config.attention.scale = 1 / std::sqrt(reader.number("query_pre_attn_scalar", 256, positive));
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  reader.require_boolean("use_bidirectional_attention", false);
}

void read_gemma2(ConfigReader& reader, DecoderConfig& config) {
  read_gemma(reader, config);
  config.attention.soft_cap = reader.is_null("attn_logit_softcapping")
                                  ? 0
                                  : reader.number("attn_logit_softcapping", 50, positive);
  config.logit_cap = reader.is_null("final_logit_softcapping")
                         ? 0
                         : reader.number("final_logit_softcapping", 30, positive);
  config.local_attention.reset();
  read_rotaries(reader, config);
  read_windows(reader, config, reader.integer("sliding_window", 4096),
               [](std::int64_t i) { return i % 2 == 0; });
}

void read_gemma3(ConfigReader& reader, DecoderConfig& config) {
  read_gemma(reader, config);
  config.attention.soft_cap = reader.number("attn_logit_softcapping", 0, positive);
  config.logit_cap = reader.number("final_logit_softcapping", 0, positive);
  read_rotaries(reader, config);
  const char* const key =
      reader.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  const std::int64_t every = reader.integer(key, 6);
  reader.ignore({"sliding_window_pattern", "_sliding_window_pattern"});
  read_windows(reader, config, reader.integer("sliding_window", 4096),
               [&](std::int64_t i) { return (i + 1) % every != 0; });
}

void read_phi3(ConfigReader& reader, DecoderConfig& config) {
  read_llama(reader, config);
  reader.ignore({"original_max_position_embeddings"});
  const std::int64_t window = reader.integer("sliding_window", 0);
  read_windows(reader, config, window, [&](std::int64_t) { return window > 0; });
}

void read_gpt_oss(ConfigReader& reader, DecoderConfig& config) {
  read_sizes(reader, config);
  read_biases(reader, config);
  config.feed_forward.activation = activation_of(reader, "hidden_act", "silu");
  config.feed_forward.limit = reader.number("swiglu_limit", config.feed_forward.limit, positive);
  config.local_attention.reset();
  read_rotaries(reader, config);
  read_windows(reader, config, reader.integer("sliding_window", 128),
               [](std::int64_t i) { return i % 2 == 0; });
  read_experts(reader, config);
  config.mixture->expert = config.feed_forward;
  // Said twice; how files hold weights says nothing of sizes.
  reader.ignore({"experts_per_token", "initial_context_length", "quantization_config"});
}

void read_deepseek_v3(ConfigReader& reader, DecoderConfig& config) {
  AttentionConfig& a = config.attention;
  LatentConfig& l = *a.latent;
  config.positions = reader.integer("max_position_embeddings", config.positions);
  l.turned = reader.integer("qk_rope_head_dim", l.turned, 2, 1 << 16);
  a.head_size = l.turned + reader.integer("qk_nope_head_dim", 128, 1, 1 << 16);
  l.value_size = reader.integer("v_head_dim", l.value_size);
  l.rank = reader.integer("kv_lora_rank", l.rank);
  l.query_rank = reader.is_null("q_lora_rank") ? 0 : reader.integer("q_lora_rank", l.query_rank);
  // Of the elements that turn, in files of transformers.
  reader.ignore({"head_dim", "qk_head_dim"});
  const std::int64_t head_size = a.head_size;
  read_sizes(reader, config);
  a.head_size = head_size;
  l.norm.eps = config.norm.eps;
  read_biases(reader, config);
  config.feed_forward.activation = activation_of(reader, "hidden_act", "silu");
  read_rotaries(reader, config);
  const RotaryScaling& s = a.rotary->scaling;
  const double longer =
      s.rule == RotaryScaling::Rule::yarn ? 0.1 * s.mscale_all * std::log(s.factor) + 1 : 1;
  a.scale = longer * longer / std::sqrt(static_cast<double>(head_size));
  if (!reader.boolean("rope_interleave", true)) a.rotary->layout = Rotary::Layout::halves;

  MixtureConfig& m = *config.mixture;
  m.experts = reader.integer("n_routed_experts", m.experts, 1, most_layers);
  m.chosen = reader.integer("num_experts_per_tok", m.chosen, 1, m.experts);
  m.groups = reader.integer("n_group", m.groups, 1, m.experts);
  m.chosen_groups = reader.integer("topk_group", m.chosen_groups, 1, m.groups);
  m.normalised = reader.boolean("norm_topk_prob", true);
  m.scaling = reader.number("routed_scaling_factor", m.scaling, not_negative);
  m.expert.width = reader.integer("moe_intermediate_size", m.expert.width);
  m.expert.activation = config.feed_forward.activation;
  m.shared_width = reader.integer("n_shared_experts", 1, 0, 1 << 16) * m.expert.width;
  if (reader.text("scoring_func", "sigmoid") != "sigmoid")
    reader.fail("scoring_func", "is none of those that ein's decoders have: sigmoid");
  if (reader.text("topk_method", "noaux_tc") != "noaux_tc")
    reader.fail("topk_method", "is none of those that ein's decoders have: noaux_tc");
  const std::int64_t plain = reader.integer("first_k_dense_replace", 3, 0);
  const std::int64_t step = reader.integer("moe_layer_freq", 1);
  config.is_mixture.clear();
  for (std::int64_t i = 0; i < config.layers; ++i)
    config.is_mixture.push_back(i >= plain && i % step == 0);
  // More tokens are predicted in training alone; how files hold weights says nothing of sizes.
  reader.ignore(
      {"num_nextn_predict_layers", "quantization_config", "ep_size", "aux_loss_alpha", "seq_aux"});
}

struct Family {
  const char* model_type;
  WeightNames names;
  DecoderConfig (*form)();
  void (*read)(ConfigReader&, DecoderConfig&);
};

/// A window of all layers: of Mistral one where the key is absent, none where it is null.
void read_mistral_window(ConfigReader& reader, DecoderConfig& config) {
  const std::int64_t window = reader.is_null("sliding_window")
                                  ? 0
                                  : reader.integer("sliding_window", config.attention.window, 0);
  read_windows(reader, config, window, [&](std::int64_t) { return window > 0; });
}

constexpr Family families[] = {
    {"gpt2", WeightNames::gpt2, gpt2_form, read_gpt2},
    {"gpt_neo", WeightNames::gpt_neo, gpt_neo_form, read_gpt_neo},
    {"llama", WeightNames::llama, llama_form,
     [](ConfigReader& reader, DecoderConfig& config) {
       read_llama(reader, config);
       read_windows(reader, config, 0, [](std::int64_t) { return false; });
     }},
    {"mistral", WeightNames::llama, mistral_form,
     [](ConfigReader& reader, DecoderConfig& config) {
       read_mistral(reader, config);
       read_mistral_window(reader, config);
     }},
    {"mixtral", WeightNames::mixtral, mixtral_form,
     [](ConfigReader& reader, DecoderConfig& config) {
       read_mixtral(reader, config);
       read_mistral_window(reader, config);
     }},
    {"qwen2", WeightNames::llama, qwen2_form, read_qwen},
    {"qwen3", WeightNames::llama, qwen3_form,
     [](ConfigReader& reader, DecoderConfig& config) {
       read_biases(reader, config);
       read_qwen(reader, config);
     }},
    {"qwen3_moe", WeightNames::qwen3_moe, qwen3_moe_form, read_qwen3_moe},
    {"gemma2", WeightNames::gemma, gemma2_form, read_gemma2},
    {"gemma3_text", WeightNames::gemma, gemma3_form, read_gemma3},
    {"phi3", WeightNames::phi3, phi3_form, read_phi3},
    {"gpt_oss", WeightNames::none, gpt_oss_form, read_gpt_oss},
    {"deepseek_v3", WeightNames::none, deepseek_v3_form, read_deepseek_v3},
};

DescribedDecoder read_family(ConfigReader& reader, const std::string& type, bool tied) {
  for (const Family& family : families) {
    if (type != family.model_type) continue;
    DescribedDecoder described{family.form(), family.names};
    family.read(reader, described.config);
    described.config.tied = reader.boolean("tie_word_embeddings", tied && described.config.tied);
    reader.ignore(other_keys);
    reader.require_all_read();
    return described;
  }
  std::string known;
  for (const Family& family : families)
    known += std::string(known.empty() ? "" : ", ") + family.model_type;
  reader.fail("model_type", "is " + io::in_quotes(type) + ", ein's decoders are of " + known);
}

}  // namespace

DescribedDecoder parse_decoder_config(std::string_view text, const std::string& path) {
  const io::JsonTree tree(text, deepest, [&](const std::string& what) {
    io::fail("load_decoder", path, "is damaged: " + what);
  });
  if (!tree.root().is_object()) io::fail("load_decoder", path, "is damaged: it is no object");
  ConfigReader reader(tree.root(), path);
  const std::string type = reader.text("model_type", "");
  const json* const inside = type == "gemma3" ? reader.object("text_config") : nullptr;
  if (!inside) return read_family(reader, type, true);
  // What stands around the text part is of pictures.
  ConfigReader within = reader.within("text_config", *inside);
  const bool tied = reader.boolean("tie_word_embeddings", true);
  return read_family(within, within.text("model_type", "gemma3_text"), tied);
}

DescribedDecoder read_decoder_config(const std::string& directory) {
  return read_decoder_config_file(io::join(directory, "config.json"));
}

DescribedDecoder read_decoder_config_file(const std::string& path) {
  const io::InputFile file("load_decoder", path);
  if (file.size() > longest_config) io::fail("load_decoder", path, "is too long");
  return parse_decoder_config(file.read(0, static_cast<std::size_t>(file.size())), path);
}

}  // namespace ein::nn
