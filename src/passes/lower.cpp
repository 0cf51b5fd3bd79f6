#include "passes/lower.hpp"

#include <algorithm>
#include <optional>

#include <ein/count.hpp>
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "graph/rewrite.hpp"
#include "passes/fusion.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

struct Layout {
  int buffer = -1;
  Size offset = 0;
  Strides strides;
};

/// A read of a value from inside an index space.
/// The offset and, for each axis, the stride of an access to a value that lies so.
InputLayout walked(const InputLayout& layout, const Access& access, std::size_t axes) {
  InputLayout result{Strides(axes, 0), layout.offset};
  for (std::size_t d = 0; d < access.size(); ++d) {
    result.offset += layout.strides[d] * access[d].offset;
    for (const DimIndex::Term& term : access[d].terms) {
      result.strides[static_cast<std::size_t>(term.axis)] += layout.strides[d] * term.coefficient;
    }
  }
  return result;
}

}  // namespace

Size elements_up_to_last(const Shape& shape, const InputLayout& layout) {
  if (ask_equal(numel(shape), 0)) return 0;
  Size last = layout.offset;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const Size stride = layout.strides[d];
    if (!stride.is_number() || stride.word() > 0) last += (shape[d] - 1) * stride;
  }
  return last + 1;
}

namespace {

/// Walks each axis as the output lies, upwards in memory: what stores need not know negative steps,
/// while loads do, for those of a flip.
void write_upwards(LoopNest& nest) {
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const Size stride = nest.output.strides[a], size = nest.axes[a].size;
    if (!stride.is_number() || stride.word() >= 0 || ask_equal(size, 0)) continue;
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      LoopNest::Operand& operand = nest.operand(o);
      operand.offset += (size - 1) * operand.strides[a];
      operand.strides[a] = -operand.strides[a];
    }
  }
}

}  // namespace

LoopNest copy_nest(const Program::Result& from, const Program::Result& to) {
  LoopNest nest;
  for (const Axis& axis : axes_of(from.shape)) nest.axes.push_back({axis.name, axis.size});
  nest.inputs = {from.operand()};
  nest.output = to.operand();
  nest.body = Ex::input(0);
  nest.compute = compute_type(from.dtype);
  nest.kind = OpKind::reindex;
  write_upwards(nest);
  simplify(nest);
  return nest;
}

namespace {

/// The view, where axes are left out of whose size `is_single` says that it is 1.
template <class F>
std::optional<InputLayout> view_of(const Op& op, const InputLayout& from, const F& is_single) {
  const InputLayout read = walked(from, op.reads[0], op.axes.size());
  InputLayout view{Shape(op.shape.rank(), 0), read.offset};
  const bool empty = ask_equal(numel(op.shape), 0);
  for (std::size_t d = 0; d < op.write.size(); ++d) {
    // The terms of one dimension must step evenly, from its innermost axis out.
    Size stride = 0;
    Size expected = 0;
    bool first = true;
    for (std::size_t t = op.write[d].terms.size(); t-- > 0;) {
      const auto axis = static_cast<std::size_t>(op.write[d].terms[t].axis);
      if (is_single(op.axes[axis].size)) continue;
      if (first) {
        stride = read.strides[axis];
        first = false;
      } else if (!empty && !ask_equal(read.strides[axis], expected)) {
        return std::nullopt;
      }
      expected = read.strides[axis] * op.axes[axis].size;
    }
    view.strides[d] = stride;
  }
  // What is empty may begin behind the end; it reads nothing, so any place will do.
  if (empty) view.offset = from.offset;
  // Where no element depends on a stride, a contiguous one keeps later views possible.
  const Strides compact = contiguous_strides(op.shape);
  for (std::size_t d = 0; d < op.shape.rank(); ++d) {
    if (empty || is_single(op.shape[d])) view.strides[d] = compact[d];
  }
  return view;
}

}  // namespace

