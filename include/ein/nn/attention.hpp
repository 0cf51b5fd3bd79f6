// Causal self-attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ein/nn/layers.hpp>

namespace ein::nn {

/// The keys and values of the positions that an Attention has seen, so that the next one costs only
/// itself.
struct KVCache {
  Tensor keys, values;  ///< (batch, heads, room, dim of a head), the first `length` positions set
  Size length = 0;
};

/// Each position looks at itself and those before it, with several heads (Vaswani et al. 2017): x
/// is (batch, positions, dim). Modules "c_attn" (dim, 3·dim), for query, key and value in this
/// order, and "c_proj" (dim, dim).
class Attention : public SameAxes {
 public:
  /// An Error of kind `value` unless heads divides dim and 0 <= dropout < 1; dropout acts on the
  /// attention's weights and on the result.
  Attention(std::int64_t dim, std::int64_t heads, bool with_bias = true, double dropout = 0);

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
  using SameAxes::operator();

  /// An empty cache with room for so many positions.
  KVCache make_cache(std::int64_t batch, std::int64_t room) const;

  /// From now on each process along this mesh axis attends with its part of the heads. c_attn stays
  /// whole, since its columns are not in the order of heads; its part of the work is split. c_proj
  /// is placed (i@axis, o).
  void split_heads(const Mesh& mesh, std::string_view axis);

  /// From now on positions lie over this mesh axis: each process has queries of its part, and
  /// gathers keys and values.
  void split_positions(std::string_view axis) { positions_over_ = axis; }

  Linear c_attn, c_proj;

 private:
  /// (batch, positions, dim) -> (3, batch, heads, positions, dim of a head)
  Tensor queries_keys_values(const Tensor& x) const;
  Tensor attend(const Tensor& x, KVCache* cache, const Tensor* position = nullptr) const;

  std::int64_t heads_;
  std::optional<Mesh> mesh_{};
  std::string heads_over_{}, positions_over_{};  // mesh axes
  Dropout attention_dropout_, residual_dropout_;
};

}  // namespace ein::nn
