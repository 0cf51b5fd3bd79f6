// EinMix: a linear layer written as a pattern.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/axis.hpp>
#include <ein/nn/module.hpp>

namespace ein::nn {

/// The pattern's input times a weight, summed over the axes that the output lacks, plus a bias
/// (Rogozhnikov 2022, einops's layer): `EinMix("b s (h c) -> b h s d", "h c d", "h d", "h"_a = 8,
/// "c"_a = 16, "d"_a = 32)`. Parameters "weight" and "bias" have the axes given, whose sizes
/// follow; an empty text is no bias. At first uniform in ±√(3 / n) and ±1/√n, where n is the number
/// of products in each sum of a result.
class EinMix : public Layer {
 public:
  /// Errors: of kind `syntax`; `pattern` for an axis that is in neither side, a bias axis that the
  /// output lacks or that stands before its `...`; `axis_argument` for a size that is missing or
  /// not used; `value` for one below 1.
  template <AxisArgument... S>
  EinMix(std::string_view pattern, std::string_view weight_axes, std::string_view bias_axes,
         const S&... sizes)
      : EinMix(pattern, weight_axes, bias_axes,
               std::initializer_list<RuntimeAxisSize>{named(sizes)...}) {}
  EinMix(std::string_view pattern, std::string_view weight_axes, std::string_view bias_axes,
         std::span<const RuntimeAxisSize> sizes);

  Tensor forward(const Tensor& x) const override;

  Tensor weight;
  std::optional<Tensor> bias;

 private:
  EinMix(std::string_view pattern, std::string_view weight_axes, std::string_view bias_axes,
         std::initializer_list<RuntimeAxisSize> sizes)
      : EinMix(pattern, weight_axes, bias_axes, std::span(sizes.begin(), sizes.size())) {}
  static RuntimeAxisSize named(AxisSize size) { return {std::string(size.name), size.size}; }

  std::string product_, bias_pattern_,
      groups_;  // groups_: from single axes to the output's groups; empty if it has none
  std::vector<RuntimeAxisSize> sizes_;
};

}  // namespace ein::nn
