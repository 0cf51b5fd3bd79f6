#include "runtime/trace.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "compile/operand.hpp"
#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "runtime/complex.hpp"
#include "runtime/mesh.hpp"
#include "runtime/tape.hpp"
#include "runtime/writes.hpp"
#include "tensor/compute_type.hpp"

namespace ein {

namespace engine {
namespace {

thread_local Trace* innermost = nullptr;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  const detail::TracedValue &of_a = a.impl().traced, &of_b = b.impl().traced;
  return a.storage() == b.storage() && a.impl().placed == b.impl().placed &&
         of_a.trace == of_b.trace && of_a.id == of_b.id && a.offset() == b.offset() &&
         a.dtype() == b.dtype() && a.shape() == b.shape() && a.strides() == b.strides();
}

/// And whether gradients flow to both alike.
bool is_same(const Tensor& a, const Tensor& b) {
  return is_same_view(a, b) && a.impl().grad == b.impl().grad;
}

bool is_leaf(const Tensor& x) { return x.impl().grad && !x.impl().grad->node; }

/// Says which of the operations that were recorded outside of a backward pass are the update: those
/// that use what it computed, and those that no result needs. What a backward pass itself needs is
/// not.
void mark_updates(Graph& graph) {
  const std::size_t count = graph.ops.size();
  std::vector<char> uses_gradients(count, 0), is_needed(count, 0);
  const auto at = [](ValueId id) { return static_cast<std::size_t>(id); };
  for (std::size_t id = 0; id < count; ++id) {
    uses_gradients[id] = graph.ops[id].marks.phase == Phase::backward;
    for (ValueId input : graph.ops[id].inputs) uses_gradients[id] |= uses_gradients[at(input)];
  }
  // By a backward pass; or by a result, unless gradients are in it.
  for (ValueId output : graph.outputs) is_needed[at(output)] = !uses_gradients[at(output)];
  for (std::size_t id = count; id-- > 0;) {
    const Op& op = graph.ops[id];
    if (!is_needed[id] && op.marks.phase == Phase::forward) continue;
    for (ValueId input : op.inputs) is_needed[at(input)] = 1;
  }
  for (std::size_t id = 0; id < count; ++id) {
    Op& op = graph.ops[id];
    if (op.kind != OpKind::input && op.marks.phase == Phase::forward && !is_needed[id])
      op.marks.phase = Phase::update;
  }
}

}  // namespace

TraceReads::Flow TraceReads::flow_of(const Tensor& x) {
  return !x.requires_grad() ? Flow::none : is_replaced(x) ? Flow::replaced : Flow::wanted;
}

bool TraceReads::hold() const {
  return std::all_of(settings.begin(), settings.end(),
                     [](const detail::ReadSetting& read) { return read.holds(); }) &&
         std::all_of(flows.begin(), flows.end(),
                     [](const auto& read) { return flow_of(read.first) == read.second; });
}

void require_no_trace(const char* call, const char* help) {
  if (!innermost) return;
  throw Error(ErrorKind::value,
              std::string(call) + ": inside of a function that " + Trace::tracer() +
                  " traces it would happen once, while the function is traced, and not in each "
                  "run\n  help: " +
                  help);
}

Trace::Trace(Of of)
    : of_(of),
      began_with_gradients_(grad_is_enabled()),
      number_(next_number()),
      outer_(std::exchange(innermost, this)) {
  if (is_of_a_call() && outer_) mesh_ = outer_->mesh_;
}

Trace::~Trace() {
  innermost = outer_;
  // Gradients of this trace mean nothing outside.
  for (const std::weak_ptr<detail::GradState>& weak : with_gradients_) {
    const auto state = weak.lock();
    if (state && state->grad && state->grad->impl().is_traced()) state->grad.reset();
  }
}

Trace* Trace::active() { return innermost; }
Trace* Trace::of_shapes() {
  return innermost && innermost->of_ == Of::shapes ? innermost : nullptr;
}

std::string Trace::tracer(const Trace* trace) {
  if (!trace) return "ein::compile, ein::map or ein::vmap";
  switch (trace->of_) {
    case Of::compile:
      return "ein::compile";
    case Of::vmap:
      return "ein::vmap";
    case Of::map:
      return "ein::map";
    case Of::shapes:
      return "ein::ShapesOnly";
  }
  throw std::logic_error("tracer: a trace of nothing");
}

bool Trace::is_in_no_grad() const {
  return !remembers() && began_with_gradients_ && !grad_is_enabled();
}

Trace* Trace::of_random_numbers() {
  Trace* trace = innermost;
  while (trace && trace->is_of_a_call()) {
    if (trace->of_ == Of::map) {
      throw Error(ErrorKind::value,
                  "map: the function draws random numbers\n"
                  "  help: draw them before, and make them an operand");
    }
    trace = trace->outer_;
  }
  return trace;
}

Tensor Trace::traced(ValueId id, Device device) const {
  const Op& op = graph_.op(id);
  const auto view = views_.find(id);
  return Tensor(std::make_shared<const detail::TensorData>(detail::TensorData{
      nullptr,
      op.shape,
      view == views_.end() ? contiguous_strides(op.shape) : view->second.layout.strides,
      0,
      op.dtype,
      {number_, id, device}}));
}

Tensor Trace::argument(const Tensor& like, const Shape& shape, const Strides& strides) {
  const Tensor real = as_real(like);
  const ValueId id = append(
      graph_,
      {.kind = OpKind::input, .dtype = real.dtype(), .shape = real_shape(like.dtype(), shape)});
  views_[id] = {
      id, layout_of(real, real_shape(like.dtype(), shape), real_strides(like.dtype(), strides)), -1,
      id};
  const Tensor argument = traced(id, like.device());
  return is_complex(like.dtype()) ? as_complex(argument) : argument;
}

Tensor Trace::without_elements(const Shape& shape, DType dtype, Device device) {
  const ValueId id = append(
      graph_,
      {.kind = OpKind::input, .dtype = real_dtype(dtype), .shape = real_shape(dtype, shape)});
  const Tensor made = traced(id, device);
  return is_complex(dtype) ? as_complex(made) : made;
}

Graph Trace::graph_of(std::span<const Tensor> results) {
  std::vector<ValueId> outputs;
  for (const Tensor& result : results) outputs.push_back(value_of(as_real(result)));
  Graph graph = graph_;
  graph.outputs = std::move(outputs);
  return keep_values(graph, live_values(graph));
}

void Trace::note_read(detail::ReadSetting read) {
  // What one call of an outer function reads, that function reads.
  if (is_of_a_call() && outer_ && !known_.contains(read.setting.get())) outer_->note_read(read);
  if (known_.insert(read.setting.get()).second) reads_.settings.push_back(std::move(read));
}
void Trace::note_set(const detail::Setting& setting) {
  known_.insert(&setting);
  if (is_of_a_call() && outer_) outer_->note_set(setting);
}

void Trace::note_flow(const Tensor& x) {
  // Of a computed tensor it cannot change.
  if (x.impl().is_traced() || (x.impl().grad && x.impl().grad->node)) return;
  if (known_.insert(&x.impl()).second) reads_.flows.emplace_back(x, TraceReads::flow_of(x));
}
void Trace::note_flow_set(const Tensor& x) { known_.insert(&x.impl()); }

void Trace::lies_on(const MeshPointer& mesh) {
  if (mesh_ && !are_same(*mesh_, *mesh))
    throw Error(ErrorKind::placement,
                "compile: the function's tensors lie on several meshes\n"
                "  help: make one ein::Mesh and place all on it");
  mesh_ = mesh;
}

std::optional<Size> Trace::size_named(std::string_view name) const {
  for (const auto& [known, size] : names_) {
    if (known == name) return size;
  }
  if (is_of_a_call() && outer_) return outer_->size_named(name);
  return std::nullopt;
}

std::optional<std::size_t> Trace::captured_at(ValueId owner) const {
  const auto found = std::find(captured_ids_.begin(), captured_ids_.end(), owner);
  if (found == captured_ids_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - captured_ids_.begin());
}

ValueId Trace::current(ValueId owner) const {
  const auto i = captured_at(owner);
  return i ? current_[*i] : owner;
}

Trace::View Trace::view_of(ValueId id) const {
  const auto view = views_.find(id);
  return view != views_.end() ? view->second
                              : View{id, {contiguous_strides(graph_.op(id).shape)}, -1, id};
}

Trace::View Trace::view_of(const Tensor& x) const {
  if (has(x)) return view_of(x.impl().traced.id);
  const auto captured = std::find_if(captured_.begin(), captured_.end(), [&](const Tensor& known) {
    return is_of_a_call() ? is_same(known, x) : is_same_view(known, x);
  });
  const ValueId id = captured_ids_[static_cast<std::size_t>(captured - captured_.begin())];
  return {id, layout_of(x), -1, current(id)};
}

ValueId Trace::renewed(ValueId id) {
  View view = views_.at(id);
  view.seen = current(view.owner);
  if (view.from >= 0) view.from = renewed(view.from);
  Op copy = graph_.op(id);
  copy.inputs[0] = view.from >= 0 ? view.from : view.seen;
  const ValueId again = append(graph_, std::move(copy));
  views_[again] = view;
  return again;
}

ValueId Trace::value_of(const Tensor& x) {
  if (has(x) || (x.impl().is_traced() && !is_of_a_call())) {
    const detail::TracedValue value = x.impl().traced;
    if (!has(x)) {
      throw Error(ErrorKind::value,
                  "a tensor of shape " + x.shape().to_string() +
                      " belongs to another trace: it was kept after the function that was traced");
    }
    const View view = view_of(value.id);
    if (view.seen == current(view.owner)) return value.id;
    if (phase_ == Phase::backward) {
      throw Error(ErrorKind::value, "backward: a view of shape " + x.shape().to_string() +
                                        " was written to by the compiled function since the call "
                                        "that its gradient belongs to\n"
                                        "  help: write to a clone(), or after backward()");
    }
    return renewed(value.id);
  }
  note_flow(x);
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (is_same_view(captured_[i], x) || current_[i] == captured_ids_[i] ||
        !share_memory(captured_[i], x))
      continue;
    throw Error(ErrorKind::value,
                "the compiled function has written to a tensor of shape " +
                    captured_[i].shape().to_string() +
                    " (copy_from or fill), and uses another view of its memory, of shape " +
                    x.shape().to_string() +
                    ", after that\n  help: use views of the tensor that was written to, made "
                    "inside the function after the write");
  }
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (!(is_of_a_call() ? is_same(captured_[i], x) : is_same_view(captured_[i], x))) continue;
    if (is_leaf(x)) is_parameter_[i] = true;
    return current_[i];
  }
  if (x.is_placed()) lies_on(x.impl().placed->mesh);
  captured_.push_back(is_of_a_call() ? x : x.detach());
  is_parameter_.push_back(is_leaf(x));
  captured_ids_.push_back(
      append(graph_, {.kind = OpKind::input, .dtype = x.dtype(), .shape = x.shape()}));
  current_.push_back(captured_ids_.back());
  return captured_ids_.back();
}

