#include <ein/graph.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ein {

std::string_view name(OpKind kind) {
  constexpr std::string_view names[] = {"input", "map", "contract", "reduce", "reindex", "concat"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Combine combine) {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "any", "all"};
  return names[static_cast<std::size_t>(combine)];
}

bool uses(const Access& access, int axis) {
  for (const DimIndex& dim : access) {
    for (const DimIndex::Term& term : dim.terms) {
      if (term.axis == axis) return true;
    }
  }
  return false;
}

// --- text -------------------------------------------------------------------------------------------

namespace {

/// A dimension as patterns write it; what they cannot say (slices) as a sum.
std::string show(const DimIndex& dim, const std::vector<Axis>& axes) {
  const auto axis = [&](const DimIndex::Term& term) -> const Axis& { return axes[static_cast<std::size_t>(term.axis)]; };
  std::int64_t expected = 1;
  bool is_group = dim.offset == 0;
  for (std::size_t t = dim.terms.size(); t-- > 0;) {
    is_group &= dim.terms[t].coefficient == expected;
    expected *= axis(dim.terms[t]).size;
  }
  std::string text;
  if (is_group) {
    if (dim.terms.empty()) return "1";
    for (const DimIndex::Term& term : dim.terms) text += (text.empty() ? "" : " ") + axis(term).name;
    return dim.terms.size() == 1 ? text : "(" + text + ")";
  }
  for (const DimIndex::Term& term : dim.terms) {
    if (!text.empty()) text += "+";
    if (term.coefficient != 1) text += std::to_string(term.coefficient) + "*";
    text += axis(term).name;
  }
  if (dim.offset != 0 || text.empty()) text += "+" + std::to_string(dim.offset);
  return "[" + text + "]";
}

std::string show(const Access& access, const std::vector<Axis>& axes) {
  std::string text;
  for (const DimIndex& dim : access) text += (text.empty() ? "" : " ") + show(dim, axes);
  return text;
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text;
  for (std::size_t id = 0; id < graph.ops.size(); ++id) {
    const Op& op = graph.ops[id];
    text += "%" + std::to_string(id) + " = " + std::string(name(op.kind));
    if (op.kind == OpKind::reduce) text += " " + std::string(name(op.combine));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) text += (i ? ", %" : " %") + std::to_string(op.inputs[i]);
    if (op.kind == OpKind::map) text += " " + to_string(op.expr);
    if (op.kind == OpKind::concat) text += " along dimension " + std::to_string(op.concat_dim);
    if (op.kind != OpKind::input && op.kind != OpKind::concat) {
      std::string pattern;
      for (const Access& read : op.reads) pattern += (pattern.empty() ? "" : ", ") + show(read, op.axes);
      text += "  \"" + pattern + (pattern.empty() ? "-> " : " -> ") + show(op.write, op.axes) + "\"";
    }
    text += "  : " + std::string(name(op.dtype)) + " " + op.shape.to_string() + "\n";
  }
  text += "return";
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) text += (i ? ", %" : " %") + std::to_string(graph.outputs[i]);
  return text + "\n";
}

