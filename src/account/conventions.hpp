// What a token costs by the formulas that others count with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "account/layers.hpp"

namespace ein::accounting {

/// FLOPs of a token by one formula.
struct Convention {
  std::string key, name, formula;
  Count flops = 0;
};

/// Of training, forward and backward, in sequences of so many tokens. A convention that says
/// nothing of mixtures or of latent attention is left out for such models.
std::vector<Convention> training_conventions(const CountedDecoder& decoder,
                                             const nn::DecoderConfig& config, std::int64_t context);
/// Of a forward pass: a third of those that take training for three of them.
std::vector<Convention> forward_conventions(const CountedDecoder& decoder,
                                            const nn::DecoderConfig& config, std::int64_t context);

}  // namespace ein::accounting
