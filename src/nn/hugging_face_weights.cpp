#include <filesystem>
#include <set>

#include <ein/autograd.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/nn/hugging_face.hpp>
#include <ein/ops.hpp>
#include <ein/safetensors.hpp>
#include <ein/shapes_only.hpp>
#include "io/file.hpp"
#include "io/safetensors_index.hpp"
#include "machine/printable.hpp"

namespace ein::nn {
namespace {

using namespace ein::literals;

/// What a family calls the parts of a decoder; empty: it has no such part. ".weight" and ".bias"
/// follow.
struct Names {
  std::string_view prefixes[3];  // which one a file has, its table of tokens shows
  std::string_view table, places = "", layer, norm_1, q = "", k = "", v = "", qkv = "", out,
                          q_norm = "", k_norm = "", norm_1_after = "", norm_2, norm_2_after = "",
                          gate = "", up = "", plain = "", gate_up = "", down, last_norm,
                          head = "lm_head";
  std::string_view router = "", experts = "", expert_gate = "", expert_up = "", expert_down = "";
  bool out_in = true;  // which way weights lie
};

constexpr Names gpt2_names{.prefixes = {"transformer.", ""},
                           .table = "wte",
                           .places = "wpe",
                           .layer = "h.",
                           .norm_1 = "ln_1",
                           .qkv = "attn.c_attn",
                           .out = "attn.c_proj",
                           .norm_2 = "ln_2",
                           .up = "mlp.c_fc",
                           .down = "mlp.c_proj",
                           .last_norm = "ln_f",
                           .out_in = false};

constexpr Names gpt_neo_names() {
  Names names = gpt2_names;
  names.qkv = "";
  names.q = "attn.attention.q_proj";
  names.k = "attn.attention.k_proj";
  names.v = "attn.attention.v_proj";
  names.out = "attn.attention.out_proj";
  names.out_in = true;
  return names;
}

constexpr Names llama_names{.prefixes = {"model."},
                            .table = "embed_tokens",
                            .layer = "layers.",
                            .norm_1 = "input_layernorm",
                            .q = "self_attn.q_proj",
                            .k = "self_attn.k_proj",
                            .v = "self_attn.v_proj",
                            .out = "self_attn.o_proj",
                            .q_norm = "self_attn.q_norm",
                            .k_norm = "self_attn.k_norm",
                            .norm_2 = "post_attention_layernorm",
                            .gate = "mlp.gate_proj",
                            .up = "mlp.up_proj",
                            .down = "mlp.down_proj",
                            .last_norm = "norm"};

constexpr Names phi3_names() {
  Names names = llama_names;
  names.q = names.k = names.v = names.gate = names.up = "";
  names.qkv = "self_attn.qkv_proj";
  names.gate_up = "mlp.gate_up_proj";
  return names;
}

constexpr Names gemma_names() {
  Names names = llama_names;
  names.prefixes[1] = "language_model.model.";
  names.prefixes[2] = "model.language_model.";
  names.norm_1_after = "post_attention_layernorm";
  names.norm_2 = "pre_feedforward_layernorm";
  names.norm_2_after = "post_feedforward_layernorm";
  return names;
}

constexpr Names qwen3_moe_names() {
  Names names = llama_names;
  names.router = "mlp.gate";
  names.experts = "mlp.experts.";
  names.expert_gate = "gate_proj";
  names.expert_up = "up_proj";
  names.expert_down = "down_proj";
  return names;
}

constexpr Names mixtral_names() {
  Names names = llama_names;
  names.router = "block_sparse_moe.gate";
  names.experts = "block_sparse_moe.experts.";
  names.expert_gate = "w1";
  names.expert_up = "w3";
  names.expert_down = "w2";
  return names;
}

constexpr Names cs336_names{.prefixes = {""},
                            .table = "token_embeddings",
                            .layer = "layers.",
                            .norm_1 = "ln1",
                            .q = "attn.q_proj",
                            .k = "attn.k_proj",
                            .v = "attn.v_proj",
                            .out = "attn.output_proj",
                            .norm_2 = "ln2",
                            .gate = "ffn.w1",
                            .up = "ffn.w3",
                            .plain = "ffn.w1",
                            .down = "ffn.w2",
                            .last_norm = "ln_final"};

Names names_of(WeightNames names) {
  switch (names) {
    case WeightNames::gpt2:
      return gpt2_names;
    case WeightNames::gpt_neo:
      return gpt_neo_names();
    case WeightNames::llama:
      return llama_names;
    case WeightNames::phi3:
      return phi3_names();
    case WeightNames::gemma:
      return gemma_names();
    case WeightNames::qwen3_moe:
      return qwen3_moe_names();
    case WeightNames::mixtral:
      return mixtral_names();
    case WeightNames::cs336:
      return cs336_names;
    case WeightNames::none:
      throw Error(ErrorKind::value, "load_weights: this family has no names of weights");
  }
  throw std::logic_error("names_of: names that it does not know");
}

/// Pairs the tensors of a file with the parameters, or parts of them, that they are.
class Loader {
 public:
  Loader(const Decoder& decoder, const StateDict& tensors, const Names& names)
      : config_(decoder.config()), tensors_(tensors), names_(names), mine_(decoder.state_dict()) {
    for (const std::string_view prefix : names_.prefixes) {
      if (tensors_.contains(std::string(prefix) + std::string(names_.table) + ".weight")) {
        prefix_ = prefix;
        break;
      }
    }
    if (!tensors_.contains(prefix_ + std::string(names_.table) + ".weight"))
      prefix_ = names_.prefixes[0];
  }

