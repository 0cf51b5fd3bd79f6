#include "account/layers.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/named.hpp>
#include <ein/shapes_only.hpp>

#include "account/divided.hpp"
#include "compile/passes.hpp"
#include "cost/step_bill.hpp"

namespace ein::accounting {
namespace {

Count elements(const Tensor& x) { return Count(x.numel()); }

/// The config of layers of these kinds alone.
nn::DecoderConfig with_layers(nn::DecoderConfig config, const std::vector<LayerKind>& kinds) {
  const nn::DecoderConfig whole = config;
  config.layers = static_cast<std::int64_t>(kinds.size());
  config.is_local.clear();
  config.is_mixture.clear();
  for (const LayerKind& kind : kinds) {
    const auto first = static_cast<std::size_t>(kind.layers.front());
    config.is_local.push_back(first < whole.is_local.size() && whole.is_local[first]);
    config.is_mixture.push_back(kind.has_mixture);
  }
  if (!config.local_attention) config.is_local.clear();
  if (!config.mixture) config.is_mixture.clear();
  return config;
}

std::vector<LayerKind> kinds_of(const nn::DecoderConfig& config) {
  std::vector<LayerKind> kinds;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const nn::AttentionConfig& attention = config.attention_of(i);
    const bool has_mixture = config.has_mixture(i);
    const auto kind = std::ranges::find_if(kinds, [&](const LayerKind& k) {
      return k.attention == attention && k.has_mixture == has_mixture;
    });
    if (kind == kinds.end())
      kinds.push_back({.attention = attention, .has_mixture = has_mixture, .layers = {i}});
    else
      kind->layers.push_back(i);
  }
  return kinds;
}

void count_parameters(LayerKind& kind, const nn::Block& block, const nn::DecoderConfig& config) {
  for (const auto& [name, parameter] : block.named_parameters()) {
    const Count n = elements(parameter);
    if (name.starts_with("ln_") || name.find("_norm.") != name.npos) {
      kind.norms += n;
    } else if (name.starts_with("attn.")) {
      kind.attention_parameters += n;
    } else if (kind.has_mixture && name.starts_with("mlp.c_")) {
      kind.experts += n;
      kind.chosen_experts +=
          divided(n, config.mixture->experts).value * Count(config.mixture->chosen);
    } else if (name.starts_with("mlp.router.")) {
      kind.router += n;
    } else {
      kind.feed_forward += n;
    }
  }
}

/// Products of a forward pass of one sequence of zeros.
template <class Layer>
Count products(const ShapesOnly& shapes, const Layer& layer, std::int64_t positions,
               std::int64_t width) {
  const NoGrad no_grad;
  return shapes.cost(layer.forward(empty({1, positions, width}))).matmul_only;
}

void count_products(LayerKind& kind, const ShapesOnly& shapes, const nn::Block& block,
                    const nn::DecoderConfig& config) {
  // p·T + a·T² of T tokens.
  const Count one = products(shapes, block.attn, 1, config.width),
              two = products(shapes, block.attn, 2, config.width);
  kind.of_a_position = divided(two - one - one, 2).value;
  kind.projections = one - kind.of_a_position;
  if (!kind.has_mixture) {
    kind.network = products(shapes, *block.mlp, 1, config.width);
  } else {
    // As many tokens as experts are spread evenly over them.
    const std::int64_t tokens = config.mixture->experts;
    kind.network = divided(products(shapes, *block.mixture, tokens, config.width), tokens).value;
  }
}

}  // namespace

std::int64_t LayerKind::seen(std::int64_t positions) const {
  return attention.window > 0 ? std::min(attention.window, positions) : positions;
}

Count LayerKind::seen_by_all(std::int64_t positions) const {
  const std::int64_t most = seen(positions);
  // 1 + 2 + ... + most, then most for each of the others.
  const Count growing =
      most % 2 == 0 ? Count(most / 2) * Count(most + 1) : Count(most) * Count((most + 1) / 2);
  return growing + Count(positions - most) * Count(most);
}

Count CountedDecoder::parameters() const {
  Count sum = tokens_table + positions_table + last_norm + head;
  for (const LayerKind& kind : kinds) sum += kind.count() * kind.parameters();
  return sum;
}
Count CountedDecoder::active() const {
  Count sum = tokens_table + positions_table + last_norm + head;
  for (const LayerKind& kind : kinds) sum += kind.count() * kind.active();
  return sum;
}
Count CountedDecoder::matrices() const {
  Count sum = 0;
  for (const LayerKind& kind : kinds) sum += kind.count() * (kind.projections + kind.network);
  return sum;
}

Count CountedDecoder::causal(std::int64_t context, std::int64_t heads) const {
  Count sum = matrices() * Count(context) + head_products * Count(heads);
  for (const LayerKind& kind : kinds)
    sum += kind.count() * kind.of_a_position * kind.seen_by_all(context);
  return sum;
}
Count CountedDecoder::decode(std::int64_t positions) const {
  Count sum = head_products;
  for (const LayerKind& kind : kinds)
    sum += kind.count() * (kind.decode_projections + kind.network +
                           kind.decode_of_a_position * Count(kind.seen(positions)));
  return sum;
}
Count CountedDecoder::cached(std::int64_t positions) const {
  Count sum = 0;
  for (const LayerKind& kind : kinds)
    sum += kind.count() * Count(kind.cached) * Count(kind.seen(positions));
  return sum;
}

