// custom: functions with a gradient of their user's.
#include <algorithm>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "runtime/complex.hpp"
#include "runtime/custom.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace engine {
namespace {

class CustomNode final : public Node {
 public:
  CustomNode(std::shared_ptr<const void> functions, detail::TensorFunction pull_back,
             std::span<const Tensor> arguments, GradStates inputs, std::span<const Tensor> results,
             std::shared_ptr<CustomArguments> inside)
      : Node(std::move(inputs), results),
        functions_(std::move(functions)),
        pull_back_(pull_back),
        arguments_(arguments.begin(), arguments.end()),
        inside_(std::move(inside)) {
    // Without their states, which hold this node.
    for (const Tensor& result : results) results_.emplace_back(without_history(result));
  }

  void set_states(const std::shared_ptr<Node>& self, std::span<const Tensor> results) {
    self_ = self;
    for (const Tensor& result : results) states_.push_back(result.impl().grad);
  }

  MaybeTensors pull_back(const MaybeTensors& cotangents,
                         const std::vector<bool>& wanted) const override {
    if (grad_is_enabled()) inside_->held = inputs();
    std::vector<Tensor> all = with_zeros(cotangents);
    for (std::size_t r = 0; r < results_.size(); ++r) all.push_back(result(r));
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
  /// Result `r` with its history, also where the caller let go of it.
  Tensor result(std::size_t r) const {
    detail::TensorData data = results_[r].get(arguments_.size() + r, "custom").impl();
    data.grad = states_[r].lock();
    if (!data.grad && has_gradients(data.dtype))
      data.grad = std::make_shared<detail::GradState>(data.storage, self_.lock(), r);
    return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
  }

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
  std::weak_ptr<Node> self_;
  std::vector<std::weak_ptr<detail::GradState>> states_;  // of the results
  std::shared_ptr<CustomArguments> inside_;
};

/// What the function of a custom call made of its arguments.
class MadeInside final : public Node {
 public:
  MadeInside(std::shared_ptr<const CustomArguments> arguments, std::span<const Tensor> results)
      : Node({}, results), arguments_(std::move(arguments)) {}

  GradStates depends_on() const override {
    GradStates states;
    for (const auto& argument : arguments_->states) states.push_back(argument.lock());
    return states;
  }
  MaybeTensors pull_back(const MaybeTensors& cotangents, const std::vector<bool>&) const override {
    const auto reached = std::find_if(cotangents.begin(), cotangents.end(),
                                      [](const auto& c) { return c.has_value(); });
    throw Error(ErrorKind::value,
                "backward: a gradient flows to a tensor of shape " +
                    result_types()[static_cast<std::size_t>(reached - cotangents.begin())]
                        .shape.to_string() +
                    " that a custom function computed from its arguments and kept, and would be "
                    "lost there\n"
                    "  help: return it from the function, so that the vjp gets it among the "
                    "results, or compute it again in the vjp; or keep its detach(), a constant");
  }

 private:
  std::shared_ptr<const CustomArguments> arguments_;
};

thread_local CustomScope* innermost_scope = nullptr;

}  // namespace

CustomScope::CustomScope(std::span<const Tensor> arguments)
    : outer_(innermost_scope),
      first_(next_node_number()),
      arguments_(std::make_shared<CustomArguments>()) {
  for (const Tensor& argument : arguments) {
    if (argument.requires_grad()) arguments_->states.emplace_back(argument.impl().grad);
  }
  innermost_scope = this;  // when nothing can fail any more
}
CustomScope::~CustomScope() { innermost_scope = outer_; }

std::vector<Tensor> CustomScope::stand_ins(std::span<const Tensor> arguments) const {
  std::vector<Tensor> found;
  for (const Tensor& argument : arguments) {
    found.push_back(without_history(argument));
    if (argument.requires_grad()) mark({&found.back(), 1});
  }
  return found;
}

void CustomScope::mark(std::span<const Tensor> results) const {
  attach(std::make_shared<MadeInside>(arguments_, results), results);
}

bool CustomScope::is_from_outside(const Tensor& x) const {
  const auto& state = x.impl().grad;
  return state && (!state->node || state->node->number() < first_);
}

void CustomScope::note(const std::string& call, Operands operands,
                       std::span<const Tensor> results) {
  const CustomScope* const scope = innermost_scope;
  if (!scope || grad_is_enabled()) return;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!scope->is_from_outside(*operands[i])) continue;
    throw Error(ErrorKind::value,
                "custom: operand " + std::to_string(i + 1) + " of " + call +
                    ", a tensor of shape " + operands[i]->shape().to_string() +
                    " that requires a gradient, comes to the function from outside, and only "
                    "arguments get gradients\n"
                    "  help: make it an argument; or use its detach(), a constant");
  }
  scope->mark(results);
}

}  // namespace engine

std::vector<Tensor> detail::custom(std::shared_ptr<const void> functions, TensorFunction call,
                                   TensorFunction pull_back, std::span<const Tensor> x) {
  if (const engine::Trace* trace = engine::Trace::active(); trace && trace->is_of_a_call()) {
    throw Error(ErrorKind::value,
                "custom: inside of a function that map or vmap was given, whose gradient is that "
                "of all its calls, a gradient of one's own would be lost\n"
                "  help: give map or vmap to the function of custom");
  }
  std::vector<Tensor> results;
  std::shared_ptr<engine::CustomArguments> inside;
  if (grad_is_enabled()) {
    const engine::CustomScope scope(x);
    inside = scope.arguments();
    const NoGrad not_remembered;
    // One may be an argument itself, or a view of it.
    for (const Tensor& result : call(functions.get(), scope.stand_ins(x)))
      results.push_back(engine::without_history(result));
  } else {
    results = call(functions.get(), x);
    for (Tensor& result : results) result = engine::without_history(result);
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
  const auto node = std::make_shared<engine::CustomNode>(
      std::move(functions), pull_back, x, std::move(inputs), results, std::move(inside));
  engine::attach(node, results);
  node->set_states(node, results);
  return results;
}

}  // namespace ein