std::optional<InputLayout> view_of(const Op& op, const InputLayout& from) {
  if (goes_backwards(op.reads[0])) return std::nullopt;  // a flip is a new tensor
  // A length is asked whether it is 1 only where that could make a view of what is none.
  if (auto view = view_of(op, from, is_one)) return view;
  return view_of(op, from, [](Size size) { return ask_equal(size, 1); });
}

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, std::span<const InputLayout> inputs)
      : graph_(graph),
        input_layouts_(inputs),
        layouts_(graph.ops.size()),
        users_(graph.ops.size(), 0),
        user_(graph.ops.size(), -1),
        inlined_(graph.ops.size(), false),
        absorbed_into_(graph.ops.size(), -1) {}

  Program run() {
    program_.input_count = input_layouts_.size();
    plan_fusion();
    std::size_t next_input = 0;
    for (const Op& op : graph_.ops) {
      if (op.kind != OpKind::input) continue;
      program_.buffers.push_back(
          {elements_up_to_last(op.shape, input_layouts_[program_.buffers.size()]), op.dtype});
    }
    for (std::size_t id = 0; id < graph_.ops.size(); ++id) {
      const Op& op = graph_.ops[id];
      if (op.kind == OpKind::input) {
        const InputLayout& in = input_layouts_[next_input];
        layouts_[id] = {static_cast<int>(next_input++), in.offset, in.strides};
        // Strides that no element depends on may be anything, too large to compute with, even.
        const bool empty = ask_equal(numel(op.shape), 0);
        for (std::size_t d = 0; d < op.shape.rank(); ++d) {
          if (empty || ask_equal(op.shape[d], 1)) layouts_[id].strides[d] = 0;
        }
      } else if (!inlined_[id]) {
        lower(static_cast<ValueId>(id));
      }
    }
    for (ValueId output : graph_.outputs) {
      const Layout& layout = layout_of(output);
      program_.results.push_back({layout.buffer, graph_.op(output).dtype, graph_.op(output).shape,
                                  layout.strides, layout.offset});
    }
    return std::move(program_);
  }

 private:
  Layout& layout_of(ValueId id) { return layouts_[static_cast<std::size_t>(id)]; }

  // --- fusion ---

  void plan_fusion() {
    std::vector<int> readers(graph_.ops.size(), 0);  // operations, of which one may read it twice
    for (std::size_t id = 0; id < graph_.ops.size(); ++id) {
      for (ValueId input : graph_.ops[id].inputs) {
        const auto i = static_cast<std::size_t>(input);
        ++users_[i];
        readers[i] += user_[i] != static_cast<ValueId>(id);
        user_[i] = static_cast<ValueId>(id);
      }
    }
    for (ValueId output : graph_.outputs)
      users_[static_cast<std::size_t>(output)] = readers[static_cast<std::size_t>(output)] = 2;
    std::vector<FusedSize> sizes(graph_.ops.begin(), graph_.ops.end());  // of each value's nest
    for (std::size_t id = 0; id < graph_.ops.size(); ++id) {
      const Op& op = graph_.ops[id];
      const int uses = op.kind == OpKind::map ? readers[id] : users_[id];
      if (uses != 1 || user_[id] < 0) continue;
      const Op& reader = graph_.op(user_[id]);
      if (op.kind == OpKind::map) {
        // One that finishes a reduction is that reduction's nest.
        FusedSize& reader_size = sizes[static_cast<std::size_t>(user_[id])];
        inlined_[id] = absorbed_into_[id] < 0 && reader_size.has_room_for(sizes[id]) &&
                       is_taken_in(static_cast<ValueId>(id), reader);
        if (inlined_[id]) reader_size += sizes[id];
      } else if (is_finished_by(static_cast<ValueId>(id), user_[id])) {
        FusedSize& reader_size = sizes[static_cast<std::size_t>(user_[id])];
        ValueId& absorbed = absorbed_into_[static_cast<std::size_t>(user_[id])];
        if (absorbed >= 0 || !reader_size.has_room_for(sizes[id])) continue;
        inlined_[id] = true;
        absorbed = static_cast<ValueId>(id);
        reader_size += sizes[id];
      }
    }
  }

  /// Whether `reader` can compute a map wherever it reads it.
  bool is_taken_in(ValueId map, const Op& reader) const {
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      if (reader.inputs[i] != map) continue;
      if (reader.reads.empty() ||
          !takes_in_by_nest(graph_, reader, graph_.op(map), reader.reads[i]))
        return false;
    }
    return true;
  }

  /// Whether map `reader` can be the epilogue of `id`, a reduction or contraction. That of a
  /// reduction reads nothing else.
  bool is_finished_by(ValueId id, ValueId reader) const {
    const Op &op = graph_.op(id), &map = graph_.op(reader);
    const bool combines =
        op.kind == OpKind::reduce || (op.kind == OpKind::contract && reduces(op.write, op.axes));
    if (!combines || map.kind != OpKind::map ||
        (op.kind == OpKind::reduce && map.inputs.size() != 1))
      return false;
    const auto input = static_cast<std::size_t>(
        std::find(map.inputs.begin(), map.inputs.end(), id) - map.inputs.begin());
    // Work is counted under the phase that it belongs to.
    if (op.kind == OpKind::contract && op.marks.phase != map.marks.phase) return false;
    return can_round(map.compute, op.dtype) && compute_type(op) == map.compute &&
           ask_equal(op.shape, map.shape) && !draws(map.expr) && !asks_index(map.expr) &&
           map.reads[input] == map.write && writes_plainly(map) && writes_plainly(op);
  }

  /// The same with inlined maps in place of reads of their values.
  Computed with_maps(Computed of) const {
    of = with_maps_once(std::move(of));
    std::vector<Computed> inputs;
    for (Read& read : of.reads) inputs.push_back(value_of(std::move(read)));
    return substituted(of.expr, inputs);
  }
  Computed value_of(Read read) const {
    const Op& op = graph_.op(read.value);
    if (op.kind != OpKind::map || !is_inlined(read.value)) return as_read(std::move(read));
    Computed value = with_maps(computed_at(op, read.access).value());
    value.expr = rounded(std::move(value.expr), op.compute, op.dtype);
    return value;
  }
  bool is_inlined(ValueId id) const { return inlined_[static_cast<std::size_t>(id)] != 0; }

  /// The same, which reads an element of an inlined map once: it is computed once.
  Computed with_maps_once(Computed of) const {
    std::vector<Read> once;
    std::vector<int> number;
    for (const Read& read : of.reads) {
      const auto known = std::find_if(once.begin(), once.end(), [&](const Read& other) {
        return is_inlined(read.value) && other.value == read.value && other.access == read.access;
      });
      number.push_back(static_cast<int>(known - once.begin()));
      if (known == once.end()) once.push_back(read);
    }
    for (ScalarStep& step : of.expr.steps) {
      if (step.op == ScalarOp::input) step.which = number[static_cast<std::size_t>(step.which)];
    }
    of.reads = std::move(once);
    return of;
  }

  // --- layouts ---

  int allocate(DType dtype, const Shape& shape) {
    program_.buffers.push_back(
        {checked_numel(shape, static_cast<std::int64_t>(size_of(dtype))), dtype});
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  Layout contiguous(const Op& op) {
    return {allocate(op.dtype, op.shape), 0, contiguous_strides(op.shape)};
  }

  /// Gives a value that a nest writes its memory: where its reader would have to copy it to, if
  /// there is such a place.
  void allocate_result(ValueId id) {
    if (is_placed(id)) return;
    std::optional<Layout> wanted = wanted_layout(id);
    layout_of(id) = wanted ? std::move(*wanted) : contiguous(graph_.op(id));
  }
  bool is_placed(ValueId id) { return layout_of(id).buffer >= 0; }

  /// The layout of a value that one rearrangement or concatenation alone reads, in that one's
  /// result.
  std::optional<Layout> wanted_layout(ValueId id) {
    const auto i = static_cast<std::size_t>(id);
    const Op& op = graph_.op(id);
    if (users_[i] != 1 || user_[i] < 0) return std::nullopt;
    // Random numbers depend on where they lie.
    if (op.kind == OpKind::scatter || (op.kind == OpKind::map && draws(op.expr)))
      return std::nullopt;
    const ValueId reader = user_[i];
    if (ask_equal(checked_numel(op.shape, static_cast<std::int64_t>(size_of(op.dtype))), 0))
      return std::nullopt;
    std::optional<Layout> layout;
    if (graph_.op(reader).kind == OpKind::concat) {
      layout = part_of_concat(reader, id);
    } else if (graph_.op(reader).kind == OpKind::reindex) {
      layout = layout_before(reader, op);
    }
    return layout && keeps_innermost(op.shape, layout->strides) ? layout : std::nullopt;
  }

  Layout part_of_concat(ValueId reader, ValueId part) {
    allocate_result(reader);
    const Op& concat = graph_.op(reader);
    Layout layout = layout_of(reader);
    const auto dim = static_cast<std::size_t>(concat.dim);
    for (ValueId input : concat.inputs) {
      if (input == part) break;
      layout.offset += layout.strides[dim] * graph_.op(input).shape[dim];
    }
    return layout;
  }

  /// The layout of which the result of a rearrangement is a view, if the rearrangement would
  /// otherwise copy.
  std::optional<Layout> layout_before(ValueId reader, const Op& op) {
    const Op& move = graph_.op(reader);
    std::vector<char> seen(move.axes.size(), 0);
    for (std::size_t d = 0; d < op.shape.rank(); ++d) {
      const DimIndex& dim = move.reads[0][d];
      if (!ask_equal(dim.offset, 0) || dim.terms.size() != 1 ||
          !ask_equal(dim.terms[0].coefficient, 1))
        return std::nullopt;
      const auto axis = static_cast<std::size_t>(dim.terms[0].axis);
      if (seen[axis] || !ask_equal(move.axes[axis].size, op.shape[d])) return std::nullopt;
      seen[axis] = 1;
    }
    if (std::find(seen.begin(), seen.end(), 0) != seen.end()) return std::nullopt;
    if (!is_placed(reader)) {
      std::optional<Layout> wanted = wanted_layout(reader);
      const bool copies = !as_view(move, {-1, 0, contiguous_strides(op.shape)});
      if (!wanted && !copies) return std::nullopt;
      Layout layout = wanted ? std::move(*wanted) : Layout{-1, 0, contiguous_strides(move.shape)};
      if (!keeps_innermost(op.shape, strides_before(move, op, layout))) return std::nullopt;
      if (!wanted) layout.buffer = allocate(move.dtype, move.shape);
      layout_of(reader) = std::move(layout);
    }
    const Layout& after = layout_of(reader);
    return Layout{after.buffer, after.offset, strides_before(move, op, after)};
  }
  static Strides strides_before(const Op& move, const Op& op, const Layout& after) {
    const LoopNest::Operand written = operand(after, move.dtype, move.write, move.axes.size());
    Strides strides(op.shape.rank(), 0);
    for (std::size_t d = 0; d < op.shape.rank(); ++d)
      strides[d] = written.strides[static_cast<std::size_t>(move.reads[0][d].terms[0].axis)];
    return strides;
  }

  /// Whether neighbours stay neighbours; otherwise a copy by tiles is faster than to write them
  /// apart.
  static bool keeps_innermost(const Shape& shape, const Strides& strides) {
    for (std::size_t d = shape.rank(); d-- > 0;) {
      if (shape[d] > 1) return ask_equal(strides[d], 1);
    }
    return true;
  }

  static LoopNest::Operand operand(const Layout& layout, DType dtype, const Access& access,
                                   std::size_t axes) {
    const InputLayout place = walked({layout.strides, layout.offset}, access, axes);
    return {layout.buffer, dtype, place.offset, {place.strides.begin(), place.strides.end()}};
  }

  LoopNest::Operand operand(ValueId value, const Access& access, std::size_t axes) {
    return operand(layout_of(value), graph_.op(value).dtype, access, axes);
  }

  /// The layout in which `op`, a reindex, is a view of its input; none when its result needs other
  /// strides.
  static std::optional<Layout> as_view(const Op& op, const Layout& from) {
    const auto view = view_of(op, {from.strides, from.offset});
    return view ? std::optional(Layout{from.buffer, view->offset, view->strides}) : std::nullopt;
  }

  // --- nests ---

  LoopNest nest_over(const Op& op) const {
    LoopNest nest;
    nest.kind = op.kind;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      nest.axes.push_back({op.axes[a].name, op.axes[a].size, !is_kept(op, static_cast<int>(a))});
    }
    return nest;
  }
  void add(LoopNest nest) {
    simplify(nest);
    nest.phase = phase_;
    program_.nests.push_back(std::move(nest));
  }

  DType compute_type(const Op& op) const { return nest_type(graph_, op); }

  void lower(ValueId id) {
    const Op& op = graph_.op(id);
    phase_ = op.marks.phase;
    switch (op.kind) {
      case OpKind::reindex:
      case OpKind::reshard:  // on one process nothing moves
        return lower_reindex(id);
      case OpKind::collective:
        return lower_collective(id);
      case OpKind::concat:
        return lower_concat(id);
      case OpKind::place:
        return lower_place(id);
      case OpKind::gather:
      case OpKind::scatter:
        return lower_indirect(id);
      case OpKind::scan:
      case OpKind::argsort:
        return lower_ordered(id);
      case OpKind::matrix:
        return lower_matrix(id);
      case OpKind::contract:
      case OpKind::reduce:
        return lower_compute(id, combined_expr(op), op);
      case OpKind::map: {
        const ValueId absorbed = absorbed_into_[static_cast<std::size_t>(id)];
        if (absorbed >= 0) {
          phase_ = graph_.op(absorbed).marks.phase;
          return lower_compute(id, combined_expr(graph_.op(absorbed)), graph_.op(absorbed));
        }
        return lower_compute(id, op.expr, op);
      }
      case OpKind::input:
        return;
    }
  }

  static ScalarExpr combined_expr(const Op& op) {
    return op.kind == OpKind::contract ? Ex::input(0) * Ex::input(1) : Ex::input(0);
  }

  /// One nest for `computed`, which is value `id` itself or the reduction that it finishes.
  void lower_compute(ValueId id, const ScalarExpr& body, const Op& computed) {
    allocate_result(id);
    LoopNest nest = nest_over(computed);
    Computed whole = with_maps({body, reads_of(computed)});
    nest.body = std::move(whole.expr);
    nest.compute = compute_type(computed);
    for (const Read& read : whole.reads) {
      nest.inputs.push_back(operand(read.value, read.access, computed.axes.size()));
    }
    const bool has_inlined = std::any_of(computed.inputs.begin(), computed.inputs.end(),
                                         [&](ValueId input) { return is_inlined(input); });
    if (has_inlined) read_once(nest);
    nest.output = operand(id, computed.write, computed.axes.size());
    if (computed.kind == OpKind::reduce) nest.combine = computed.combine;
    if (computed.kind == OpKind::contract && nest.reduces()) nest.combine = Combine::sum;
    if (&computed != &graph_.op(id)) set_epilogue(nest, graph_.op(id), computed);
    add(std::move(nest));
  }

  /// Has each operand once.
  static void read_once(LoopNest& nest) {
    std::vector<LoopNest::Operand> once;
    std::vector<int> number;
    for (LoopNest::Operand operand : nest.inputs) {
      for (std::size_t a = 0; a < nest.axes.size(); ++a) {
        if (is_one(nest.axes[a].size)) operand.strides[a] = 0;
      }
      const auto known = std::find(once.begin(), once.end(), operand);
      number.push_back(static_cast<int>(known - once.begin()));
      if (known == once.end()) once.push_back(std::move(operand));
    }
    for (ScalarStep& step : nest.body.steps) {
      if (step.op == ScalarOp::input) step.which = number[static_cast<std::size_t>(step.which)];
    }
    nest.inputs = std::move(once);
  }

  void set_epilogue(LoopNest& nest, const Op& map, const Op& computed) {
    const Computed whole = with_maps(computed_at(map, computed.write).value());
    std::vector<ScalarExpr> values;
    for (const Read& read : whole.reads) {
      if (&graph_.op(read.value) == &computed) {
        values.push_back(rounded(Ex::input(0), map.compute, computed.dtype));
        continue;
      }
      values.push_back(Ex::input(static_cast<int>(nest.inputs.size())));
      nest.inputs.push_back(operand(read.value, read.access, computed.axes.size()));
    }
    nest.epilogue = substitute(whole.expr, values);
  }

  void copy(const Op& op, const Layout& from, const Layout& to) {
    LoopNest nest = nest_over(op);
    nest.body = Ex::input(0);
    nest.compute = compute_type(op);
    nest.inputs = {operand(from, op.dtype, op.reads[0], op.axes.size())};
    nest.output = operand(to, op.dtype, op.write, op.axes.size());
    add(std::move(nest));
  }

  void lower_reindex(ValueId id) {
    const Op& op = graph_.op(id);
    const Layout& from = layout_of(op.inputs[0]);
    if (!is_placed(id)) {
      if (auto view = as_view(op, from); view && !wanted_layout(id)) {
        layout_of(id) = std::move(*view);
        return;
      }
      allocate_result(id);
    }
    // The input may lie there already.
    if (from.buffer != layout_of(id).buffer) copy(op, from, layout_of(id));
  }

  void lower_concat(ValueId id) {
    const Op& op = graph_.op(id);
    allocate_result(id);
    Layout part = layout_of(id);
    for (ValueId input : op.inputs) {
      const Shape& shape = graph_.op(input).shape;
      Op whole = plain_op(OpKind::reindex, op.dtype, shape);
      whole.reads = {whole.write};
      if (layout_of(input).buffer != part.buffer) copy(whole, layout_of(input), part);
      const auto dim = static_cast<std::size_t>(op.dim);
      part.offset += part.strides[dim] * shape[dim];
    }
  }

  /// Whether a place writes every element of its result, for all lengths.
  static bool fills_result(const Op& op) {
    Size points = 1;
    for (const Axis& axis : op.axes) {
      if (multiply_overflows(points, axis.size, points)) return false;
    }
    return always_equal(points, numel(op.shape));
  }

  void lower_place(ValueId id) {
    const Op& op = graph_.op(id);
    allocate_result(id);
    if (op.inputs.size() > 1) {
      Op base = plain_op(OpKind::reindex, op.dtype, op.shape);
      base.reads = {base.write};
      copy(base, layout_of(op.inputs[1]), layout_of(id));
    } else if (!fills_result(op)) {
      const Op zeros = plain_op(OpKind::map, op.dtype, op.shape);
      LoopNest nest = nest_over(zeros);
      nest.body = Ex(0.0);
      nest.compute = compute_type(op);
      nest.output = operand(layout_of(id), op.dtype, zeros.write, zeros.axes.size());
      add(std::move(nest));
    }
    if (is_at_position(op)) return lower_at_position(id);
    copy(op, layout_of(op.inputs[0]), layout_of(id));
  }

  void lower_at_position(ValueId id) {
    const Op& op = graph_.op(id);
    LoopNest nest = plain_nest(id);
    nest.inputs.erase(nest.inputs.begin() + 1);  // what is written to
    nest.output.indirection = indirection(op, id, op.write);
    add(std::move(nest));
  }

  /// Of an access to a value that the positions of `op`, which come as input 1, move.
  LoopNest::Indirection indirection(const Op& op, ValueId moved, const Access& access) {
    const auto dim = static_cast<std::size_t>(op.dim);
    return {.positions = 1,
            .stride = layout_of(moved).strides[dim],
            .size = graph_.op(moved).shape[dim],
            .length = length_of(access[dim], op.axes),
            .parts = op.parts,
            .is_unsigned = is_of_unsigned(op.inputs[1])};
  }
  /// Whether positions are u64 that maps have made i64.
  bool is_of_unsigned(ValueId positions) const {
    const Op* op = &graph_.op(positions);
    while (op->kind == OpKind::map && op->compute != DType::u64 && !op->inputs.empty())
      op = &graph_.op(op->inputs[0]);
    return op->kind == OpKind::map && op->compute == DType::u64;
  }

  /// A nest of `op` over all its axes, with its inputs as they are.
  LoopNest plain_nest(ValueId id) {
    const Op& op = graph_.op(id);
    allocate_result(id);
    LoopNest nest = nest_over(op);
    nest.body = Ex::input(0);
    nest.compute = compute_type(op);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      nest.inputs.push_back(operand(op.inputs[i], op.reads[i], op.axes.size()));
    nest.output = operand(id, op.write, op.axes.size());
    return nest;
  }

  void lower_indirect(ValueId id) {
    const Op& op = graph_.op(id);
    LoopNest nest = plain_nest(id);
    if (reads_at_positions(op)) {
      nest.inputs[0].indirection = indirection(op, op.inputs[0], op.reads[0]);
      nest.picks_classes = op.marks.picks_classes;
    } else {
      nest.output.indirection = indirection(op, id, op.write);
      nest.combine = op.combine;
    }
    add(std::move(nest));
  }

  void lower_ordered(ValueId id) {
    const Op& op = graph_.op(id);
    LoopNest nest = plain_nest(id);
    nest.axes[static_cast<std::size_t>(op.axis)].ordered = true;
    nest.reverse = op.reverse;
    nest.along = op.kind == OpKind::scan ? LoopNest::Along::scan : LoopNest::Along::argsort;
    if (op.kind == OpKind::scan) nest.combine = op.combine;
    add(std::move(nest));
  }

  void lower_matrix(ValueId id) {
    const Op& op = graph_.op(id);
    LoopNest nest = plain_nest(id);
    nest.along = LoopNest::Along::matrix;
    nest.function = op.function;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      nest.axes[a].reduced = false;
      nest.axes[a].role = op.roles[a];
      nest.axes[a].ordered = op.roles[a] != MatrixAxis::batch && op.roles[a] != MatrixAxis::right;
    }
    add(std::move(nest));
  }

  void lower_collective(ValueId id) {
    const Op& op = graph_.op(id);
    LoopNest nest = plain_nest(id);
    nest.along = LoopNest::Along::processes;
    nest.collective = op.collective;
    nest.mesh_axes = op.mesh_axes;
    if (combines(op.collective)) nest.combine = op.combine;
    add(std::move(nest));
  }

  const Graph& graph_;
  std::span<const InputLayout> input_layouts_;
  Program program_;
  std::vector<Layout> layouts_;
  std::vector<int> users_;
  std::vector<ValueId> user_;  // the last of them
  std::vector<char> inlined_;
  Phase phase_ = Phase::forward;        // of the nests that are added
  std::vector<ValueId> absorbed_into_;  // of a map: the reduction whose epilogue it is
};

}  // namespace

Program lower(const Graph& graph, std::span<const InputLayout> inputs) {
  return Lowering(graph, inputs).run();
}

}  // namespace ein
