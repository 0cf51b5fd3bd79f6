#include <ein/nn/feed_forward.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/nn/init.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"
#include "runtime/trace.hpp"

namespace ein::nn {

using namespace ein::literals;

Tensor activated(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      // (1 + tanh(y)) / 2 is sigmoid(2·y).
      return x * sigmoid((x + x * x * x * 0.044715) *
                         (2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
    case Activation::silu:
      return silu(x);
    case Activation::relu:
      return relu(x);
  }
  throw std::logic_error("activated: a function that it does not know");
}

std::int64_t inner_width(const FeedForwardConfig& config, std::int64_t dim) {
  require_size("MLP", "dim", dim);
  require_at_least(0, "MLP", "width", config.width);
  if (config.width > 0) return config.width;
  require_size("MLP", "multiple", config.multiple);
  if (config.multiple == 1 && config.ratio == 4) return require_product("MLP", "dim", 4, dim);
  const auto multiple = static_cast<double>(config.multiple);
  const double width =
      std::round(require_in({.least_is_open = true}, "MLP", "ratio", config.ratio) *
                 static_cast<double>(dim) / multiple) *
      multiple;
  if (width >= 1 && width < 0x1p53) return static_cast<std::int64_t>(width);
  throw Error(ErrorKind::value, "MLP: ratio " + std::to_string(config.ratio) + " times dim " +
                                    std::to_string(dim) + ", rounded to a multiple of " +
                                    std::to_string(config.multiple) + ", is no size");
}

MLP::MLP(std::int64_t dim, bool with_bias, double dropout)
    : MLP(dim, FeedForwardConfig{.bias = with_bias}, dropout) {}

MLP::MLP(std::int64_t dim, const FeedForwardConfig& config, double dropout)
    : c_fc(dim, inner_width(config, dim), config.bias),
      c_proj(inner_width(config, dim), dim, config.bias),
      config_(config),
      dropout_(dropout) {
  add_module("c_fc", c_fc);
  if (config.gated) {
    c_gate = std::make_unique<Linear>(dim, inner_width(config, dim), config.bias);
    add_module("c_gate", *c_gate);
  }
  add_module("c_proj", c_proj);
  add_module("dropout", dropout_);
}

namespace {

Tensor gated(const Tensor& gate, const Tensor& up, const FeedForwardConfig& config) {
  if (config.limit == 0) return activated(gate, config.activation) * up;
  const Tensor g = minimum(gate, config.limit);
  return g * sigmoid(g * 1.702) * (clamp(up, -config.limit, config.limit) + 1);
}

}  // namespace

Tensor MLP::forward(const Tensor& x) const {
  const Tensor inner =
      c_gate ? gated((*c_gate)(x), c_fc(x), config_) : activated(c_fc(x), config_.activation);
  return dropout_(c_proj(inner));
}

namespace {

Tensor experts_weight(std::int64_t experts, std::int64_t in, std::int64_t out) {
  const Tensor weight = empty({experts, in, out});
  init::normal(weight, 0, 1 / std::sqrt(static_cast<double>(in)));
  return weight;
}

const MixtureConfig& checked(const MixtureConfig& config) {
  require_size("Mixture", "experts", config.experts);
  require_size("Mixture", "chosen", config.chosen);
  if (config.chosen > config.experts) {
    throw Error(ErrorKind::value, "Mixture: " + std::to_string(config.chosen) + " of " +
                                      std::to_string(config.experts) + " experts are to be chosen");
  }
  require_at_least(0, "Mixture", "shared_width", config.shared_width);
  require_in(not_negative, "Mixture", "capacity", config.capacity);
  require_in(not_negative, "Mixture", "scaling", config.scaling);
  require_size("Mixture", "groups", config.groups);
  require_size("Mixture", "chosen_groups", config.chosen_groups);
  const std::int64_t of_group = config.experts / config.groups;
  if (config.experts % config.groups != 0 || config.chosen_groups > config.groups ||
      (config.groups > 1 && (!config.sigmoid || of_group < 2)) ||
      config.chosen_groups * of_group < config.chosen) {
    throw Error(ErrorKind::value,
                "Mixture: " + std::to_string(config.chosen) + " of " +
                    std::to_string(config.experts) + " experts are no choice of " +
                    std::to_string(config.chosen_groups) + " of " + std::to_string(config.groups) +
                    " groups; groups want sigmoids, and two experts each");
  }
  return config;
}

/// For each token (n) and choice (k) an expert, and its weight; and the softmax over all experts.
struct Routes {
  Tensor experts, weights, all;
};

/// DeepSeek-V3's: weights are scores without the correction, by which experts are chosen.
Routes sigmoid_routes(const Tensor& wide, const Tensor& correction, const MixtureConfig& config) {
  const std::int64_t g = config.groups;
  const Tensor scores = sigmoid(wide);
  Tensor choice = scores + correction.to(scores.device());
  if (config.chosen_groups < g) {
    const Tensor by_group = rearrange(choice, "n (g e) -> n g e", "g"_a = g);
    const Tensor worth = reduce(top_k(by_group, "n g [e]", 2).values, "n g k -> n g", "sum");
    const Tensor best = top_k(worth, "n [g]", config.chosen_groups).positions;
    const Tensor chosen =
        reduce(one_hot(best, "n k -> n k [g]", "g"_a = g), "n k g -> n g 1", "sum");
    choice = rearrange(where(chosen > 0, by_group, -std::numeric_limits<double>::infinity()),
                       "n g e -> n (g e)");
  }
  const Tensor experts = top_k(choice, "n [e]", config.chosen).positions;
  const Tensor kept = gather(scores, experts, "n [e], n k -> n k");
  const Tensor weights =
      config.normalised ? kept / (reduce(kept, "n k -> n 1", "sum") + 1e-20) : kept;
  return {experts, weights * config.scaling, scores / reduce(scores, "n e -> n 1", "sum")};
}

Routes routes(const Tensor& scores, const Tensor& correction, const MixtureConfig& config) {
  const Tensor wide = scores.to(DType::f32);
  if (config.sigmoid) return sigmoid_routes(wide, correction, config);
  const Tensor all = softmax(wide, "n [e]");
  if (config.softmax_over_chosen) {
    const Sorted best = top_k(wide, "n [e]", config.chosen);
    return {best.positions, softmax(best.values, "n [k]"), all};
  }
  const Sorted best = top_k(all, "n [e]", config.chosen);
  return {best.positions,
          config.normalised ? best.values / reduce(best.values, "n k -> n 1", "sum") : best.values,
          all};
}

/// How many tokens the table of an expert has room for: `counts` say how many choose each.
Size room_of(const MixtureConfig& config, const Tensor& counts, Size tokens) {
  if (!engine::Trace::active() && config.capacity == 0)
    return reduce(counts, "e ->", "max").item<std::int64_t>();
  const bool shapes_only = engine::Trace::of_shapes();
  if (config.capacity == 0 && !shapes_only) return tokens;
  // Of shapes alone: as many as there are if all experts get alike.
  const double part = (shapes_only && config.capacity == 0 ? 1 : config.capacity) *
                      static_cast<double>(config.chosen) / static_cast<double>(config.experts);
  const auto mean =
      static_cast<std::int64_t>(std::ceil(part * static_cast<double>(std::int64_t{tokens})));
  return std::min<std::int64_t>(std::max<std::int64_t>(mean, 1), std::int64_t{tokens});
}

}  // namespace

Mixture::Mixture(std::int64_t dim, const MixtureConfig& config, double dropout)
    : router(dim, checked(config).experts, config.router_bias),
      c_fc(experts_weight(config.experts, dim, inner_width(config.expert, dim))),
      c_gate(config.expert.gated
                 ? experts_weight(config.experts, dim, inner_width(config.expert, dim))
                 : c_fc),
      c_proj(experts_weight(config.experts, inner_width(config.expert, dim), dim)),
      config_(config),
      dropout_(dropout) {
  if (config.sigmoid) correction = zeros({config.experts});
  add_module("router", router);
  add_parameter("c_fc", c_fc);
  if (config.expert.gated) add_parameter("c_gate", c_gate);
  add_parameter("c_proj", c_proj);
  if (config.expert.bias) {
    const std::int64_t inner = inner_width(config.expert, dim);
    c_fc_bias = zeros({config.experts, inner});
    add_parameter("c_fc_bias", c_fc_bias);
    if (config.expert.gated) {
      c_gate_bias = zeros({config.experts, inner});
      add_parameter("c_gate_bias", c_gate_bias);
    }
    c_proj_bias = zeros({config.experts, dim});
    add_parameter("c_proj_bias", c_proj_bias);
  }
  if (config.shared_width > 0) {
    FeedForwardConfig of_shared = config.expert;
    of_shared.width = config.shared_width;
    shared = std::make_unique<MLP>(dim, of_shared);
    add_module("shared", *shared);
  }
  add_module("dropout", dropout_);
}

Tensor Mixture::of_tables(const Tensor& rows, const Tensor& chosen, const Tensor& is_of,
                          Size room) const {
  const std::int64_t e = config_.experts;
  // How many chose the same expert before.
  const Tensor place = gather(cumsum(is_of, "[m] e"), chosen, "m [e], m -> m") - 1;
  // Behind the tables there is a row for those without a place.
  const Tensor row = where(place < room, chosen * room + place, ein::Scalar(room * e));
  const Tensor tables = scatter_add(rows, row, "m c, m -> [v] c", "v"_a = room * e + 1);
  const Tensor taken = rearrange(tables.at({slice(0, room * e)}), "(e t) c -> e t c", "e"_a = e);
  const auto through = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const Tensor y = einsum(x, used(weight), "e t i, e i o -> e t o");
    return config_.expert.bias ? y + rearrange(used(bias), "e o -> e 1 o").to(y.dtype()) : y;
  };
  const Tensor wide = through(taken, c_fc, c_fc_bias);
  const Tensor inner = config_.expert.gated
                           ? gated(through(taken, c_gate, c_gate_bias), wide, config_.expert)
                           : activated(wide, config_.expert.activation);
  const Tensor made = through(inner, c_proj, c_proj_bias);
  return gather(pad(rearrange(made, "e t c -> (e t) c"), "[v] c", 0, 1), row, "[v] c, m -> m c");
}

Tensor Mixture::of_rows(const Tensor& rows, const Tensor& chosen) const {
  const auto through = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const Tensor y =
        einsum(x, gather(used(weight), chosen, "[e] i o, m -> m i o"), "m i, m i o -> m o");
    return config_.expert.bias ? y + gather(used(bias), chosen, "[e] o, m -> m o").to(y.dtype())
                               : y;
  };
  const Tensor wide = through(rows, c_fc, c_fc_bias);
  const Tensor inner = config_.expert.gated
                           ? gated(through(rows, c_gate, c_gate_bias), wide, config_.expert)
                           : activated(wide, config_.expert.activation);
  return through(inner, c_proj, c_proj_bias);
}

