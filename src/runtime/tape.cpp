#include "runtime/tape.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include "runtime/trace.hpp"

namespace ein {
namespace {
thread_local bool enabled_here = true;
}

NoGrad::NoGrad(bool enabled) : before_(std::exchange(enabled_here, enabled)) {}
NoGrad::~NoGrad() { enabled_here = before_; }
bool grad_is_enabled() { return enabled_here; }

namespace engine {

using detail::GradState;

// --- nodes ------------------------------------------------------------------------------------------

Node::Node(GradStates inputs, std::span<const Tensor> results) : inputs_(std::move(inputs)) {
  static std::atomic<std::uint64_t> count{0};
  number_ = count++;
  for (const Tensor& result : results) results_.push_back({result.shape(), result.dtype()});
}

Node::~Node() {
  // A long chain of calls is let go of one by one; by recursion it could exhaust the stack.
  thread_local std::vector<std::shared_ptr<Node>>* chain = nullptr;
  std::vector<std::shared_ptr<Node>> mine;
  const bool is_first = chain == nullptr;
  if (is_first) chain = &mine;
  for (const std::shared_ptr<GradState>& state : inputs_) {
    if (state && state.use_count() == 1 && state->node) chain->push_back(std::move(state->node));
  }
  inputs_.clear();
  if (!is_first) return;
  while (!mine.empty()) {
    const std::shared_ptr<Node> next = std::move(mine.back());
    mine.pop_back();
  }
  chain = nullptr;
}

MaybeTensors Node::pull_back(const MaybeTensors& cotangents, const std::vector<bool>& wanted) const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const bool came = i < cotangents.size() && cotangents[i];
    all.push_back(came ? *cotangents[i] : zeros(results_[i].shape, results_[i].dtype));
  }
  return pull_back(std::span<const Tensor>(all), wanted);
}

namespace {

/// A call of a pattern, an elementwise function, a view ...: any that has a plan.
class CallNode final : public Node {
 public:
  CallNode(const Plan& plan, Operands operands, GradStates inputs, std::span<const Tensor> results, const Backward& backward)
      : Node(std::move(inputs), results), plan_(plan.shared_from_this()), saved_(operands.size()) {
    for (std::size_t i : backward.vjp.needs) {
      const Tensor& x = *operands[i];
      saved_[i] = Saved{x, x.storage() ? x.storage()->version() : 0};
    }
  }

 protected:
  MaybeTensors pull_back(std::span<const Tensor> cotangents, const std::vector<bool>& wanted) const override {
    const Backward& backward = plan_->backward(wanted);
    std::vector<const Tensor*> operands;
    for (std::size_t i : backward.vjp.needs) {
      const Saved& saved = *saved_[i];
      if (saved.tensor.storage() && saved.tensor.storage()->version() != saved.version) {
        throw Error(ErrorKind::value, "backward: operand " + std::to_string(i + 1) + " of " + plan_->call() + ", a tensor of shape " +
                                          saved.tensor.shape().to_string() +
                                          ", was written to since the call, and its gradient needs what was there\n"
                                          "  help: write to a clone(), or after backward()");
      }
      operands.push_back(&saved.tensor);
    }
    for (const Tensor& cotangent : cotangents) operands.push_back(&cotangent);
    PlanKey key;
    add(key, KeyKind::backward);
    key.add(backward.number);
    for (const Tensor* operand : operands) key.add(*operand);
    const auto plan = plan_for(
        key, operands, [&] { return "backward of " + plan_->call(); }, [&] { return backward.vjp.graph; });
    std::vector<Tensor> found = run(*plan, operands);
    MaybeTensors result(wanted.size());
    std::size_t next = 0, input = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] && backward.vjp.reached[input++]) result[i] = std::move(found[next++]);
    }
    return result;
  }

 private:
  struct Saved {
    Tensor tensor;
    std::uint64_t version;
  };
  std::shared_ptr<const Plan> plan_;
  std::vector<std::optional<Saved>> saved_;
};

/// The identity.
class AliasNode final : public Node {
 public:
  using Node::Node;

 protected:
  MaybeTensors pull_back(std::span<const Tensor> cotangents, const std::vector<bool>&) const override {
    return {cotangents[0]};
  }
};

}  // namespace

void attach(const std::shared_ptr<Node>& node, std::span<const Tensor> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!is_floating(results[i].dtype())) continue;
    results[i].impl().grad = std::make_shared<GradState>(GradState{node, i});
  }
}

void remember_call(const Plan& plan, Operands operands, std::span<Tensor> results) {
  std::vector<bool> wanted;
  GradStates inputs;
  for (const Tensor* operand : operands) {
    inputs.push_back(operand->impl().grad);
    wanted.push_back(inputs.back() != nullptr);
  }
  const Backward& backward = plan.backward(wanted);
  if (std::none_of(backward.vjp.reached.begin(), backward.vjp.reached.end(), [](bool b) { return b; })) return;
  attach(std::make_shared<CallNode>(plan, operands, std::move(inputs), results, backward), results);
}

