// Cruncher: linear layers without bias, and one number at the end.
#pragma once

#include <cstdint>

#include <ein/nn/layers.hpp>

namespace ein::nn {

/// `layers` linear layers dim -> dim and one dim -> 1, none with a bias: (..., dim) -> (...). The
/// model of Stanford CS336's lecture on resource accounting. Modules "layers", "final".
class Cruncher : public Layer {
 public:
  /// An Error of kind `value` for dim below 1 or layers below 0.
  Cruncher(std::int64_t dim, std::int64_t layers);
  Tensor forward(const Tensor& x) const override;

  ModuleList<Linear> layers;
  Linear final;
};

}  // namespace ein::nn
