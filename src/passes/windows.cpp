#include "passes/windows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "graph/rewrite.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

Size quotient_up(Size a, Size b) { return (a + b - 1) / b; }

bool has_no_tuples(const Op& op) {
  return std::any_of(op.axes.begin(), op.axes.end(),
                     [](const Axis& axis) { return ask_equal(axis.size, 0); });
}
ValueId add_without_tuples(Graph& graph, const Op& op) {
  return filled(graph, op.shape, op.dtype, nothing_of(combination_of(op), op.dtype));
}

/// One sum that writes an element of its result several times, or not all of them, made one that
/// does neither. Its result may be longer, or lie at some places of what is wanted.
class Fold {
 public:
  Fold(Graph& graph, Op op) : graph_(graph), op_(std::move(op)), wanted_(op_.shape) {}

  /// The value as it was wanted; `add` appends an operation that writes each element once.
  template <class Add>
  ValueId run(const Add& add) {
    // Extents below are those of axes with elements.
    if (has_no_tuples(op_)) return add_without_tuples(graph_, op_);
    if (covers(op_.write, op_.shape, op_.axes)) return add(std::move(op_));
    is_done_.assign(op_.write.size(), 0);
    step_.assign(op_.write.size(), 1);
    block_.assign(op_.write.size(), 1);
    begin_.assign(op_.write.size(), 0);
    for (std::size_t d = 0; d < op_.write.size(); ++d) is_done_[d] = is_whole(d);
    for (std::size_t d = 0; d < op_.write.size(); ++d) {
      if (is_done_[d]) continue;
      merge_terms(op_.write[d]);
      fold(d);
      is_done_[d] = 1;
    }
    drop_unused_axes(op_);
    return placed(add(std::move(op_)));
  }

 private:
  using Term = DimIndex::Term;

  const Axis& axis(int a) const { return op_.axes[static_cast<std::size_t>(a)]; }
  Size size(const Term& term) const { return axis(term.axis).size; }
  int add_axis(std::string name, Size size) {
    op_.axes.push_back({std::move(name), size});
    return static_cast<int>(op_.axes.size()) - 1;
  }

  /// Whether a dimension that is done moves along an axis, which then stays as it is.
  bool is_fixed(int axis) const {
    for (std::size_t e = 0; e < op_.write.size(); ++e) {
      if (is_done_[e] && uses({op_.write[e]}, axis)) return true;
    }
    return false;
  }
  /// Whether another dimension of the result moves along an axis.
  bool is_elsewhere(std::size_t d, int axis) const {
    for (std::size_t e = 0; e < op_.write.size(); ++e) {
      if (e != d && uses({op_.write[e]}, axis)) return true;
    }
    return false;
  }
  /// Whether dimension d is written whole, by axes that are in it alone.
  bool is_whole(std::size_t d) const {
    const DimIndex& dim = op_.write[d];
    if (!ask_equal(dim.offset, 0)) return false;
    const std::optional<Size> extent = extent_of(dim, op_.axes);
    if (!extent || !ask_equal(*extent, op_.shape[d])) return false;
    for (std::size_t t = 0; t < dim.terms.size(); ++t) {
      if (is_elsewhere(d, dim.terms[t].axis)) return false;
      for (std::size_t u = 0; u < t; ++u) {
        if (dim.terms[u].axis == dim.terms[t].axis) return false;
      }
    }
    return true;
  }
  static void merge_terms(DimIndex& dim) {
    std::vector<Term> merged;
    for (const Term& term : dim.terms) {
      const auto same = std::find_if(merged.begin(), merged.end(),
                                     [&](const Term& t) { return t.axis == term.axis; });
      if (same == merged.end())
        merged.push_back(term);
      else
        same->coefficient += term.coefficient;
    }
    std::erase_if(merged, [](const Term& t) { return ask_equal(t.coefficient, 0); });
    dim.terms = std::move(merged);
  }

