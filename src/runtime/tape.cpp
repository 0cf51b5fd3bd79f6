#include "runtime/tape.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include "passes/distribute.hpp"
#include "runtime/call.hpp"
#include "runtime/complex.hpp"
#include "runtime/mesh.hpp"
#include "runtime/trace.hpp"
#include "runtime/walk.hpp"

namespace ein {
namespace {
thread_local bool enabled_here = true;
}

NoGrad::NoGrad(bool enabled) : before_(std::exchange(enabled_here, enabled)) {}
NoGrad::~NoGrad() { enabled_here = before_; }
bool grad_is_enabled() { return enabled_here; }

namespace engine {

using detail::GradState;

// --- nodes ---

namespace {
std::atomic<std::uint64_t> node_count{0};
thread_local Watch* innermost_watch = nullptr;
}  // namespace

std::uint64_t next_node_number() { return node_count; }

Node::Node(GradStates inputs, std::span<const Tensor> results)
    : number_(node_count++), inputs_(std::move(inputs)) {
  for (const Tensor& result : results)
    results_.push_back({result.shape(), result.dtype(), result.device(),
                        result.is_placed() ? result.impl().placed->mesh : nullptr,
                        placement_of(result)});
}

Tensor Node::Type::zeros() const {
  if (!mesh) return ein::zeros(shape, dtype, device);
  const Shape local = local_shape(shape, placement, mesh->axes);
  return joined(mesh, placement, shape,
                std::vector<Tensor>(mesh->here.size(), ein::zeros(local, dtype, device)));
}

Node::~Node() {
  // A long chain of calls is let go of one by one; by recursion it could exhaust the stack.
  thread_local std::shared_ptr<Node>* chain = nullptr;
  std::shared_ptr<Node> mine;
  const bool is_first = chain == nullptr;
  if (is_first) chain = &mine;
  for (const std::shared_ptr<GradState>& state : inputs_) {
    if (!state || state.use_count() != 1 || !state->node) continue;
    std::shared_ptr<Node> node = std::move(state->node);
    if (node->is_in_chain_.exchange(true)) continue;  // another of its results was
    Node& added = *node;
    added.next_ = std::exchange(*chain, std::move(node));
  }
  inputs_.clear();
  if (!is_first) return;
  while (mine) {
    const std::shared_ptr<Node> first = std::move(mine);
    mine = std::move(first->next_);
    first->is_in_chain_ = false;
  }
  chain = nullptr;
}

std::vector<Tensor> Node::with_zeros(const MaybeTensors& cotangents) const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const bool came = i < cotangents.size() && cotangents[i];
    all.push_back(!came                           ? results_[i].zeros()
                  : is_complex(results_[i].dtype) ? as_complex(*cotangents[i])
                                                  : *cotangents[i]);
  }
  return all;
}

Saved::Saved(const Tensor& x)
    : tensor_(x), version_(x.impl().is_traced() ? 0 : memory_of(x)->version()) {}

const Tensor& Saved::get(std::size_t operand, const std::string& call) const {
  if (tensor_.impl().is_traced() || memory_of(tensor_)->version() == version_) return tensor_;
  throw Error(ErrorKind::value,
              "backward: operand " + std::to_string(operand + 1) + " of " + call +
                  ", a tensor of shape " + tensor_.shape().to_string() +
                  ", was written to since the call, and its gradient needs what was there\n"
                  "  help: write to a clone(), or after backward()");
}

Watch::Watch() : outer_(std::exchange(innermost_watch, this)) {}
Watch::~Watch() { innermost_watch = outer_; }

void Watch::note(Operands operands) {
  for (Watch* watch = innermost_watch; watch; watch = watch->outer_) {
    for (const Tensor* x : operands) {
      const auto& storage = memory_of(*x);
      if (!storage) continue;
      const auto [place, is_new] = watch->place_.try_emplace(storage.get(), watch->reads_.size());
      const Read read{storage, storage->version(), x->shape()};
      if (is_new) watch->reads_.push_back(read);
      // Else the same memory, or the address of some that was freed.
      else if (Read& known = watch->reads_[place->second]; known.storage.expired())
        known = read;
    }
  }
}

