#include <ein/graph.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "graph/build.hpp"
#include "graph/fields.hpp"
#include "graph/op_kinds.hpp"
#include "size/ask.hpp"
#include "size/size_scope.hpp"
#include "tensor/compute_type.hpp"

namespace ein {

bool operator==(const Axis& a, const Axis& b) { return equal_fields(a, b); }
bool operator==(const DimIndex::Term& a, const DimIndex::Term& b) { return equal_fields(a, b); }
bool operator==(const DimIndex& a, const DimIndex& b) { return equal_fields(a, b); }

std::string_view name(OpKind kind) { return info(kind).name; }

std::string_view name(Collective collective) {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather",
                                        "all_to_all", "barrier",        "send"};
  static_assert(std::size(names) == collective_count);
  return names[static_cast<std::size_t>(collective)];
}

bool uses(const Access& access, int axis) {
  for (const DimIndex& dim : access) {
    for (const DimIndex::Term& term : dim.terms) {
      if (term.axis == axis) return true;
    }
  }
  return false;
}

bool reduces(const Access& write, const std::vector<Axis>& axes) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!uses(write, static_cast<int>(a))) return true;
  }
  return false;
}

// --- text ---

namespace {

/// A dimension as patterns write it; what they cannot say (slices) as a sum.
std::string show(const DimIndex& dim, const std::vector<Axis>& axes) {
  const auto axis = [&](const DimIndex::Term& term) -> const Axis& {
    return axes[static_cast<std::size_t>(term.axis)];
  };
  std::string text;
  if (ask_equal(dim.offset, 0) && extent_of(dim, axes)) {
    if (dim.terms.empty()) return "1";
    for (const DimIndex::Term& term : dim.terms)
      text += (text.empty() ? "" : " ") + axis(term).name;
    return dim.terms.size() == 1 ? text : "(" + text + ")";
  }
  for (const DimIndex::Term& term : dim.terms) {
    if (!text.empty()) text += "+";
    if (!ask_equal(term.coefficient, 1)) text += to_string(term.coefficient) + "*";
    text += axis(term).name;
  }
  if (!ask_equal(dim.offset, 0) || text.empty()) text += "+" + to_string(dim.offset);
  return "[" + text + "]";
}

/// Dimension `positions_dim`, if not -1, is shown as `positions`, from which a slice goes on.
std::string show(const Access& access, const std::vector<Axis>& axes, int positions_dim = -1,
                 const std::string& positions = "") {
  std::string text;
  for (std::size_t d = 0; d < access.size(); ++d) {
    const bool is_indirect = static_cast<int>(d) == positions_dim,
               is_slice = !access[d].terms.empty();
    text += text.empty() ? "" : " ";
    text += !is_indirect ? show(access[d], axes)
            : is_slice   ? "[" + positions + "+" + show(access[d], axes) + "]"
                         : "[" + positions + "]";
  }
  return text;
}

/// The accesses of `op` as a pattern; where positions decide, the value that holds them: "[%1] d, b
/// s -> b s d", and of a slice "[%1+s] d".
std::string show_pattern(const Op& op) {
  const bool reads_at = reads_at_positions(op), writes_at = writes_at_positions(op);
  const std::string positions = reads_at || writes_at ? "%" + std::to_string(op.inputs.back()) : "";
  std::string text;
  for (std::size_t i = 0; i < op.reads.size(); ++i) {
    text += (text.empty() ? "" : ", ") +
            show(op.reads[i], op.axes, reads_at && i == 0 ? op.dim : -1, positions);
  }
  return text + (text.empty() ? "-> " : " -> ") +
         show(op.write, op.axes, writes_at ? op.dim : -1, positions);
}

/// "b@0 s -> b s@0": mesh axes by number.
std::string show_reshard(const Op& op) {
  const auto side = [&](const Placement& placement) {
    std::string text;
    for (std::size_t d = 0; d < op.axes.size(); ++d) {
      text += (d > 0 ? " " : "") + op.axes[d].name;
      for (const int mesh_axis : placement.split(d))
        text += mesh_axis < 0 ? "@..." : "@" + std::to_string(mesh_axis);
    }
    return text;
  };
  return side(op.from) + " -> " + side(op.to);
}

/// "all_reduce sum over mesh axes 0 1".
std::string show_collective(const Op& op) {
  std::string text(name(op.collective));
  if (combines(op.collective)) text += " " + std::string(name(op.combine));
  text += " over mesh axis";
  for (int m = 0; m < 32; ++m) {
    if (op.mesh_axes >> m & 1u) text += " " + std::to_string(m);
  }
  return text;
}

}  // namespace

