#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/optim.hpp>
#include "graph/domain.hpp"

namespace ein::optim {
namespace {

class SGDRule final : public Rule {
 public:
  explicit SGDRule(const SGDOptions& options)
      : Rule("SGD", options.momentum == 0 ? std::vector<StateTensor>{}
                                          : std::vector<StateTensor>{{"momentum"}}),
        options_(options) {
    require_in(below_one, "SGD", "momentum", options.momentum);
    require_in(fraction, "SGD", "dampening", options.dampening);
    if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
      throw Error(ErrorKind::value, "SGD: nesterov wants a momentum, and no dampening");
    }
  }

  std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor& step,
                              double) const override {
    if (options_.dampening == 0) return {learning_rate};
    // The first step takes the whole gradient.
    return {learning_rate, 1 - options_.dampening * (step > 1).to(DType::f64)};
  }

  std::vector<Tensor> update(const Values& values) const override {
    const Tensor& rate = values.numbers[0];
    const Tensor g = decayed_gradient(values);
    if (options_.momentum == 0) return {values.p - rate * g};
    const Tensor taken = options_.dampening == 0 ? g : values.numbers[1] * g;
    const Tensor v = options_.momentum * values.state[0] + taken;
    return {values.p - rate * (options_.nesterov ? g + options_.momentum * v : v), v};
  }

 private:
  SGDOptions options_;
};

}  // namespace

SGD::SGD(const ParameterGroups& parameters, const SGDOptions& options)
    : Optimizer(parameters, options.learning_rate, options.weight_decay,
                std::make_unique<SGDRule>(options)) {}

}  // namespace ein::optim