void Watch::note(const detail::ReadSetting& read) {
  for (Watch* watch = innermost_watch; watch; watch = watch->outer_) {
    const auto is_known = [&](const detail::ReadSetting& r) { return r.setting == read.setting; };
    if (std::none_of(watch->settings_.begin(), watch->settings_.end(), is_known))
      watch->settings_.push_back(read);
  }
}

void mark_replaced(const Tensor& parameter) {
  if (parameter.impl().grad) parameter.impl().grad->is_replaced = true;
}
bool is_replaced(const Tensor& parameter) {
  return parameter.impl().grad && parameter.impl().grad->is_replaced;
}

namespace {

/// A call of a pattern, an elementwise function, a view ...: any that has a plan.
class CallNode final : public Node {
 public:
  CallNode(const Plan& plan, Operands operands, GradStates inputs, std::span<const Tensor> results,
           const Backward& backward)
      : Node(std::move(inputs), results), plan_(plan.shared_from_this()), saved_(operands.size()) {
    for (std::size_t i : backward.vjp.needs) saved_[i].emplace(*operands[i]);
    if (!plan.mesh()) return;
    mesh_ = plan.mesh();
    for (const Tensor* operand : operands) placements_.push_back(placement_of(*operand));
  }

  MaybeTensors pull_back(const MaybeTensors& arrived,
                         const std::vector<bool>& wanted) const override {
    const Backward& backward = plan_->backward(wanted);
    const std::vector<Tensor> cotangents = with_zeros(arrived);
    std::vector<const Tensor*> operands;
    for (std::size_t i : backward.vjp.needs) {
      operands.push_back(&saved_[i]->get(i, plan_->call()));
    }
    for (const Tensor& cotangent : cotangents) operands.push_back(&cotangent);
    PlanKey key;
    add(key, KeyKind::backward);
    key.add(backward.number);
    ResultPlacements results{mesh_, {}};  // a gradient lies as its operand does
    std::size_t reached = 0;
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      if (wanted[i] && backward.vjp.reached[reached++])
        results.placements.emplace_back(placements_[i]);
    }
    const auto plan = plan_for(
        key, operands, [&] { return "backward of " + plan_->call(); },
        [&] { return backward.vjp.graph; }, {}, &results);
    std::vector<Tensor> found = run(*plan, operands);
    MaybeTensors result(wanted.size());
    std::size_t next = 0, input = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] && backward.vjp.reached[input++]) result[i] = std::move(found[next++]);
    }
    return result;
  }

 private:
  std::shared_ptr<const Plan> plan_;
  std::vector<std::optional<Saved>> saved_;
  MeshPointer mesh_;
  std::vector<Placement> placements_;  // of the operands, where one is placed
};

/// The identity.
class AliasNode final : public Node {
 public:
  using Node::Node;

  MaybeTensors pull_back(const MaybeTensors& cotangents, const std::vector<bool>&) const override {
    return cotangents;
  }
};

}  // namespace

void attach(const std::shared_ptr<Node>& node, std::span<const Tensor> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (has_gradients(results[i].dtype())) attach(node, i, results[i]);
  }
}
void attach(const std::shared_ptr<Node>& node, std::size_t place, const Tensor& result) {
  result.impl().grad = std::make_shared<GradState>(result.storage(), node, place);
}

void remember_call(const Plan& plan, Operands operands, std::span<Tensor> results) {
  std::vector<bool> wanted;
  GradStates inputs;
  Watch::note(operands);
  for (const Tensor* operand : operands) {
    inputs.push_back(operand->impl().grad);
    wanted.push_back(inputs.back() != nullptr);
  }
  const Backward& backward = plan.backward(wanted);
  if (std::none_of(backward.vjp.reached.begin(), backward.vjp.reached.end(),
                   [](bool b) { return b; }))
    return;
  attach(std::make_shared<CallNode>(plan, operands, std::move(inputs), results, backward), results);
}