std::vector<Tensor> Trace::splice(const Graph& call, Operands operands, Device device) {
  struct Moved {
    ValueId id;
    View view;
    bool is_owner;  // not a view of another value
  };
  std::vector<Moved> moved;
  std::size_t input = 0;
  for (const Op& op : call.ops) {
    if (op.kind == OpKind::input) {
      const Tensor& operand = *operands[input++];
      const ValueId id = value_of(operand);
      if (!has(operand))
        moved.push_back({id, view_of(operand), true});
      else
        moved.push_back({id, view_of(id), views_.count(id) == 0});
      continue;
    }
    Op copy = op;
    for (ValueId& from : copy.inputs) from = moved[static_cast<std::size_t>(from)].id;
    copy.marks.phase = phase_;
    copy.marks.again = again_;
    const ValueId id = append(graph_, std::move(copy));
    const bool is_at_position = op.kind == OpKind::gather && ein::is_at_position(op);
    if (op.kind == OpKind::reindex || is_at_position) {
      const Moved& from = moved[static_cast<std::size_t>(op.inputs[0])];
      if (const auto layout = ein::view_of(op, from.view.layout)) {
        views_[id] = {from.view.owner, *layout, from.is_owner ? -1 : from.id,
                      current(from.view.owner), is_at_position || from.view.is_at_position};
      }
    }
    moved.push_back({id, view_of(id), views_.count(id) == 0});
  }
  std::vector<Tensor> results;
  for (ValueId output : call.outputs)
    results.push_back(traced(moved[static_cast<std::size_t>(output)].id, device));
  return results;
}

