// Checkpointing of a stack of layers: less memory for one more forward pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <ein/checkpoint.hpp>
#include <ein/tensor.hpp>

namespace ein::nn {

/// ⌈√layers⌉: how many layers of a stack to put into one checkpoint, so that its memory grows with
/// √layers (Chen et al. 2016, arXiv:1604.06174).
inline std::size_t checkpoint_interval(std::size_t layers) {
  return static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(layers))));
}

/// x through all layers, from the first to the last, of which the backward pass remembers the input
/// of every `each`-th layer alone, and runs the layers in between again (ein::checkpoint): at most
/// ⌈layers / each⌉ inputs and the intermediate values of `each` layers are in memory. 0: that of
/// checkpoint_interval. `layers` has size() and operator[], whose results are called with a tensor,
/// as an nn::ModuleList has them; it must live until the backward pass.
template <class Layers>
Tensor through_checkpoints(const Layers& layers, const Tensor& x, std::size_t each = 0) {
  const std::size_t count = layers.size();
  if (each == 0) each = std::max<std::size_t>(1, checkpoint_interval(count));
  Tensor y = x;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t end = begin + (std::min)(each, count - begin);
    y = checkpoint(
        [&layers, begin, end](const Tensor& input) {
          Tensor z = input;
          for (std::size_t i = begin; i < end; ++i) z = layers[i](z);
          return z;
        },
        y);
    begin = end;
  }
  return y;
}

}  // namespace ein::nn
