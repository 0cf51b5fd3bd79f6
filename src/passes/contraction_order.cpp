#include "passes/contraction_order.hpp"

#include <algorithm>
#include <optional>

#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "passes/contraction_steps.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

/// Rewrites one contraction into a new graph.
class Rewrite {
 public:
  /// `values` are the contraction's inputs in the new graph.
  Rewrite(Graph& graph, const Op& op, const std::vector<ValueId>& values)
      : graph_(graph), op_(op), users_(op.axes.size()), is_kept_(op.axes.size()) {
    for (int axis : axes_along(op.write)) is_kept_[static_cast<std::size_t>(axis)] = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      operands_.push_back({values[i], op.reads[i], axes_along(op.reads[i])});
      count_users(operands_.back().axes, 1);
    }
    wide_ = compute_type(op.dtype);
    for (ValueId value : values) wide_ = common_compute_type(graph.op(value).dtype, wide_);
  }

  ValueId run(const ContractionSteps& found) {
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (found.is_summed_first[i]) sum_private_axes(i);
    }
    for (const std::vector<int>& step : found.steps) {
      const bool is_last = operands_.size() + 1 == op_.inputs.size() + found.steps.size();
      if (step.size() == 2) {
        contract(step, is_last);
      } else {
        contract_at_once(step, is_last);
      }
    }
    return operands_.back().value;
  }

 private:
  struct Operand {
    ValueId value;
    Access read;
    std::vector<int> axes;
  };

  static bool contains(const std::vector<int>& axes, int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }
  Operand& operand(int number) { return operands_[static_cast<std::size_t>(number)]; }
  void count_users(const std::vector<int>& axes, int more) {
    for (int axis : axes) users_[static_cast<std::size_t>(axis)] += more;
  }
  /// Whether the result or an operand that is left wants an axis.
  bool is_wanted(int axis) const {
    const auto a = static_cast<std::size_t>(axis);
    return is_kept_[a] || users_[a] > 0;
  }

  /// An operation over `axes`, written to one dimension per axis of `kept`.
  Op operation(OpKind kind, const std::vector<int>& axes, const std::vector<int>& kept) const {
    Op op{.kind = kind, .dtype = wide_};
    op.marks = op_.marks;
    for (int a : axes) op.axes.push_back(op_.axes[static_cast<std::size_t>(a)]);
    op.write = plain_access(kept);
    op.shape = shape_of(op.write, op_.axes);
    return op;
  }
  static void renumber(Access& access, const std::vector<int>& axes) {
    for (DimIndex& dim : access) {
      for (DimIndex::Term& term : dim.terms) {
        term.axis = static_cast<int>(std::find(axes.begin(), axes.end(), term.axis) - axes.begin());
      }
    }
  }
  ValueId add(Op op, const std::vector<int>& axes) {
    for (Access& read : op.reads) renumber(read, axes);
    renumber(op.write, axes);
    return append(graph_, std::move(op));
  }

  void sum_private_axes(std::size_t i) {
    const std::vector<int> axes = operands_[i].axes;
    count_users(axes, -1);
    std::vector<int> kept;
    for (int axis : axes) {
      if (is_wanted(axis)) kept.push_back(axis);
    }
    count_users(kept, 1);
    if (kept.size() == axes.size()) return;
    Op op = operation(OpKind::reduce, axes, kept);
    op.inputs = {operands_[i].value};
    op.reads = {operands_[i].read};
    const ValueId value = add(std::move(op), axes);
    operands_[i] = {value, plain_access(kept), kept};
  }

  void contract(const std::vector<int>& step, bool is_last) {
    const std::vector<int>& a = operand(step[0]).axes;
    const std::vector<int>& b = operand(step[1]).axes;
    count_users(a, -1);
    count_users(b, -1);
    // The product's rows come from one operand and its columns from the other, each side by side.
    std::vector<int> shared, rows, columns, summed;
    for (int axis : a) {
      if (!is_wanted(axis)) {
        summed.push_back(axis);
      } else {
        (contains(b, axis) ? shared : rows).push_back(axis);
      }
    }
    for (int axis : b) {
      if (!contains(a, axis)) (is_wanted(axis) ? columns : summed).push_back(axis);
    }
    std::vector<int> kept = shared;
    kept.insert(kept.end(), rows.begin(), rows.end());
    kept.insert(kept.end(), columns.begin(), columns.end());
    std::vector<int> axes = kept;
    axes.insert(axes.end(), summed.begin(), summed.end());
    Op op = operation(OpKind::contract, axes, kept);
    read_operands(op, step);
    finish(std::move(op), axes, kept, is_last);
  }

  /// A map of the products, which becomes one nest with their sum: nothing stores them.
  void contract_at_once(const std::vector<int>& step, bool is_last) {
    std::vector<int> axes, kept;
    for (int o : step) {
      count_users(operand(o).axes, -1);
      axes.insert(axes.end(), operand(o).axes.begin(), operand(o).axes.end());
    }
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    for (int axis : axes) {
      if (is_wanted(axis)) kept.push_back(axis);
    }
    Op products = operation(OpKind::map, axes, axes);
    products.compute = compute_type(wide_);
    Ex product = Ex::input(0);
    for (std::size_t i = 1; i < step.size(); ++i)
      product = product * Ex::input(static_cast<int>(i));
    products.expr = product;
    read_operands(products, step);
    if (kept.size() == axes.size()) return finish(std::move(products), axes, kept, is_last);
    Op sum = operation(OpKind::reduce, axes, kept);
    sum.inputs = {add(std::move(products), axes)};
    sum.reads = {plain_access(axes)};
    finish(std::move(sum), axes, kept, is_last);
  }

  void read_operands(Op& op, const std::vector<int>& step) {
    for (int o : step) {
      op.inputs.push_back(operand(o).value);
      op.reads.push_back(operand(o).read);
    }
  }

  /// Adds what becomes of a step; the last is what the contraction itself was to make.
  void finish(Op op, const std::vector<int>& axes, const std::vector<int>& kept, bool is_last) {
    if (is_last) {
      op.dtype = op_.dtype;
      op.shape = op_.shape;
      op.write = op_.write;
    }
    const ValueId value = add(std::move(op), axes);
    operands_.push_back({value, plain_access(kept), kept});
    count_users(kept, 1);
  }

  Graph& graph_;
  const Op& op_;
  DType wide_;
  std::vector<Operand> operands_;
  std::vector<int> users_;  // of each axis: the operands left that have it
  std::vector<bool> is_kept_;
};