  /// Throws the Error where they do not fit.
  void check(const std::string& what) {
    outside_layers();
    for (std::int64_t i = 0; i < config_.layers && missing_count_ < most_listed; ++i) {
      at_ = prefix_ + std::string(names_.layer) + std::to_string(i) + ".";
      mine_at_ = "transformer.h." + std::to_string(i) + ".";
      attention(config_.attention_of(i));
      if (config_.has_mixture(i))
        mixture();
      else
        feed_forward();
    }
    pass_over_the_rest();
    require_all_fit(what);
  }
  /// Of a head that is the table of tokens, and stands in the file too.
  void require_tied(const std::string& what) const {
    if (tied_head_.empty()) return;
    const Tensor &head = tensors_.at(tied_head_),
                 &table = tensors_.at(prefix_ + std::string(names_.table) + ".weight");
    if (head.shape() == table.shape() && head.dtype() == table.dtype() &&
        reduce(equal(head, table), "... ->", "all").item<bool>())
      return;
    throw Error(ErrorKind::value, what + ": " + tied_head_ +
                                      " is not the table of tokens, which the decoder's head is");
  }
  void copy() const {
    const NoGrad no_grad;
    for (const auto& [to, from] : pairs_) to.copy_from(from);
  }

 private:
  /// A parameter by its name here; none where the decoder has no such part.
  const Tensor* mine(const std::string& name) const {
    const auto found = mine_.find(name);
    return found == mine_.end() ? nullptr : &found->second;
  }
  /// The tensor of this name is what `to` is to hold.
  void pair(const std::string& name, const Tensor& to) {
    used_.insert(name);
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      miss(name);
    else if (!(found->second.shape() == to.shape()))
      list(misshapen_,
           name + " " + found->second.shape().to_string() + " for " + to.shape().to_string());
    else
      pairs_.emplace_back(to, found->second);
  }
  void miss(const std::string& name) {
    if (++missing_count_ <= most_listed) list(missing_, name);
  }
  static void list(std::string& names, const std::string& name) {
    names += (names.empty() ? "" : ", ") + name;
  }

