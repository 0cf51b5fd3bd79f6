#include <ein/nn/layers.hpp>

#include <cmath>
#include <stdexcept>

#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/nn/init.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"

namespace ein::nn {
namespace {

Shape linear_sizes(std::int64_t in, std::int64_t out, Linear::Axes axes) {
  require_size("Linear", "in", in);
  require_size("Linear", "out", out);
  return axes == Linear::Axes::in_out ? Shape{in, out} : Shape{out, in};
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias, Axes axes)
    : weight(empty(linear_sizes(in, out, axes))), axes_(axes) {
  init::normal(weight, 0, 1 / std::sqrt(static_cast<double>(in)));
  add_parameter("weight", weight);
  if (with_bias) add_parameter("bias", bias.emplace(zeros({out})));
}

Tensor Linear::forward(const Tensor& x) const {
  const Tensor y = axes_ == Axes::in_out ? einsum(x, used(weight), "... i, i o -> ... o")
                                         : einsum(x, used(weight), "... i, o i -> ... o");
  return bias ? y + used(*bias).to(y.dtype()) : y;
}

Embedding::Embedding(std::int64_t count, std::int64_t dim)
    : weight(randn(
          {require_size("Embedding", "count", count), require_size("Embedding", "dim", dim)})) {
  add_parameter("weight", weight);
}

Tensor Embedding::forward(const Tensor& positions) const {
  return gather(used(weight), positions, "[v] d, ... -> ... d");
}

LayerNorm::LayerNorm(std::int64_t dim, bool with_bias, double eps)
    : weight(ones({require_size("LayerNorm", "dim", dim)})),
      eps_(require_in(not_negative, "LayerNorm", "eps", eps)) {
  add_parameter("weight", weight);
  if (with_bias) add_parameter("bias", bias.emplace(zeros({dim})));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  if (bias) return layer_norm(x, used(weight), used(*bias), "... [c]", eps_);
  const Tensor y = layer_norm(x, "... [c]", eps_);
  const Size width = x.shape()[x.rank() - 1], dim = weight.shape()[0];
  if (width != dim)
    throw Error(ErrorKind::shape, "LayerNorm: the last axis of x, of shape " +
                                      x.shape().to_string() + ", is " + to_string(width) +
                                      ", dim is " + to_string(dim));
  return y * used(weight).to(y.dtype());
}

RMSNorm::RMSNorm(std::int64_t dim, double eps, bool adds_one)
    : weight(full({require_size("RMSNorm", "dim", dim)}, adds_one ? 0.0 : 1.0)),
      eps_(require_in(not_negative, "RMSNorm", "eps", eps)),
      adds_one_(adds_one) {
  add_parameter("weight", weight);
}

Tensor RMSNorm::forward(const Tensor& x) const {
  const Tensor gain = used(weight);
  return rms_norm(x, adds_one_ ? gain + 1 : gain, "... [c]", eps_);
}

std::unique_ptr<SameAxes> make_norm(std::int64_t dim, const NormConfig& config) {
  switch (config.kind) {
    case NormConfig::Kind::layer:
      return std::make_unique<LayerNorm>(dim, config.bias, config.eps);
    case NormConfig::Kind::rms:
      return std::make_unique<RMSNorm>(dim, config.eps, config.adds_one);
    case NormConfig::Kind::none:
      return nullptr;
  }
  throw std::logic_error("make_norm: a kind that it does not know");
}

Dropout::Dropout(double p) : p_(require_in(below_one, "Dropout", "p", p)) {}

Tensor Dropout::forward(const Tensor& x) const {
  return is_training() && p_ > 0 ? dropout(x, p_) : x;
}

}  // namespace ein::nn
