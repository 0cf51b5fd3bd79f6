// Adam, AdamW and LAMB: two moments of the gradient.
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/ops.hpp>
#include <ein/optim.hpp>
#include "graph/domain.hpp"

namespace ein::optim {
namespace {

using Betas = std::array<double, 2>;

class MomentsRule : public Rule {
 protected:
  MomentsRule(const char* optimizer, const Betas& betas, double eps)
      : Rule(optimizer, {{"exp_avg"}, {"exp_avg_sq"}}), betas_(betas), eps_(eps) {
    require_in(below_one, optimizer, "betas[0]", betas[0]);
    require_in(below_one, optimizer, "betas[1]", betas[1]);
    require_in(not_negative, optimizer, "eps", eps);
  }

  /// 1 - βᵗ: by what an average of t numbers that began at 0 is too small.
  static Tensor correction(double beta, const Tensor& step) { return 1.0 - pow(beta, step); }

  Tensor first_moment(const Tensor& m, const Tensor& g) const {
    return betas_[0] * m + (1 - betas_[0]) * g;
  }
  Tensor second_moment(const Tensor& v, const Tensor& g) const {
    return betas_[1] * v + (1 - betas_[1]) * (g * g);
  }

  Betas betas_;
  double eps_;
};

enum class Decay { gradient, parameter };

/// With r = √(1 - β₂ᵗ), m̂ / (√v̂ + eps) is r / (1 - β₁ᵗ) · m / (√v + r·eps) (Kingma, Ba 2015,
/// section 2): numbers of the step, and less work for each element.
class AdamRule final : public MomentsRule {
 public:
  AdamRule(const char* optimizer, const AdamOptions& options, Decay decay)
      : MomentsRule(optimizer, options.betas, options.eps),
        decay_(decay),
        eps_before_correction_(options.eps_before_correction),
        decay_last_(options.decay_last) {}

  std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor& step,
                              double weight_decay) const override {
    const Tensor root = sqrt(correction(betas_[1], step));
    std::vector<Tensor> result{
        learning_rate * root / correction(betas_[0], step),
        eps_before_correction_ ? full({}, eps_, root.dtype(), root.device()) : root * eps_};
    if (decay_ == Decay::parameter && weight_decay != 0)
      result.push_back(learning_rate * weight_decay);
    return result;
  }

  std::vector<Tensor> update(const Values& values) const override {
    const Tensor g = decay_ == Decay::gradient ? decayed_gradient(values) : values.g;
    const Tensor m = first_moment(values.state[0], g), v = second_moment(values.state[1], g);
    // Rounded to f32, 1 - lr · weight_decay would be off by as much as 3e-8 at each step.
    const auto decayed = [&](const Tensor& p) {
      return values.numbers.size() == 3 ? p - values.numbers[2] * p : p;
    };
    const Tensor change = values.numbers[0] * m / (sqrt(v) + values.numbers[1]);
    return {decay_last_ ? decayed(values.p - change) : decayed(values.p) - change, m, v};
  }

 private:
  Decay decay_;
  bool eps_before_correction_, decay_last_;
};

class LAMBRule final : public MomentsRule {
 public:
  explicit LAMBRule(const LAMBOptions& options) : MomentsRule("LAMB", options.betas, options.eps) {}

  std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor& step,
                              double) const override {
    const Tensor root = sqrt(correction(betas_[1], step));
    return {learning_rate, root / correction(betas_[0], step), root * eps_};
  }

  std::vector<Tensor> update(const Values& values) const override {
    const Tensor m = first_moment(values.state[0], values.g),
                 v = second_moment(values.state[1], values.g);
    Tensor u = values.numbers[1] * m / (sqrt(v) + values.numbers[2]);
    if (values.weight_decay != 0) u = u + values.weight_decay * values.p;
    const Tensor size = norm(values.p), of_update = norm(u);
    const Tensor ratio = where(size > 0 && of_update > 0, size / of_update, 1);
    return {values.p - values.numbers[0] * ratio * u, m, v};
  }

 private:
  static Tensor norm(const Tensor& x) { return reduce(x, "... ->", Reduction::norm); }
};

}  // namespace

Adam::Adam(const ParameterGroups& parameters, const AdamOptions& options)
    : Optimizer(parameters, options.learning_rate, options.weight_decay,
                std::make_unique<AdamRule>("Adam", options, Decay::gradient)) {}

AdamW::AdamW(const ParameterGroups& parameters, const AdamOptions& options)
    : Optimizer(parameters, options.learning_rate, options.weight_decay,
                std::make_unique<AdamRule>("AdamW", options, Decay::parameter)) {}

LAMB::LAMB(const ParameterGroups& parameters, const LAMBOptions& options)
    : Optimizer(parameters, options.learning_rate, options.weight_decay,
                std::make_unique<LAMBRule>(options)) {}

}  // namespace ein::optim
