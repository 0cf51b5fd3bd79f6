// Decoders: the language models of many families, each a value of one struct.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ein/nn/attention.hpp>
#include <ein/nn/feed_forward.hpp>

namespace ein::nn {

/// What a decoder is made of. Widths are of features, layers are counted from 0.
struct DecoderConfig {
  /// How tokens know where they stand.
  enum class Positions : std::uint8_t {
    learned,       ///< an embedding for each position is added to that of the token
    in_attention,  ///< rotary, as `attention` says
    none
  };
  /// Where norms stand in a layer; `attn` and `mlp` are its parts.
  enum class NormPlace : std::uint8_t {
    before,  ///< x + attn(norm x), then the same of mlp; a last norm before the head
    after,   ///< norm(x + attn x), then the same of mlp (Vaswani et al. 2017); a last norm too
    both     ///< x + norm(attn(norm x)), then the same of mlp (Gemma 2); a last norm too
  };
  /// What parameters are at first. Norms begin as the identity, biases with 0.
  enum class Initial : std::uint8_t {
    normal,  ///< GPT-2: normal of `initial_std`; c_proj by √(2·layers) less, as the residual stream
             ///< adds up so many of them
    glorot  ///< CS336: each matrix normal of variance 2 / (in + out), tables of variance 1, both
            ///< cut at 3 standard deviations
  };

  std::int64_t vocabulary = 50257;
  std::int64_t positions =
      1024;  ///< most of them where they are learned; what a cache has room for
  std::int64_t width = 768;
  std::int64_t layers = 12;

  NormConfig norm{};
  NormPlace norm_place = NormPlace::before;
  Positions position = Positions::learned;
  AttentionConfig attention{};
  /// Of the layers that `is_local` names, whose window or rotary positions are others.
  std::optional<AttentionConfig> local_attention{};
  std::vector<bool> is_local{};  ///< for each layer; empty: none

  FeedForwardConfig feed_forward{};
  std::optional<MixtureConfig> mixture{};  ///< in place of feed_forward
  std::vector<bool> is_mixture{};          ///< in which layers; empty: in all

  bool tied = true;            ///< the head is the table of tokens
  double logit_cap = 0;        ///< logits become cap · tanh(logit / cap); 0: they do not
  double embedding_scale = 1;  ///< of token embeddings, rounded to their dtype
  double dropout = 0;          ///< of embeddings and in mlp; attention has its own
  Initial initial = Initial::normal;
  double initial_std = 0.02;

  const AttentionConfig& attention_of(std::int64_t layer) const;
  bool has_mixture(std::int64_t layer) const;
  friend bool operator==(const DecoderConfig&, const DecoderConfig&) = default;
};

/// A layer of a decoder: attention and a feed-forward network, or a mixture of experts, each added
/// to what it reads. Modules "ln_1", "attn", "ln_2", "mlp"; where norms stand after them "ln_1" and
/// "ln_2" too, and where they stand on both sides also "ln_1_after" and "ln_2_after".
class Block : public SameAxes {
 public:
  Block(std::int64_t dim, std::int64_t heads, bool with_bias = true, double dropout = 0);
  Block(const DecoderConfig& config, std::int64_t layer);
  Tensor forward(const Tensor& x) const override;
  Tensor forward(const Tensor& x, KVCache& cache) const;
  Tensor forward(const Tensor& x, const KVCache& cache, const Tensor& position) const;
  /// What these three do; adds to `balance`, unless it is null, the loss of its mixture.
  Tensor forward(const Tensor& x, const AttentionPlace& place, Tensor* balance = nullptr) const;

  std::unique_ptr<SameAxes> ln_1;  ///< null where the model has no norms
  Attention attn;
  std::unique_ptr<SameAxes> ln_2;
  std::unique_ptr<MLP> mlp;          ///< null where there is a mixture
  std::unique_ptr<Mixture> mixture;  ///< its module is "mlp" too
  std::unique_ptr<SameAxes> ln_1_after, ln_2_after;

