// checkpoint: a part of the tape that is made again when it is needed.
#include <algorithm>
#include <string>
#include <unordered_set>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "runtime/mesh.hpp"
#include "runtime/random_state.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "runtime/walk.hpp"

namespace ein {
namespace engine {
namespace {

struct Function {
  std::shared_ptr<const void> context;
  detail::TensorFunction call = nullptr;
  std::vector<Tensor> operator()(std::span<const Tensor> x) const { return call(context.get(), x); }
};

/// Stand-ins of the arguments, so that what was computed from them inside can be told from how they
/// were.
std::vector<Tensor> stand_ins(std::span<const Tensor> arguments) {
  std::vector<Tensor> aliases;
  for (const Tensor& x : arguments)
    aliases.push_back(x.requires_grad() ? detail::differentiable(x) : x);
  return aliases;
}

class CheckpointNode final : public Node {
 public:
  /// `inputs`: of the arguments, then of what f reads from outside.
  CheckpointNode(Function f, std::span<const Tensor> arguments, GradStates inputs,
                 std::span<const Tensor> results, std::vector<bool> flows, RandomPlace place,
                 std::vector<Watch::Read> outside, std::vector<detail::ReadSetting> settings)
      : Node(std::move(inputs), results),
        f_(std::move(f)),
        place_(place),
        autocast_(autocast_dtype().value_or(DType::f32)),
        outside_(std::move(outside)),
        settings_(std::move(settings)),
        flows_(std::move(flows)) {
    for (const Tensor& x : arguments) arguments_.emplace_back(x);
  }

  MaybeTensors pull_back(const MaybeTensors& cotangents,
                         const std::vector<bool>& wanted) const override {
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      arguments.push_back(arguments_[i].get(i, "checkpoint"));
    require_unwritten();

    Trace* const trace = Trace::active();
    const TracePhase again(Phase::recompute, trace ? trace->next_again() : 0);
    arguments = stand_ins(arguments);
    const std::uint64_t first = next_node_number();
    const std::vector<Tensor> results = run_again(arguments);

    const TracePhase backward(Phase::backward);
    GradStates targets;
    std::vector<const detail::GradState*> place(wanted.size(), nullptr);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      targets.push_back(i < arguments.size() ? arguments[i].impl().grad : inputs()[i]);
      place[i] = targets.back().get();
    }
    Walk walk(results, targets, first);
    for (std::size_t r = 0; r < cotangents.size(); ++r) {
      if (cotangents[r]) walk.send(results[r], *cotangents[r]);
    }
    walk.run();
    MaybeTensors found(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Tensor* cotangent = place[i] ? walk.find(place[i]) : nullptr;
      if (cotangent) found[i] = *cotangent;
    }
    return found;
  }

 private:
  std::vector<Tensor> run_again(std::span<const Tensor> arguments) const {
    const EnableGrad enabled;
    const Autocast autocast(autocast_);
    const RandomReplay replay(place_);
    const Watch watch;
    std::vector<Tensor> results = f_(arguments);
    if (watch.settings() != settings_) {
      throw Error(ErrorKind::value,
                  "backward: the function of a checkpoint ran again with a module in another mode "
                  "than at the call: its train() or eval() was called since\n"
                  "  help: call it after backward()");
    }
    bool is_same = results.size() == flows_.size();
    for (std::size_t r = 0; is_same && r < results.size(); ++r) {
      const Type& before = result_types()[r];
      is_same = results[r].shape() == before.shape && results[r].dtype() == before.dtype &&
                results[r].requires_grad() == flows_[r];
    }
    if (is_same) return results;
    throw Error(ErrorKind::value,
                "backward: the function of a checkpoint made other results when it ran again");
  }

  void require_unwritten() const {
    for (const Watch::Read& read : outside_) {
      const auto storage = read.storage.lock();
      if (!storage || storage->version() == read.version) continue;
      throw Error(ErrorKind::value,
                  "backward: a tensor of shape " + read.shape.to_string() +
                      " that the function of a checkpoint reads was written to since the call\n"
                      "  help: write to it after backward()");
    }
  }

  Function f_;
  std::vector<Saved> arguments_;
  RandomPlace place_;
  DType autocast_;
  std::vector<Watch::Read> outside_;
  std::vector<detail::ReadSetting> settings_;
  std::vector<bool> flows_;  // whether each result requires a gradient
};

/// The states that calls from number `first` on read and did not make, in the order of a search
/// from `results`.
GradStates states_from_outside(std::span<const Tensor> results, std::uint64_t first) {
  GradStates found;
  std::unordered_set<const void*> seen;
  std::vector<std::shared_ptr<detail::GradState>> stack;
  const auto visit = [&](const std::shared_ptr<detail::GradState>& state) {
    if (!state) return;
    const bool is_inside = state->node && state->node->number() >= first;
    const void* const what = is_inside ? static_cast<const void*>(state->node.get()) : state.get();
    if (!seen.insert(what).second) return;
    (is_inside ? stack : found).push_back(state);
  };
  for (const Tensor& result : results) visit(result.impl().grad);
  while (!stack.empty()) {
    const auto state = stack.back();
    stack.pop_back();
    for (const auto& input : state->node->inputs()) visit(input);
  }
  return found;
}

/// What of `reads` is still there when the calls are forgotten; results belong to their holders.
std::vector<Watch::Read> still_there(const std::vector<Watch::Read>& reads,
                                     std::span<const Tensor> results) {
  std::vector<Watch::Read> kept;
  for (const Watch::Read& read : reads) {
    const auto storage = read.storage.lock();
    bool is_result = false;
    for (const Tensor& result : results) is_result |= memory_of(result) == storage;
    if (storage && !is_result) kept.push_back(read);
  }
  return kept;
}

}  // namespace
}  // namespace engine

std::vector<Tensor> detail::checkpoint(std::shared_ptr<const void> context, TensorFunction function,
                                       std::span<const Tensor> x) {
  using namespace engine;
  const Function f{std::move(context), function};
  if (!grad_is_enabled()) return f(x);
  const RandomPlace place = random_place();
  const Watch watch;
  GradStates inputs;
  std::vector<Tensor> results;
  std::vector<bool> flows;
  for (const Tensor& argument : x) inputs.push_back(argument.impl().grad);
  {
    std::vector<Tensor> aliases;
    {
      const NoGrad unconnected;
      aliases = stand_ins(x);
    }
    const std::uint64_t first = next_node_number();
    const std::vector<Tensor> found = f(aliases);
    for (const auto& state : states_from_outside(found, first)) {
      const bool is_argument =
          std::any_of(aliases.begin(), aliases.end(),
                      [&](const Tensor& alias) { return alias.impl().grad == state; });
      if (!is_argument) inputs.push_back(state);
    }
    for (const Tensor& result : found) {
      flows.push_back(result.requires_grad());
      results.push_back(without_history(result));
    }
    // The calls are forgotten here.
  }
  if (std::find(flows.begin(), flows.end(), true) == flows.end()) return results;
  const auto node =
      std::make_shared<CheckpointNode>(f, x, std::move(inputs), results, flows, place,
                                       still_there(watch.reads(), results), watch.settings());
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (flows[r]) attach(node, r, results[r]);
  }
  return results;
}

}  // namespace ein
