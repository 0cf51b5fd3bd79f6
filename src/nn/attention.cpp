#include <ein/nn/attention.hpp>

#include <algorithm>
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

namespace {

/// The config with sizes in place of 0, each of them checked.
AttentionConfig complete(std::int64_t dim, AttentionConfig c) {
  require_product("Attention", "dim", 3, dim);
  require_size("Attention", "heads", c.heads);
  if (c.head_size == 0 && dim % c.heads != 0) {
    throw Error(ErrorKind::value, "Attention: " + std::to_string(c.heads) +
                                      " heads do not divide dim " + std::to_string(dim));
  }
  if (c.head_size == 0) c.head_size = dim / c.heads;
  if (c.key_heads == 0) c.key_heads = c.heads;
  require_size("Attention", "head_size", c.head_size);
  if (c.latent) {
    c.key_heads = c.heads;
    require_size("Attention", "latent.rank", c.latent->rank);
    require_at_least(0, "Attention", "latent.query_rank", c.latent->query_rank);
    require_size("Attention", "latent.turned", c.latent->turned);
    require_size("Attention", "latent.value_size", c.latent->value_size);
    require_product("Attention", "latent.value_size", c.heads, c.latent->value_size);
    if (c.latent->turned >= c.head_size || !c.rotary || c.query_key_norm || c.window > 0) {
      throw Error(ErrorKind::value,
                  "Attention: latent attention wants rotary positions, fewer elements that turn "
                  "than the " +
                      std::to_string(c.head_size) +
                      " of a head, no norms of queries and keys and no window");
    }
  }
  require_size("Attention", "key_heads", c.key_heads);
  if (c.heads % c.key_heads != 0) {
    throw Error(ErrorKind::value, "Attention: " + std::to_string(c.key_heads) +
                                      " heads of keys do not divide " + std::to_string(c.heads) +
                                      " heads");
  }
  // Those of queries, keys and values together.
  require_product("Attention", "head_size", 3, c.head_size);
  require_product("Attention", "heads", 3 * c.head_size, c.heads);
  require_at_least(0, "Attention", "window", c.window);
  require_in(not_negative, "Attention", "soft_cap", c.soft_cap);
  require_in(not_negative, "Attention", "scale", c.scale);
  if (c.rotary) require_rotary(*c.rotary, c.latent ? c.latent->turned : c.head_size);
  if (c.scale == 0) c.scale = 1 / std::sqrt(static_cast<double>(c.head_size));
  return c;
}

AttentionConfig plain(std::int64_t heads, bool with_bias, double dropout) {
  return {.heads = require_size("Attention", "heads", heads),
          .bias = with_bias,
          .output_bias = with_bias,
          .dropout = dropout};
}

/// Columns of c_attn, and rows of c_proj.
std::int64_t columns_of(const AttentionConfig& c) {
  if (!c.latent) return (c.heads + 2 * c.key_heads) * c.head_size;
  const std::int64_t queries =
      c.latent->query_rank > 0 ? c.latent->query_rank : c.heads * c.head_size;
  return queries + c.latent->rank + c.latent->turned;
}
std::int64_t rows_of(const AttentionConfig& c) {
  return c.heads * (c.latent ? c.latent->value_size : c.head_size);
}

}  // namespace

Attention::Attention(std::int64_t dim, std::int64_t heads, bool with_bias, double dropout)
    : Attention(require_product("Attention", "dim", 3, dim) / 3, plain(heads, with_bias, dropout)) {
}

Attention::Attention(std::int64_t dim, const AttentionConfig& config)
    : Attention(complete(dim, config), dim) {}

