#include "runtime/trace.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <ein/error.hpp>
#include "runtime/tape.hpp"

namespace ein {

void detail::no_elements_yet(const Shape& shape) {
  throw Error(ErrorKind::value, "the tensor of shape " + shape.to_string() +
                                    " has no elements: it is a value of a function that ein::compile traces\n"
                                    "  help: return it from the function and look at it after the call");
}

namespace engine {
namespace {

thread_local Trace* innermost = nullptr;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

bool is_leaf(const Tensor& x) { return x.impl().grad && !x.impl().grad->node; }

/// Says which of the operations that were recorded outside of a backward pass are the update: those that use what it
/// computed, and those that no result needs. What a backward pass itself needs is not.
void mark_updates(Graph& graph) {
  const std::size_t count = graph.ops.size();
  std::vector<char> uses_gradients(count, 0), is_needed(count, 0);
  const auto at = [](ValueId id) { return static_cast<std::size_t>(id); };
  for (std::size_t id = 0; id < count; ++id) {
    uses_gradients[id] = graph.ops[id].phase == Phase::backward;
    for (ValueId input : graph.ops[id].inputs) uses_gradients[id] |= uses_gradients[at(input)];
  }
  // By a backward pass; or by a result, unless gradients are in it.
  for (ValueId output : graph.outputs) is_needed[at(output)] = !uses_gradients[at(output)];
  for (std::size_t id = count; id-- > 0;) {
    const Op& op = graph.ops[id];
    if (!is_needed[id] && op.phase == Phase::forward) continue;
    for (ValueId input : op.inputs) is_needed[at(input)] = 1;
  }
  for (std::size_t id = 0; id < count; ++id) {
    Op& op = graph.ops[id];
    if (op.kind != OpKind::input && op.phase == Phase::forward && !is_needed[id]) op.phase = Phase::update;
  }
}

}  // namespace

Trace::Trace() : number_(next_number()), outer_(std::exchange(innermost, this)) {}

Trace::~Trace() {
  innermost = outer_;
  // Gradients of this trace mean nothing outside.
  for (const std::weak_ptr<detail::GradState>& weak : with_gradients_) {
    const auto state = weak.lock();
    if (state && state->grad && !state->grad->storage()) state->grad.reset();
  }
}

Trace* Trace::active() { return innermost; }

Tensor Trace::traced(ValueId id, Device device) const {
  const Op& op = graph_.op(id);
  return Tensor(std::make_shared<const detail::TensorData>(
      detail::TensorData{nullptr, op.shape, contiguous_strides(op.shape), 0, op.dtype, {number_, id, device}}));
}

Tensor Trace::argument(const Tensor& like) {
  graph_.ops.push_back({.kind = OpKind::input, .dtype = like.dtype(), .shape = like.shape()});
  return traced(static_cast<ValueId>(graph_.ops.size()) - 1, like.device());
}

ValueId Trace::value_of(const Tensor& x) {
  if (!x.storage()) {
    const detail::TracedValue value = x.impl().traced;
    if (value.trace != number_) {
      throw Error(ErrorKind::value, "a tensor of shape " + x.shape().to_string() +
                                        " belongs to another trace: it was kept after the function that ein::compile traced");
    }
    return value.id;
  }
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (is_same_view(captured_[i], x)) {
      if (is_leaf(x)) is_parameter_[i] = true;
      return current_[i];
    }
    if (captured_[i].storage() == x.storage() && current_[i] != captured_ids_[i]) {
      throw Error(ErrorKind::value, "a view of shape " + x.shape().to_string() + " of a tensor of shape " +
                                        captured_[i].shape().to_string() + " that the compiled function has assigned to");
    }
  }
  graph_.ops.push_back({.kind = OpKind::input, .dtype = x.dtype(), .shape = x.shape()});
  captured_.push_back(x.detach());
  is_parameter_.push_back(is_leaf(x));
  captured_ids_.push_back(static_cast<ValueId>(graph_.ops.size()) - 1);
  current_.push_back(captured_ids_.back());
  return captured_ids_.back();
}

std::vector<Tensor> Trace::splice(const Graph& call, Operands operands, Device device) {
  std::vector<ValueId> moved;
  std::size_t input = 0;
  for (const Op& op : call.ops) {
    if (op.kind == OpKind::input) {
      moved.push_back(value_of(*operands[input++]));
      continue;
    }
    Op copy = op;
    for (ValueId& id : copy.inputs) id = moved[static_cast<std::size_t>(id)];
    copy.phase = phase_;
    copy.again = again_;
    graph_.ops.push_back(std::move(copy));
    moved.push_back(static_cast<ValueId>(graph_.ops.size()) - 1);
  }
  std::vector<Tensor> results;
  for (ValueId output : call.outputs) results.push_back(traced(moved[static_cast<std::size_t>(output)], device));
  return results;
}

void Trace::assign(const Tensor& target, const Tensor& value) {
  if (!target.storage()) {
    throw Error(ErrorKind::value, "a value of shape " + target.shape().to_string() +
                                      " of a traced function cannot be written to; only tensors from outside can");
  }
  value_of(target);
  const ValueId id = value_of(value);
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (is_same_view(captured_[i], target)) current_[i] = id;
  }
  target.storage()->count_write();
}

Graph Trace::finish(std::span<const Tensor> results) {
  for (const Tensor& result : results) graph_.outputs.push_back(value_of(result));
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (current_[i] != captured_ids_[i]) graph_.assignments.push_back({captured_ids_[i], current_[i]});
  }
  mark_updates(graph_);
  return std::move(graph_);
}

TracePhase::TracePhase(Phase phase) : TracePhase(phase, innermost ? innermost->again_ : 0) {}

TracePhase::TracePhase(Phase phase, int again) : trace_(innermost) {
  if (!trace_) return;
  phase_before_ = std::exchange(trace_->phase_, phase);
  again_before_ = std::exchange(trace_->again_, again);
}

TracePhase::~TracePhase() {
  if (!trace_) return;
  trace_->phase_ = phase_before_;
  trace_->again_ = again_before_;
}

}  // namespace engine
}  // namespace ein
