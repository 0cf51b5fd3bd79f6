#include <ein/nn/decoder.hpp>

#include <cmath>
#include <string>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/nn/init.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"

namespace ein::nn {

const AttentionConfig& DecoderConfig::attention_of(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return local_attention && i < is_local.size() && is_local[i] ? *local_attention : attention;
}
bool DecoderConfig::has_mixture(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return mixture && (is_mixture.empty() || (i < is_mixture.size() && is_mixture[i]));
}

DecoderConfig decoder_config(const TransformerConfig& config) {
  return {.vocabulary = config.vocab_size,
          .positions = config.block_size,
          .width = config.n_embd,
          .layers = config.n_layer,
          .norm = {.bias = config.bias},
          .attention = {.heads = config.n_head,
                        .bias = config.bias,
                        .output_bias = config.bias,
                        .dropout = config.dropout},
          .feed_forward = {.bias = config.bias},
          .dropout = config.dropout};
}

namespace {

DecoderConfig of_block(std::int64_t dim, std::int64_t heads, bool with_bias, double dropout) {
  return decoder_config({.n_head = heads, .n_embd = dim, .dropout = dropout, .bias = with_bias});
}

const DecoderConfig& checked(const DecoderConfig& config) {
  require_size("Decoder", "layers", config.layers);
  require_in(not_negative, "Decoder", "logit_cap", config.logit_cap);
  require_in(not_negative, "Decoder", "initial_std", config.initial_std);
  const auto layers = static_cast<std::size_t>(config.layers);
  const auto require_layers = [&](const char* what, const std::vector<bool>& list) {
    if (list.empty() || list.size() == layers) return;
    throw Error(ErrorKind::value, std::string("Decoder: ") + what + " is of " +
                                      std::to_string(list.size()) + " layers, the decoder has " +
                                      std::to_string(layers));
  };
  require_layers("is_local", config.is_local);
  require_layers("is_mixture", config.is_mixture);
  return config;
}

}  // namespace

Block::Block(std::int64_t dim, std::int64_t heads, bool with_bias, double dropout)
    : Block(of_block(dim, heads, with_bias, dropout), 0) {}

Block::Block(const DecoderConfig& config, std::int64_t layer)
    : ln_1(make_norm(config.width, config.norm)),
      attn(config.width, config.attention_of(layer)),
      ln_2(make_norm(config.width, config.norm)),
      place_(config.norm_place) {
  if (ln_1) add_module("ln_1", *ln_1);
  add_module("attn", attn);
  if (ln_2) add_module("ln_2", *ln_2);
  if (config.has_mixture(layer)) {
    mixture = std::make_unique<Mixture>(config.width, *config.mixture, config.dropout);
    add_module("mlp", *mixture);
  } else {
    mlp = std::make_unique<MLP>(config.width, config.feed_forward, config.dropout);
    add_module("mlp", *mlp);
  }
  if (place_ != DecoderConfig::NormPlace::both) return;
  ln_1_after = make_norm(config.width, config.norm);
  ln_2_after = make_norm(config.width, config.norm);
  if (ln_1_after) add_module("ln_1_after", *ln_1_after);
  if (ln_2_after) add_module("ln_2_after", *ln_2_after);
}

Tensor Block::forward(const Tensor& x) const { return forward(x, AttentionPlace{}); }

Tensor Block::forward(const Tensor& x, KVCache& cache) const {
  const NoGrad no_grad;
  return forward(x, AttentionPlace{.cache = &cache});
}

Tensor Block::forward(const Tensor& x, const KVCache& cache, const Tensor& position) const {
  const NoGrad no_grad;
  KVCache same = cache;
  return forward(x, AttentionPlace{.cache = &same, .position = &position});
}

Tensor Block::forward(const Tensor& x, const AttentionPlace& place, Tensor* balance) const {
  const auto normed = [](const std::unique_ptr<SameAxes>& norm, const Tensor& y) {
    return norm ? norm->forward(y) : y;
  };
  const auto added = [&](const Tensor& y, const auto& part, const std::unique_ptr<SameAxes>& norm,
                         const std::unique_ptr<SameAxes>& after) {
    if (place_ == DecoderConfig::NormPlace::after) return normed(norm, y + part(y));
    return y + normed(after, part(normed(norm, y)));
  };
  const Tensor y = added(
      x, [&](const Tensor& z) { return attn.forward(z, place); }, ln_1, ln_1_after);
  return added(
      y, [&](const Tensor& z) { return mlp ? mlp->forward(z) : mixture->forward(z, balance); },
      ln_2, ln_2_after);
}

Decoder::Trunk::Trunk(const DecoderConfig& config)
    : wte(config.vocabulary, config.width), drop(config.dropout) {
  add_module("wte", wte);
  if (config.position == DecoderConfig::Positions::learned) {
    wpe = std::make_unique<Embedding>(config.positions, config.width);
    add_module("wpe", *wpe);
  }
  add_module("drop", drop);
  add_module("h", h);
  for (std::int64_t i = 0; i < config.layers; ++i) h.emplace_back(config, i);
  ln_f = make_norm(config.width, config.norm);
  if (ln_f) add_module("ln_f", *ln_f);
}

Decoder::Decoder(const DecoderConfig& config) : config_(checked(config)), transformer_(config) {
  add_module("transformer", transformer_);
  if (!config.tied) {
    lm_head_ = std::make_unique<Linear>(config.width, config.vocabulary, false);
    add_module("lm_head", *lm_head_);
  }
  begin();
}

namespace {

/// Normal of variance 2 / (in + out), cut at three standard deviations; of several weights side by
/// side, whose numbers of outputs are `parts`, each by itself.
void begin_glorot(const Tensor& weight, const std::vector<std::int64_t>& parts) {
  const auto in = static_cast<double>(weight.shape()[weight.rank() - 2]);
  std::int64_t at = 0;
  for (const std::int64_t out : parts) {
    const double std = std::sqrt(2 / (in + static_cast<double>(out)));
    const Tensor part = parts.size() == 1 ? weight : weight.at({every, slice(at, at + out)});
    init::trunc_normal(part, std, -3 * std, 3 * std);
    at += out;
  }
}

}  // namespace

void Decoder::begin() const {
  const bool is_normal = config_.initial == DecoderConfig::Initial::normal;
  const auto table = [&](const Tensor& weight) {
    if (is_normal)
      init::normal(weight, 0, config_.initial_std);
    else
      init::trunc_normal(weight, 1, -3, 3);
  };
  const double projected =
      config_.initial_std / std::sqrt(2.0 * static_cast<double>(config_.layers));
  const auto matrix = [&](const Tensor& weight, double std, std::vector<std::int64_t> parts = {}) {
    if (parts.empty()) parts.push_back(std::int64_t{weight.shape()[weight.rank() - 1]});
    if (is_normal)
      init::normal(weight, 0, std);
    else
      begin_glorot(weight, parts);
  };
  table(transformer_.wte.weight);
  if (transformer_.wpe) table(transformer_.wpe->weight);
  const auto feed_forward = [&](const MLP& mlp) {
    matrix(mlp.c_fc.weight, config_.initial_std);
    if (mlp.c_gate) matrix(mlp.c_gate->weight, config_.initial_std);
    matrix(mlp.c_proj.weight, projected);
  };
  for (const Block& block : transformer_.h) {
    const AttentionConfig& c = block.attn.config();
    const std::int64_t keys = c.key_heads * c.head_size;
    std::vector<std::int64_t> parts{c.heads * c.head_size, keys, keys};
    if (c.latent) {
      const std::int64_t low = c.latent->query_rank;
      parts = {low > 0 ? low : c.heads * c.head_size, c.latent->rank, c.latent->turned};
      if (block.attn.q_up) matrix(block.attn.q_up->weight, config_.initial_std);
      matrix(block.attn.kv_up->weight, config_.initial_std);
    }
    matrix(block.attn.c_attn.weight, config_.initial_std, parts);
    matrix(block.attn.c_proj.weight, projected);
    if (block.mlp) {
      feed_forward(*block.mlp);
      continue;
    }
    matrix(block.mixture->router.weight, config_.initial_std);
    matrix(block.mixture->c_fc, config_.initial_std);
    if (config_.mixture->expert.gated) matrix(block.mixture->c_gate, config_.initial_std);
    matrix(block.mixture->c_proj, projected);
    if (block.mixture->shared) feed_forward(*block.mixture->shared);
  }
  if (lm_head_) matrix(lm_head_->weight, config_.initial_std);
}

namespace {

void require_tokens(const Tensor& tokens) {
  if (tokens.rank() == 2) return;
  throw Error(ErrorKind::rank,
              "Decoder: wants tokens (batch, positions), got shape " + tokens.shape().to_string());
}

Tensor capped(const Tensor& x, double cap) { return cap == 0 ? x : tanh(x / cap) * cap; }

}  // namespace

Tensor Decoder::learned_positions(Size first, Size count, const Tensor* position) const {
  if (!position && count > config_.positions - first) {
    throw Error(ErrorKind::shape, "Decoder: " + to_string(first + count) +
                                      " positions are more than the " +
                                      std::to_string(config_.positions) + " that are learned");
  }
  const Tensor rows =
      used(transformer_.wpe->weight)
          .at({position ? Index(slice_of(*position, count)) : Index(slice(first, first + count))});
  const std::string lies = "s@" + positions_over_ + " c";
  return mesh_ ? ein::place(rows, *mesh_, runtime(lies)) : rows;
}

Tensor Decoder::embed(const Tensor& tokens, Size before, const Tensor* position) const {
  require_tokens(tokens);
  std::optional<Tensor> rows;
  if (transformer_.wpe) rows = learned_positions(before, tokens.shape()[1], position);
  Tensor x = transformer_.wte(tokens);
  // As a tensor, it has the digits of the dtype.
  if (config_.embedding_scale != 1)
    x = x * full({}, config_.embedding_scale, x.dtype(), x.device());
  return transformer_.drop(rows ? x + *rows : x);
}

Tensor Decoder::logits(const Tensor& x) const {
  const Tensor normed = transformer_.ln_f ? transformer_.ln_f->forward(x) : x;
  const Tensor y = lm_head_ ? (*lm_head_)(normed)
                            : einsum(normed, used(transformer_.wte.weight), "b s c, v c -> b s v");
  return capped(y, config_.logit_cap);
}

Tensor Decoder::through_layers(Tensor x, Size before, std::vector<KVCache>* cache,
                               const Tensor* position, Tensor* balance) const {
  // Of the same rotary positions all layers share the cosines and sines.
  struct Known {
    Rotary rotary;
    std::int64_t head_size;
    Rotations turns;
  };
  std::vector<Known> known;
  const auto turns_of = [&](const Attention& attention) -> const Rotations* {
    const AttentionConfig& c = attention.config();
    if (!c.rotary) return nullptr;
    for (const Known& k : known) {
      if (k.rotary == *c.rotary && k.head_size == c.head_size) return &k.turns;
    }
    known.push_back({*c.rotary, c.head_size, attention.turns(x.shape()[1], before, position)});
    return &known.back().turns;
  };
  for (std::size_t i = 0; i < transformer_.h.size(); ++i) {
    const Block& block = transformer_.h[i];
    x = block.forward(x,
                      {.cache = cache ? &(*cache)[i] : nullptr,
                       .position = position,
                       .turns = turns_of(block.attn)},
                      balance);
  }
  return x;
}

Tensor Decoder::forward(const Tensor& tokens, Tensor* balance) const {
  return logits(through_layers(embed(tokens, 0, nullptr), 0, nullptr, nullptr, balance));
}

void Decoder::split_blocks(const Mesh& mesh, std::string_view axis) {
  const std::string over = "@" + std::string(axis);
  const auto by_columns = [&](const std::string& name, const Tensor&) {
    return name == "weight" ? "i o" + over : "o" + over;
  };
  for (Block& block : transformer_.h) {
    if (!block.mlp)
      throw Error(ErrorKind::value, "Decoder: mixtures of experts are not split over a mesh axis");
    block.attn.split_heads(mesh, axis);
    block.mlp->c_fc.place(mesh, by_columns);
    if (block.mlp->c_gate) block.mlp->c_gate->place(mesh, by_columns);
    block.mlp->c_proj.place(mesh, [&](const std::string& name, const Tensor&) {
      return name == "weight" ? "i" + over + " o" : "";
    });
  }
}

void Decoder::split_positions(const Mesh& mesh, std::string_view axis) {
  mesh_ = mesh;
  positions_over_ = axis;
  for (Block& block : transformer_.h) block.attn.split_positions(mesh, axis);
}

std::vector<KVCache> Decoder::make_cache(std::int64_t batch, std::int64_t room) const {
  std::vector<KVCache> cache;
  for (const Block& block : transformer_.h)
    cache.push_back(block.attn.make_cache(batch, room > 0 ? room : config_.positions));
  return cache;
}

Tensor Decoder::next_logits(const Tensor& tokens, std::vector<KVCache>& cache) const {
  const NoGrad no_grad;
  require_cache(tokens, cache);
  const Size before = cache.front().length;
  return last_logits(
      through_layers(embed(tokens, before, nullptr), before, &cache, nullptr, nullptr));
}

Tensor Decoder::next_logits(const Tensor& tokens, const std::vector<KVCache>& cache,
                            const Tensor& position) const {
  const NoGrad no_grad;
  require_cache(tokens, cache);
  std::vector<KVCache> same = cache;
  return last_logits(through_layers(embed(tokens, 0, &position), 0, &same, &position, nullptr));
}

void Decoder::require_cache(const Tensor& tokens, const std::vector<KVCache>& cache) const {
  if (cache.size() != transformer_.h.size()) {
    throw Error(ErrorKind::shape, "Decoder: the cache has " + std::to_string(cache.size()) +
                                      " layers, the model has " +
                                      std::to_string(transformer_.h.size()));
  }
  require_tokens(tokens);
  if (tokens.shape()[1] == 0)
    throw Error(ErrorKind::shape, "Decoder: next_logits wants at least one token");
}

Tensor Decoder::last_logits(const Tensor& x) const {
  return rearrange(logits(x.at({every, slice(-1)})), "b 1 v -> b v");
}

}  // namespace ein::nn