Attention::Attention(const AttentionConfig& config, std::int64_t dim)
    : c_attn(dim, columns_of(config), config.bias),
      c_proj(rows_of(config), dim, config.output_bias),
      config_(config),
      attention_dropout_(config.dropout),
      residual_dropout_(config.dropout) {
  add_module("c_attn", c_attn);
  add_module("c_proj", c_proj);
  add_module("attention_dropout", attention_dropout_);
  add_module("residual_dropout", residual_dropout_);
  if (config_.sinks) {
    sinks = zeros({config_.heads});
    add_parameter("sinks", sinks);
  }
  if (config_.latent) {
    const LatentConfig& l = *config_.latent;
    if (l.query_rank > 0) {
      q_up = std::make_unique<Linear>(l.query_rank, config_.heads * config_.head_size, false);
      add_module("q_up", *q_up);
      q_low_norm_ = make_norm(l.query_rank, l.norm);
      if (q_low_norm_) add_module("q_low_norm", *q_low_norm_);
    }
    kv_up = std::make_unique<Linear>(
        l.rank, config_.heads * (config_.head_size - l.turned + l.value_size), false);
    add_module("kv_up", *kv_up);
    kv_low_norm_ = make_norm(l.rank, l.norm);
    if (kv_low_norm_) add_module("kv_low_norm", *kv_low_norm_);
  }
  if (!config_.query_key_norm) return;
  q_norm_ = make_norm(config_.head_size, *config_.query_key_norm);
  k_norm_ = make_norm(config_.head_size, *config_.query_key_norm);
  if (q_norm_) add_module("q_norm", *q_norm_);
  if (k_norm_) add_module("k_norm", *k_norm_);
}

Tensor Attention::forward(const Tensor& x) const { return forward(x, AttentionPlace{}); }

Tensor Attention::forward(const Tensor& x, KVCache& cache) const {
  const NoGrad no_grad;
  return forward(x, AttentionPlace{.cache = &cache});
}

Tensor Attention::forward(const Tensor& x, const KVCache& cache, const Tensor& position) const {
  const NoGrad no_grad;
  KVCache same = cache;
  return forward(x, AttentionPlace{.cache = &same, .position = &position});
}

KVCache Attention::make_cache(std::int64_t batch, std::int64_t room) const {
  require_size("Attention::make_cache", "batch", batch);
  require_size("Attention::make_cache", "room", room);
  if (config_.window > 0) room = std::min(room, config_.window);
  if (config_.latent) {
    const Device device = c_proj.weight.device();
    return {zeros({batch, 1, room, config_.latent->turned}, device),
            zeros({batch, 1, room, config_.latent->rank}, device), 0};
  }
  const Tensor keys =
      zeros({batch, config_.key_heads, room, config_.head_size}, c_proj.weight.device());
  return {keys, keys.clone(), 0};
}

Rotations Attention::turns(Size positions, Size before, const Tensor* position) const {
  const Device device = c_proj.weight.device();
  Tensor here = position ? arange(positions, device) + position->view({})
                         : arange(before, before + positions, 1, device);
  if (positions_mesh_) here = ein::place(here, *positions_mesh_, runtime("s@" + positions_over_));
  return rotations(config_.rotary.value(),
                   config_.latent ? config_.latent->turned : config_.head_size, here);
}

