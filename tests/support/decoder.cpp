#include "decoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <sstream>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include "tensor_values.hpp"

namespace ein::test {
namespace {

using namespace ein::literals;
using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;
using Random = std::mt19937_64;

Tensor normal(const Shape& shape, double scale, double mean, DType of, DType dtype,
              Random& random) {
  std::normal_distribution<double> draw(mean, scale);
  Values values(static_cast<std::size_t>(numel(shape)));
  for (double& x : values) x = stored(draw(random), of);
  return make_tensor(values, shape, dtype);
}

}  // namespace

DecoderModel::DecoderModel(const Decoder& decoder, DType dtype)
    : decoder_(decoder), dtype_(dtype), random_(decoder.seed) {
  const std::int64_t c = decoder_.width(), g = decoder_.key_heads * decoder_.depth;
  const double scale = size() / std::sqrt(static_cast<double>(c));
  for (std::int64_t i = 0; i < decoder_.layers; ++i) {
    Layer& l = layers_.emplace_back();
    for (Tensor* weight : {&l.attention_norm.weight, &l.feed_norm.weight})
      if (decoder_.norm != Norm::none) *weight = parameter({c}, 0.2, 1);
    for (Tensor* bias : {&l.attention_norm.bias, &l.feed_norm.bias})
      if (decoder_.norm == Norm::layer_with_bias) *bias = parameter({c}, 0.2);
    if (decoder_.packed) {
      l.qkv = parameter({c + 2 * g, c}, scale);
    } else {
      l.q = parameter({c, c}, scale);
      l.k = parameter({g, c}, scale);
      l.v = parameter({g, c}, scale);
    }
    l.mixed = parameter({c, c}, scale);
    if (decoder_.biases) l.q_bias = parameter({c}, 0.2), l.mixed_bias = parameter({c}, 0.2);
    if (decoder_.feed == Feed::none) continue;
    l.wide = parameter({2 * c, c}, scale);
    l.narrow = parameter({c, 2 * c}, scale);
    if (decoder_.feed == Feed::gated) l.gate = parameter({2 * c, c}, scale);
    if (decoder_.biases) l.wide_bias = parameter({2 * c}, 0.2), l.narrow_bias = parameter({c}, 0.2);
  }
  if (decoder_.words > 0) words_ = parameter({decoder_.words, c}, 0.3);
  mask_ = arange(decoder_.keys()) <= arange(decoder_.positions).view({decoder_.positions, 1});
  if (decoder_.mask == Mask::added)
    mask_ = where(mask_, zeros({decoder_.positions, decoder_.keys()}, dtype), -INFINITY);
  for (const Tensor& p : parameters_) start_.push_back(get_values(p));
}

void DecoderModel::restart() const {
  const NoGrad no_grad;
  for (std::size_t i = 0; i < start_.size(); ++i) set_values(parameters_[i], start_[i]);
}

Tensors DecoderModel::arguments(std::uint64_t run) const {
  const Decoder& d = decoder_;
  Random random(d.seed * 1000 + run);
  // A mask that is a tensor has the number of positions.
  const bool varies = d.any_length && d.mask != Mask::where && d.mask != Mask::added;
  const std::int64_t positions = d.positions + (varies ? 3 * static_cast<std::int64_t>(run) : 0),
                     rows = std::max<std::int64_t>(d.memory, 1);
  const Tensor input = normal({d.batch, positions, d.width()}, size(), 0, d.dtype, dtype_, random),
               memory = normal({d.batch, rows, d.width()}, 1, 0, d.dtype, dtype_, random);
  Values targets(static_cast<std::size_t>(d.batch * positions));
  for (double& t : targets)
    t = static_cast<double>(random() %
                            static_cast<std::uint64_t>(std::max<std::int64_t>(d.words, 1)));
  return {input, memory, make_tensor(targets, {d.batch, positions}, DType::i64)};
}

Tensors DecoderModel::step(const Tensor& input, const Tensor& memory, const Tensor& targets) const {
  std::optional<Autocast> autocast;
  if (decoder_.autocast && dtype_ != DType::f64) autocast.emplace(DType::bf16);
  const EnableGrad enabled;
  Tensors leaves = parameters_;
  if (decoder_.of_input) leaves.push_back(input.detach().requires_grad(true));
  Tensor x = decoder_.of_input ? leaves.back() : input;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto one = [this, i, &memory](const Tensor& x) { return layer(layers_[i], x, memory); };
    const auto two = [this, i, &memory](const Tensor& x) {
      return layer(layers_[i + 1], layer(layers_[i], x, memory), memory);
    };
    if (decoder_.checkpoint == Checkpoint::pairs_of_layers && i + 1 < layers_.size()) {
      x = checkpoint(two, x);
      ++i;
    } else if (decoder_.checkpoint == Checkpoint::layers) {
      x = checkpoint(one, x);
    } else {
      x = one(x);
    }
  }
  const Tensor loss = decoder_.words > 0 ? cross_entropy(einsum(x, words_, "b s c, v c -> b s v"),
                                                         targets, "b s [v], b s")
                                         : reduce(x * x, "b s c ->", "mean");
  Tensors results{loss.detach()};
  const Tensors slopes = gradients(loss, leaves);
  results.insert(results.end(), slopes.begin(), slopes.end());
  if (!decoder_.updates) return results;
  const NoGrad no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Not far, or scores grow until one ulp of them decides.
    const Tensor& p = parameters_[i];
    p.copy_from(p - slopes[i] / (abs(slopes[i]) + 1) * 0.05);
  }
  return results;
}

