#include <ein/cost.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "cost/inside.hpp"
#include "cost/tally.hpp"
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "size/ask.hpp"

namespace ein {

template <class N>
const N& Tally<N>::count(ScalarOp op) const {
  return transcendental_count(const_cast<Tally&>(*this), op);
}

template <class N>
Tally<N>& Tally<N>::operator+=(const Tally& other) {
  mul += other.mul;
  add += other.add;
  div += other.div;
  compare += other.compare;
  for (std::size_t i = 0; i < transcendental.size(); ++i)
    transcendental[i] += other.transcendental[i];
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  model += other.model;
  matmul_only += other.matmul_only;
  estimated += other.estimated;
  return *this;
}

template struct Tally<Count>;
template struct Tally<Polynomial>;
template struct Tally<Size>;

namespace {

/// Sizes of axes as numbers or as formulas, in which an axis is its name. Where axes of one name
/// have several sizes, as the parts of one that is cut, they are numbers.
template <class N>
class Sizes;
template <>
class Sizes<Count> {
 public:
  explicit Sizes(const Graph&) {}
  Count operator()(const Axis& axis) const { return number(axis.size); }
  static Count number(Size size) { return Count(std::int64_t{size}); }
};
template <>
class Sizes<Polynomial> {
 public:
  explicit Sizes(const Graph& graph) {
    std::map<std::string, Size> size_of;
    for (const Op& op : graph.ops) {
      for (const Axis& axis : op.axes) {
        const auto [known, is_new] = size_of.emplace(axis.name, axis.size);
        if (!is_new && !always_equal(known->second, axis.size)) numbers_.insert(axis.name);
      }
    }
  }
  Polynomial operator()(const Axis& axis) const {
    const bool is_number = axis.name.empty() || (axis.name[0] >= '0' && axis.name[0] <= '9') ||
                           axis.name == "_" || numbers_.contains(axis.name);
    return is_number ? Polynomial(axis.size) : Polynomial::axis(axis.name);
  }
  static Polynomial number(Size size) { return Polynomial(size); }

 private:
  std::set<std::string> numbers_;
};

/// tuples - results; nothing is left to combine where there are no tuples.
Count difference(const Count& tuples, const Count& results) {
  return tuples <= results ? Count(0) : tuples - results;
}
Polynomial difference(const Polynomial& tuples, const Polynomial& results) {
  return tuples - results;
}

template <class N>
Tally<N> cost_of(const Graph& graph, ValueId id, const Sizes<N>& size_of_axis) {
  const Op& op = graph.op(id);
  Tally<N> tally;
  if (op.kind == OpKind::input) return tally;
  if (op.kind == OpKind::concat) {
    const N bytes = N(numel(op.shape)) * N(static_cast<std::int64_t>(size_of(op.dtype)));
    tally.bytes_read = bytes;
    tally.bytes_written = bytes;
    return tally;
  }
  const auto product = [&](auto&& includes) {
    N n = 1;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (includes(static_cast<int>(a))) n *= size_of_axis(op.axes[a]);
    }
    return n;
  };
  N tuples = product([](int) { return true; });
  N results = product([&](int a) { return is_kept(op, a); });
  bool reduces = ein::reduces(op.write, op.axes);
  const bool is_window = has_windows(graph, op);
  if (is_window) {
    tuples = 1;
    for (const AxesTogether& together : axes_together(graph, op)) {
      tuples *= together.is_cut ? size_of_axis.number(together.inside) : product([&](int a) {
        return std::find(together.axes.begin(), together.axes.end(), a) != together.axes.end();
      });
    }
    results = size_of_axis.number(1);
    for (std::size_t d = 0; d < op.write.size(); ++d)
      results *= size_of_axis.number(positions_inside(op.write[d], op.shape[d], op.axes));
    reduces |= !meets_once(op.write, op.axes);
  }

  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const auto size = static_cast<std::int64_t>(size_of(graph.op(op.inputs[i]).dtype));
    // What is gathered lies elsewhere for each position.
    const bool is_indirect = op.kind == OpKind::gather && i == 0;
    N points = product(
        [&](int a) { return uses(op.reads[i], a) || (is_indirect && uses(op.reads[1], a)); });
    // Windows share elements: each counts once.
    const Shape& shape = graph.op(op.inputs[i]).shape;
    const auto is_regular = [&](std::size_t d) {
      const DimIndex& dim = op.reads[i][d];
      const bool is_inside = !is_window || stays_inside({dim}, {shape[d]}, op.axes);
      return is_inside && (dim.terms.size() < 2 || extent_of(dim, op.axes));
    };
    bool are_regular = true;
    N elements = 1;
    for (std::size_t d = 0; d < shape.rank() && !is_indirect; ++d) {
      const DimIndex& dim = op.reads[i][d];
      are_regular &= is_regular(d);
      elements *= is_regular(d) ? product([&](int a) { return uses({dim}, a); })
                                : size_of_axis.number(positions_inside(dim, shape[d], op.axes));
    }
    if (!are_regular) points = elements;
    // Of what a place writes to, the rest is read.
    const bool is_base = op.kind == OpKind::place && i == 1;
    tally.bytes_read += (is_base ? difference(N(numel(op.shape)), points) : points) * N(size);
  }
  N written = op.kind == OpKind::place || is_window ? N(numel(op.shape)) : results;
  if (op.kind == OpKind::scatter) written *= N(op.shape[static_cast<std::size_t>(op.dim)]);
  tally.bytes_written += written * N(static_cast<std::int64_t>(size_of(op.dtype)));