  template <class F>
  void for_each_access(F&& f) {
    for (Access& read : op_.reads) f(read);
    f(op_.write);
  }
  /// Writes `value` for an axis wherever it stands.
  void substitute(int axis, const DimIndex& value) {
    for_each_access([&](Access& access) {
      for (DimIndex& dim : access) {
        DimIndex made{dim.offset, {}};
        for (const Term& term : dim.terms) {
          if (term.axis != axis) {
            made.terms.push_back(term);
            continue;
          }
          made.offset += term.coefficient * value.offset;
          for (const Term& part : value.terms)
            made.terms.push_back({part.axis, term.coefficient * part.coefficient});
        }
        const bool is_changed = made.terms.size() != dim.terms.size() || uses({dim}, axis);
        if (is_changed) merge_terms(made);
        dim = std::move(made);
      }
    });
  }
  /// Leaves out the tuples in which an axis, once it is a function of others, is outside of its
  /// size: some operand has it as a dimension, if need be one of ones.
  void keep_in_range(int axis) {
    const DimIndex along{0, {{axis, 1}}}, back{this->axis(axis).size - 1, {{axis, -1}}};
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      const Shape& shape = graph_.op(op_.inputs[i]).shape;
      for (std::size_t d = 0; d < op_.reads[i].size(); ++d) {
        const bool has_it = op_.reads[i][d] == along || op_.reads[i][d] == back;
        if (has_it && ask_equal(shape[d], this->axis(axis).size)) return;
      }
    }
    multiply_by_ones({this->axis(axis).size}, {along});
  }
  void multiply_by_ones(const Shape& shape, const Access& read) {
    DType dtype = graph_.op(op_.inputs[0]).dtype;
    if (op_.kind == OpKind::reduce && is_integral(dtype)) {
      for (ValueId& input : op_.inputs) input = converted(graph_, input, op_.dtype);
      dtype = op_.dtype;
    }
    op_.kind = OpKind::contract;
    op_.inputs.push_back(
        filled(graph_, shape, dtype, is_integral(dtype) ? Ex::integer(1) : Ex(1.0)));
    op_.reads.push_back(read);
  }

  /// How the axes of a dimension of the result go together: along `base` by steps of `step`, which
  /// those of all others are multiples of, but for the axis `between`, whose steps are 1.
  struct Form {
    int base = -1, between = -1;
    Size step = 1;
  };
  std::optional<Form> form_of(std::size_t d) const {
    std::optional<Form> best;
    Size reach = 0;
    for (const Term& base : op_.write[d].terms) {
      Form form{base.axis, -1, base.coefficient};
      bool fits = !is_fixed(base.axis) && base.coefficient > 0;
      for (const Term& other : op_.write[d].terms) {
        if (!fits || other.axis == base.axis || ask_equal(other.coefficient % base.coefficient, 0))
          continue;
        fits = form.between < 0 && ask_equal(other.coefficient, 1) && !is_fixed(other.axis);
        form.between = other.axis;
      }
      const Size reach_of_base = base.coefficient * size(base);
      if (!fits || (best && reach_of_base <= reach)) continue;
      best = form;
      reach = reach_of_base;
    }
    return best;
  }

  void fold(std::size_t d) {
    // Axes that go backwards are turned round, so that all go on.
    for (const Term& term : std::vector<Term>(op_.write[d].terms)) {
      if (term.coefficient < 0 && !is_fixed(term.axis))
        substitute(term.axis, {size(term) - 1, {{term.axis, -1}}});
    }
    DimIndex& dim = op_.write[d];
    const bool is_one_axis = dim.terms.size() == 1 && !is_fixed(dim.terms[0].axis);
    if (dim.terms.empty() || is_one_axis) return write_apart(d);
    const std::optional<Form> form = form_of(d);
    if (!form) return ask_each_place(d);
    const Size step = form->step, length = op_.shape[d];
    // offset = step · whole + rest, with a rest of 0 or more
    Size rest = dim.offset % step;
    if (rest < 0) rest += step;
    const Size whole = (dim.offset - rest) / step;
    const bool meets = form->between >= 0 && axis(form->between).size + rest > step;
    keep_in_range(form->base);
    if (meets) keep_in_range(form->between);

    DimIndex base{-whole, {}};
    for (const Term& term : dim.terms) {
      if (term.axis != form->base && term.axis != form->between)
        base.terms.push_back({term.axis, -(term.coefficient / step)});
    }
    DimIndex written;
    if (meets) {
      const Axis between = axis(form->between);
      const int outer = add_axis(between.name + "/" + to_string(step),
                                 quotient_up(between.size + rest, step)),
                inner = add_axis(between.name + "%" + to_string(step), step);
      const Size places = quotient_up(length, step);
      const int place = add_axis(axis(form->base).name, places);
      base.terms.push_back({outer, -1});
      base.terms.push_back({place, 1});
      written = {0, {{place, step}, {inner, 1}}};
      substitute(form->between, {-rest, {{outer, step}, {inner, 1}}});
      op_.shape[d] = places * step;
    } else {
      // Each place has its own elements, from it on.
      const Size places = rest < length ? quotient_up(length - rest, step) : Size(0);
      const int place = add_axis(axis(form->base).name, places);
      base.terms.push_back({place, 1});
      step_[d] = step;
      begin_[d] = rest;
      if (form->between >= 0) block_[d] = axis(form->between).size;
      written = {0, {{place, block_[d]}}};
      if (form->between >= 0) written.terms.push_back({form->between, 1});
      op_.shape[d] = places * block_[d];
    }
    substitute(form->base, base);
    op_.write[d] = std::move(written);
  }

  /// One axis, or none, that is written in steps or beside the result: its part inside is computed
  /// by itself.
  void write_apart(std::size_t d) {
    DimIndex& dim = op_.write[d];
    const Size length = op_.shape[d];
    if (dim.terms.empty()) {
      const bool is_inside = dim.offset >= 0 && dim.offset < length;
      op_.shape[d] = is_inside ? 1 : 0;
      begin_[d] = is_inside ? dim.offset : Size(0);
      const int nothing = is_inside ? -1 : add_axis("nothing", 0);
      dim = is_inside ? DimIndex{} : DimIndex{0, {{nothing, 1}}};
      return;
    }
    const Term term = dim.terms[0];
    const Size step = term.coefficient, offset = dim.offset;
    const Size first = offset < 0 ? quotient_up(-offset, step) : Size(0);
    Size end = offset < length ? quotient_up(length - offset, step) : Size(0);
    if (end > size(term)) end = size(term);
    const Size count = end > first ? end - first : Size(0);
    const int part = add_axis(axis(term.axis).name, count);
    substitute(term.axis, {count > 0 ? first : Size(0), {{part, 1}}});
    op_.write[d] = {0, {{part, 1}}};
    op_.shape[d] = count;
    step_[d] = step;
    begin_[d] = count > 0 ? offset + step * first : Size(0);
  }

  /// Whatever the indices are: at each place of the result the tuples that write there, found by an
  /// operand of one element that is read at the distance.
  void ask_each_place(std::size_t d) {
    const int place = add_axis("place", op_.shape[d]);
    DimIndex distance{-op_.write[d].offset, {{place, 1}}};
    for (const Term& term : op_.write[d].terms)
      distance.terms.push_back({term.axis, -term.coefficient});
    multiply_by_ones({1}, {distance});
    op_.write[d] = {0, {{place, 1}}};
  }

  /// The value of what was computed at its places, as far as they are wanted.
  ValueId placed(ValueId value) {
    const Op& made = graph_.op(value);
    bool lies_as_wanted = ask_equal(made.shape, wanted_);
    for (std::size_t d = 0; d < step_.size(); ++d)
      lies_as_wanted &= ask_equal(begin_[d], 0) && ask_equal(step_[d], block_[d]);
    if (lies_as_wanted) return value;
    const DType dtype = made.dtype;
    std::vector<Axis> axes;
    Access read, write;
    Shape longer = wanted_;  // the last block may end behind what is wanted
    for (std::size_t d = 0; d < wanted_.rank(); ++d) {
      const Size blocks = made.shape[d] / block_[d];
      const auto axis = static_cast<int>(axes.size());
      axes.push_back({"place", blocks});
      read.push_back({0, {{axis, block_[d]}}});
      write.push_back({begin_[d], {{axis, step_[d]}}});
      if (!is_one(block_[d])) {
        axes.push_back({"element", block_[d]});
        read.back().terms.push_back({axis + 1, 1});
        write.back().terms.push_back({axis + 1, 1});
      }
      const Size end = begin_[d] + step_[d] * (blocks - 1) + block_[d];
      if (blocks > 0 && end > wanted_[d]) longer[d] = end;
    }
    const ValueId all = append(graph_, move_op({value, read}, axes, {write, longer}, dtype));
    if (ask_equal(longer, wanted_)) return all;
    const Access part = plain_access(wanted_.rank());
    return append(graph_, move_op({all, part}, axes_of(wanted_), {part, wanted_}, dtype));
  }

  Graph& graph_;
  Op op_;
  const Shape wanted_;
  std::vector<char> is_done_;
  // Where the elements that were computed lie in what is wanted: blocks of so many, by steps.
  std::vector<Size> block_, step_, begin_;
};

