#include "runtime/walk.hpp"

#include <algorithm>

#include <ein/elementwise.hpp>

namespace ein::engine {

using detail::GradState;

Walk::Walk(std::span<const Tensor> results, std::span<const State> targets, std::uint64_t first)
    : first_(first) {
  for (const State& target : targets) targets_.insert(target.get());
  if (!targets_.empty()) find_useful(results);
}

void Walk::run() {
  while (!waiting_.empty()) {
    const auto [number, node] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    auto entry = arrived_.extract(node.get());
    std::vector<bool> wanted;
    for (const State& input : node->inputs()) wanted.push_back(input && is_useful(*input));
    const MaybeTensors back = node->pull_back(entry.mapped(), wanted);
    for (std::size_t i = 0; i < back.size(); ++i) {
      if (wanted[i] && back[i]) send(node->inputs()[i], *back[i]);
    }
  }
}

const Tensor* Walk::find(const GradState* state) const {
  const auto place = place_.find(state);
  return place == place_.end() ? nullptr : &found_[place->second].second;
}

bool Walk::is_useful(const GradState& state) const {
  if (targets_.empty()) return true;
  return targets_.contains(&state) || (state.node && useful_.contains(state.node.get()));
}

/// Finds the nodes from which a target can be reached.
void Walk::find_useful(std::span<const Tensor> results) {
  std::map<std::uint64_t, const Node*> nodes;  // all, the earliest first
  std::vector<const Node*> stack;
  const auto visit = [&](const State& state) {
    if (state && goes_on(*state) && nodes.emplace(state->node->number(), state->node.get()).second)
      stack.push_back(state->node.get());
  };
  for (const Tensor& result : results) visit(result.impl().grad);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const State& input : node->depends_on()) visit(input);
  }
  for (const auto& [number, node] : nodes) {
    for (const State& input : node->depends_on()) {
      if (input && is_useful(*input)) useful_.insert(node);
    }
  }
}

void Walk::send(const Tensor& result, const Tensor& cotangent) {
  if (result.impl().grad) send(result.impl().grad, cotangent);
}

void Walk::send(const State& state, const Tensor& cotangent) {
  const bool is_target =
      targets_.empty() ? !state->node || state->retains : targets_.contains(state.get());
  if (is_target) {
    const auto [place, is_new] = place_.try_emplace(state.get(), found_.size());
    if (is_new) {
      found_.emplace_back(state, cotangent);
    } else {
      Tensor& sum = found_[place->second].second;
      sum = sum + cotangent;
    }
  }
  if (!goes_on(*state) || (!targets_.empty() && !useful_.contains(state->node.get()))) return;
  MaybeTensors& at_node = arrived_[state->node.get()];
  at_node.resize(std::max(at_node.size(), state->output + 1));
  std::optional<Tensor>& sum = at_node[state->output];
  sum = sum ? *sum + cotangent : cotangent;
  waiting_.emplace(state->node->number(), state->node);
}

}  // namespace ein::engine
