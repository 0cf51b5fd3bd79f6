#include "graph/reductions.hpp"

namespace ein {
namespace {

/// The values of one reduction while its graph is built. "Full" values have one dimension per axis of the
/// pattern; "result" values have the result's shape.
class Build {
 public:
  Build(Graph& graph, const Solved& solved, ValueId x)
      : graph_(graph), solved_(solved), x_(x), dtype_(graph.op(x).dtype),
        wide_(is_floating(dtype_) && dtype_ != DType::f64 ? DType::f32 : dtype_) {
    for (std::size_t a = 0; a < solved.axes.size(); ++a) {
      full_.push_back({0, {{static_cast<int>(a), 1}}});
      full_shape_.push_back(solved.axes[a].size);
    }
    elements_ = 1;
    for (std::size_t a = 0; a < solved.axes.size(); ++a) {
      if (!uses(solved.write, static_cast<int>(a))) elements_ *= static_cast<double>(solved.axes[a].size);
    }
  }

  /// The number of elements behind each result.
  double elements() const { return elements_; }
  DType dtype() const { return dtype_; }
  DType wide() const { return wide_; }

  ValueId combine(Combine how, DType dtype) { return combine(how, x_, solved_.reads[0], dtype); }
  ValueId combine_full(Combine how, ValueId full, DType dtype) { return combine(how, full, full_, dtype); }

  /// A full value from x (input 0) and a result value (input 1).
  ValueId spread(ValueId result, const Ex& formula) {
    Op op = pointwise(full_, full_shape_, wide_, formula);
    op.inputs = {x_, result};
    op.reads = {solved_.reads[0], solved_.write};
    return add(std::move(op));
  }
  ValueId spread(const Ex& formula) {
    Op op = pointwise(full_, full_shape_, wide_, formula);
    op.inputs = {x_};
    op.reads = {solved_.reads[0]};
    return add(std::move(op));
  }
  /// A result value from result values.
  ValueId finish(std::vector<ValueId> results, const Ex& formula, DType dtype) {
    Op op = pointwise(solved_.write, solved_.shape, dtype, formula);
    // Only the axes of the result remain; the others would be written by nothing.
    std::vector<int> renamed(op.axes.size(), -1);
    std::vector<Axis> kept;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (!is_kept(op, static_cast<int>(a))) continue;
      renamed[a] = static_cast<int>(kept.size());
      kept.push_back(op.axes[a]);
    }
    op.axes = std::move(kept);
    for (DimIndex& dim : op.write) {
      for (DimIndex::Term& term : dim.terms) term.axis = renamed[static_cast<std::size_t>(term.axis)];
    }
    op.reads.assign(results.size(), op.write);
    op.inputs = std::move(results);
    return add(std::move(op));
  }

 private:
  Op pointwise(const Access& write, const Shape& shape, DType dtype, const Ex& formula) const {
    const DType compute = is_floating(dtype_) ? wide_ : DType::i64;
    return {.kind = OpKind::map, .dtype = dtype, .shape = shape, .inputs = {}, .axes = solved_.axes, .reads = {},
            .write = write, .expr = formula, .compute = compute};
  }
  ValueId combine(Combine how, ValueId from, const Access& read, DType dtype) {
    return add({.kind = OpKind::reduce, .dtype = dtype, .shape = solved_.shape, .inputs = {from}, .axes = solved_.axes,
                .reads = {read}, .write = solved_.write, .expr = {}, .combine = how});
  }
  ValueId add(Op op) {
    graph_.ops.push_back(std::move(op));
    return static_cast<ValueId>(graph_.ops.size()) - 1;
  }

