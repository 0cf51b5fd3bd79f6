#include <ein/nn/transformer.hpp>

#include <cmath>
#include <string>

#include <ein/autograd.hpp>
#include <ein/elementwise.hpp>
#include <ein/nn/init.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"

namespace ein::nn {

MLP::MLP(std::int64_t dim, bool with_bias, double dropout)
    : c_fc(dim, require_product("MLP", "dim", 4, dim), with_bias),
      c_proj(4 * dim, dim, with_bias),
      dropout_(dropout) {
  add_module("c_fc", c_fc);
  add_module("c_proj", c_proj);
  add_module("dropout", dropout_);
}

Tensor MLP::forward(const Tensor& x) const { return dropout_(c_proj(gelu(c_fc(x)))); }

Block::Block(std::int64_t dim, std::int64_t heads, bool with_bias, double dropout)
    : ln_1(dim, with_bias),
      attn(dim, heads, with_bias, dropout),
      ln_2(dim, with_bias),
      mlp(dim, with_bias, dropout) {
  add_module("ln_1", ln_1);
  add_module("attn", attn);
  add_module("ln_2", ln_2);
  add_module("mlp", mlp);
}

Tensor Block::forward(const Tensor& x) const {
  const Tensor y = x + attn(ln_1(x));
  return y + mlp(ln_2(y));
}

Tensor Block::forward(const Tensor& x, KVCache& cache) const {
  const NoGrad no_grad;
  const Tensor y = x + attn.forward(ln_1(x), cache);
  return y + mlp(ln_2(y));
}

Tensor Block::forward(const Tensor& x, const KVCache& cache, const Tensor& position) const {
  const NoGrad no_grad;
  const Tensor y = x + attn.forward(ln_1(x), cache, position);
  return y + mlp(ln_2(y));
}

Transformer::Trunk::Trunk(const TransformerConfig& config)
    : wte(config.vocab_size, config.n_embd),
      wpe(config.block_size, config.n_embd),
      drop(config.dropout),
      ln_f(config.n_embd, config.bias) {
  add_module("wte", wte);
  add_module("wpe", wpe);
  add_module("drop", drop);
  add_module("h", h);
  add_module("ln_f", ln_f);
  for (std::int64_t i = 0; i < require_size("Transformer", "n_layer", config.n_layer); ++i) {
    h.emplace_back(config.n_embd, config.n_head, config.bias, config.dropout);
  }
}

Transformer::Transformer(const TransformerConfig& config) : config_(config), transformer_(config) {
  add_module("transformer", transformer_);
  init::normal(transformer_.wte.weight, 0, 0.02);
  init::normal(transformer_.wpe.weight, 0, 0.02);
  // The residual stream adds up 2·n_layer results of c_proj.
  const double projected = 0.02 / std::sqrt(2.0 * static_cast<double>(config.n_layer));
  for (const Block& block : transformer_.h) {
    init::normal(block.attn.c_attn.weight, 0, 0.02);
    init::normal(block.attn.c_proj.weight, 0, projected);
    init::normal(block.mlp.c_fc.weight, 0, 0.02);
    init::normal(block.mlp.c_proj.weight, 0, projected);
  }
}

namespace {

void require_tokens(const Tensor& tokens) {
  if (tokens.rank() == 2) return;
  throw Error(ErrorKind::rank, "Transformer: wants tokens (batch, positions), got shape " +
                                   tokens.shape().to_string());
}

}  // namespace

Tensor Transformer::embed(const Tensor& tokens, Size before) const {
  require_tokens(tokens);
  const Size positions = tokens.shape()[1];
  if (positions > config_.block_size - before) {
    throw Error(ErrorKind::shape, "Transformer: " + to_string(before + positions) +
                                      " positions are more than block_size, which is " +
                                      std::to_string(config_.block_size));
  }
  return embed(tokens, Index(slice(before, before + positions)));
}

Tensor Transformer::embed(const Tensor& tokens, const Index& positions) const {
  const Tensor rows = used(transformer_.wpe.weight).at({positions});
  const std::string lies = "s@" + positions_over_ + " c";
  return transformer_.drop(transformer_.wte(tokens) +
                           (mesh_ ? ein::place(rows, *mesh_, runtime(lies)) : rows));
}

Tensor Transformer::logits(const Tensor& x) const {
  return einsum(transformer_.ln_f(x), used(transformer_.wte.weight), "b s c, v c -> b s v");
}

Tensor Transformer::forward(const Tensor& tokens) const {
  Tensor x = embed(tokens, Size(0));
  for (const Block& block : transformer_.h) x = block(x);
  return logits(x);
}

void Transformer::split_blocks(const Mesh& mesh, std::string_view axis) {
  const std::string over = "@" + std::string(axis);
  for (Block& block : transformer_.h) {
    block.attn.split_heads(mesh, axis);
    block.mlp.c_fc.place(mesh, [&](const std::string& name, const Tensor&) {
      return name == "weight" ? "i o" + over : "o" + over;
    });
    block.mlp.c_proj.place(mesh, [&](const std::string& name, const Tensor&) {
      return name == "weight" ? "i" + over + " o" : "";
    });
  }
}

void Transformer::split_positions(const Mesh& mesh, std::string_view axis) {
  mesh_ = mesh;
  positions_over_ = axis;
  for (Block& block : transformer_.h) block.attn.split_positions(axis);
}

std::vector<KVCache> Transformer::make_cache(std::int64_t batch) const {
  std::vector<KVCache> cache;
  for (const Block& block : transformer_.h)
    cache.push_back(block.attn.make_cache(batch, config_.block_size));
  return cache;
}

Tensor Transformer::next_logits(const Tensor& tokens, std::vector<KVCache>& cache) const {
  const NoGrad no_grad;
  require_cache(tokens, cache);
  Tensor x = embed(tokens, cache.front().length);
  for (std::size_t i = 0; i < cache.size(); ++i) x = transformer_.h[i].forward(x, cache[i]);
  return last_logits(x);
}

Tensor Transformer::next_logits(const Tensor& tokens, const std::vector<KVCache>& cache,
                                const Tensor& position) const {
  const NoGrad no_grad;
  require_cache(tokens, cache);
  Tensor x = embed(tokens, Index(slice_of(position, tokens.shape()[1])));
  for (std::size_t i = 0; i < cache.size(); ++i)
    x = transformer_.h[i].forward(x, cache[i], position);
  return last_logits(x);
}

void Transformer::require_cache(const Tensor& tokens, const std::vector<KVCache>& cache) const {
  if (cache.size() != transformer_.h.size()) {
    throw Error(ErrorKind::shape, "Transformer: the cache has " + std::to_string(cache.size()) +
                                      " blocks, the model has " +
                                      std::to_string(transformer_.h.size()));
  }
  require_tokens(tokens);
  if (tokens.shape()[1] == 0)
    throw Error(ErrorKind::shape, "Transformer: next_logits wants at least one token");
}

Tensor Transformer::last_logits(const Tensor& x) const {
  return rearrange(logits(x.at({every, slice(-1)})), "b 1 v -> b v");
}

}  // namespace ein::nn