ValueId add_padded(Graph& graph, Op op);

/// Appends a sum whose result has axes that no input has: what is computed without them is repeated
/// along these.
ValueId add_repeated(Graph& graph, Op op) {
  if (has_no_tuples(op)) return add_without_tuples(graph, op);
  const auto is_read = [&](int axis) {
    return std::any_of(op.reads.begin(), op.reads.end(),
                       [&](const Access& read) { return uses(read, axis); });
  };
  std::vector<int> kept;
  bool repeats = false;
  for (const DimIndex& dim : op.write) {
    for (const DimIndex::Term& term : dim.terms) {
      repeats |= !is_read(term.axis);
      if (is_read(term.axis)) kept.push_back(term.axis);
    }
  }
  if (!repeats) return add_padded(graph, std::move(op));
  const std::vector<Axis> axes = op.axes;
  const Place result{op.write, op.shape};
  const Access read = plain_access(kept);
  const DType dtype = op.dtype;
  op.write = read;
  op.shape = shape_of(read, axes);
  drop_unused_axes(op);
  return append(graph, move_op({add_padded(graph, std::move(op)), read}, axes, result, dtype));
}

/// Appends a sum whose reads may leave their inputs.
ValueId add_padded(Graph& graph, Op op) {
  const bool has_zeros = combination_of(op) == Combine::sum;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    std::optional<Ex> fill;
    if (!has_zeros) fill = nothing_of(op.combine, graph.op(op.inputs[i]).dtype);
    op.inputs[i] = padded(graph, op.inputs[i], op.reads[i], op.axes, fill);
  }
  return append(graph, std::move(op));
}

}  // namespace

Graph without_windows(Graph graph) {
  const auto is_one = [&](const Op& op) { return has_windows(graph, op); };
  if (std::none_of(graph.ops.begin(), graph.ops.end(), is_one)) return graph;
  Graph made;
  std::vector<ValueId> moved;
  for (const Op& original : graph.ops) {
    Op op = original;
    for (ValueId& input : op.inputs) input = moved[static_cast<std::size_t>(input)];
    const std::size_t first = made.ops.size();
    moved.push_back(is_one(original) ? Fold(made, std::move(op)).run([&](Op sum) {
      return add_repeated(made, std::move(sum));
    })
                                     : append(made, std::move(op)));
    for (std::size_t id = first; id < made.ops.size(); ++id) made.ops[id].marks = original.marks;
  }
  move_results(graph, made, moved);
  return made;
}

}  // namespace ein
