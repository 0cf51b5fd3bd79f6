// Trace: the graph of a function's calls, recorded while the function runs on tensors without
// elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/lower.hpp"
#include "passes/place_results.hpp"
#include "runtime/plan.hpp"
#include "runtime/setting.hpp"

namespace ein::engine {

/// What a traced function read besides the elements of tensors, on which its graph depends.
struct TraceReads {
  /// Whether gradients flow to a tensor, and whether it is still its module's parameter.
  enum class Flow { none, wanted, replaced };
  static Flow flow_of(const Tensor& x);

  std::vector<detail::ReadSetting> settings;
  std::vector<std::pair<Tensor, Flow>> flows;
  /// Whether a trace would read the same now.
  bool hold() const;
};

/// While it lives, this thread's calls are recorded instead of run.
class Trace {
 public:
  /// A function that is compiled runs again and again. The others are one call, which runs at once
  /// and writes to nothing; what it uses from outside has its history. That of a map is
  /// differentiated as a whole, so that it remembers nothing itself. That of shapes never runs.
  enum class Of : std::uint8_t { compile, vmap, map, shapes };
  explicit Trace(Of of = Of::compile);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The innermost trace of this thread, or null.
  static Trace* active();
  /// The same if it is of shapes, or null.
  static Trace* of_shapes();
  /// Which function traces so, for errors: "ein::compile". All that do where there is no trace, as
  /// of a value that was kept after it.
  static std::string tracer(const Trace* trace = active());
  /// The one of whose runs random numbers that are drawn now are, or null. An Error of kind `value`
  /// in one of a map.
  static Trace* of_random_numbers();

  /// A traced tensor that stands for an argument, whose shape and strides may be formulas.
  Tensor argument(const Tensor& like, const Shape& shape, const Strides& strides);
  /// A value of this shape that nothing computes: one more input.
  Tensor without_elements(const Shape& shape, DType dtype, Device device);
  /// The graph of what these results need, so far.
  Graph graph_of(std::span<const Tensor> results);
  /// What the types of the arguments call sizes.
  void name_sizes(std::vector<std::pair<std::string, Size>> names) { names_ = std::move(names); }
  /// What is recorded lies on this mesh.
  void lies_on(const MeshPointer& mesh);
  /// A setting that the function reads, or sets: one that it set first is its own.
  void note_read(detail::ReadSetting read);
  void note_set(const detail::Setting& setting);
  /// The same of whether `x`, a tensor from outside, requires its gradient.
  void note_flow(const Tensor& x);
  void note_flow_set(const Tensor& x);
  /// What the function read besides tensors, as it was then.
  TraceReads take_reads() { return std::move(reads_); }
  bool is_of_a_call() const { return of_ == Of::vmap || of_ == Of::map; }
  bool remembers() const { return of_ != Of::map; }
  /// Whether a map's function is inside of a NoGrad of its own.
  bool is_in_no_grad() const;
  /// Null where nothing says one.
  const MeshPointer& mesh() const { return mesh_; }
  /// The size of this name; none if no type has it.
  std::optional<Size> size_named(std::string_view name) const;
  /// Appends the operations of a call, whose results lie on `device`.
  std::vector<Tensor> splice(const Graph& call, Operands operands, Device device);
  /// `to` - `from`, if the graph says that `to` is `from` plus a number; both are integers.
  std::optional<Size> difference(const Tensor& to, const Tensor& from);
  /// Whether x is a part or another view of a tensor from outside.
  bool is_view_of_state(const Tensor& x) const;
  bool is_read_only(const Tensor& view_of_state) const;
  /// Records that `target`, a tensor from outside or a view of one, receives `value`.
  void assign(const Tensor& target, const Tensor& value);
  /// Throws the Error for a write to `x`, a value without elements.
  [[noreturn]] static void refuse_write(const Tensor& x, const char* what);
  /// The number of a random stream, counted from the run's first.
  std::uint64_t next_stream() { return streams_++; }
  /// A value of this trace as a constant to differentiation.
  Tensor detached(const Tensor& x);
  /// Whether it is a value of this trace.
  bool has(const Tensor& x) const {
    return x.impl().is_traced() && x.impl().traced.trace == number_;
  }
  /// A mark of operations that repeat earlier ones and must not be taken for them.
  int next_again() { return ++agains_; }
  /// A gradient that belongs to this trace was left at a tensor from outside.
  void forget_later(const std::shared_ptr<detail::GradState>& state) {
    with_gradients_.push_back(state);
    known_.insert(state.get());
  }
  /// Whether the function itself made the gradient that is there.
  bool made_gradient(const detail::GradState& state) const { return known_.contains(&state); }

