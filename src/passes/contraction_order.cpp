#include "passes/contraction_order.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include <ein/error.hpp>
#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/size_scope.hpp"

namespace ein {
namespace {

/// Operands are numbered 0, 1, ...; step i makes operand n + i of the two that it names.
using PairOrder = std::vector<std::pair<int, int>>;

/// Which operands have each axis, with its size.
struct AxisUse {
  double size = 1;
  bool in_output = false;
  std::vector<char> in_operand;
};

std::vector<AxisUse> axis_uses(const Op& op) {
  std::vector<AxisUse> uses_of_axes;
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    // Two operands have one order.
    const std::int64_t size = op.inputs.size() > 2 ? about(op.axes[a].size) : 1;
    AxisUse use{static_cast<double>(size), is_kept(op, static_cast<int>(a)), {}};
    for (const Access& read : op.reads) use.in_operand.push_back(uses(read, static_cast<int>(a)));
    uses_of_axes.push_back(std::move(use));
  }
  return uses_of_axes;
}

[[noreturn]] void fail_limit(std::int64_t limit) {
  if (limit == 0)
    throw Error(ErrorKind::memory, "einsum: the intermediate results of every order are too large");
  throw Error(ErrorKind::memory,
              "einsum: no order of contraction keeps every intermediate result within " +
                  std::to_string(limit) + " elements");
}

/// Over all ways to split every subset of operands in two.
class ExactOrder {
 public:
  ExactOrder(const Op& op, const OrderOptions& options) : limit_(options.max_intermediate) {
    n_ = static_cast<unsigned>(op.inputs.size());
    for (const AxisUse& use : axis_uses(op)) {
      unsigned mask = 0;
      for (unsigned i = 0; i < n_; ++i) mask |= use.in_operand[i] ? 1u << i : 0u;
      // Axes that the same operands have behave as one.
      const auto same = std::find_if(axes_.begin(), axes_.end(), [&](const Use& u) {
        return u.operands == mask && u.in_output == use.in_output;
      });
      if (same != axes_.end()) {
        same->size *= use.size;
      } else {
        axes_.push_back({mask, use.in_output, use.size});
      }
    }
  }

  PairOrder find() {
    const unsigned all = (1u << n_) - 1;
    cost_.assign(all + 1, std::numeric_limits<double>::infinity());
    left_.assign(all + 1, 0);
    for (unsigned i = 0; i < n_; ++i) cost_[1u << i] = reduction_cost(1u << i);
    for (unsigned set = 1; set <= all; ++set) {
      if ((set & (set - 1)) == 0 || (set != all && exceeds_limit(set))) continue;
      const unsigned lowest = set & (~set + 1);
      for (unsigned left = (set - 1) & set; left > 0; left = (left - 1) & set) {
        if (!(left & lowest)) continue;  // each split once
        const double apart = cost_[left] + cost_[set ^ left];
        if (apart >= cost_[set]) continue;
        const double together = apart + pair_cost(left, set ^ left);
        if (together < cost_[set]) {
          cost_[set] = together;
          left_[set] = left;
        }
      }
    }
    if (cost_[all] == std::numeric_limits<double>::infinity()) fail_limit(limit_);
    PairOrder order;
    emit(all, order);
    return order;
  }

 private:
  struct Use {
    unsigned operands;
    bool in_output;
    double size;
  };

