#include <ein/nn/cruncher.hpp>

#include <ein/ops.hpp>
#include "nn/require.hpp"

namespace ein::nn {

Cruncher::Cruncher(std::int64_t dim, std::int64_t count)
    : final(require_size("Cruncher", "dim", dim), 1, false) {
  require_at_least(0, "Cruncher", "layers", count);
  add_module("layers", layers);
  add_module("final", final);
  for (std::int64_t i = 0; i < count; ++i) layers.emplace_back(dim, dim, false);
}

Tensor Cruncher::forward(const Tensor& x) const {
  Tensor y = x;
  for (const Linear& layer : layers) y = layer(y);
  return rearrange(final(y), "... 1 -> ...");
}

}  // namespace ein::nn