  /// The graph, whose outputs are `results`. Its inputs are the arguments, then captured().
  Graph finish(std::span<const Tensor> results);
  /// Of the results of finish().
  const std::vector<ResultPlace>& result_places() const { return result_places_; }
  /// Tensors from outside that the function used.
  const std::vector<Tensor>& captured() const { return captured_; }
  /// Whether captured tensor `i` asked for its gradient.
  bool is_parameter(std::size_t i) const { return is_parameter_[i]; }
  std::uint64_t streams() const { return streams_; }

 private:
  friend class TracePhase;
  /// A value that eager execution has as a view of another's storage.
  struct View {
    ValueId owner = 0;  // the value that has storage of its own: an input, or a computed one
    InputLayout layout;
    ValueId from = 0;             // the view that it was made of; negative: the owner itself
    ValueId seen = 0;             // what the owner held then
    bool is_at_position = false;  // begins where a tensor says: the layout's offset is unknown
  };
  void write(const Tensor& part, const Tensor& value);
  /// An Error where gradients were left that nothing uses: they end with the trace.
  void require_gradients_used() const;
  ValueId value_of(const Tensor& x);
  /// A value as another one plus a number.
  std::pair<ValueId, Size> as_sum(ValueId id) const;
  /// What a view of memory that was written to since holds now.
  ValueId renewed(ValueId view);
  /// x as a view: of itself where it has storage of its own.
  View view_of(const Tensor& x) const;
  View view_of(ValueId id) const;
  /// The captured tensor that this value is, if it is one; and what the value's storage holds by
  /// now.
  std::optional<std::size_t> captured_at(ValueId owner) const;
  ValueId current(ValueId owner) const;
  Tensor traced(ValueId id, Device device) const;

  const Of of_;
  const bool began_with_gradients_;
  std::uint64_t number_;
  Trace* outer_;
  Graph graph_;
  std::vector<Tensor> captured_;
  std::vector<ValueId> captured_ids_;
  std::vector<bool> is_parameter_;
  std::vector<ValueId> current_;  // of each captured tensor: its value after the assignments so far
  std::unordered_map<ValueId, View> views_;
  std::vector<ResultPlace> result_places_;
  std::vector<std::weak_ptr<detail::GradState>> with_gradients_;
  TraceReads reads_;
  std::unordered_set<const void*> known_;  // settings, tensors and gradients that it read or set
  std::uint64_t streams_ = 0;
  int agains_ = 0;
  Phase phase_ = Phase::forward;  // of what is recorded
  int again_ = 0;
  std::vector<std::pair<std::string, Size>> names_;  // of sizes
  MeshPointer mesh_;
};

/// While it lives, what this thread's trace, if there is one, records belongs to `phase`.
class TracePhase {
 public:
  explicit TracePhase(Phase phase);
  /// And is marked as a repetition.
  TracePhase(Phase phase, int again);
  ~TracePhase();
  TracePhase(const TracePhase&) = delete;
  TracePhase& operator=(const TracePhase&) = delete;

 private:
  Trace* trace_;
  Phase phase_before_ = Phase::forward;
  int again_before_ = 0;
};

/// An Error of kind `value` while this thread traces a function: what `call` does would happen
/// once, not in each run. `help` says what to do instead.
void require_no_trace(const char* call, const char* help);

}  // namespace ein::engine