namespace {

void count_decode(CountedDecoder& decoder, const nn::DecoderConfig& small) {
  for (std::size_t k = 0; k < decoder.kinds.size(); ++k) {
    LayerKind& kind = decoder.kinds[k];
    Shape keys, values;
    {
      const ShapesOnly shapes;
      const nn::KVCache cache =
          nn::Block(small, static_cast<std::int64_t>(k)).attn.make_cache(1, 2);
      keys = cache.keys.shape();
      values = cache.values.shape();
    }
    // Nothing of shapes alone is written to, so that the cache is of two positions and real.
    const nn::KVCache cache{zeros(keys), zeros(values), 0};
    const auto of_token = [&](std::int64_t before) {
      // Of its own: a second call would read what the first has written.
      const ShapesOnly shapes;
      const nn::Block block(small, static_cast<std::int64_t>(k));
      nn::KVCache longer = cache;
      longer.length = before;
      return shapes.cost(block.attn.forward(empty({1, 1, small.width}), longer)).matmul_only;
    };
    const Count one = of_token(0);
    // Of a window of one position there is no second.
    kind.decode_of_a_position = std::int64_t{keys[2]} < 2 ? kind.of_a_position : of_token(1) - one;
    kind.decode_projections = one - kind.decode_of_a_position;
  }
}

CountedDecoder of_shapes(const nn::DecoderConfig& config) {
  const ShapesOnly shapes;
  CountedDecoder decoder;
  if (config.layers < 1) nn::Decoder{config};  // refuses it
  decoder.kinds = kinds_of(config);
  const nn::DecoderConfig small = with_layers(config, decoder.kinds);
  const nn::Decoder model(small);
  Count of_layers = 0;
  for (std::size_t k = 0; k < decoder.kinds.size(); ++k) {
    LayerKind& kind = decoder.kinds[k];
    const nn::Block block(small, static_cast<std::int64_t>(k));
    kind.attention = block.attn.config();  // with all sizes
    count_parameters(kind, block, config);
    count_products(kind, shapes, block, config);
    const nn::KVCache cache = block.attn.make_cache(1, 1);
    kind.cached = cache.keys.numel() + cache.values.numel();
    of_layers += kind.projections + kind.of_a_position + kind.network;
  }
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (name == "transformer.wte.weight") decoder.tokens_table += elements(parameter);
    if (name == "transformer.wpe.weight") decoder.positions_table += elements(parameter);
    if (name.starts_with("transformer.ln_f.")) decoder.last_norm += elements(parameter);
    if (name.starts_with("lm_head.")) decoder.head += elements(parameter);
  }
  const NoGrad no_grad;
  decoder.head_products = shapes.cost(model(empty({1, 1}, DType::i64))).matmul_only - of_layers;
  return decoder;
}

}  // namespace

CountedDecoder counted(const nn::DecoderConfig& config) {
  CountedDecoder decoder = of_shapes(config);
  count_decode(decoder, with_layers(config, decoder.kinds));
  return decoder;
}

std::vector<Count> cache_elements(const CountedDecoder& decoder, const nn::DecoderConfig& config,
                                  std::int64_t positions) {
  const ShapesOnly shapes;
  std::vector<Count> elements_of;
  for (const nn::KVCache& layer :
       nn::Decoder(with_layers(config, decoder.kinds)).make_cache(1, positions))
    elements_of.push_back(elements(layer.keys) + elements(layer.values));
  return elements_of;
}

namespace {

Count kept_bytes(const nn::DecoderConfig& config, std::int64_t batch, std::int64_t context,
                 DType dtype) {
  const ShapesOnly shapes;
  const nn::Decoder model(config);
  const Tensor tokens = empty({batch, context}, DType::i64);
  std::optional<Autocast> autocast;
  if (dtype != DType::f32) autocast.emplace(dtype);
  const Tensor loss = cross_entropy(model(tokens), tokens, "b s [v], b s");
  loss.backward();
  std::vector<Tensor> results{loss};
  for (const Tensor& parameter : model.parameters()) {
    if (parameter.has_grad()) results.push_back(parameter.grad());
  }
  Graph graph = shapes.graph(results);
  const engine::Job job = engine::job_of(graph, engine::Job::Of::function);
  engine::Compilation made = engine::lowered(std::move(graph), job);
  engine::group(made.program, job);
  return Count(std::uint64_t{step_bill(made.program).activations});
}

}  // namespace

Activations activations(const CountedDecoder& decoder, const nn::DecoderConfig& config,
                        std::int64_t batch, std::int64_t context, DType dtype) {
  Activations kept;
  const std::vector<LayerKind>& kinds = decoder.kinds;
  const Count once = kept_bytes(with_layers(config, kinds), batch, context, dtype);
  kept.beside = once;
  for (const LayerKind& kind : kinds) {
    std::vector<LayerKind> twice = kinds;
    twice.push_back(kind);
    kept.of_layer.push_back(kept_bytes(with_layers(config, twice), batch, context, dtype) - once);
    kept.beside -= kept.of_layer.back();
  }
  return kept;
}

}  // namespace ein::accounting
