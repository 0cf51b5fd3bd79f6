// The Transformer in the form and with the names of GPT-2 (Radford et al. 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ein/nn/attention.hpp>

namespace ein::nn {

/// c_proj(gelu(c_fc(x))), with four times as many features inside. Modules "c_fc", "c_proj".
class MLP : public SameAxes {
 public:
  explicit MLP(std::int64_t dim, bool with_bias = true, double dropout = 0);
  Tensor forward(const Tensor& x) const override;

  Linear c_fc, c_proj;

 private:
  Dropout dropout_;
};

/// x + attn(ln_1(x)), then that + mlp(ln_2(that)). Modules "ln_1", "attn", "ln_2", "mlp".
class Block : public SameAxes {
 public:
  Block(std::int64_t dim, std::int64_t heads, bool with_bias = true, double dropout = 0);
  Tensor forward(const Tensor& x) const override;
  Tensor forward(const Tensor& x, KVCache& cache) const;
  Tensor forward(const Tensor& x, const KVCache& cache, const Tensor& position) const;

  LayerNorm ln_1;
  Attention attn;
  LayerNorm ln_2;
  MLP mlp;
};

/// GPT-2's sizes (124M).
struct TransformerConfig {
  std::int64_t vocab_size = 50257;
  std::int64_t block_size = 1024;  ///< most positions
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  std::int64_t n_embd = 768;
  double dropout = 0;
  bool bias = true;  ///< in linear layers and norms
};

/// Logits of the next token at each position: (batch, positions) integers -> (batch, positions,
/// vocab_size). Token and position embeddings, n_layer blocks, a norm, and the token embedding
/// again. At first normal of standard deviation 0.02, in each c_proj 0.02/√(2·n_layer), biases 0.
/// Parameters "transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.ln_1.weight",
/// ..., "transformer.ln_f.weight".
class Transformer : public Layer {
 public:
  /// An Error of kind `value` for sizes below 1, or n_head that does not divide n_embd.
  explicit Transformer(const TransformerConfig& config);

  /// An Error of kind `shape` for more than block_size positions.
  Tensor forward(const Tensor& tokens) const override;

  /// An empty cache for each block.
  std::vector<KVCache> make_cache(std::int64_t batch = 1) const;
  /// The logits after the last of these tokens, which come after those in the cache, and are added
  /// to it: (batch, positions) -> (batch, vocab_size). No gradient flows. An Error of kind `shape`
  /// when there are more than block_size in all, or none. In a trace as Attention::forward.
  Tensor next_logits(const Tensor& tokens, std::vector<KVCache>& cache) const;
  /// The same, where `position`, a tensor of one i64 or i32, says how many positions the cache has:
  /// see Attention::forward. ein::compile can trace it.
  Tensor next_logits(const Tensor& tokens, const std::vector<KVCache>& cache,
                     const Tensor& position) const;

  /// Splits the work of every block over a mesh axis (tensor parallelism: Shoeybi et al. 2019): the
  /// heads of its attention and the inner features of its MLP. A block then sums twice over the
  /// axis on the way forward, and twice on the way back. An Error where it divides neither.
  void split_blocks(const Mesh& mesh, std::string_view axis);

  /// From now on the positions of tokens lie over a mesh axis, `tokens` being placed so: attention
  /// gathers keys and values over it, and nothing else is exchanged in a block.
  void split_positions(const Mesh& mesh, std::string_view axis);

  const TransformerConfig& config() const { return config_; }

 private:
  struct Trunk : Module {
    explicit Trunk(const TransformerConfig& config);
    Embedding wte, wpe;
    Dropout drop;
    ModuleList<Block> h;
    LayerNorm ln_f;
  };
  /// Token and position embeddings of tokens that come after `before` others, or at `positions`.
  Tensor embed(const Tensor& tokens, Size before) const;
  Tensor embed(const Tensor& tokens, const Index& positions) const;
  void require_cache(const Tensor& tokens, const std::vector<KVCache>& cache) const;
  /// (batch, positions, dim) -> (batch, vocab_size)
  Tensor last_logits(const Tensor& x) const;
  Tensor logits(const Tensor& x) const;

  TransformerConfig config_;
  std::optional<Mesh> mesh_{};  // over whose axis positions lie
  std::string positions_over_{};
  Trunk transformer_;
};

}  // namespace ein::nn
