// A step of training a layer of attention.
#pragma once

#include <optional>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

namespace ein::test {

/// The loss on x against y, and the gradient of each parameter.
inline std::vector<Tensor> attention_step(const nn::Attention& layer, const Tensor& x,
                                          const Tensor& y, std::optional<DType> autocast) {
  Tensor result;
  {
    std::optional<Autocast> scope;
    if (autocast) scope.emplace(*autocast);
    result = layer(x);
  }
  const Tensor off = result.to(DType::f32) - y;
  layer.zero_grad();
  const Tensor loss = reduce(off * off, "b s d ->", Reduction::mean);
  loss.backward();
  std::vector<Tensor> results{loss};
  for (const Tensor& p : layer.parameters()) results.push_back(p.grad());
  return results;
}

}  // namespace ein::test
