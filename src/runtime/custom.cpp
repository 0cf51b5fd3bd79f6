// custom: functions with a gradient of their user's.
#include <algorithm>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "runtime/complex.hpp"
#include "runtime/tape.hpp"

namespace ein {
namespace engine {
namespace {

class CustomNode final : public Node {
 public:
  CustomNode(std::shared_ptr<const void> functions, detail::TensorFunction pull_back,
             std::span<const Tensor> arguments, GradStates inputs, std::span<const Tensor> results)
      : Node(std::move(inputs), results),
        functions_(std::move(functions)),
        pull_back_(pull_back),
        arguments_(arguments.begin(), arguments.end()) {
    // Without their states, which hold this node.
    for (const Tensor& result : results) results_.emplace_back(result.detach());
  }

  void set_states(std::span<const Tensor> results) {
    for (const Tensor& result : results) states_.push_back(result.impl().grad);
  }

  MaybeTensors pull_back(const MaybeTensors& cotangents,
                         const std::vector<bool>& wanted) const override {
    std::vector<Tensor> all = with_zeros(cotangents);
    for (std::size_t r = 0; r < results_.size(); ++r) {
      detail::TensorData data = results_[r].get(arguments_.size() + r, "custom").impl();
      data.grad = states_[r].lock();
      all.emplace_back(std::make_shared<const detail::TensorData>(std::move(data)));
    }
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      all.push_back(arguments_[i].get(i, "custom"));
    std::vector<Tensor> found = pull_back_(functions_.get(), all);
    if (found.size() != arguments_.size()) {
      throw Error(ErrorKind::value, "backward: the vjp of a custom function returned " +
                                        std::to_string(found.size()) + " cotangents for " +
                                        std::to_string(arguments_.size()) + " arguments");
    }
    MaybeTensors result(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      require_like(found[i], i, all[all.size() - arguments_.size() + i]);
      result[i] = as_real(found[i]);
    }
    return result;
  }

 private:
  static void require_like(const Tensor& cotangent, std::size_t i, const Tensor& argument) {
    const bool same_shape = cotangent.shape() == argument.shape();
    if (same_shape && cotangent.dtype() == argument.dtype()) return;
    const auto text = [](const Tensor& x) {
      return std::string(name(x.dtype())) + " " + x.shape().to_string();
    };
    throw Error(same_shape ? ErrorKind::dtype : ErrorKind::shape,
                "backward: the vjp of a custom function returned a cotangent of " +
                    text(cotangent) + " for argument " + std::to_string(i + 1) + ", which is " +
                    text(argument));
  }

  std::shared_ptr<const void> functions_;
  detail::TensorFunction pull_back_;
  std::vector<Saved> arguments_, results_;
  std::vector<std::weak_ptr<detail::GradState>> states_;  // of the results
};

}  // namespace
}  // namespace engine

std::vector<Tensor> detail::custom(std::shared_ptr<const void> functions, TensorFunction call,
                                   TensorFunction pull_back, std::span<const Tensor> x) {
  std::vector<Tensor> results;
  {
    const NoGrad not_remembered;
    // One may be an argument itself, or a view of it.
    for (const Tensor& result : call(functions.get(), x)) results.push_back(result.detach());
  }
  engine::GradStates inputs;
  std::vector<const Tensor*> operands;
  for (const Tensor& argument : x) {
    inputs.push_back(argument.impl().grad);
    operands.push_back(&argument);
  }
  const bool flows = std::any_of(inputs.begin(), inputs.end(), [](const auto& s) { return s; });
  if (!flows || !grad_is_enabled()) return results;
  engine::Watch::note(operands);
  const auto node = std::make_shared<engine::CustomNode>(std::move(functions), pull_back, x,
                                                         std::move(inputs), results);
  engine::attach(node, results);
  node->set_states(results);
  return results;
}

}  // namespace ein