 private:
  DecoderConfig::NormPlace place_;
};

/// Logits of the next token at each position: (batch, positions) integers -> (batch, positions,
/// vocabulary). Token embeddings, layers, a norm, and a head. Parameters
/// "transformer.wte.weight" (vocabulary, width), "transformer.wpe.weight" (positions, width) where
/// positions are learned, "transformer.h.0.ln_1.weight", ..., "transformer.ln_f.weight",
/// "lm_head.weight" (width, vocabulary) where it is not tied: the names of GPT-2 for all families.
class Decoder : public Layer {
 public:
  /// An Error of kind `value` for sizes below 1, heads that do not divide the width, and other
  /// numbers outside their domains.
  explicit Decoder(const DecoderConfig& config);

  /// An Error of kind `shape` for more positions than are learned.
  Tensor forward(const Tensor& tokens) const override { return forward(tokens, nullptr); }
  /// The same; adds the losses of mixtures (Mixture::forward) to `balance`, unless it is null.
  Tensor forward(const Tensor& tokens, Tensor* balance) const;

  /// An empty cache for each layer, with room for so many positions; 0: those of the config.
  std::vector<KVCache> make_cache(std::int64_t batch = 1, std::int64_t room = 0) const;
  /// The logits after the last of these tokens, which come after those in the cache, and are added
  /// to it: (batch, positions) -> (batch, vocabulary). No gradient flows. An Error of kind `shape`
  /// when there are more than the cache has room for in all, or none. In a trace as
  /// Attention::forward.
  Tensor next_logits(const Tensor& tokens, std::vector<KVCache>& cache) const;
  /// The same, where `position`, a tensor of one i64 or i32, says how many positions the cache has:
  /// see Attention::forward. ein::compile can trace it.
  Tensor next_logits(const Tensor& tokens, const std::vector<KVCache>& cache,
                     const Tensor& position) const;

  /// Splits the work of every layer over a mesh axis (tensor parallelism: Shoeybi et al. 2019): the
  /// key heads of its attention and the inner features of its MLP. A layer then sums twice over the
  /// axis on the way forward, and twice on the way back. An Error where it divides neither; of kind
  /// `value` where there are mixtures.
  void split_blocks(const Mesh& mesh, std::string_view axis);

  /// From now on the positions of tokens lie over a mesh axis, `tokens` being placed so: attention
  /// gathers keys and values over it, and nothing else is exchanged in a layer.
  void split_positions(const Mesh& mesh, std::string_view axis);

  const DecoderConfig& config() const { return config_; }

 private:
  struct Trunk : Module {
    explicit Trunk(const DecoderConfig& config);
    Embedding wte;
    std::unique_ptr<Embedding> wpe;
    Dropout drop;
    ModuleList<Block> h;
    std::unique_ptr<SameAxes> ln_f;
  };
  void begin() const;
  /// Learned embeddings of `count` positions (s, c) from `first` on, or from `position` on.
  Tensor learned_positions(Size first, Size count, const Tensor* position) const;
  /// Embeddings of tokens that come after `before` others, or at `position`.
  Tensor embed(const Tensor& tokens, Size before, const Tensor* position) const;
  /// Through all layers; caches and position as AttentionPlace has them.
  Tensor through_layers(Tensor x, Size before, std::vector<KVCache>* cache, const Tensor* position,
                        Tensor* balance) const;
  void require_cache(const Tensor& tokens, const std::vector<KVCache>& cache) const;
  /// (batch, positions, width) -> (batch, vocabulary)
  Tensor last_logits(const Tensor& x) const;
  Tensor logits(const Tensor& x) const;

  DecoderConfig config_;
  std::optional<Mesh> mesh_{};  // over whose axis positions lie
  std::string positions_over_{};
  Trunk transformer_;
  std::unique_ptr<Linear> lm_head_;
};

}  // namespace ein::nn