namespace {

/// The number that a map adds to its one input, where it does no more than that.
std::optional<Size> added_number(const Op& op) {
  const std::vector<ScalarStep>& steps = op.expr.steps;
  if (op.expr.is_input()) return Size(0);
  if (!is_integral(op.compute) || steps.size() != 3) return std::nullopt;
  const ScalarStep& sum = steps[2];
  if (sum.op != ScalarOp::add && sum.op != ScalarOp::sub) return std::nullopt;
  const ScalarStep &left = steps[static_cast<std::size_t>(sum.args[0])],
                   &right = steps[static_cast<std::size_t>(sum.args[1])];
  const bool adds = sum.op == ScalarOp::add;
  const auto number = [](const ScalarStep& step) -> std::optional<Size> {
    if (step.op == ScalarOp::constant) return Size(step.integer);
    return step.op == ScalarOp::size ? std::optional(step.size) : std::nullopt;
  };
  if (const auto n = number(right); n && left.op == ScalarOp::input) return adds ? *n : -*n;
  if (const auto n = number(left); n && adds && right.op == ScalarOp::input) return n;
  return std::nullopt;
}

}  // namespace

std::pair<ValueId, Size> Trace::as_sum(ValueId id) const {
  const auto is_position = [](const Op& op) {
    return (op.dtype == DType::i64 || op.dtype == DType::i32) && numel(op.shape) == 1;
  };
  Size number = 0;
  for (;;) {
    const Op& op = graph_.op(id);
    if (op.inputs.size() != 1 || (op.kind != OpKind::reindex && op.kind != OpKind::map)) break;
    const Op& from = graph_.op(op.inputs[0]);
    if (!is_position(op) || !is_position(from) || size_of(op.dtype) < size_of(from.dtype)) break;
    const auto added = op.kind == OpKind::map ? added_number(op) : Size(0);
    if (!added) break;
    number += *added;
    id = op.inputs[0];
  }
  return {id, number};
}

