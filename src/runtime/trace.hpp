// Trace: the graph of a function's calls, recorded while the function runs on tensors without elements.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.hpp"

namespace ein::engine {

/// While it lives, this thread's calls are recorded instead of run.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The innermost trace of this thread, or null.
  static Trace* active();

  /// A traced tensor that stands for an argument.
  Tensor argument(const Tensor& like);
  /// Appends the operations of a call.
  std::vector<Tensor> splice(const Graph& call, Operands operands);
  /// Records that `target`, a tensor from outside, receives `value`.
  void assign(const Tensor& target, const Tensor& value);
  /// The number of a random stream, counted from the run's first.
  std::uint64_t next_stream() { return streams_++; }
  /// A gradient that belongs to this trace was left at a tensor from outside.
  void forget_later(const std::shared_ptr<detail::GradState>& state) { with_gradients_.push_back(state); }

  /// The graph, whose outputs are `results`. Its inputs are the arguments, then captured().
  Graph finish(std::span<const Tensor> results);
  /// Tensors from outside that the function used.
  const std::vector<Tensor>& captured() const { return captured_; }
  std::uint64_t streams() const { return streams_; }

 private:
  ValueId value_of(const Tensor& x);
  Tensor traced(ValueId id) const;

  std::uint64_t number_;
  Trace* outer_;
  Graph graph_;
  std::vector<Tensor> captured_;
  std::vector<ValueId> captured_ids_;
  std::vector<ValueId> current_;  // of each captured tensor: its value after the assignments so far
  std::vector<std::weak_ptr<detail::GradState>> with_gradients_;
  std::uint64_t streams_ = 0;
};

}  // namespace ein::engine