Tensor DecoderModel::parameter(const Shape& shape, double scale, double mean) {
  parameters_.push_back(
      normal(shape, scale, mean, decoder_.dtype, dtype_, random_).requires_grad(true));
  return parameters_.back();
}

Tensor DecoderModel::norm(const Tensor& x, const NormWeights& n) const {
  switch (decoder_.norm) {
    case Norm::none:
      return x;
    case Norm::rms:
      return rms_norm(x, n.weight, "b s [c]");
    case Norm::rms_by_hand:
      return x * rsqrt(reduce(x * x, "b s c -> b s 1", "mean") + 1e-6) * n.weight;
    case Norm::layer:
      return layer_norm(x, "b s [c]") * n.weight;
    case Norm::layer_with_bias:
      return layer_norm(x, n.weight, n.bias, "b s [c]");
  }
  return x;
}
Tensor DecoderModel::biased(const Tensor& x, const Tensor& bias) const {
  return decoder_.biases ? x + bias.to(x.dtype()) : x;
}
Tensor DecoderModel::dropped(const Tensor& x) const {
  return decoder_.dropout ? dropout(x, 0.125) : x;
}

Tensor DecoderModel::masked(const Tensor& scores) const {
  switch (decoder_.mask) {
    case Mask::none:
      return scores;
    case Mask::tril:
      return tril(scores, "... [i j]", 0, -INFINITY);
    case Mask::where:
      return where(mask_, scores, -INFINITY);
    case Mask::added:
      return scores + mask_.to(scores.dtype());
    case Mask::window:
      return triu(tril(scores, "... [i j]", 0, -INFINITY), "... [i j]", -3, -INFINITY);
  }
  return scores;
}
Tensor DecoderModel::weights_of(const Tensor& scores) const {
  if (!decoder_.softmax_by_hand) return softmax(scores, "... [k]");
  const Tensor e = exp(scores - reduce(scores, "... k -> ... 1", "max"));
  return e / reduce(e, "... k -> ... 1", "sum");
}

Tensor DecoderModel::attention(const Layer& l, const Tensor& y, const Tensor& of_keys) const {
  const std::int64_t g = decoder_.key_heads, d = decoder_.depth;
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return decoder_.packed ? l.qkv.at({slice(first, first + count)}) : Tensor();
  };
  const std::int64_t c = decoder_.width();
  const Tensor wq = decoder_.packed ? part(0, c) : l.q, wk = decoder_.packed ? part(c, g * d) : l.k,
               wv = decoder_.packed ? part(c + g * d, g * d) : l.v;
  Tensor q = biased(einsum(y, wq, "b s c, o c -> b s o"), l.q_bias);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  if (decoder_.scales_queries) q = q * scale;
  q = rearrange(q, "b s (g r d) -> b g r s d", "g"_a = g, "d"_a = d);
  const Tensor k = einsum(of_keys, wk, "b s c, (g d) c -> b g s d", "g"_a = g),
               v = einsum(of_keys, wv, "b s c, (g d) c -> b g s d", "g"_a = g);
  Tensor scores = einsum(q, k, "b g r q d, b g k d -> b g r q k");
  if (!decoder_.scales_queries) scores = scores * scale;
  const Tensor weights = dropped(weights_of(masked(scores)));
  const Tensor mixed = einsum(weights, v.to(weights.dtype()), "b g r q k, b g k d -> b g r q d");
  return biased(
      einsum(rearrange(mixed, "b g r q d -> b q (g r d)"), l.mixed, "b s c, o c -> b s o"),
      l.mixed_bias);
}
Tensor DecoderModel::feed(const Layer& l, const Tensor& y) const {
  Tensor wide = biased(einsum(y, l.wide, "b s c, f c -> b s f"), l.wide_bias);
  // Squared, as the slope of relu itself jumps where rounding changes a sign.
  wide = decoder_.feed == Feed::relu   ? relu(wide) * relu(wide)
         : decoder_.feed == Feed::gelu ? gelu(wide)
                                       : silu(wide) * einsum(y, l.gate, "b s c, f c -> b s f");
  return biased(einsum(wide, l.narrow, "b s f, c f -> b s c"), l.narrow_bias);
}