Tensor Trace::detached(const Tensor& x) {
  const Tensor real = as_real(x);
  Graph graph;
  append(graph, {.kind = OpKind::input, .dtype = real.dtype(), .shape = real.shape()});
  Op op = plain_op(OpKind::map, real.dtype(), real.shape());
  op.inputs = {0};
  op.reads = {op.write};
  op.expr = Ex::input(0);
  op.compute = compute_type(real.dtype());
  op.marks.detached = true;
  graph.outputs = {append(graph, std::move(op))};
  const Tensor* const operand = &real;
  const Tensor made = splice(graph, {&operand, 1}, x.device()).front();
  return is_complex(x.dtype()) ? as_complex(made) : made;
}

std::optional<Size> Trace::difference(const Tensor& to, const Tensor& from) {
  const auto [a, b] = std::pair(as_sum(value_of(to)), as_sum(value_of(from)));
  return a.first == b.first ? std::optional(a.second - b.second) : std::nullopt;
}

bool Trace::is_view_of_state(const Tensor& x) const {
  return x.impl().is_traced() && x.impl().traced.trace == number_ && captured_at(view_of(x).owner);
}

bool Trace::is_read_only(const Tensor& view_of_state) const {
  return memory_of(captured_[*captured_at(view_of(view_of_state).owner)])->read_only();
}