// --- walking back -----------------------------------------------------------------------------------

namespace {

/// The cotangents of leaves and of wanted tensors, from that of one result.
class Walk {
 public:
  /// Only towards `targets`; towards every leaf where there are none.
  Walk(const Tensor& result, std::span<const std::shared_ptr<GradState>> targets) : root_(result.impl().grad) {
    for (const auto& target : targets) targets_.insert(target.get());
    if (root_) find_useful();
  }

  void run(const Tensor& cotangent) {
    if (!root_) return;
    send(root_, cotangent);
    while (!waiting_.empty()) {
      const auto [number, node] = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      auto entry = arrived_.extract(node.get());
      std::vector<bool> wanted;
      for (const auto& input : node->inputs()) wanted.push_back(input && is_useful(*input));
      const MaybeTensors back = static_cast<const Node&>(*node).pull_back(entry.mapped(), wanted);
      for (std::size_t i = 0; i < back.size(); ++i) {
        if (wanted[i] && back[i]) send(node->inputs()[i], *back[i]);
      }
    }
  }

  /// Tensors that were reached and should know: leaves, those that retain gradients, targets.
  /// In the order in which they were reached first, which a trace's operations depend on.
  const std::vector<std::pair<std::shared_ptr<GradState>, Tensor>>& found() const { return found_; }
  const Tensor* find(const Tensor& x) const {
    const auto place = place_.find(x.impl().grad.get());
    return place == place_.end() ? nullptr : &found_[place->second].second;
  }

 private:
  bool is_useful(const GradState& state) const {
    if (targets_.empty()) return true;
    return targets_.contains(&state) || (state.node && useful_.contains(state.node.get()));
  }

  /// Finds the nodes from which a target can be reached.
  void find_useful() {
    if (targets_.empty()) return;
    std::map<std::uint64_t, Node*> nodes;  // all, the earliest first
    std::vector<Node*> stack;
    const auto visit = [&](const std::shared_ptr<GradState>& state) {
      if (state && state->node && nodes.emplace(state->node->number(), state->node.get()).second) stack.push_back(state->node.get());
    };
    visit(root_);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const auto& input : node->inputs()) visit(input);
    }
    for (const auto& [number, node] : nodes) {
      for (const auto& input : node->inputs()) {
        if (input && is_useful(*input)) useful_.insert(node);
      }
    }
  }

  void send(const std::shared_ptr<GradState>& state, const Tensor& cotangent) {
    const bool is_target = targets_.empty() ? !state->node || state->retains : targets_.contains(state.get());
    if (is_target) {
      const auto [place, is_new] = place_.try_emplace(state.get(), found_.size());
      if (is_new) {
        found_.emplace_back(state, cotangent);
      } else {
        Tensor& sum = found_[place->second].second;
        sum = sum + cotangent;
      }
    }
    if (!state->node || (!targets_.empty() && !useful_.contains(state->node.get()))) return;
    MaybeTensors& at_node = arrived_[state->node.get()];
    at_node.resize(std::max(at_node.size(), state->output + 1));
    std::optional<Tensor>& sum = at_node[state->output];
    sum = sum ? *sum + cotangent : cotangent;
    waiting_.emplace(state->node->number(), state->node);
  }

  std::shared_ptr<GradState> root_;
  std::unordered_set<const GradState*> targets_;
  std::unordered_set<const Node*> useful_;
  std::map<std::uint64_t, std::shared_ptr<Node>, std::greater<>> waiting_;
  std::unordered_map<const Node*, MaybeTensors> arrived_;
  std::vector<std::pair<std::shared_ptr<GradState>, Tensor>> found_;
  std::unordered_map<const GradState*, std::size_t> place_;  // in found_
};

Tensor unit_cotangent(const char* what, const Tensor& result) {
  if (result.numel() != 1) {
    throw Error(ErrorKind::shape, std::string(what) + ": a tensor of shape " + result.shape().to_string() +
                                      " is no scalar; give a cotangent of its shape, or reduce it first");
  }
  return ones(result.shape(), result.dtype());
}
void require_cotangent(const char* what, const Tensor& result, const Tensor& cotangent) {
  if (cotangent.shape() == result.shape() && cotangent.dtype() == result.dtype()) return;
  throw Error(ErrorKind::shape, std::string(what) + ": the cotangent is " + std::string(name(cotangent.dtype())) + " " +
                                    cotangent.shape().to_string() + ", the result " + std::string(name(result.dtype())) + " " +
                                    result.shape().to_string());
}
void require_flow(const char* what, const Tensor& result) {
  if (result.requires_grad()) return;
  throw Error(ErrorKind::value, std::string(what) + ": the tensor of shape " + result.shape().to_string() +
                                    " was computed from no tensor that requires a gradient\n"
                                    "  help: call requires_grad(true) on the parameters before computing it, outside of any NoGrad");
}

}  // namespace
}  // namespace engine