std::string to_string(const Op& op) {
  const OpKindInfo& kind = info(op.kind);
  std::string text(kind.name);
  if (kind.combines) text += " " + std::string(name(op.combine));
  if (op.kind == OpKind::matrix) text = name(op.function);
  if (op.kind == OpKind::collective) text = show_collective(op);
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    text += (i ? ", %" : " %") + std::to_string(op.inputs[i]);
  if (op.kind == OpKind::map) text += " " + to_string(op.expr);
  if (op.kind == OpKind::concat) text += " along dimension " + std::to_string(op.dim);
  if (kind.is_ordered) {
    text += " along " + op.axes[static_cast<std::size_t>(op.axis)].name;
    if (op.reverse) text += op.kind == OpKind::scan ? ", from the end" : ", descending";
  }
  if (kind.has_accesses)
    text += "  \"" + (op.kind == OpKind::reshard ? show_reshard(op) : show_pattern(op)) + "\"";
  return text + "  : " + std::string(name(op.dtype)) + " " + op.shape.to_string();
}

std::string to_string(const Graph& graph) {
  std::string text;
  for (std::size_t id = 0; id < graph.ops.size(); ++id)
    text += "%" + std::to_string(id) + " = " + to_string(graph.ops[id]) + "\n";
  for (const Assignment& a : graph.assignments)
    text += "assign %" + std::to_string(a.target) + " = %" + std::to_string(a.value) + "\n";
  text += "return";
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    text += (i ? ", %" : " %") + std::to_string(graph.outputs[i]);
  return text + "\n";
}

