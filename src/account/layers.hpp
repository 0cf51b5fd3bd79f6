// The layers of a decoder by kind, and what one of each kind has and costs, of its graph.
#pragma once

#include <cstdint>
#include <vector>

#include <ein/count.hpp>
#include <ein/dtype.hpp>
#include <ein/nn/decoder.hpp>

namespace ein::accounting {

/// Layers that are alike. FLOPs are sums of products of a forward pass.
struct LayerKind {
  nn::AttentionConfig attention;
  bool has_mixture = false;
  std::vector<std::int64_t> layers;  // their numbers

  // Elements.
  Count attention_parameters = 0, norms = 0;
  Count feed_forward = 0;  // of a mixture the experts for all tokens
  Count router = 0, experts = 0, chosen_experts = 0;
  Count parameters() const {
    return attention_parameters + norms + feed_forward + router + experts;
  }
  Count active() const {
    return attention_parameters + norms + feed_forward + router + chosen_experts;
  }

  Count projections = 0;    // of attention, of a token
  Count of_a_position = 0;  // of attention, of a token for each position that it looks at
  // The same of one token with a cache.
  Count decode_projections = 0, decode_of_a_position = 0;
  Count network = 0;  // feed-forward or mixture, of a token

  std::int64_t cached = 0;  // elements of a position that the cache keeps

  std::int64_t value_size() const {
    return attention.latent ? attention.latent->value_size : attention.head_size;
  }
  Count count() const { return Count(std::uint64_t{layers.size()}); }
  /// Positions that a token looks at where there are so many, itself among them.
  std::int64_t seen(std::int64_t positions) const;
  /// The same of each of so many tokens, added up.
  Count seen_by_all(std::int64_t positions) const;
};

/// All of a decoder, whose layers are counted by kind.
struct CountedDecoder {
  std::vector<LayerKind> kinds;
  Count tokens_table = 0, positions_table = 0, last_norm = 0;
  Count head = 0;           // elements of a head of its own
  Count head_products = 0;  // of a token

  Count parameters() const;
  Count active() const;
  /// Products of a token without those of attention with positions, and without the head.
  Count matrices() const;
  /// Products of all tokens of a sequence, without positions that the mask hides, and with the head
  /// on so many tokens.
  Count causal(std::int64_t context, std::int64_t heads) const;
  /// Elements of the cache of a sequence of so many positions, in all layers.
  Count cached(std::int64_t positions) const;
  /// Products of one token, the last of so many.
  Count decode(std::int64_t positions) const;
};

/// Nothing of it is in memory. Errors are those of nn::Decoder.
CountedDecoder counted(const nn::DecoderConfig& config);

/// Elements of the cache of one sequence of so many positions: of a layer of each kind.
std::vector<Count> cache_elements(const CountedDecoder& decoder, const nn::DecoderConfig& config,
                                  std::int64_t positions);

/// Bytes of the values that the forward pass of a training step keeps for the backward pass, by the
/// plan of a compiled function.
struct Activations {
  std::vector<Count> of_layer;  // of each kind
  Count beside = 0;             // of embeddings, the head and the loss
};
Activations activations(const CountedDecoder& decoder, const nn::DecoderConfig& config,
                        std::int64_t batch, std::int64_t context, DType dtype);

}  // namespace ein::accounting
