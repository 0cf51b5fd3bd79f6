#include <ein/elementwise.hpp>
#include <ein/optim.hpp>
#include "graph/domain.hpp"

namespace ein::optim {
namespace {

class RMSPropRule final : public Rule {
 public:
  explicit RMSPropRule(const RMSPropOptions& options)
      : Rule("RMSProp", state_of(options)), options_(options) {
    require_in(below_one, "RMSProp", "alpha", options.alpha);
    require_in(not_negative, "RMSProp", "eps", options.eps);
    require_in(below_one, "RMSProp", "momentum", options.momentum);
  }

  std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor&, double) const override {
    return {learning_rate};
  }

  std::vector<Tensor> update(const Values& values) const override {
    const double alpha = options_.alpha;
    const Tensor g = decayed_gradient(values);
    std::vector<Tensor> result{values.p, alpha * values.state[0] + (1 - alpha) * (g * g)};
    Tensor variance = result[1];
    if (options_.centered) {
      result.push_back(alpha * values.state[1] + (1 - alpha) * g);
      // Rounding can bring the difference below 0.
      variance = maximum(variance - result[2] * result[2], 0);
    }
    Tensor direction = g / (sqrt(variance) + options_.eps);
    if (options_.momentum != 0) {
      direction = options_.momentum * values.state.back() + direction;
      result.push_back(direction);
    }
    result[0] = values.p - values.numbers[0] * direction;
    return result;
  }

 private:
  static std::vector<StateTensor> state_of(const RMSPropOptions& options) {
    std::vector<StateTensor> state{{"square_avg"}};
    if (options.centered) state.push_back({"grad_avg"});
    if (options.momentum != 0) state.push_back({"momentum"});
    return state;
  }
  RMSPropOptions options_;
};

}  // namespace

RMSProp::RMSProp(const ParameterGroups& parameters, const RMSPropOptions& options)
    : Optimizer(parameters, options.learning_rate, options.weight_decay,
                std::make_unique<RMSPropRule>(options)) {}

}  // namespace ein::optim
