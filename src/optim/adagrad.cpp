#include <ein/elementwise.hpp>
#include <ein/optim.hpp>
#include "graph/domain.hpp"

namespace ein::optim {
namespace {

class AdaGradRule final : public Rule {
 public:
  explicit AdaGradRule(const AdaGradOptions& options)
      : Rule("AdaGrad", {{"sum", options.initial_accumulator}}), options_(options) {
    require_in(not_negative, "AdaGrad", "learning_rate_decay", options.learning_rate_decay);
    require_in(not_negative, "AdaGrad", "initial_accumulator", options.initial_accumulator);
    require_in(not_negative, "AdaGrad", "eps", options.eps);
  }

  std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor& step,
                              double) const override {
    if (options_.learning_rate_decay == 0) return {learning_rate};
    return {learning_rate / (1 + options_.learning_rate_decay * (step - 1))};
  }

  std::vector<Tensor> update(const Values& values) const override {
    const Tensor g = decayed_gradient(values);
    const Tensor sum = values.state[0] + g * g;
    const Tensor root =
        options_.eps_inside_root ? sqrt(sum + options_.eps) : sqrt(sum) + options_.eps;
    return {values.p - values.numbers[0] * g / root, sum};
  }

 private:
  AdaGradOptions options_;
};

}  // namespace

AdaGrad::AdaGrad(const ParameterGroups& parameters, const AdaGradOptions& options)
    : Optimizer(parameters, options.learning_rate, options.weight_decay,
                std::make_unique<AdaGradRule>(options)) {}

}  // namespace ein::optim