/// An operand with a summed axis of no elements. The sum is 0 whatever the others are: a NaN or an
/// infinity of theirs is part of no term, and must not meet the 0 as a factor.
std::optional<std::size_t> operand_of_nothing(const Op& op) {
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    if (!ask_equal(op.axes[a].size, 0) || is_kept(op, static_cast<int>(a))) continue;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (uses(op.reads[i], static_cast<int>(a))) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

Graph order_contractions(const Graph& graph, const OrderOptions& options) {
  if (std::none_of(graph.ops.begin(), graph.ops.end(),
                   [](const Op& op) { return op.kind == OpKind::contract; }))
    return graph;
  Graph ordered;
  std::vector<ValueId> moved;
  for (const Op& op : graph.ops) {
    std::vector<ValueId> inputs;
    for (ValueId input : op.inputs) inputs.push_back(moved[static_cast<std::size_t>(input)]);
    const std::optional<std::size_t> empty =
        op.kind == OpKind::contract ? operand_of_nothing(op) : std::nullopt;
    if (empty && op.inputs.size() > 1) {
      Op nothing = op;
      nothing.kind = OpKind::reduce;
      nothing.combine = Combine::sum;
      nothing.inputs = {inputs[*empty]};
      nothing.reads = {op.reads[*empty]};
      moved.push_back(append(ordered, std::move(nothing)));
      continue;
    }
    if (op.kind == OpKind::contract && op.inputs.size() > 1) {
      const ContractionSteps steps = contraction_steps(op, options.max_intermediate);
      moved.push_back(Rewrite(ordered, op, inputs).run(steps));
      continue;
    }
    moved.push_back(append(ordered, op));
    ordered.ops.back().inputs = std::move(inputs);
  }
  move_results(graph, ordered, moved);
  return ordered;
}

}  // namespace ein
