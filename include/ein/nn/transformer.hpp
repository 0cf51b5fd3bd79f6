// The Transformer in the form and with the names of GPT-2 (Radford et al. 2019).
#pragma once

#include <cstdint>

#include <ein/nn/decoder.hpp>

namespace ein::nn {

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
/// The same as a decoder: learned positions, layer norms before, gelu by its exact formula, tied.
DecoderConfig decoder_config(const TransformerConfig& config);

/// The decoder of `ein train`.
class Transformer : public Decoder {
 public:
  explicit Transformer(const TransformerConfig& config)
      : Decoder(decoder_config(config)), sizes_(config) {}
  const TransformerConfig& sizes() const { return sizes_; }

 private:
  TransformerConfig sizes_;
};

}  // namespace ein::nn