namespace {

/// `view`, which reads what `before` rearranges, as a read of what `before` reads, a value of
/// `shape`, where one operation can say that.
std::optional<Op> read_through(const Op& view, const Op& before, const Shape& shape) {
  if (before.kind != OpKind::reindex || !writes_plainly(before)) return std::nullopt;
  Op result = view;
  result.inputs[0] = before.inputs[0];
  result.reads[0] = composed(before.reads[0], axis_values(before, view.reads[0]));
  if (!is_at_position(view)) return result;
  // The position must be one along a whole dimension of what is read then.
  const int axis = before.write[static_cast<std::size_t>(view.dim)].terms[0].axis;
  const DimIndex whole{0, {{axis, 1}}};
  const auto found = std::find(before.reads[0].begin(), before.reads[0].end(), whole);
  const auto uses_axis = [&](const DimIndex& read) { return uses({read}, axis); };
  if (found == before.reads[0].end() ||
      std::count_if(before.reads[0].begin(), before.reads[0].end(), uses_axis) != 1)
    return std::nullopt;
  result.dim = static_cast<int>(found - before.reads[0].begin());
  const bool is_whole = shape[static_cast<std::size_t>(result.dim)] ==
                        before.axes[static_cast<std::size_t>(axis)].size;
  return is_whole ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace

void Trace::write(const Tensor& part, const Tensor& value) {
  ValueId written = value_of(value);
  for (ValueId id = value_of(part);;) {
    View view = views_.at(id);
    Op read = graph_.op(id);
    while (view.from >= 0) {  // views of views as one
      const Op& before = graph_.op(view.from);
      auto direct = read_through(read, before, graph_.op(before.inputs[0]).shape);
      if (!direct) break;
      read = std::move(*direct);
      view = views_.at(view.from);
    }
    const ValueId from = view.from >= 0 ? view.from : view.seen;
    Access source = read.write;
    for (DimIndex& dim : source) {  // an axis of one point may be of the part alone
      std::erase_if(dim.terms,
                    [&](const DimIndex::Term& term) { return !uses(read.reads[0], term.axis); });
    }
    Op op =
        move_op({written, source}, read.axes, {read.reads[0], graph_.op(from).shape}, read.dtype);
    const bool is_at_position = read.kind == OpKind::gather;
    if (is_at_position) op.kind = OpKind::place;
    if (op.kind == OpKind::place) {
      op.inputs.push_back(from);
      op.reads.push_back(op.write);
    }
    if (is_at_position) {
      op.inputs.push_back(read.inputs[1]);
      op.reads.push_back(read.reads[1]);
      op.dim = read.dim;
    }
    op.marks.phase = phase_;
    op.marks.again = again_;
    written = append(graph_, std::move(op));
    if (view.from < 0) {
      const std::size_t i = *captured_at(view.owner);
      current_[i] = written;
      return count_write(captured_[i]);
    }
    id = from;
  }
}

void Trace::require_gradients_used() const {
  const std::vector<char> is_live = live_values(graph_);
  std::size_t count = 0;
  Shape first;
  for (const std::weak_ptr<detail::GradState>& weak : with_gradients_) {
    const auto state = weak.lock();
    if (!state || state->node || !state->grad || !state->grad->impl().is_traced()) continue;
    const detail::TracedValue gradient = state->grad->impl().traced;
    if (gradient.trace != number_ || is_live[static_cast<std::size_t>(gradient.id)]) return;
    if (count++ == 0) first = state->grad->shape();
  }
  if (count == 0) return;
  throw Error(
      ErrorKind::value,
      "compile: the function leaves gradients at tensors from outside, the first of shape " +
          first.to_string() +
          ", and uses none of them: they end with the trace\n"
          "  help: take the optimizer's step inside the function too; or return p.grad(), "
          "and set_grad() it outside");
}

void Trace::assign(const Tensor& target, const Tensor& value) {
  if (is_of_a_call()) {
    throw Error(ErrorKind::value, "a tensor of shape " + target.shape().to_string() +
                                      " is written to inside of a function that " + tracer(this) +
                                      " traces\n  help: return the new value");
  }
  if (target.impl().is_traced()) return write(target, value);
  value_of(target);
  const ValueId id = value_of(value);
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (is_same_view(captured_[i], target)) current_[i] = id;
  }
  count_write(target);
}

void Trace::refuse_write(const Tensor& x, const char* what) {
  const std::string shape = x.shape().to_string();
  throw Error(ErrorKind::value, std::string(what) + ": a value of shape " + shape +
                                    " of a function that " + tracer() +
                                    " traces cannot be written to; only tensors from outside can\n"
                                    "  help: use the new value in its place");
}

Graph Trace::finish(std::span<const Tensor> given) {
  std::vector<Tensor> results;
  for (const Tensor& result : given) results.push_back(as_real(result));
  for (const Tensor& result : results) graph_.outputs.push_back(value_of(result));
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    if (current_[i] != captured_ids_[i])
      graph_.assignments.push_back({captured_ids_[i], current_[i]});
  }
  require_gradients_used();
  const auto is_input = [](const Op& op) { return op.kind == OpKind::input; };
  for (std::size_t r = 0; r < results.size(); ++r) {
    const View view = view_of(results[r]);
    ResultPlace place{view.owner, std::nullopt, view.layout};
    if (view.is_at_position) {  // a copy
      place.owner = graph_.outputs[r];
    } else if (is_input(graph_.op(view.owner))) {
      place.input = static_cast<std::size_t>(
          std::count_if(graph_.ops.begin(), graph_.ops.begin() + view.owner, is_input));
    }
    result_places_.push_back(std::move(place));
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