// --- verification ---

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void verify() {
    for (id_ = 0; id_ < graph_.ops.size(); ++id_) verify(graph_.ops[id_]);
    for (const Assignment& a : graph_.assignments) verify(a);
    for (ValueId output : graph_.outputs) {
      require(output >= 0 && static_cast<std::size_t>(output) < graph_.ops.size(),
              "an output is no value");
    }
  }

 private:
  void require(bool holds, const char* what) const {
    if (!holds) throw std::logic_error("graph: operation %" + std::to_string(id_) + ": " + what);
  }

  void verify(const Assignment& a) const {
    const auto is_value = [&](ValueId id) {
      return id >= 0 && static_cast<std::size_t>(id) < graph_.ops.size();
    };
    require(is_value(a.target) && is_value(a.value), "an assignment names no value");
    const Op &target = graph_.op(a.target), &value = graph_.op(a.value);
    require(target.kind == OpKind::input, "an assignment to what is no input");
    require(target.dtype == value.dtype && ask_equal(target.shape, value.shape),
            "an assignment of another dtype or shape");
  }

  void verify(const Op& op) const {
    for (Size size : op.shape) require(size >= 0, "negative size");
    for (ValueId input : op.inputs) {
      require(input >= 0 && static_cast<std::size_t>(input) < id_,
              "an input does not come before it");
    }
    const OpKindInfo& kind = info(op.kind);
    const std::size_t count = op.inputs.size();
    require(count >= kind.least_inputs && count <= kind.most_inputs,
            "more or fewer inputs than its kind has");
    if (op.kind == OpKind::concat) return verify_concat(op);
    require(op.reads.size() == (kind.has_accesses ? count : 0), "one read per input is wanted");
    if (!kind.has_accesses) return;
    const bool reads_at = reads_at_positions(op), writes_at = writes_at_positions(op);
    const bool scatters = op.kind == OpKind::scatter;
    const bool adds = kind.reduces && combination_of(op) == Combine::sum;
    for (std::size_t i = 0; i < count; ++i) {
      const Shape& shape = graph_.op(op.inputs[i]).shape;
      if (kind.reduces)
        verify_axes(op, op.reads[i], shape);
      else
        verify_bounds(op, op.reads[i], shape, reads_at && i == 0);
    }
    if (adds)
      verify_axes(op, op.write, op.shape);
    else
      verify_bounds(op, op.write, op.shape, scatters);
    if (adds) {
      // Whatever it writes, as often as it does.
    } else if (op.kind == OpKind::place) {
      require(meets_once(op.write, op.axes), "an element may be written twice");
    } else {
      verify_coverage(op);
    }
    const bool has_positions = reads_at || writes_at;
    for (std::size_t i = 0; kind.moves && i < count - has_positions; ++i)
      require(graph_.op(op.inputs[i]).dtype == op.dtype, "the dtype of what is only moved changes");
    if (has_positions) verify_positions(op);
    if (scatters) require(!info(op.combine).asks, "no scatter of any or all");
    if (kind.is_ordered) verify_ordered(op);
    if (op.kind == OpKind::matrix) return verify_matrix(op);
    if (op.kind == OpKind::reshard) return verify_reshard(op);
    if (op.kind == OpKind::collective) return verify_collective(op);
    require(op.roles.empty(), "roles of axes beside no function of matrices");
    if ((kind.reduces || kind.combines) && !kind.moves) {
      for (ValueId input : op.inputs) {
        require(is_floating(graph_.op(input).dtype) == is_floating(op.dtype),
                "floats and integers are combined");
      }
    }
    if (op.kind == OpKind::place && count > 1)
      require(ask_equal(graph_.op(op.inputs[1]).shape, op.shape) && op.reads[1] == op.write,
              "what is written to has another shape than the result");
    if (op.kind == OpKind::place && writes_at) {
      require(op.dim >= 0 && static_cast<std::size_t>(op.dim) < op.write.size(),
              "no such dimension");
      require(is_one_element(op.reads[2]), "several positions of one place");
    }
    if (op.kind == OpKind::map) verify_expr(op);
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      require(kind.reduces || scatters || is_kept(op, static_cast<int>(a)),
              "an axis is neither written nor reduced");
    }
  }

  void verify_axes(const Op& op, const Access& access, const Shape& shape) const {
    require(access.size() == shape.rank(), "an access has another rank than its value");
    for (const DimIndex& dim : access) {
      for (const DimIndex::Term& term : dim.terms) {
        require(term.axis >= 0 && static_cast<std::size_t>(term.axis) < op.axes.size(),
                "an axis does not exist");
      }
    }
  }

  /// Of an indirect access, positions say where dimension op.dim is read or written.
  void verify_bounds(const Op& op, const Access& access, const Shape& shape,
                     bool is_indirect) const {
    verify_axes(op, access, shape);
    if (is_indirect)
      require(op.dim >= 0 && static_cast<std::size_t>(op.dim) < access.size(), "no such dimension");
    for (std::size_t d = 0; d < access.size(); ++d) {
      if (is_indirect && static_cast<int>(d) == op.dim) {
        if (access[d] == DimIndex{}) continue;
        require(op.kind == OpKind::gather && op.reads.size() == 2 && is_one_element(op.reads[1]),
                "an axis moves along the dimension of the positions");
      }
      Size first = access[d].offset, last = access[d].offset;
      bool empty = false;
      for (const DimIndex::Term& term : access[d].terms) {
        const Size size = op.axes[static_cast<std::size_t>(term.axis)].size;
        empty |= ask_equal(size, 0);
        (goes_backwards(term) ? first : last) += term.coefficient * (size - 1);
      }
      require(access[d].offset >= 0 && (empty || (first >= 0 && last < shape[d])),
              "an access leaves its value");
    }
  }

  /// Each element of the result is written exactly once: every dimension is a mixed-radix number of
  /// axes that appear nowhere else in the result.
  void verify_coverage(const Op& op) const {
    std::vector<char> seen(op.axes.size(), 0);
    for (std::size_t d = 0; d < op.write.size(); ++d) {
      if (op.kind == OpKind::scatter && static_cast<int>(d) == op.dim) continue;
      require(ask_equal(op.write[d].offset, 0), "a result is written with an offset");
      for (const DimIndex::Term& term : op.write[d].terms) {
        require(!std::exchange(seen[static_cast<std::size_t>(term.axis)], 1),
                "an axis is written twice");
      }
      const std::optional<Size> extent = extent_of(op.write[d], op.axes);
      require(extent.has_value(), "a result is not written exactly once");
      require(ask_equal(*extent, op.shape[d]), "a result is not written whole");
    }
  }

  void verify_positions(const Op& op) const {
    const DType positions = graph_.op(op.inputs.back()).dtype;
    require(positions == DType::i64 || positions == DType::i32, "positions are i64 or i32");
  }

  static bool is_one_element(const Access& access) {
    return std::all_of(access.begin(), access.end(),
                       [](const DimIndex& dim) { return dim.terms.empty(); });
  }

  void verify_ordered(const Op& op) const {
    const bool has_factors = op.inputs.size() == 2;
    require(!has_factors || (op.combine == Combine::sum && is_floating(op.dtype)),
            "factors of what is no sum of floats");
    require(op.axis >= 0 && static_cast<std::size_t>(op.axis) < op.axes.size(), "no such axis");
    if (op.kind == OpKind::argsort) return require(op.dtype == DType::i64, "places are i64");
    require(!info(op.combine).asks, "no scan of any or all");
  }

  void verify_matrix(const Op& op) const {
    const MatrixFunctionInfo& row = info(op.function);
    require(op.inputs.size() == row.operands, "another number of inputs is wanted");
    require(op.roles.size() == op.axes.size(), "one role per axis is wanted");
    require(op.dtype == DType::f32 || op.dtype == DType::f64, "matrices are of f32 or f64");
    for (ValueId input : op.inputs)
      require(graph_.op(input).dtype == op.dtype, "matrices of another dtype than the result");
    Size rows = 0, columns = 0;
    int counts[static_cast<std::size_t>(MatrixAxis::packed) + 1] = {};
    const bool has_right = row.operands == 2;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      const auto axis = static_cast<int>(a);
      const MatrixAxis role = op.roles[a];
      ++counts[static_cast<std::size_t>(role)];
      const bool of_first = uses(op.reads[0], axis),
                 of_second = has_right && uses(op.reads[1], axis), is_kept = ein::is_kept(op, axis);
      const bool is_matrix_kept = !row.is_packed && op.function != MatrixFunction::det;
      switch (role) {
        case MatrixAxis::batch:
          require(of_first && is_kept, "an axis of the batch is lost");
          break;
        case MatrixAxis::rows:
          rows = op.axes[a].size;
          require(of_first && of_second == has_right && is_kept == (is_matrix_kept && !has_right),
                  "rows that the function has not");
          break;
        case MatrixAxis::columns:
          columns = op.axes[a].size;
          require(of_first && !of_second && is_kept == is_matrix_kept,
                  "columns that the function has not");
          break;
        case MatrixAxis::right:
          require(has_right && !of_first && of_second && is_kept, "a right side that is none");
          break;
        case MatrixAxis::packed:
          require(
              !of_first && !of_second && is_kept &&
                  ask_equal(op.axes[a].size, packed_size(op.function, rows_of(op), columns_of(op))),
              "a packed dimension of another size than the parts");
          break;
      }
    }
    const auto count = [&](MatrixAxis role) { return counts[static_cast<std::size_t>(role)]; };
    require(count(MatrixAxis::rows) == 1 && count(MatrixAxis::columns) == 1,
            "one axis of rows and one of columns are wanted");
    require(count(MatrixAxis::packed) == (row.is_packed ? 1 : 0), "parts of what has none");
    require(!row.is_square || ask_equal(rows, columns), "a square matrix is wanted");
  }

  void verify_reshard(const Op& op) const {
    require(op.write == plain_access(op.shape.rank()) && op.reads[0] == op.write,
            "what lies otherwise is something else");
    require(op.from.dims.size() <= op.shape.rank() && op.to.dims.size() <= op.shape.rank(),
            "more dimensions are placed than there are");
    for (std::size_t d = 0; d < op.shape.rank(); ++d)
      require((op.from.split(d) == Placement::same()) == (op.to.split(d) == Placement::same()),
              "a dimension that stays does so on both sides");
  }

  void verify_collective(const Op& op) const {
    require(op.mesh_axes != 0, "a collective of no processes");
    require(op.axes.size() >= 1 || op.collective == Collective::all_reduce, "no processes");
    const std::size_t rank = op.axes.size();
    const bool reads_all = op.collective == Collective::reduce_scatter ||
                           op.collective == Collective::all_to_all,
               writes_all = op.collective == Collective::all_gather ||
                            op.collective == Collective::all_to_all,
               has_processes = reads_all || writes_all;
    require(op.collective != Collective::barrier && op.collective != Collective::send,
            "no value that all of them have");
    const Access all = plain_access(rank),
                 of_each = has_processes ? plain_access(rank - 1, 1) : all;
    require(op.reads[0] == (reads_all ? all : of_each) && op.write == (writes_all ? all : of_each),
            "a collective of other elements");
  }

  void verify_expr(const Op& op) const {
    require(!op.expr.steps.empty(), "map without an expression");
    require(is_compute_type(op.compute), "compute type");
    for (std::size_t s = 0; s < op.expr.steps.size(); ++s) {
      const ScalarStep& step = op.expr.steps[s];
      for (int i = 0; i < info(step.op).arity; ++i) {
        require(step.args[i] >= 0 && static_cast<std::size_t>(step.args[i]) < s,
                "an expression refers ahead");
      }
      if ((step.op == ScalarOp::uniform || step.op == ScalarOp::normal) && step.args[0] >= 0)
        require(static_cast<std::size_t>(step.args[0]) < s && op.compute == DType::f64,
                "a position of random numbers that is not in f64");
      if (step.op == ScalarOp::input)
        require(static_cast<std::size_t>(step.which) < op.inputs.size(), "no such input");
      if (step.op == ScalarOp::index)
        require(static_cast<std::size_t>(step.which) < op.axes.size(), "no such axis");
    }
  }

  void verify_concat(const Op& op) const {
    Size total = 0;
    for (ValueId input : op.inputs) {
      const Op& part = graph_.op(input);
      require(part.dtype == op.dtype && part.shape.rank() == op.shape.rank(),
              "concat of unlike values");
      for (std::size_t d = 0; d < op.shape.rank(); ++d) {
        if (static_cast<int>(d) == op.dim) {
          total += part.shape[d];
        } else {
          require(ask_equal(part.shape[d], op.shape[d]), "concat of unlike shapes");
        }
      }
    }
    require(ask_equal(total, op.shape[static_cast<std::size_t>(op.dim)]), "concat of another size");
  }

  const Graph& graph_;
  std::size_t id_ = 0;
};

}  // namespace

void verify(const Graph& graph) {
  const SizeScopePause only_checks;
  Verifier(graph).verify();
}

}  // namespace ein