  /// Whether the contraction of `set` still has the axis.
  static bool is_kept(const Use& use, unsigned set) {
    return (use.operands & set) && (use.in_output || (use.operands & ~set));
  }
  /// Summing what only this operand has, before anything else.
  double reduction_cost(unsigned operand) const {
    double elements = 1;
    bool reduces = false;
    for (const Use& use : axes_) {
      if (!(use.operands & operand)) continue;
      elements *= use.size;
      reduces |= !is_kept(use, operand);
    }
    return reduces ? elements : 0;
  }
  double pair_cost(unsigned a, unsigned b) const {
    double tuples = 1;
    bool reduces = false;
    for (const Use& use : axes_) {
      if (!is_kept(use, a) && !is_kept(use, b)) continue;
      tuples *= use.size;
      reduces |= !is_kept(use, a | b);
    }
    return tuples * (reduces ? 2 : 1);
  }
  bool exceeds_limit(unsigned set) const {
    if (limit_ == 0) return false;
    double elements = 1;
    for (const Use& use : axes_) elements *= is_kept(use, set) ? use.size : 1;
    return elements > static_cast<double>(limit_);
  }
  int emit(unsigned set, PairOrder& order) const {
    if ((set & (set - 1)) == 0) return std::countr_zero(set);
    const int left = emit(left_[set], order);
    const int right = emit(set ^ left_[set], order);
    order.emplace_back(left, right);
    return static_cast<int>(n_ + order.size()) - 1;
  }

  std::int64_t limit_;
  unsigned n_;
  std::vector<Use> axes_;
  std::vector<double> cost_;
  std::vector<unsigned> left_;
};

PairOrder greedy_order(const Op& op, const OrderOptions& options) {
  std::vector<AxisUse> axes = axis_uses(op);
  std::vector<int> alive(op.inputs.size());
  for (std::size_t i = 0; i < alive.size(); ++i) alive[i] = static_cast<int>(i);
  const auto has = [&](const AxisUse& use, int operand) {
    return use.in_operand[static_cast<std::size_t>(operand)] != 0;
  };
  const auto elsewhere = [&](const AxisUse& use, int a, int b) {
    return use.in_output || std::any_of(alive.begin(), alive.end(),
                                        [&](int o) { return o != a && o != b && has(use, o); });
  };
  PairOrder order;
  while (alive.size() > 1) {
    double best = std::numeric_limits<double>::infinity();
    std::pair<int, int> pair;
    for (std::size_t i = 0; i < alive.size(); ++i) {
      for (std::size_t j = i + 1; j < alive.size(); ++j) {
        double a = 1, b = 1, together = 1;
        for (const AxisUse& use : axes) {
          const bool in_a = has(use, alive[i]), in_b = has(use, alive[j]);
          if (!in_a && !in_b) continue;
          if (in_a) a *= use.size;
          if (in_b) b *= use.size;
          if (elsewhere(use, alive[i], alive[j])) together *= use.size;
        }
        const bool is_last = alive.size() == 2;
        if (!is_last && options.max_intermediate > 0 &&
            together > static_cast<double>(options.max_intermediate))
          continue;
        if (together - a - b < best) {
          best = together - a - b;
          pair = {alive[i], alive[j]};
        }
      }
    }
    if (best == std::numeric_limits<double>::infinity()) fail_limit(options.max_intermediate);
    for (AxisUse& use : axes) {
      const bool in_pair = has(use, pair.first) || has(use, pair.second);
      use.in_operand.push_back(in_pair && elsewhere(use, pair.first, pair.second));
    }
    std::erase_if(alive, [&](int o) { return o == pair.first || o == pair.second; });
    alive.push_back(static_cast<int>(op.inputs.size() + order.size()));
    order.push_back(pair);
  }
  return order;
}

/// Rewrites one contraction into a new graph.
class Rewrite {
 public:
  /// `values` are the contraction's inputs in the new graph.
  Rewrite(Graph& graph, const Op& op, const std::vector<ValueId>& values, std::int64_t limit)
      : graph_(graph), op_(op), limit_(limit) {
    for (std::size_t i = 0; i < values.size(); ++i)
      operands_.push_back({values[i], op.reads[i], axes_of(op.reads[i])});
    wide_ = compute_type(op.dtype);
    for (ValueId value : values) wide_ = common_compute_type(graph.op(value).dtype, wide_);
  }

  ValueId run(const PairOrder& order) {
    for (std::size_t i = 0; i < operands_.size(); ++i) sum_private_axes(i);
    for (std::size_t i = 0; i < order.size(); ++i) contract(order[i], i + 1 == order.size());
    return operands_.back().value;
  }

 private:
  struct Operand {
    ValueId value;
    Access read;
    std::vector<int> axes;
    bool used = false;
  };