  switch (op.kind) {
    case OpKind::contract: {
      const auto factors = static_cast<std::int64_t>(op.inputs.size());
      tally.mul += tuples * N(factors - 1);
      tally.model += tuples * N(reduces ? factors : factors - 1);
      if (reduces) {
        tally.add += difference(tuples, results);
        tally.matmul_only += tuples * N(factors);
      }
      return tally;
    }
    case OpKind::reduce:
      add_combination(tally, op.combine, tuples, difference(tuples, results));
      return tally;
    case OpKind::map:
      add_expr(tally, op.expr, tuples);
      return tally;
    case OpKind::scatter:
      add_combination(tally, op.combine, tuples, tuples);
      return tally;
    case OpKind::scan: {
      const N lines = product([&](int a) { return a != op.axis; });
      add_combination(tally, op.combine, tuples, difference(tuples, lines));
      if (op.inputs.size() == 2)
        add_combination(tally, Combine::prod, tuples, difference(tuples, lines));
      return tally;
    }
    case OpKind::argsort:
      add_sort(tally, tuples, op.axes[static_cast<std::size_t>(op.axis)].size);
      return tally;
    case OpKind::matrix: {
      const auto has = [&](MatrixAxis role) {
        return [&, role](int a) { return op.roles[static_cast<std::size_t>(a)] == role; };
      };
      Size right = 1;
      for (std::size_t a = 0; a < op.axes.size(); ++a) {
        if (op.roles[a] == MatrixAxis::right) right *= op.axes[a].size;
      }
      add_matrix(tally, op.function, product(has(MatrixAxis::batch)), rows_of(op), columns_of(op),
                 right);
      return tally;
    }
    default:  // what processes add to each other's values is no work of theirs
      if (info(op.kind).moves) return tally;
      throw std::logic_error("cost: an operation that is not counted");
  }
}

template <class N>
Tally<N> cost_of(const Graph& graph) {
  Tally<N> total;
  const Sizes<N> size_of_axis(graph);
  for (std::size_t id = 0; id < graph.ops.size(); ++id)
    total += cost_of(graph, static_cast<ValueId>(id), size_of_axis);
  return total;
}

}  // namespace

Cost cost(const Graph& graph, ValueId id) { return cost_of(graph, id, Sizes<Count>(graph)); }
Cost cost(const Graph& graph) { return cost_of<Count>(graph); }
CostFormula cost_formula(const Graph& graph, ValueId id) {
  return cost_of(graph, id, Sizes<Polynomial>(graph));
}
CostFormula cost_formula(const Graph& graph) { return cost_of<Polynomial>(graph); }

}  // namespace ein
