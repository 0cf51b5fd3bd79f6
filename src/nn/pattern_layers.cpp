#include <ein/nn/pattern_layers.hpp>

namespace ein::nn {

Tensor PatternLayer::forward(const Tensor& x) const {
  const std::vector<AxisSize> sizes(sizes_.begin(), sizes_.end());
  const Tensor* const operand = &x;
  return detail::run_one(
      {op_, detail::PatternArgument(pattern_), {&operand, 1}, sizes, reduction_});
}

}  // namespace ein::nn