Tensor Mixture::forward(const Tensor& x, Tensor* balance) const {
  const std::int64_t e = config_.experts, k = config_.chosen;
  const Tensor rows = rearrange(x, "b s c -> (b s) c");
  const Size n = rows.shape()[0];
  const Routes to = routes(router(rows), correction, config_);
  // Of each choice, token after token.
  const Tensor chosen = rearrange(to.experts, "n k -> (n k)"),
               repeated = repeat(rows, "n c -> (n k) c", "k"_a = k);
  const Tensor is_of = one_hot(chosen, "m -> m [e]", "e"_a = e, DType::i64);
  const Tensor counts = reduce(is_of, "m e -> e", "sum");
  if (balance) {
    const Tensor part = counts.to(DType::f32) / reduce(counts, "e ->", "sum").to(DType::f32);
    *balance = *balance +
               einsum(part, reduce(to.all, "n e -> e", "mean"), "e, e ->") * static_cast<double>(e);
  }
  const Tensor found = n * k <= e ? of_rows(repeated, chosen)
                                  : of_tables(repeated, chosen, is_of, room_of(config_, counts, n));
  // No product of matrices: each choice by its weight, added up.
  const Tensor weighted = rearrange(found, "(n k) c -> n k c", "k"_a = k) *
                          rearrange(to.weights.to(found.dtype()), "n k -> n k 1");
  const Tensor mixed = reduce(weighted, "n k c -> n c", "sum");
  const Tensor routed = mixed.reshape(x.shape());
  return dropout_(shared ? routed + shared->forward(x) : routed);
}

}  // namespace ein::nn