  /// A weight (in, out) of ours, as the file has it.
  Tensor turned(const Tensor& weight) const {
    return names_.out_in ? rearrange(weight, "i o -> o i") : weight;
  }
  void vector(std::string_view name, const std::string& of_mine) {
    if (name.empty()) return;
    for (const char* part : {".weight", ".bias"}) {
      if (const Tensor* const to = mine(mine_at_ + of_mine + part))
        pair(at_ + std::string(name) + part, *to);
    }
  }
  /// Columns of a linear layer of ours, with their part of the bias.
  void linear(std::string_view name, const std::string& of_mine, std::int64_t from,
              std::int64_t count) {
    const Tensor* const weight = mine(mine_at_ + of_mine + ".weight");
    const Slice columns = slice(from, from + count);
    pair(at_ + std::string(name) + ".weight", turned(weight->at({every, columns})));
    if (const Tensor* const bias = mine(mine_at_ + of_mine + ".bias"))
      pair(at_ + std::string(name) + ".bias", bias->at({columns}));
  }
  void linear(std::string_view name, const std::string& of_mine) {
    linear(name, of_mine, 0, std::int64_t{mine(mine_at_ + of_mine + ".weight")->shape()[1]});
  }

  void outside_layers() {
    const Tensor& table = *mine("transformer.wte.weight");
    pair(prefix_ + std::string(names_.table) + ".weight", table);
    if (const Tensor* const places = mine("transformer.wpe.weight"))
      pair(prefix_ + std::string(names_.places) + ".weight", *places);
    for (const char* part : {".weight", ".bias"}) {
      if (const Tensor* const norm = mine(std::string("transformer.ln_f") + part))
        pair(prefix_ + std::string(names_.last_norm) + part, *norm);
    }
    // Around the model, whose name ends before the last dot but one.
    const std::string around = prefix_.ends_with("language_model.model.") ? "language_model." : "";
    const std::string head = around + std::string(names_.head) + ".weight";
    if (const Tensor* const weight = mine("lm_head.weight")) {
      pair(head, rearrange(*weight, "i o -> o i"));
    } else if (tensors_.contains(head)) {
      used_.insert(head);
      tied_head_ = head;
    }
  }

  void attention(const AttentionConfig& c) {
    vector(names_.norm_1, "ln_1");
    vector(names_.norm_2, "ln_2");
    vector(names_.norm_1_after, "ln_1_after");
    vector(names_.norm_2_after, "ln_2_after");
    vector(names_.q_norm, "attn.q_norm");
    vector(names_.k_norm, "attn.k_norm");
    linear(names_.out, "attn.c_proj");
    if (!names_.qkv.empty()) return linear(names_.qkv, "attn.c_attn");
    const std::int64_t head = c.head_size > 0 ? c.head_size : config_.width / c.heads,
                       queries = c.heads * head,
                       keys = (c.key_heads > 0 ? c.key_heads : c.heads) * head;
    linear(names_.q, "attn.c_attn", 0, queries);
    linear(names_.k, "attn.c_attn", queries, keys);
    linear(names_.v, "attn.c_attn", queries + keys, keys);
  }

  void feed_forward() {
    linear(names_.down, "mlp.c_proj");
    if (!names_.gate_up.empty()) return gate_and_up();
    const bool is_gated = mine(mine_at_ + "mlp.c_gate.weight");
    linear(is_gated || names_.plain.empty() ? names_.up : names_.plain, "mlp.c_fc");
    if (is_gated) linear(names_.gate, "mlp.c_gate");
  }
  /// Rows of the gate, then those of what it multiplies.
  void gate_and_up() {
    const std::string name = at_ + std::string(names_.gate_up) + ".weight";
    used_.insert(name);
    const auto found = tensors_.find(name);
    const Tensor gate = turned(*mine(mine_at_ + "mlp.c_gate.weight")),
                 up = turned(*mine(mine_at_ + "mlp.c_fc.weight"));
    const Size rows = gate.shape()[0];
    const Shape both{rows * 2, gate.shape()[1]};
    if (found == tensors_.end()) return miss(name);
    if (!(found->second.shape() == both))
      return list(misshapen_,
                  name + " " + found->second.shape().to_string() + " for " + both.to_string());
    pairs_.emplace_back(gate, found->second.at({slice(0, rows)}));
    pairs_.emplace_back(up, found->second.at({slice(rows, rows * 2)}));
  }

