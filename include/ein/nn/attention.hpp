// Causal self-attention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ein/nn/layers.hpp>
#include <ein/nn/rotary.hpp>

namespace ein::nn {

/// The keys and values of the positions that an Attention has seen, so that the next one costs only
/// itself.
struct KVCache {
  /// (batch, key heads, room, size of a head). The first `length` positions are set; or in the
  /// cache of a window, whose room is the window, the last min(length, window), of which the
  /// latest is at the end.
  Tensor keys, values;
  Size length = 0;
};

/// Keys and values of one low-rank row a position (DeepSeek-V2, 2024): what a cache keeps is that
/// row and one rotary key, which all heads share.
struct LatentConfig {
  std::int64_t rank = 512;        ///< of keys and values
  std::int64_t query_rank = 0;    ///< of queries; 0: they are made of x itself
  std::int64_t turned = 64;       ///< the last elements of a head of queries and keys, which turn
  std::int64_t value_size = 128;  ///< of a head of values
  NormConfig norm{.kind = NormConfig::Kind::rms};  ///< of both low ranks
  friend bool operator==(const LatentConfig&, const LatentConfig&) = default;
};

/// How a layer attends.
struct AttentionConfig {
  std::int64_t heads = 12;
  std::int64_t key_heads = 0;  ///< of keys and values, each for heads / key_heads heads; 0: heads
  std::int64_t head_size = 0;  ///< 0: width / heads
  std::int64_t window = 0;     ///< a position sees itself and so many less one before it; 0: all
  double soft_cap = 0;         ///< scores become soft_cap · tanh(score / soft_cap); 0: they do not
  double scale = 0;            ///< of scores; 0: 1 / √head_size
  bool bias = true;            ///< of queries, keys and values
  bool output_bias = true;
  std::optional<NormConfig> query_key_norm{};  ///< of each head of queries and keys
  std::optional<Rotary> rotary{};
  double dropout = 0;  ///< of the weights and of the result
  /// All heads have keys of their own, key_heads says nothing; head_size, which is wanted, is that
  /// of queries and keys, of which the elements before `turned` do not turn.
  std::optional<LatentConfig> latent{};
  /// A number for each head, as the score of one position more that has no value (GPT-OSS, 2025).
  bool sinks = false;
  friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

/// Where the positions of an attention's input stand.
struct AttentionPlace {
  KVCache* cache = nullptr;          ///< holds what comes before; null: nothing does
  const Tensor* position = nullptr;  ///< how many positions the cache has; null: cache->length
  const Rotations* turns = nullptr;  ///< of these positions; null: the attention computes them
};

/// Each position looks at itself and those before it, with several heads (Vaswani et al. 2017): x
/// is (batch, positions, dim). Modules "c_attn" (dim, (heads + 2·key heads)·head size), for
/// queries, keys and values in this order, and "c_proj" (heads·head size, dim); "q_norm" and
/// "k_norm" where the config has them. Of latent attention "c_attn" makes the low rank of queries
/// (or the queries), that of keys and values, and the key that turns; "q_up" (query rank,
/// heads·head size) and "kv_up" (rank, heads·(head size - turned + value size)) are the ways up,
/// "q_low_norm" and "kv_low_norm" the norms before them. With a cache, kv_up is applied to queries
/// and results instead of to what the cache holds (the paper's appendix C: absorbed). Queries of
/// heads h·r ... h·r + r - 1 look at key head h (Ainslie et al. 2023).
class Attention : public SameAxes {
 public:
  /// An Error of kind `value` unless heads divides dim and 0 <= dropout < 1; dropout acts on the
  /// attention's weights and on the result.
  Attention(std::int64_t dim, std::int64_t heads, bool with_bias = true, double dropout = 0);
  /// An Error of kind `value` for a number that is outside its domain.
  Attention(std::int64_t dim, const AttentionConfig& config);

  Tensor forward(const Tensor& x) const override;
  /// x are the positions after those in the cache, to which they are added; no gradient flows. An
  /// Error of kind `shape` when the cache is for another batch or has no room. A trace records a
  /// length that is a size of its arguments: set that in a copy, which shares keys and values.
  Tensor forward(const Tensor& x, KVCache& cache) const;
  /// The same, where `position`, a tensor of one i64 or i32, says how many positions the cache has;
  /// cache.length is neither read nor changed. All of the cache is looked at and what is not there
  /// yet masked, so that one compiled function serves every position. An Error of kind `value` when
  /// they do not fit behind `position`.
  Tensor forward(const Tensor& x, const KVCache& cache, const Tensor& position) const;
  /// What these three do.
  Tensor forward(const Tensor& x, const AttentionPlace& place) const;
  using SameAxes::operator();

  /// An empty cache with room for so many positions. That of a window holds no more than it, and
  /// takes any number of positions if it holds all of it.
  KVCache make_cache(std::int64_t batch, std::int64_t room) const;

  /// The config with no 0 for what follows from other sizes.
  const AttentionConfig& config() const { return config_; }

  /// From now on each process along this mesh axis attends with its part of the key heads. c_attn
  /// stays whole, since its columns are not in the order of heads; its part of the work is split.
  /// c_proj is placed (i@axis, o).
  void split_heads(const Mesh& mesh, std::string_view axis);

  /// From now on positions lie over this mesh axis: each process has queries of its part, and
  /// gathers keys and values.
  void split_positions(const Mesh& mesh, std::string_view axis) {
    positions_mesh_ = mesh;
    positions_over_ = axis;
  }

  Linear c_attn, c_proj;
  Tensor sinks;                         ///< (heads), a parameter where the config has them
  std::unique_ptr<Linear> q_up, kv_up;  ///< of latent attention; q_up is null without a query rank
  /// Of these positions, the first of which comes after `before` others or is at `position`.
  Rotations turns(Size positions, Size before, const Tensor* position) const;

 private:
  /// Of a config that has all sizes.
  Attention(const AttentionConfig& config, std::int64_t dim);
  /// (batch, key heads, heads of each, positions, head size); the others without the third.
  struct Projected {
    Tensor queries, keys, values;
  };
  Projected projected(const Tensor& x) const;
  /// Of latent attention: keys and values of all heads, or those that a cache holds, with queries
  /// to match.
  Projected latent(const Tensor& x, const AttentionPlace& place, bool absorbed) const;
  /// (batch, heads, queries, rank) -> (batch, queries, heads·value size)
  Tensor raised(const Tensor& mixed) const;
  Tensor scores(const Projected& p) const;

  AttentionConfig config_;
  std::optional<Mesh> mesh_{}, positions_mesh_{};
  std::string heads_over_{}, positions_over_{};  // mesh axes
  std::unique_ptr<SameAxes> q_norm_, k_norm_, q_low_norm_, kv_low_norm_;
  Dropout attention_dropout_, residual_dropout_;
};

}  // namespace ein::nn
