// Muon: momentum, made orthogonal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <ein/autocast.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>
#include <ein/optim.hpp>
#include "graph/domain.hpp"

namespace ein::optim {
namespace {

Tensor transposed(const Tensor& x) { return rearrange(x, "rows columns -> columns rows"); }

/// U·Vᵀ of x = U·S·Vᵀ, nearly: of x by its norm, whose singular values are at most 1, steps of x ->
/// a·x + (b·G + c·G²)·x, where G = x·xᵀ, take each singular value s to a·s + b·s³ + c·s⁵, towards 1
/// (Newton-Schulz; Bernstein, Newhouse 2024, arXiv:2409.20325; coefficients: Jordan et al. 2024).
Tensor orthogonalised(const Tensor& x, const MuonOptions& options) {
  const Autocast off(DType::f32);
  const bool is_tall = x.shape()[0] > x.shape()[1];  // G is the smaller product
  const Tensor wide = is_tall ? transposed(x) : x;
  const auto [a, b, c] = options.coefficients;
  Tensor y = wide / maximum(reduce(wide, "rows columns ->", Reduction::norm), options.eps);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const Tensor gram = einsum(y, y, "i k, j k -> i j");
    const Tensor factor = b * gram + c * einsum(gram, gram, "i k, k j -> i j");
    y = a * y + einsum(factor, y, "i k, k j -> i j");
  }
  return is_tall ? transposed(y) : y;
}

class MuonRule final : public Rule {
 public:
  explicit MuonRule(const MuonOptions& options)
      : Rule("Muon", {{"momentum_buffer"}}), options_(options) {
    require_in(below_one, "Muon", "momentum", options.momentum);
    require_in(not_negative, "Muon", "eps", options.eps);
    require_at_least(0, "Muon", "steps", options.steps);
    for (const double coefficient : options.coefficients)
      require_in({.least = std::numeric_limits<double>::lowest()}, "Muon", "coefficients",
                 coefficient);
  }

  std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor&,
                              double weight_decay) const override {
    return {learning_rate, learning_rate * weight_decay};
  }

  std::vector<Tensor> update(const Values& values) const override {
    const double momentum = options_.momentum;
    const auto mean = [&](const Tensor& average, const Tensor& g) {
      return momentum * average + (1 - momentum) * g;
    };
    const Tensor v = mean(values.state[0], values.g);
    const Tensor u = orthogonalised(options_.nesterov ? mean(v, values.g) : v, options_);
    const Tensor p = values.weight_decay == 0 ? values.p : values.p - values.numbers[1] * values.p;
    return {p - values.numbers[0] * (factor(values.p.shape()) * u), v};
  }

 private:
  double factor(const Shape& shape) const {
    const auto rows = static_cast<double>(std::int64_t{shape[0]}),
               columns = static_cast<double>(std::int64_t{shape[1]});
    if (options_.scale == MuonOptions::Scale::rms_of_adamw)
      return 0.2 * std::sqrt(std::max(rows, columns));
    const double outputs_by_inputs = options_.outputs_first ? rows / columns : columns / rows;
    return std::sqrt(std::max(1.0, outputs_by_inputs));
  }

  MuonOptions options_;
};

const ParameterGroups& matrices(const ParameterGroups& parameters) {
  for (const ParameterGroup& group : parameters.groups()) {
    for (const Tensor& parameter : group.parameters) {
      if (parameter.rank() == 2 && parameter.numel() > 0) continue;
      throw Error(ErrorKind::rank, "Muon: a parameter has the shape " +
                                       parameter.shape().to_string() +
                                       ", matrices are wanted\n  help: give the others to AdamW");
    }
  }
  return parameters;
}

}  // namespace

Muon::Muon(const ParameterGroups& parameters, const MuonOptions& options)
    : Optimizer(matrices(parameters), options.learning_rate, options.weight_decay,
                std::make_unique<MuonRule>(options)) {}

}  // namespace ein::optim