  void mixture() {
    const Tensor* const router = mine(mine_at_ + "mlp.router.weight");
    pair(at_ + std::string(names_.router) + ".weight", turned(*router));
    for (std::int64_t e = 0; e < config_.mixture->experts && missing_count_ < most_listed; ++e) {
      const std::string expert = at_ + std::string(names_.experts) + std::to_string(e) + ".";
      const auto part = [&](std::string_view name, const char* of_mine) {
        pair(expert + std::string(name) + ".weight",
             turned((*mine(mine_at_ + "mlp." + of_mine))[e]));
      };
      part(names_.expert_gate, "c_gate");
      part(names_.expert_up, "c_fc");
      part(names_.expert_down, "c_proj");
    }
  }

  /// Buffers that are no weights, and everything else that nobody asked for.
  void pass_over_the_rest() {
    for (const auto& [name, tensor] : tensors_) {
      if (missing_count_ >= most_listed) return;
      if (used_.contains(name) || is_buffer(name, tensor.shape())) continue;
      list(unexpected_, printable_line(name));
    }
  }
  static bool is_buffer(const std::string& name, const Shape& shape) {
    if (name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".masked_bias")) return true;
    const bool is_mask =
        shape.rank() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] == shape[3];
    const std::size_t from = name.starts_with("transformer.") ? 12 : 0;
    return is_mask && name.compare(from, 2, "h.") == 0 &&
           (name.ends_with(".attn.bias") || name.ends_with(".attn.attention.bias"));
  }

  void require_all_fit(const std::string& what) const {
    std::string text;
    if (!missing_.empty()) text += "\n  missing: " + missing_;
    if (!unexpected_.empty()) text += "\n  unexpected: " + unexpected_;
    if (!misshapen_.empty()) text += "\n  of another shape: " + misshapen_;
    if (text.empty()) return;
    throw Error(ErrorKind::value, what + ": the tensors are not the decoder's" + text);
  }

  const DecoderConfig& config_;
  const StateDict& tensors_;
  const Names names_;
  const StateDict mine_;
  std::string prefix_, at_, mine_at_;  // of the model, and of the layer at hand
  std::set<std::string, std::less<>> used_;
  std::vector<std::pair<Tensor, Tensor>> pairs_;  // to, from
  std::string tied_head_;
  std::string missing_, unexpected_, misshapen_;
  std::int64_t missing_count_ = 0;
  // A config of strangers may tell of any number of layers.
  static constexpr std::int64_t most_listed = 100;
};

/// The tensors of a directory; those of dtypes that ein lacks are an Error.
StateDict tensors_of(const std::string& directory, SafetensorsOptions options) {
  const std::string index = io::join(directory, io::index_name);
  std::error_code ignored;
  const std::string path =
      std::filesystem::exists(index, ignored) ? index : io::join(directory, "model.safetensors");
  Safetensors file = load_safetensors(path, options);
  for (const auto& [name, tensor] : file.foreign) {
    io::fail("load_decoder", path,
             "has " + io::in_quotes(name) + " in the dtype " + tensor.dtype + ", which ein lacks");
  }
  return std::move(file.tensors);
}

}  // namespace

void load_weights(const Decoder& decoder, const StateDict& tensors, WeightNames names,
                  const std::string& what) {
  Loader loader(decoder, tensors, names_of(names));
  loader.check(what);
  loader.require_tied(what);
  loader.copy();
}

std::unique_ptr<Decoder> load_decoder(const std::string& directory, SafetensorsOptions options) {
  const DescribedDecoder described = read_decoder_config(directory);
  if (described.names == WeightNames::none)
    io::fail("load_decoder", io::join(directory, "config.json"),
             "is of a family whose weights ein does not read: it is there for its sizes and cost");
  const StateDict tensors = tensors_of(directory, options);
  const std::string what = "load_decoder: \"" + printable_line(directory) + "\"";
  {
    // Before memory is asked for.
    const ShapesOnly shapes;
    const Decoder sketch(described.config);
    Loader(sketch, tensors, names_of(described.names)).check(what);
  }
  auto decoder = std::make_unique<Decoder>(described.config);
  load_weights(*decoder, tensors, described.names, what);
  decoder->eval();
  return decoder;
}

}  // namespace ein::nn
