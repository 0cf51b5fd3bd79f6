#include <ein/nn/attention.hpp>

#include <cmath>
#include <limits>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"

namespace ein::nn {

using namespace ein::literals;

Attention::Attention(std::int64_t dim, std::int64_t heads, bool with_bias, double dropout)
    : c_attn(dim, require_product("Attention", "dim", 3, dim), with_bias),
      c_proj(dim, dim, with_bias),
      heads_(require_size("Attention", "heads", heads)),
      attention_dropout_(dropout),
      residual_dropout_(dropout) {
  if (dim % heads != 0) {
    throw Error(ErrorKind::value, "Attention: " + std::to_string(heads) +
                                      " heads do not divide dim " + std::to_string(dim));
  }
  add_module("c_attn", c_attn);
  add_module("c_proj", c_proj);
  add_module("attention_dropout", attention_dropout_);
  add_module("residual_dropout", residual_dropout_);
}

Tensor Attention::forward(const Tensor& x) const { return attend(x, nullptr); }

Tensor Attention::forward(const Tensor& x, KVCache& cache) const {
  const NoGrad no_grad;
  return attend(x, &cache);
}

Tensor Attention::forward(const Tensor& x, const KVCache& cache, const Tensor& position) const {
  const NoGrad no_grad;
  KVCache same = cache;
  return attend(x, &same, &position);
}

KVCache Attention::make_cache(std::int64_t batch, std::int64_t room) const {
  require_size("Attention::make_cache", "batch", batch);
  require_size("Attention::make_cache", "room", room);
  const Tensor keys =
      zeros({batch, heads_, room, c_proj.weight.shape()[0] / heads_}, c_proj.weight.device());
  return {keys, keys.clone(), 0};
}

namespace {

/// Writes the keys or values of new positions behind the `length` old ones; all of them.
Tensor extended(const Tensor& seen, Size length, const Tensor& added) {
  const Slice added_positions = slice(length, length + added.shape()[2]);
  seen.at({every, every, added_positions}).copy_from(added);
  return seen.at({every, every, slice(0, added_positions.end)});
}

/// Which of `keys` positions each of `queries` may look at, the first of which is at `position`:
/// (queries, keys).
Tensor causal_mask(const Tensor& position, Size queries, Size keys) {
  const Device device = position.device();
  const Tensor query = arange(queries, device) + position.view({});
  return arange(keys, device) <= query.view({queries, 1});
}

void require_room(const KVCache& cache, Size length, const Tensor& keys) {
  const Shape room = cache.keys.shape(), wanted = keys.shape();
  const bool fits = room.rank() == 4 && cache.values.shape() == room && room[0] == wanted[0] &&
                    room[1] == wanted[1] && room[3] == wanted[3] && length >= 0 &&
                    length <= room[2] && wanted[2] <= room[2] - length;
  if (fits) return;
  throw Error(ErrorKind::shape, "Attention: keys of shape " + wanted.to_string() +
                                    " do not fit behind " + to_string(length) +
                                    " positions in a cache of shape " + room.to_string());
}

}  // namespace

void Attention::split_heads(const Mesh& mesh, std::string_view axis) {
  mesh_ = mesh;
  heads_over_ = axis;
  c_proj.place(mesh, [&](const std::string& name, const Tensor&) {
    return name == "weight" ? "i@" + heads_over_ + " o" : "";
  });
}

Tensor Attention::queries_keys_values(const Tensor& x) const {
  if (!mesh_) return rearrange(c_attn(x), "b s (n h d) -> n b h s d", "n"_a = 3, "h"_a = heads_);
  const std::string of_weight = "n c h@" + heads_over_ + " d",
                    of_bias = "n h@" + heads_over_ + " d";
  const Tensor weight =
      ein::place(rearrange(used(c_attn.weight), "c (n h d) -> n c h d", "n"_a = 3, "h"_a = heads_),
                 *mesh_, runtime(of_weight));
  const Tensor y = einsum(x, weight, "b s c, n c h d -> n b h s d");
  if (!c_attn.bias) return y;
  const Tensor bias =
      ein::place(rearrange(used(*c_attn.bias), "(n h d) -> n h d", "n"_a = 3, "h"_a = heads_),
                 *mesh_, runtime(of_bias));
  return y + rearrange(bias.to(y.dtype()), "n h d -> n 1 h 1 d");
}

Tensor Attention::attend(const Tensor& x, KVCache* cache, const Tensor* position) const {
  const Tensor split = queries_keys_values(x);
  const Tensor q = split[0];
  Tensor k = split[1], v = split[2];
  if (!positions_over_.empty()) {
    const std::string way = "... s@" + positions_over_ + " d -> ... s d";
    k = reshard(k, runtime(way));
    v = reshard(v, runtime(way));
  }
  Size before = 0;
  if (position) {
    require_room(*cache, 0, k);
    const TensorSlice added = slice_of(*position, k.shape()[2]);
    cache->keys.at({every, every, added}).copy_from(k);
    cache->values.at({every, every, added}).copy_from(v);
    k = cache->keys;
    v = cache->values;
  } else if (cache) {
    require_room(*cache, cache->length, k);
    before = cache->length;
    k = extended(cache->keys, before, k);
    v = extended(cache->values, before, v);
    cache->length = k.shape()[2];
  }
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[3]));
  const Tensor scores = einsum(q, k.to(q.dtype()), "b h q d, b h k d -> b h q k") * scale;
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const Tensor causal =
      position ? where(causal_mask(*position, q.shape()[2], k.shape()[2]), scores, hidden)
               : tril(scores, "b h [q k]", before, hidden);
  const Tensor weights = attention_dropout_(softmax(causal, "b h q [k]"));
  const Tensor mixed = einsum(weights, v.to(weights.dtype()), "b h q k, b h k d -> b h q d");
  return residual_dropout_(c_proj(rearrange(mixed, "b h q d -> b q (h d)")));
}

}  // namespace ein::nn