// --- members of Tensor ------------------------------------------------------------------------------

const Tensor& Tensor::requires_grad(bool wanted) const {
  auto& state = data_->grad;
  if (state && state->node) {
    throw Error(ErrorKind::value, "requires_grad: the tensor of shape " + shape().to_string() +
                                      " was computed from others; detach() it first, or ask for retain_grad()");
  }
  if (wanted && !is_floating(dtype())) {
    throw Error(ErrorKind::dtype, "requires_grad: " + std::string(name(dtype())) + " is not a floating-point dtype");
  }
  if (!wanted) state = nullptr;
  else if (!state) state = std::make_shared<detail::GradState>();
  return *this;
}

void Tensor::backward() const {
  engine::require_flow("backward", *this);
  backward(engine::unit_cotangent("backward", *this));
}

void Tensor::backward(const Tensor& cotangent) const {
  engine::require_flow("backward", *this);
  engine::require_cotangent("backward", *this, cotangent);
  const NoGrad no_grad;
  engine::Walk walk(*this, {});
  walk.run(cotangent);
  for (const auto& [state, gradient] : walk.found()) {
    // A gradient of its own: cotangents may be views of each other, or of what the caller holds.
    const bool is_own = !gradient.storage() || (gradient.data_.use_count() == 1 && gradient.storage().use_count() == 1 && gradient.is_contiguous());
    state->grad = state->grad ? *state->grad + gradient : is_own ? gradient : gradient.clone();
    if (engine::Trace* trace = engine::Trace::active()) trace->forget_later(state);
  }
}

Tensor Tensor::grad() const {
  if (has_grad()) return *data_->grad->grad;
  throw Error(ErrorKind::value, "grad: the tensor of shape " + shape().to_string() + " has no gradient: " +
                                    (!requires_grad()      ? "it does not require one"
                                     : data_->grad->node ? "it was computed from others and does not retain_grad()"
                                                         : "no backward() has reached it since the last zero_grad()"));
}
bool Tensor::has_grad() const { return data_->grad && data_->grad->grad; }

void Tensor::set_grad(const Tensor& gradient) const {
  if (!requires_grad()) throw Error(ErrorKind::value, "set_grad: the tensor of shape " + shape().to_string() + " does not require a gradient");
  engine::require_cotangent("set_grad", *this, gradient);
  data_->grad->grad = gradient.detach();
  if (engine::Trace* trace = engine::Trace::active()) trace->forget_later(data_->grad);
}
void Tensor::zero_grad() const {
  if (data_->grad) data_->grad->grad.reset();
}
void Tensor::retain_grad() const {
  if (!requires_grad()) throw Error(ErrorKind::value, "retain_grad: the tensor of shape " + shape().to_string() + " does not require a gradient");
  data_->grad->retains = true;
}
Tensor Tensor::detach() const {
  detail::TensorData data = *data_;
  data.grad = nullptr;
  return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
}

// --- functions --------------------------------------------------------------------------------------

Tensor detail::differentiable(const Tensor& x) {
  const Tensor alias = x.detach();
  if (x.requires_grad() && grad_is_enabled()) {
    engine::attach(std::make_shared<engine::AliasNode>(engine::GradStates{x.impl().grad}, std::span(&alias, 1)), std::span(&alias, 1));
  } else {
    alias.requires_grad(true);
  }
  return alias;
}

std::vector<Tensor> gradients(const Tensor& result, const Tensor& cotangent, std::span<const Tensor> inputs, bool create_graph) {
  engine::require_cotangent("gradients", result, cotangent);
  engine::GradStates targets;
  for (const Tensor& input : inputs) {
    engine::require_flow("gradients", input);
    targets.push_back(input.impl().grad);
  }
  std::unique_ptr<NoGrad> scope;
  if (create_graph) scope = std::make_unique<EnableGrad>();
  else scope = std::make_unique<NoGrad>();
  engine::Walk walk(result, targets);
  walk.run(cotangent);
  std::vector<Tensor> found;
  for (const Tensor& input : inputs) {
    const Tensor* gradient = walk.find(input);
    found.push_back(gradient ? *gradient : zeros(input.shape(), input.dtype()));
  }
  return found;
}

std::vector<Tensor> gradients(const Tensor& result, std::span<const Tensor> inputs, bool create_graph) {
  return gradients(result, engine::unit_cotangent("gradients", result), inputs, create_graph);
}

}  // namespace ein