namespace {

Tensor unit_cotangent(const char* what, const Tensor& result) {
  if (result.numel() != 1) {
    throw Error(ErrorKind::shape,
                std::string(what) + ": a tensor of shape " + result.shape().to_string() +
                    " is no scalar; give a cotangent of its shape, or reduce it first");
  }
  if (is_complex(result.dtype())) {
    throw Error(ErrorKind::dtype,
                std::string(what) + ": the result is " + std::string(name(result.dtype())) +
                    ", and only real numbers have a direction in which they grow"
                    "\n  help: take ein::real or ein::abs of it, or give a cotangent");
  }
  return ones(result.shape(), result.dtype(), result.device());
}
void require_cotangent(const char* what, const Tensor& result, const Tensor& cotangent) {
  if (cotangent.shape() == result.shape() && cotangent.dtype() == result.dtype()) return;
  throw Error(ErrorKind::shape,
              std::string(what) + ": the cotangent is " + std::string(name(cotangent.dtype())) +
                  " " + cotangent.shape().to_string() + ", the result " +
                  std::string(name(result.dtype())) + " " + result.shape().to_string());
}
void require_flow(const char* what, const Tensor& result) {
  if (result.requires_grad()) return;
  throw Error(ErrorKind::value, std::string(what) + ": the tensor of shape " +
                                    result.shape().to_string() +
                                    " was computed from no tensor that requires a gradient\n"
                                    "  help: call requires_grad(true) on the parameters before "
                                    "computing it, outside of any NoGrad; if ein::compile made a "
                                    "function of the computation, which passes no gradients on, "
                                    "call backward() inside of that function");
}

/// In a trace the gradient has to be the function's own.
void require_of_trace(const char* what, const GradState& state) {
  const Trace* const trace = Trace::active();
  if (!trace || !state.grad || trace->made_gradient(state)) return;
  throw Error(ErrorKind::value,
              std::string(what) + ": the gradient of shape " + state.grad->shape().to_string() +
                  " was left outside of the function that " + Trace::tracer(trace) +
                  " traces, and each run would use this one again\n"
                  "  help: call zero_grad() and backward() inside the function, or give it the "
                  "gradient as an argument and set_grad() that");
}

}  // namespace
}  // namespace engine

// --- members of Tensor ---

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, Shape shape, Strides strides,
               std::int64_t offset)
    : data_(detail::view_of(std::move(storage), dtype, std::move(shape), std::move(strides),
                            offset)) {
  if (!grad_is_enabled() || !data_->storage->has_gradients()) return;
  throw Error(ErrorKind::value, "gradients flow through the storage that a tensor of shape " +
                                    data_->shape.to_string() +
                                    " is to view, and would be lost to it\n"
                                    "  help: at(), view() and rearrange make views that keep them; "
                                    "or make it inside a scope of ein::NoGrad");
}

const Tensor& Tensor::requires_grad(bool wanted) const {
  auto& state = data_->grad;
  if (state && state->node) {
    throw Error(ErrorKind::value,
                "requires_grad: the tensor of shape " + shape().to_string() +
                    " was computed from others; detach() it first, or ask for retain_grad()");
  }
  if (wanted && !has_gradients(dtype())) {
    throw Error(ErrorKind::dtype, "requires_grad: " + std::string(name(dtype())) +
                                      " is not a floating-point or complex dtype");
  }
  if (engine::Trace* trace = engine::Trace::active()) trace->note_flow_set(*this);
  if (!wanted)
    state = nullptr;
  else if (!state)
    state = std::make_shared<detail::GradState>(storage(), nullptr, 0);
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
  const engine::TracePhase phase(Phase::backward);
  engine::Walk walk({this, 1}, {});
  walk.send(*this, engine::as_real(cotangent));
  walk.run();
  for (const auto& [state, gradient] : walk.found()) {
    engine::require_of_trace("backward", *state);
    // A gradient of its own: cotangents may be views of each other, or of what the caller holds.
    const bool is_own = gradient.impl().is_traced() ||
                        (gradient.storage() && gradient.data_.use_count() == 1 &&
                         gradient.storage().use_count() == 1 && gradient.is_contiguous());
    state->grad = state->grad ? *state->grad + gradient : is_own ? gradient : gradient.clone();
    if (engine::Trace* trace = engine::Trace::active()) trace->forget_later(state);
  }
}

