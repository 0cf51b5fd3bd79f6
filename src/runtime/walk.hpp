// Walk: from cotangents of results back along the tape.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/tape.hpp"

namespace ein::engine {

/// The cotangents of leaves and of wanted tensors, from those of some results.
class Walk {
 public:
  using State = std::shared_ptr<detail::GradState>;

  /// Only towards `targets`; towards every leaf where there are none. Calls with numbers below
  /// `first` are not walked through: what they made is where the walk ends.
  Walk(std::span<const Tensor> results, std::span<const State> targets, std::uint64_t first = 0);

  /// A cotangent of one of the results; none need be sent for results through which nothing comes.
  void send(const Tensor& result, const Tensor& cotangent);
  void run();

  /// Tensors that were reached and should know: leaves, those that retain gradients, targets.
  /// In the order in which they were reached first, which a trace's operations depend on.
  const std::vector<std::pair<State, Tensor>>& found() const { return found_; }
  const Tensor* find(const detail::GradState* state) const;

 private:
  bool is_useful(const detail::GradState& state) const;
  /// Whether the walk goes through the call that made it.
  bool goes_on(const detail::GradState& state) const {
    return state.node && state.node->number() >= first_;
  }
  void find_useful(std::span<const Tensor> results);
  void send(const State& state, const Tensor& cotangent);

  std::uint64_t first_;
  std::unordered_set<const detail::GradState*> targets_;
  std::unordered_set<const Node*> useful_;
  std::map<std::uint64_t, std::shared_ptr<Node>, std::greater<>> waiting_;
  std::unordered_map<const Node*, MaybeTensors> arrived_;
  std::vector<std::pair<State, Tensor>> found_;
  std::unordered_map<const detail::GradState*, std::size_t> place_;  // in found_
};

}  // namespace ein::engine