Tensor DecoderModel::layer(const Layer& l, const Tensor& x, const Tensor& memory) const {
  const auto added = [&](const Tensor& x, const NormWeights& n, const auto& part) {
    const Tensor y = decoder_.norm_is_last ? norm(part(x), n) : part(norm(x, n));
    return decoder_.residual ? x + dropped(y).to(x.dtype()) : dropped(y).to(x.dtype());
  };
  const auto attend = [this, &l, &memory](const Tensor& y) {
    return attention(l, y, decoder_.memory > 0 ? memory : y);
  };
  const Tensor z = added(x, l.attention_norm, [&](const Tensor& y) {
    return decoder_.checkpoint == Checkpoint::attentions ? checkpoint(attend, y) : attend(y);
  });
  if (decoder_.feed == Feed::none) return z;
  return added(z, l.feed_norm, [&](const Tensor& y) { return feed(l, y); });
}

Decoder make_decoder(std::uint64_t seed) {
  Random random(seed * 0x9E3779B97F4A7C15u + 1);
  const auto one_of = [&](const auto&... values) {
    const std::array list{values...};
    return list[random() % list.size()];
  };
  const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
  Decoder d{.seed = seed};
  d.layers = one_of(1, 1, 2, 2, 2, 3, 3, 4);
  d.batch = one_of(1, 1, 1, 2, 3);
  d.positions = one_of(5, 8, 16, 17, 24, 32, 33, 40, 48, 64, 65, 96);
  d.heads = one_of(1, 2, 2, 3, 4);
  d.depth = one_of(4, 8, 8, 11, 16, 32);
  d.key_heads = d.heads % 2 == 0 && chance(20) ? d.heads / 2 : chance(10) ? 1 : d.heads;
  if (chance(10)) d.memory = one_of(8, 12, 33, 64);
  if (chance(40)) d.words = one_of(2, 11, 65);
  d.norm = one_of(Norm::none, Norm::rms, Norm::rms, Norm::rms_by_hand, Norm::layer,
                  Norm::layer_with_bias);
  d.norm_is_last = chance(15);
  d.mask = one_of(Mask::none, Mask::tril, Mask::tril, Mask::where, Mask::added, Mask::window);
  if (d.memory > 0 && d.mask == Mask::window) d.mask = Mask::tril;  // no row is hidden whole
  d.feed = one_of(Feed::none, Feed::relu, Feed::gelu, Feed::gated);
  d.checkpoint = one_of(Checkpoint::none, Checkpoint::none, Checkpoint::layers,
                        Checkpoint::pairs_of_layers, Checkpoint::attentions);
  d.scales_queries = chance(20);
  d.softmax_by_hand = chance(10);
  d.packed = chance(20);
  d.biases = chance(30);
  d.residual = chance(90);
  d.dropout = chance(10);
  d.of_input = chance(20);
  d.updates = chance(25);
  d.any_length = chance(15);
  d.dtype = chance(20) ? DType::bf16 : DType::f32;
  d.autocast = d.dtype == DType::f32 && chance(20);
  return d;
}

std::string to_string(const Decoder& d) {
  static constexpr std::array norms{"no norm", "rms_norm", "rms_norm by hand", "layer_norm",
                                    "layer_norm with a bias"};
  static constexpr std::array masks{"no mask", "tril", "where", "an added mask", "a window"};
  static constexpr std::array feeds{"no feed-forward", "relu", "gelu", "a gate"};
  static constexpr std::array checkpoints{"no checkpoint", "layers checkpointed",
                                          "pairs of layers checkpointed",
                                          "attentions checkpointed"};
  const auto of = [](const auto& list, auto value) {
    return list[static_cast<std::size_t>(value)];
  };
  std::ostringstream text;
  text << "decoder " << d.seed << ": " << d.layers << " layers, " << d.batch << " x " << d.positions
       << ", " << d.heads << " heads of " << d.depth << " (" << d.key_heads << " of keys), "
       << of(norms, d.norm) << (d.norm_is_last ? " last, " : ", ") << of(masks, d.mask) << ", "
       << of(feeds, d.feed) << ", " << of(checkpoints, d.checkpoint) << ", " << name(d.dtype);
  if (d.memory > 0) text << ", keys of " << d.memory << " other rows";
  if (d.words > 0) text << ", " << d.words << " words";
  const std::pair<bool, const char*> marks[] = {
      {d.scales_queries, "queries scaled"},   {d.softmax_by_hand, "softmax by hand"},
      {d.packed, "packed weights"},           {d.biases, "biases"},
      {!d.residual, "no residual"},           {d.dropout, "dropout"},
      {d.of_input, "gradient of the inputs"}, {d.updates, "updates"},
      {d.any_length, "any length"},           {d.autocast, "autocast to bf16"}};
  for (const auto& [is_so, mark] : marks)
    if (is_so) text << ", " << mark;
  return text.str();
}

}  // namespace ein::test