  std::vector<int> axes_of(const Access& access) const {
    std::vector<int> axes;
    for (std::size_t a = 0; a < op_.axes.size(); ++a) {
      if (uses(access, static_cast<int>(a))) axes.push_back(static_cast<int>(a));
    }
    return axes;
  }
  static bool contains(const std::vector<int>& axes, int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }
  /// Whether an axis of operands i and j is wanted by the result or by another operand.
  bool is_wanted(int axis, std::size_t i, std::size_t j) const {
    if (is_kept(op_, axis)) return true;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      if (k != i && k != j && !operands_[k].used && contains(operands_[k].axes, axis)) return true;
    }
    return false;
  }

  /// An operation over `axes`, written to one dimension per axis of `kept`.
  Op operation(OpKind kind, const std::vector<int>& axes, const std::vector<int>& kept) const {
    Op op{.kind = kind, .dtype = wide_};
    op.again = op_.again;
    op.phase = op_.phase;
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
    std::vector<int> kept;
    for (int axis : operands_[i].axes) {
      if (is_wanted(axis, i, i)) kept.push_back(axis);
    }
    if (kept.size() == operands_[i].axes.size()) return;
    Op op = operation(OpKind::reduce, operands_[i].axes, kept);
    if (limit_ > 0 && numel(op.shape) > limit_) fail_limit(limit_);
    op.inputs = {operands_[i].value};
    op.reads = {operands_[i].read};
    const ValueId value = add(std::move(op), operands_[i].axes);
    operands_[i] = {value, plain_access(kept), kept};
  }

  void contract(std::pair<int, int> pair, bool last) {
    const auto i = static_cast<std::size_t>(pair.first), j = static_cast<std::size_t>(pair.second);
    const std::vector<int>& a = operands_[i].axes;
    const std::vector<int>& b = operands_[j].axes;
    // The product's rows come from one operand and its columns from the other, each side by side.
    std::vector<int> shared, rows, columns, summed;
    for (int axis : a) {
      if (!is_wanted(axis, i, j)) {
        summed.push_back(axis);
      } else {
        (contains(b, axis) ? shared : rows).push_back(axis);
      }
    }
    for (int axis : b) {
      if (!contains(a, axis)) columns.push_back(axis);
    }
    std::vector<int> kept = shared;
    kept.insert(kept.end(), rows.begin(), rows.end());
    kept.insert(kept.end(), columns.begin(), columns.end());
    std::vector<int> axes = kept;
    axes.insert(axes.end(), summed.begin(), summed.end());
    Op op = operation(OpKind::contract, axes, kept);
    if (last) {
      op.dtype = op_.dtype;
      op.shape = op_.shape;
      op.write = op_.write;
    }
    op.inputs = {operands_[i].value, operands_[j].value};
    op.reads = {operands_[i].read, operands_[j].read};
    operands_[i].used = operands_[j].used = true;
    const ValueId value = add(std::move(op), axes);
    operands_.push_back({value, plain_access(kept), kept});
  }

  Graph& graph_;
  const Op& op_;
  std::int64_t limit_;
  DType wide_;
  std::vector<Operand> operands_;
};

constexpr std::size_t max_exact_operands = 10;

/// An operand with a summed axis of no elements. The sum is 0 whatever the others are: a NaN or an
/// infinity of theirs is part of no term, and must not meet the 0 as a factor.
std::optional<std::size_t> operand_of_nothing(const Op& op) {
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    if (op.axes[a].size != 0 || is_kept(op, static_cast<int>(a))) continue;
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
      const PairOrder order = op.inputs.size() <= max_exact_operands
                                  ? ExactOrder(op, options).find()
                                  : greedy_order(op, options);
      moved.push_back(Rewrite(ordered, op, inputs, options.max_intermediate).run(order));
      continue;
    }
    moved.push_back(append(ordered, op));
    ordered.ops.back().inputs = std::move(inputs);
  }
  move_results(graph, ordered, moved);
  return ordered;
}

}  // namespace ein