namespace {

/// What queries look at: all keys and values, and where the first query is among them.
struct Seen {
  Tensor keys, values;
  Size offset = 0;
};

bool slides(const KVCache& cache, std::int64_t window) {
  return window > 0 && cache.keys.shape()[2] == window;
}

void require_room(const KVCache& cache, Size length, const Tensor& keys, const Tensor& values,
                  bool slides) {
  const Shape room = cache.keys.shape(), wanted = keys.shape();
  const auto of_values = [&] {
    return Shape{room[0], room[1], room[2], values.shape()[3]} == cache.values.shape();
  };
  const bool fits = room.rank() == 4 && of_values() && room[0] == wanted[0] &&
                    room[1] == wanted[1] && room[3] == wanted[3] && length >= 0 &&
                    (slides || (length <= room[2] && wanted[2] <= room[2] - length));
  if (fits) return;
  throw Error(ErrorKind::shape, "Attention: keys of shape " + wanted.to_string() +
                                    " do not fit behind " + to_string(length) +
                                    " positions in a cache of shape " + room.to_string());
}

/// What a window's cache holds and these, of which the last stay in it.
Tensor slid(const Tensor& seen, const Tensor& added) {
  const Tensor all = rearrange(seen, added.to(seen.dtype()), "b h t d, b h s d -> b h (t + s) d");
  const Size count = added.shape()[2];
  seen.copy_from(all.at({every, every, slice(count, count + seen.shape()[2])}));
  return all;
}

/// Writes the keys or values of new positions behind the `length` old ones; all of them.
Tensor extended(const Tensor& seen, Size length, const Tensor& added) {
  const Slice added_positions = slice(length, length + added.shape()[2]);
  seen.at({every, every, added_positions}).copy_from(added);
  return seen.at({every, every, slice(0, added_positions.end)});
}

/// Adds new keys and values to the cache, and gives all that their queries look at.
Seen remembered(KVCache& cache, const Tensor* position, std::int64_t window, const Tensor& keys,
                const Tensor& values) {
  const bool is_window = cache.keys.rank() == 4 && slides(cache, window);
  require_room(cache, position ? Size(0) : cache.length, keys, values, is_window);
  if (is_window) {
    Seen seen{slid(cache.keys, keys), slid(cache.values, values), window};
    if (position) return seen;
    const Size held = cache.length < window ? cache.length : Size(window);
    const Slice there = slice(window - held, window + keys.shape()[2]);
    cache.length += keys.shape()[2];
    return {seen.keys.at({every, every, there}), seen.values.at({every, every, there}), held};
  }
  if (position) {
    const TensorSlice added = slice_of(*position, keys.shape()[2]);
    cache.keys.at({every, every, added}).copy_from(keys);
    cache.values.at({every, every, added}).copy_from(values);
    return {cache.keys, cache.values, 0};
  }
  const Size before = cache.length;
  cache.length += keys.shape()[2];
  return {extended(cache.keys, before, keys), extended(cache.values, before, values), before};
}

constexpr double hidden = -std::numeric_limits<double>::infinity();

/// Scores (..., queries, keys) where a position sees itself and those before it, or so many less
/// one of them.
Tensor masked(const Tensor& scores, Size offset, std::int64_t window) {
  const Tensor causal = tril(scores, "... [q k]", offset, hidden);
  const Size keys = scores.shape()[scores.rank() - 1];
  if (window == 0 || keys <= window) return causal;
  return triu(causal, "... [q k]", offset - window + 1, hidden);
}

/// The same where a tensor says the position of the first query, and key `offset` of the keys is
/// at that position; or key 0 at position 0 where `offset` is 0.
Tensor masked_at(const Tensor& scores, const Tensor& position, Size offset, std::int64_t window) {
  const Device device = position.device();
  const Size queries = scores.shape()[scores.rank() - 2], keys = scores.shape()[scores.rank() - 1];
  const Tensor at = position.view({});
  const Tensor query = (arange(queries, device) + at).view({queries, 1});
  Tensor key = arange(keys, device);
  if (offset != 0) key = key + (at - offset);
  Tensor is_seen = key <= query;
  if (window > 0) is_seen = logical_and(is_seen, query - key < window);
  if (offset != 0) is_seen = logical_and(is_seen, key >= 0);
  return where(is_seen, scores, hidden);
}

}  // namespace

void Attention::split_heads(const Mesh& mesh, std::string_view axis) {
  if (config_.latent)
    throw Error(ErrorKind::value, "Attention: latent attention is not split over a mesh axis");
  mesh_ = mesh;
  heads_over_ = axis;
  c_proj.place(mesh, [&](const std::string& name, const Tensor&) {
    return name == "weight" ? "i@" + heads_over_ + " o" : "";
  });
}