// --- verification -----------------------------------------------------------------------------------

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void verify() {
    for (id_ = 0; id_ < graph_.ops.size(); ++id_) verify(graph_.ops[id_]);
    for (ValueId output : graph_.outputs) {
      require(output >= 0 && static_cast<std::size_t>(output) < graph_.ops.size(), "an output is no value");
    }
  }

 private:
  void require(bool holds, const char* what) const {
    if (!holds) throw std::logic_error("graph: operation %" + std::to_string(id_) + ": " + what);
  }

  void verify(const Op& op) const {
    for (std::int64_t size : op.shape) require(size >= 0, "negative size");
    for (ValueId input : op.inputs) {
      require(input >= 0 && static_cast<std::size_t>(input) < id_, "an input does not come before it");
    }
    if (op.kind == OpKind::input) return require(op.inputs.empty() && op.reads.empty(), "an input with inputs");
    if (op.kind == OpKind::concat) return verify_concat(op);
    require(op.reads.size() == op.inputs.size(), "one read per input is wanted");
    for (std::size_t i = 0; i < op.reads.size(); ++i) verify_bounds(op, op.reads[i], graph_.op(op.inputs[i]).shape);
    verify_bounds(op, op.write, op.shape);
    verify_coverage(op);
    if (op.kind == OpKind::contract) {
      require(!op.inputs.empty(), "contract without operands");
      for (ValueId input : op.inputs) {
        // Intermediates of 8- and 16-bit floats are f32.
        const DType from = graph_.op(input).dtype;
        const bool widens = op.dtype == DType::f32 && is_floating(from) && size_of(from) < 4;
        const bool narrows = from == DType::f32 && is_floating(op.dtype) && size_of(op.dtype) < 4;
        require(from == op.dtype || widens || narrows, "contract of several dtypes");
      }
    }
    if (op.kind == OpKind::reduce || op.kind == OpKind::reindex) require(op.inputs.size() == 1, "one input is wanted");
    if (op.kind == OpKind::reindex) require(graph_.op(op.inputs[0]).dtype == op.dtype, "reindex changes the dtype");
    if (op.kind == OpKind::map) verify_expr(op);
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      const bool reduces = op.kind == OpKind::contract || op.kind == OpKind::reduce;
      require(reduces || is_kept(op, static_cast<int>(a)), "an axis is neither written nor reduced");
    }
  }

  void verify_bounds(const Op& op, const Access& access, const Shape& shape) const {
    require(access.size() == shape.rank(), "an access has another rank than its value");
    for (std::size_t d = 0; d < access.size(); ++d) {
      std::int64_t last = access[d].offset;
      bool empty = false;
      for (const DimIndex::Term& term : access[d].terms) {
        require(term.axis >= 0 && static_cast<std::size_t>(term.axis) < op.axes.size(), "an axis does not exist");
        require(term.coefficient >= 0, "negative coefficient");
        const std::int64_t size = op.axes[static_cast<std::size_t>(term.axis)].size;
        empty |= size == 0;
        last += term.coefficient * (size - 1);
      }
      require(access[d].offset >= 0 && (empty || last < shape[d]), "an access leaves its value");
    }
  }

  /// Each element of the result is written exactly once: every dimension is a mixed-radix number of axes
  /// that appear nowhere else in the result.
  void verify_coverage(const Op& op) const {
    std::vector<char> seen(op.axes.size(), 0);
    for (std::size_t d = 0; d < op.write.size(); ++d) {
      std::int64_t radix = 1;
      require(op.write[d].offset == 0, "a result is written with an offset");
      for (std::size_t t = op.write[d].terms.size(); t-- > 0;) {
        const DimIndex::Term& term = op.write[d].terms[t];
        require(!std::exchange(seen[static_cast<std::size_t>(term.axis)], 1), "an axis is written twice");
        require(term.coefficient == radix, "a result is not written exactly once");
        radix *= op.axes[static_cast<std::size_t>(term.axis)].size;
      }
      require(radix == op.shape[d], "a result is not written whole");
    }
  }

  void verify_expr(const Op& op) const {
    require(!op.expr.steps.empty(), "map without an expression");
    require(op.compute == DType::f64 || op.compute == DType::f32 || op.compute == DType::i64, "compute type");
    for (std::size_t s = 0; s < op.expr.steps.size(); ++s) {
      const ScalarStep& step = op.expr.steps[s];
      for (int i = 0; i < info(step.op).arity; ++i) {
        require(step.args[i] >= 0 && static_cast<std::size_t>(step.args[i]) < s, "an expression refers ahead");
      }
      if (step.op == ScalarOp::input) require(static_cast<std::size_t>(step.which) < op.inputs.size(), "no such input");
      if (step.op == ScalarOp::index) require(static_cast<std::size_t>(step.which) < op.axes.size(), "no such axis");
    }
  }

  void verify_concat(const Op& op) const {
    std::int64_t total = 0;
    for (ValueId input : op.inputs) {
      const Op& part = graph_.op(input);
      require(part.dtype == op.dtype && part.shape.rank() == op.shape.rank(), "concat of unlike values");
      for (std::size_t d = 0; d < op.shape.rank(); ++d) {
        if (static_cast<int>(d) == op.concat_dim) {
          total += part.shape[d];
        } else {
          require(part.shape[d] == op.shape[d], "concat of unlike shapes");
        }
      }
    }
    require(total == op.shape[static_cast<std::size_t>(op.concat_dim)], "concat of another size");
  }

  const Graph& graph_;
  std::size_t id_ = 0;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).verify(); }

}  // namespace ein
