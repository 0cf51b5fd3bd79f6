#include <ein/grad_scaler.hpp>

#include <limits>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/dtype.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "graph/domain.hpp"
#include "graph/named.hpp"
#include "runtime/real_gradient.hpp"

namespace ein {
namespace {

/// False for infinities and NaN.
Tensor is_finite(const Tensor& x) { return abs(x) <= finfo(x.dtype()).max; }

/// Whether a scale is one, as the f32 that it becomes.
bool is_scale(double scale) {
  const Finfo info = finfo(DType::f32);
  return scale <= info.max && static_cast<float>(scale) >= info.tiny;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options),
      scale_(full({}, options.scale, options.device)),
      clean_steps_(zeros({}, DType::i64, options.device)) {
  if (!is_scale(options.scale)) {
    throw Error(ErrorKind::value, "GradScaler: scale is " + show(options.scale) +
                                      ", a positive normal number of f32 is wanted");
  }
  constexpr Domain above_one{1, std::numeric_limits<double>::infinity(), true};
  require_in(above_one, "GradScaler", "growth", options.growth);
  require_at_least(1, "GradScaler", "interval", options.interval);
  require_in({0, 1, true, true}, "GradScaler", "backoff", options.backoff);
}

Tensor GradScaler::scale(const Tensor& loss) const { return loss * scale_; }

void GradScaler::unscale(std::span<const Tensor> parameters) {
  if (found_infinite_)
    throw Error(ErrorKind::value, "GradScaler: unscale was called already since the last update");
  const NoGrad no_grad;
  const Tensor inverse = 1 / scale_;
  Tensor all_finite = ones({}, DType::boolean, scale_.device());
  for (const Tensor& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Tensor gradient = parameter.grad();
    require_real_gradient("GradScaler", gradient);
    const Tensor unscaled = (gradient * inverse).to(gradient.dtype());
    all_finite = all_finite && reduce(is_finite(unscaled), "... ->", Reduction::all);
    parameter.set_grad(unscaled);
  }
  found_infinite_ = logical_not(all_finite);
}

const Tensor& GradScaler::found_infinite() const {
  if (!found_infinite_) throw Error(ErrorKind::value, "GradScaler: call unscale(parameters) first");
  return *found_infinite_;
}

void GradScaler::update() {
  const NoGrad no_grad;
  const Tensor found = found_infinite();
  found_infinite_.reset();
  const Tensor clean = where(found, 0, clean_steps_ + 1);
  const Tensor grown = scale_ * options_.growth;
  const Tensor grows = clean >= options_.interval;
  const Tensor kept = where(grows && is_finite(grown), grown, scale_);
  const Tensor backed_off = maximum(scale_ * options_.backoff, finfo(DType::f32).tiny);
  scale_.copy_from(where(found, backed_off, kept));
  clean_steps_.copy_from(where(grows, 0, clean));
}

double GradScaler::current_scale() const { return scale_.item(); }

StateDict GradScaler::state_dict() const {
  return {{"scale", scale_}, {"clean_steps", clean_steps_}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  const auto scale = state.find("scale"), clean_steps = state.find("clean_steps");
  if (state.size() != 2 || scale == state.end() || clean_steps == state.end()) {
    throw Error(ErrorKind::value,
                "GradScaler: the state must be of \"scale\" and \"clean_steps\" alone");
  }
  for (const auto& [name, tensor] : state) {
    if (tensor.rank() != 0)
      throw Error(ErrorKind::shape, "GradScaler: " + name + " has shape " +
                                        tensor.shape().to_string() + ", a scalar is wanted");
  }
  if (!is_scale(scale->second.item()) || clean_steps->second.item() < 0) {
    throw Error(
        ErrorKind::value,
        "GradScaler: scale must be a positive normal number of f32, and clean_steps not negative");
  }
  scale_.copy_from(scale->second);
  clean_steps_.copy_from(clean_steps->second);
}

}  // namespace ein
