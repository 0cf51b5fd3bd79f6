#include <ein/nn/init.hpp>

#include <cmath>
#include <limits>
#include <string>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include "graph/domain.hpp"
#include "runtime/trace.hpp"
#include "tensor/round.hpp"

namespace ein::nn::init {
namespace {

struct Fans {
  double in = 0, out = 0;
};
Fans fans(const char* what, const Tensor& weight) {
  if (weight.rank() != 2) {
    throw Error(ErrorKind::rank, std::string(what) + ": wants a weight (in, out), got shape " +
                                     weight.shape().to_string());
  }
  return {static_cast<double>(weight.shape()[0]), static_cast<double>(weight.shape()[1])};
}

void set(const Tensor& x, const Tensor& value) {
  if (engine::Trace::of_shapes()) return;  // there are no elements
  const NoGrad no_grad;
  x.copy_from(value);
}

}  // namespace

void normal(const Tensor& x, double mean, double std) {
  require_in(not_negative, "normal", "std", std);
  set(x, randn(x.shape(), x.dtype()) * std + mean);
}

void uniform(const Tensor& x, double low, double high) {
  const Tensor u = rand(x.shape(), x.dtype());  // which refuses dtypes that are not floating
  if (!(low < high)) return set(x, u * (high - low) + low);
  // Rounding the product and the sum must neither reach `high` nor go below `low`.
  const Bounds bounds = bounds_within(
      "uniform", x.dtype(), low, std::nextafter(high, -std::numeric_limits<double>::infinity()));
  set(x, minimum(maximum(u * (high - low) + low, bounds.least), bounds.greatest));
}

void trunc_normal(const Tensor& x, double std, double a, double b) {
  set(x, ein::trunc_normal(x.shape(), std, a, b, x.dtype()));
}

void fan_in_normal(const Tensor& weight) {
  normal(weight, 0, 1 / std::sqrt(fans("fan_in_normal", weight).in));
}

void xavier_normal(const Tensor& weight) {
  const Fans fan = fans("xavier_normal", weight);
  normal(weight, 0, std::sqrt(2 / (fan.in + fan.out)));
}
void xavier_uniform(const Tensor& weight) {
  const Fans fan = fans("xavier_uniform", weight);
  const double bound = std::sqrt(6 / (fan.in + fan.out));
  uniform(weight, -bound, bound);
}

void kaiming_normal(const Tensor& weight) {
  normal(weight, 0, std::sqrt(2 / fans("kaiming_normal", weight).in));
}
void kaiming_uniform(const Tensor& weight) {
  const double bound = std::sqrt(6 / fans("kaiming_uniform", weight).in);
  uniform(weight, -bound, bound);
}

}  // namespace ein::nn::init