  Graph& graph_;
  const Solved& solved_;
  ValueId x_;
  DType dtype_;
  DType wide_;  // of partial results
  Access full_;
  Shape full_shape_;
  double elements_;
};

ValueId sum(Build& b) { return b.combine(Combine::sum, b.dtype()); }
ValueId prod(Build& b) { return b.combine(Combine::prod, b.dtype()); }
ValueId max(Build& b) { return b.combine(Combine::max, b.dtype()); }
ValueId min(Build& b) { return b.combine(Combine::min, b.dtype()); }
ValueId any(Build& b) { return b.combine(Combine::any, b.dtype()); }
ValueId all_of(Build& b) { return b.combine(Combine::all, b.dtype()); }

ValueId mean_as(Build& b, DType dtype) {
  return b.finish({b.combine(Combine::sum, b.wide())}, Ex::input(0) / b.elements(), dtype);
}
ValueId mean(Build& b) { return mean_as(b, b.dtype()); }

/// Two passes, so that a large mean costs no digits.
ValueId mean_square_deviation(Build& b) {
  const Ex deviation = Ex::input(0) - Ex::input(1);
  return b.combine_full(Combine::sum, b.spread(mean_as(b, b.wide()), deviation * deviation), b.wide());
}
ValueId variance(Build& b) {
  return b.finish({mean_square_deviation(b)}, Ex::input(0) / b.elements(), b.dtype());
}
ValueId standard_deviation(Build& b) {
  return b.finish({mean_square_deviation(b)}, Ex::apply(ScalarOp::sqrt, Ex::input(0) / b.elements()), b.dtype());
}

/// log Σ exp x = m + log Σ exp(x - m) with m = max x, where that is finite: an infinite m would make
/// inf - inf.
ValueId log_sum_exp(Build& b) {
  const Ex x = Ex::input(0);
  if (b.elements() == 0) return b.finish({b.combine(Combine::sum, b.wide())}, Ex::apply(ScalarOp::log, x), b.dtype());
  const auto finite = [](const Ex& m) {
    return Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::eq, m - m, Ex(0.0)), m, Ex(0.0));
  };
  const ValueId m = b.combine(Combine::max, b.wide());
  const ValueId e = b.spread(m, Ex::apply(ScalarOp::exp, x - finite(Ex::input(1))));
  const ValueId s = b.combine_full(Combine::sum, e, b.wide());
  return b.finish({m, s}, finite(Ex::input(0)) + Ex::apply(ScalarOp::log, Ex::input(1)), b.dtype());
}

struct Row {
  std::string_view name;
  bool floats_only;
  bool needs_elements;
  ValueId (*build)(Build&);
};

/// In the order of the enumeration.
constexpr Row table[] = {
    {"sum", false, false, sum},
    {"mean", true, false, mean},
    {"max", false, true, max},
    {"min", false, true, min},
    {"prod", false, false, prod},
    {"any", false, false, any},
    {"all", false, false, all_of},
    {"logsumexp", true, false, log_sum_exp},
    {"var", true, false, variance},
    {"std", true, false, standard_deviation},
};

const Row& row(Reduction reduction) { return table[static_cast<std::size_t>(reduction)]; }

}  // namespace

std::string_view name(Reduction reduction) { return row(reduction).name; }

std::optional<Reduction> parse_reduction(std::string_view name) {
  for (std::size_t i = 0; i < std::size(table); ++i) {
    if (table[i].name == name) return static_cast<Reduction>(i);
  }
  return std::nullopt;
}

ValueId build_reduction(Graph& graph, Reduction reduction, const Solved& solved, ValueId x) {
  Build build(graph, solved, x);
  return row(reduction).build(build);
}

void require_defined(Reduction reduction, DType dtype, const Solved& solved, const grammar::Pattern& pattern,
                     const Shape& shape) {
  const std::string what(name(reduction));
  if (row(reduction).floats_only && !is_floating(dtype)) {
    fail(ErrorKind::dtype, "reduce", what + " of " + std::string(ein::name(dtype)) + " is not defined", pattern.text, {},
         {"help: cast first, x.to(ein::DType::f32)"});
  }
  if (!row(reduction).needs_elements || numel(solved.shape) == 0) return;
  for (std::size_t a = 0; a < solved.axes.size(); ++a) {
    if (solved.axes[a].size > 0 || uses(solved.write, static_cast<int>(a))) continue;
    fail(ErrorKind::reduction, "reduce", what + " over no elements: axis '" + solved.axes[a].name + "' has size 0",
         pattern.text, {}, {"operand 1: " + shape.to_string()});
  }
}

}  // namespace ein