Attention::Projected Attention::projected(const Tensor& x) const {
  const std::int64_t g = config_.key_heads, r = config_.heads / g;
  if (!mesh_) {
    const Tensor y = c_attn(x);
    const std::int64_t d = config_.head_size, q = g * r * d, k = g * d;
    const auto part = [&](std::int64_t from, std::int64_t count) {
      return y.at({every, every, slice(from, from + count)});
    };
    return {rearrange(part(0, q), "b s (g r d) -> b g r s d", "g"_a = g, "r"_a = r),
            rearrange(part(q, k), "b s (g d) -> b g s d", "g"_a = g),
            rearrange(part(q + k, k), "b s (g d) -> b g s d", "g"_a = g)};
  }
  // Each key head with its queries, so that processes have whole ones: n = r queries, key, value.
  const auto by_heads = [&](const Tensor& whole, const std::string& lies) {
    const std::int64_t q = g * r * config_.head_size, k = g * config_.head_size;
    const auto part = [&](std::int64_t from, std::int64_t count) {
      return whole.at({every, slice(from, from + count)});
    };
    const Tensor queries = rearrange(part(0, q), "c (g r d) -> c g r d", "g"_a = g, "r"_a = r),
                 keys = rearrange(part(q, k), "c (g d) -> c g 1 d", "g"_a = g),
                 values = rearrange(part(q + k, k), "c (g d) -> c g 1 d", "g"_a = g);
    return ein::place(
        rearrange(queries, keys, values, "c g r d, c g k d, c g v d -> c g (r + k + v) d"), *mesh_,
        runtime(lies));
  };
  const std::string lies = "c g@" + heads_over_ + " n d";
  Tensor y = einsum(x, by_heads(used(c_attn.weight), lies), "b s c, c g n d -> b g n s d");
  if (c_attn.bias) {
    const Tensor row = rearrange(used(*c_attn.bias), "o -> 1 o");
    y = y + rearrange(by_heads(row, lies).to(y.dtype()), "1 g n d -> 1 g n 1 d");
  }
  return {y.at({every, every, slice(0, r)}), y.at({every, every, Size(r)}),
          y.at({every, every, Size(r + 1)})};
}

Attention::Projected Attention::latent(const Tensor& x, const AttentionPlace& place,
                                       bool absorbed) const {
  const LatentConfig& l = config_.latent.value();
  const std::int64_t h = config_.heads, n = config_.head_size - l.turned;
  const std::int64_t first = l.query_rank > 0 ? l.query_rank : h * config_.head_size;
  const Tensor y = c_attn(x);
  const auto part = [&](std::int64_t from, std::int64_t count) {
    return y.at({every, every, slice(from, from + count)});
  };
  const auto normed = [](const std::unique_ptr<SameAxes>& norm, const Tensor& z) {
    return norm ? norm->forward(z) : z;
  };
  const Tensor flat = q_up ? (*q_up)(normed(q_low_norm_, part(0, first))) : part(0, first);
  const Tensor low = normed(kv_low_norm_, part(first, l.rank));
  const Rotations by =
      place.turns
          ? *place.turns
          : turns(x.shape()[1], place.cache ? place.cache->length : Size(0), place.position);
  const auto layout = config_.rotary->layout;
  const Tensor queries = rearrange(flat, "b s (h d) -> b h s d", "h"_a = h);
  const Tensor still = queries.at({every, every, every, slice(0, n)});
  const Tensor turned =
      rotated(queries.at({every, every, every, slice(n, config_.head_size)}), by, layout);
  const Tensor key =
      rotated(rearrange(part(first + l.rank, l.turned), "b s r -> b 1 s r"), by, layout);
  if (absorbed) {
    const Tensor up = rearrange(used(kv_up->weight), "c (h d) -> c h d", "h"_a = h);
    const Tensor raised =
        einsum(still, up.at({every, every, slice(0, n)}), "b h s d, c h d -> b h s c");
    return {rearrange(raised, turned.to(raised.dtype()), "b h s c, b h s r -> b 1 h s (c + r)"),
            key, rearrange(low, "b s c -> b 1 s c")};
  }
  const Tensor wide = rearrange((*kv_up)(low), "b s (h d) -> b h s d", "h"_a = h);
  const Tensor keys = wide.at({every, every, every, slice(0, n)});
  return {rearrange(still, turned.to(still.dtype()), "b h s d, b h s r -> b h 1 s (d + r)"),
          rearrange(keys, repeat(key, "b 1 s r -> b h s r", "h"_a = h).to(keys.dtype()),
                    "b h s d, b h s r -> b h s (d + r)"),
          wide.at({every, every, every, slice(n, n + l.value_size)})};
}