Tensor Tensor::grad() const {
  if (has_grad()) engine::require_of_trace("grad", *data_->grad);
  if (has_grad())
    return is_complex(dtype()) ? engine::as_complex(*data_->grad->grad) : *data_->grad->grad;
  throw Error(
      ErrorKind::value,
      "grad: the tensor of shape " + shape().to_string() + " has no gradient: " +
          (!requires_grad()    ? "it does not require one"
           : data_->grad->node ? "it was computed from others and does not retain_grad()"
                               : "no backward() has reached it since the last zero_grad()"));
}
bool Tensor::has_grad() const { return data_->grad && data_->grad->grad; }

void Tensor::set_grad(const Tensor& gradient) const {
  if (!requires_grad())
    throw Error(ErrorKind::value, "set_grad: the tensor of shape " + shape().to_string() +
                                      " does not require a gradient");
  if (gradient.dtype() != dtype())
    throw Error(ErrorKind::dtype, "set_grad: the gradient is " +
                                      std::string(name(gradient.dtype())) + ", the tensor " +
                                      std::string(name(dtype())) +
                                      "\n  help: cast it with .to(dtype)");
  if (gradient.shape() != shape())
    throw Error(ErrorKind::shape, "set_grad: the gradient has shape " +
                                      gradient.shape().to_string() + ", the tensor " +
                                      shape().to_string());
  data_->grad->grad = engine::without_history(engine::as_real(gradient));
  if (engine::Trace* trace = engine::Trace::active()) trace->forget_later(data_->grad);
}
void Tensor::zero_grad() const {
  if (data_->grad) data_->grad->grad.reset();
}
void Tensor::retain_grad() const {
  if (!requires_grad())
    throw Error(ErrorKind::value, "retain_grad: the tensor of shape " + shape().to_string() +
                                      " does not require a gradient");
  data_->grad->retains = true;
}
Tensor Tensor::detach() const {
  engine::Trace* const trace = engine::Trace::active();
  const bool is_of_a_call = trace && trace->is_of_a_call() && trace->has(*this);
  return is_of_a_call ? trace->detached(*this) : engine::without_history(*this);
}

Tensor engine::without_history(const Tensor& x) {
  detail::TensorData data = x.impl();
  data.grad = nullptr;
  return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
}

// --- functions ---

namespace engine {
namespace {
/// Inside of a function that map was given, whose calls are not remembered one by one.
void require_memory(const char* what) {
  const Trace* const trace = Trace::active();
  if (!trace || trace->remembers()) return;
  throw Error(ErrorKind::value,
              std::string(what) +
                  ": inside of a function that map was given no gradients are taken"
                  "\n  help: take them of what map returns, or of a function "
                  "that vmap is given");
}
}  // namespace
}  // namespace engine

Tensor detail::differentiable(const Tensor& x) {
  engine::require_memory("gradients");
  const Tensor alias = engine::without_history(x);
  if (x.requires_grad() && grad_is_enabled()) {
    engine::attach(std::make_shared<engine::AliasNode>(engine::GradStates{x.impl().grad},
                                                       std::span(&alias, 1)),
                   std::span(&alias, 1));
  } else {
    alias.requires_grad(true);
  }
  return alias;
}

std::vector<Tensor> gradients(const Tensor& result, const Tensor& cotangent,
                              std::span<const Tensor> inputs, bool create_graph) {
  engine::require_memory("gradients");
  engine::require_cotangent("gradients", result, cotangent);
  engine::GradStates targets;
  for (const Tensor& input : inputs) {
    engine::require_flow("gradients", input);
    targets.push_back(input.impl().grad);
  }
  const std::unique_ptr<NoGrad> scope(create_graph ? new EnableGrad : new NoGrad);
  const engine::TracePhase phase(Phase::backward);
  engine::Walk walk({&result, 1}, targets);
  walk.send(result, engine::as_real(cotangent));
  walk.run();
  std::vector<Tensor> found;
  for (const Tensor& input : inputs) {
    const Tensor* gradient = walk.find(input.impl().grad.get());
    found.push_back(!gradient                   ? full_like(input, 0, input.dtype())
                    : is_complex(input.dtype()) ? engine::as_complex(*gradient)
                                                : *gradient);
  }
  return found;
}

std::vector<Tensor> gradients(const Tensor& result, std::span<const Tensor> inputs,
                              bool create_graph) {
  return gradients(result, engine::unit_cotangent("gradients", result), inputs, create_graph);
}

}  // namespace ein
