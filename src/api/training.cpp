// mse_loss, dropout and clip_grad_norm: without a pattern.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "graph/domain.hpp"
#include "graph/named.hpp"
#include "runtime/autocast.hpp"
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"
#include "runtime/real_gradient.hpp"
#include "runtime/trace.hpp"
#include "tensor/compute_type.hpp"

namespace ein {

Tensor mse_loss(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) {
    throw Error(ErrorKind::shape, "mse_loss: shapes " + a.shape().to_string() + " and " +
                                      b.shape().to_string() + " differ");
  }
  const DType common = promote(a.dtype(), b.dtype());
  if (is_integral(common)) {
    // |a - b| as it is: as f32 large ones would be rounded before, as i64 it might not fit.
    const Ex a_is_less = Ex::apply(ScalarOp::lt, Ex::input(0), Ex::input(1));
    const Ex distance = where(a_is_less, Ex::input(1) - Ex::input(0), Ex::input(0) - Ex::input(1));
    const Tensor* const operands[] = {&a, &b};
    const Tensor distances =
        engine::map("mse_loss", distance, operands, compute_type(common), DType::u64);
    const Tensor* const operand = &distances;
    const Tensor squares =
        engine::map("mse_loss", Ex::input(0) * Ex::input(0), {&operand, 1}, DType::f64, DType::f64);
    return reduce(squares, "... ->", Reduction::mean).to(DType::f32);
  }
  const DType dtype = engine::autocast_sum_type(common);
  const DType result = is_floating(dtype) ? dtype : DType::f32;
  const DType wide = result == DType::f64 ? DType::f64 : DType::f32;
  const Ex difference = Ex::input(0) - Ex::input(1);
  const Tensor* const operands[] = {&a, &b};
  const Tensor squares = engine::map("mse_loss", difference * difference, operands, wide, wide);
  return reduce(squares, "... ->", Reduction::mean).to(result);
}

Tensor dropout(const Tensor& x, double p) {
  require_in(below_one, "dropout", "p", p);
  if (!is_floating(x.dtype())) {
    throw Error(ErrorKind::dtype,
                "dropout: " + std::string(name(x.dtype())) + " is not a floating-point dtype");
  }
  if (p == 0) return x;
  const Tensor u = engine::lying_as(rand(x.shape(), x.device()), x);
  const Ex kept = Ex::input(0) * Ex(1 / (1 - p));
  const Ex formula = where(Ex::apply(ScalarOp::lt, Ex::input(1), Ex(p)), Ex(0.0), kept);
  const Tensor* const operands[] = {&x, &u};
  return engine::map("dropout", formula, operands, compute_type(x.dtype()), x.dtype());
}

namespace {
/// The norm of all from the norms of each, in the widest of their types.
Tensor norm_of(std::vector<Tensor> norms) {
  while (norms.size() > 1) {
    const Tensor last = std::move(norms.back());
    norms.pop_back();
    norms.back() = hypot(norms.back(), last);
  }
  return norms.front();
}

void require_finite(const Tensor& norm) {
  if (engine::Trace::active()) {
    throw Error(ErrorKind::value,
                "clip_grad_norm: error_if_nonfinite asks for the norm in a function that " +
                    engine::Trace::tracer() +
                    " traces, where it has no value yet\n"
                    "  help: return the norm, and ask of it whether it is finite");
  }
  if (std::isfinite(norm.item<double>())) return;
  throw Error(ErrorKind::value,
              "clip_grad_norm: the norm of the gradients is " + show(norm.item<double>()) +
                  "\n  help: a gradient is infinite or NaN; without error_if_nonfinite they are "
                  "scaled all the same");
}

}  // namespace

Tensor clip_grad_norm(std::span<const Tensor> parameters, double max_norm,
                      bool error_if_nonfinite) {
  if (!(max_norm >= 0)) {
    throw Error(ErrorKind::value, "clip_grad_norm: max_norm is " + show(max_norm) +
                                      ", at least 0 is wanted (infinity: the norm alone)");
  }
  const NoGrad no_grad;
  const Autocast off(DType::f32);
  if (parameters.empty()) return zeros({});
  std::vector<Tensor> norms;
  for (const Tensor& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Tensor gradient = parameter.grad();
    require_real_gradient("clip_grad_norm", gradient);
    norms.push_back(reduce(gradient.to(compute_type(gradient.dtype())), "... ->", Reduction::norm));
  }
  if (norms.empty()) return zeros({}, parameters.front().device());
  const Tensor norm = norm_of(norms);
  if (error_if_nonfinite) require_finite(norm);
  // The constant is that of torch.nn.utils.clip_grad_norm_.
  const Tensor scale = minimum(1, max_norm / (norm + 1e-6));
  for (const Tensor& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const Tensor gradient = parameter.grad();
    parameter.set_grad((gradient * scale).to(gradient.dtype()));
  }
  return norm;
}

}  // namespace ein