Tensor Attention::raised(const Tensor& mixed) const {
  const std::int64_t n = config_.head_size - config_.latent->turned;
  const Tensor up = rearrange(used(kv_up->weight), "c (h d) -> c h d", "h"_a = config_.heads);
  return rearrange(einsum(mixed, up.at({every, every, slice(n, n + config_.latent->value_size)}),
                          "b h q c, c h v -> b q h v"),
                   "b q h v -> b q (h v)");
}

Tensor Attention::scores(const Projected& p) const {
  const Tensor products =
      einsum(p.queries, p.keys.to(p.queries.dtype()), "b g r q d, b g k d -> b g r q k");
  const Tensor scaled = config_.scale == 1 ? products : products * config_.scale;
  if (config_.soft_cap == 0) return scaled;
  return tanh(scaled / config_.soft_cap) * config_.soft_cap;
}

Tensor Attention::forward(const Tensor& x, const AttentionPlace& place) const {
  const bool absorbed = config_.latent && place.cache;
  Projected p = config_.latent ? latent(x, place, absorbed) : projected(x);
  if (q_norm_) p.queries = q_norm_->forward(p.queries);
  if (k_norm_) p.keys = k_norm_->forward(p.keys);
  if (config_.rotary && !config_.latent) {
    const Rotations by =
        place.turns
            ? *place.turns
            : turns(x.shape()[1], place.cache ? place.cache->length : Size(0), place.position);
    p.queries = rotated(p.queries, by, config_.rotary->layout);
    p.keys = rotated(p.keys, by, config_.rotary->layout);
  }
  if (!positions_over_.empty()) {
    const std::string way = "... s@" + positions_over_ + " d -> ... s d";
    p.keys = reshard(p.keys, runtime(way));
    p.values = reshard(p.values, runtime(way));
  }
  Size offset = 0;
  if (place.cache) {
    Seen seen = remembered(*place.cache, place.position, config_.window, p.keys, p.values);
    p.keys = seen.keys;
    p.values = seen.values;
    offset = seen.offset;
  }
  // Keys of a latent cache are its rows beside the keys that turn.
  if (absorbed)
    p.keys = rearrange(p.values, p.keys.to(p.values.dtype()), "b g k c, b g k r -> b g k (c + r)");
  const Tensor scores = this->scores(p);
  const Tensor causal = place.position ? masked_at(scores, *place.position, offset, config_.window)
                                       : masked(scores, offset, config_.window);
  const Tensor weights = attention_dropout_(softmax(causal, "b g r q [k]"));
  Tensor mixed = einsum(weights, p.values.to(weights.dtype()), "b g r q k, b g k d -> b g r q d");
  if (config_.sinks) {
    // What is left of the softmax beside a sink: Σ exp / (Σ exp + exp sink).
    const Tensor sum = reduce(causal, "b g r q k -> b g r q 1", "logsumexp");
    const Tensor sink =
        rearrange(used(sinks), "(g r) -> 1 g r 1 1", "g"_a = std::int64_t{causal.shape()[1]});
    mixed = mixed * sigmoid(sum - sink).to(mixed.dtype());
  }
  if (absorbed) return residual_dropout_(c_proj(raised(rearrange(mixed, "b 1 h q c -> b h q c"))));
  return residual_dropout_(c_proj(rearrange(mixed, "b g r q d -> b q (g r d)")));
}

}  // namespace ein::nn
