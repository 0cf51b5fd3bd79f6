// Rule: what tells one optimizer from another.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <ein/tensor.hpp>

namespace ein::optim {

/// A tensor of state that each parameter has.
struct StateTensor {
  std::string name;
  double initial = 0;
};

/// Updates are pure: from values to values.
class Rule {
 public:
  Rule(std::string optimizer, std::vector<StateTensor> state)
      : optimizer_(std::move(optimizer)), state_(std::move(state)) {}
  virtual ~Rule() = default;

  const std::string& optimizer() const { return optimizer_; }
  const std::vector<StateTensor>& state() const { return state_; }

  /// Numbers of this step for a group of parameters, from numbers in f64; `step` counts from 1.
  virtual std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor& step,
                                      double weight_decay) const = 0;

  /// What an update reads. All have one dtype.
  struct Values {
    const Tensor& p;
    const Tensor& g;
    std::span<const Tensor> state;
    std::span<const Tensor> numbers;
    double weight_decay;
  };
  /// The new parameter, then its new state.
  virtual std::vector<Tensor> update(const Values& values) const = 0;

 private:
  std::string optimizer_;
  std::vector<StateTensor> state_;
};

/// Decay as a part of the gradient: that of weight_decay/2 · |p|².
Tensor decayed_gradient(const Rule::Values& values);

/// Errors of kind `value` that name the optimizer and the option.
void require_not_negative(const char* optimizer, const char* option, double value);
void require_below_one(const char* optimizer, const char* option, double value);

}  // namespace ein::optim
