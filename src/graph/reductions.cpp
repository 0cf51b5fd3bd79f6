#include "graph/reductions.hpp"

#include <algorithm>

#include "graph/build.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

/// The values of one reduction while its graph is built. "Full" values have one dimension per axis
/// of the pattern; "result" values have the result's shape.
class Build {
 public:
  Build(Graph& graph, const Solved& solved, ValueId x, DType result)
      : graph_(graph),
        solved_(solved),
        x_(x),
        dtype_(result),
        wide_(common_compute_type(graph.op(x).dtype, result)) {
    full_ = plain_access(solved.axes.size());
    full_shape_ = shape_of(full_, solved.axes);
    elements_ = 1;
    for (std::size_t a = 0; a < solved.axes.size(); ++a) {
      if (!uses(solved.write, static_cast<int>(a)))
        elements_ *= static_cast<double>(solved.axes[a].size);
    }
  }

  /// The number of elements behind each result.
  double elements() const { return elements_; }
  /// The dtype of the result, and that of partial results.
  DType dtype() const { return dtype_; }
  DType wide() const { return wide_; }

  ValueId combine(Combine how, DType dtype) { return combine(how, x_, solved_.reads[0], dtype); }
  ValueId combine_full(Combine how, ValueId full, DType dtype) {
    return combine(how, full, full_, dtype);
  }

  ValueId detach(ValueId value) {
    graph_.ops[static_cast<std::size_t>(value)].detached = true;
    return value;
  }

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
    Op op = result_op(dtype);
    op.expr = formula;
    op.reads.assign(results.size(), op.write);
    op.inputs = std::move(results);
    return add(std::move(op));
  }

 private:
  /// An operation of which only the axes of the result remain; the others would be written by
  /// nothing.
  Op result_op(DType dtype) const {
    Op op = pointwise(solved_.write, solved_.shape, dtype, Ex(0.0));
    drop_unused_axes(op);
    return op;
  }
  Op pointwise(const Access& write, const Shape& shape, DType dtype, const Ex& formula) const {
    return {.kind = OpKind::map,
            .dtype = dtype,
            .shape = shape,
            .inputs = {},
            .axes = solved_.axes,
            .reads = {},
            .write = write,
            .expr = formula,
            .compute = wide_};
  }
  ValueId combine(Combine how, ValueId from, const Access& read, DType dtype) {
    return add({.kind = OpKind::reduce,
                .dtype = dtype,
                .shape = solved_.shape,
                .inputs = {from},
                .axes = solved_.axes,
                .reads = {read},
                .write = solved_.write,
                .expr = {},
                .combine = how});
  }
  ValueId add(Op op) { return append(graph_, std::move(op)); }

  Graph& graph_;
  const Solved& solved_;
  ValueId x_;
  DType dtype_;  // of the result
  DType wide_;   // of partial results
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

/// The variance from deviations d = x - c from a centre c near the mean: (Σd² - (Σd)² / n) / n,
/// whatever c is. That the mean is rounded costs no digits so (Chan, Golub, LeVeque 1983, equation
/// 1.7). As the result does not depend on c, neither does its derivative.
ValueId variance(Build& b, bool takes_root) {
  const ValueId centre = b.detach(mean_as(b, b.wide()));
  const Ex d = Ex::input(0) - Ex::input(1);
  const ValueId sum = b.combine_full(Combine::sum, b.spread(centre, d), b.wide());
  const ValueId squares = b.combine_full(Combine::sum, b.spread(centre, d * d), b.wide());
  const Ex mean = Ex::input(1) / b.elements();
  const Ex value = Ex::input(0) / b.elements() - mean * mean;
  // Rounding may leave less than nothing; NaN stays NaN.
  const Ex bounded =
      Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::lt, value, Ex(0.0)), Ex(0.0), value);
  if (!takes_root) return b.finish({squares, sum}, bounded, b.dtype());
  // The deviation of equal values has a corner there. Its slope is taken to be 0, as PyTorch does:
  // the root is not of 0.
  const Ex is_zero = Ex::apply(ScalarOp::eq, bounded, Ex(0.0));
  const Ex root = Ex::apply(ScalarOp::sqrt, Ex::apply(ScalarOp::where, is_zero, Ex(1.0), bounded));
  return b.finish({squares, sum}, Ex::apply(ScalarOp::where, is_zero, Ex(0.0), root), b.dtype());
}
ValueId variance(Build& b) { return variance(b, false); }
ValueId standard_deviation(Build& b) { return variance(b, true); }

/// log Σ exp x = m + log Σ exp(x - m) with m = max x, where that is finite: an infinite m would
/// make inf - inf.
ValueId log_sum_exp(Build& b) {
  const Ex x = Ex::input(0);
  if (b.elements() == 0)
    return b.finish({b.combine(Combine::sum, b.wide())}, Ex::apply(ScalarOp::log, x), b.dtype());
  const auto finite = [](const Ex& m) {
    return Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::eq, m - m, Ex(0.0)), m, Ex(0.0));
  };
  // The result does not depend on m, so neither does its derivative.
  const ValueId m = b.detach(b.combine(Combine::max, b.wide()));
  const ValueId e = b.spread(m, Ex::apply(ScalarOp::exp, x - finite(Ex::input(1))));
  const ValueId s = b.combine_full(Combine::sum, e, b.wide());
  return b.finish({m, s}, finite(Ex::input(0)) + Ex::apply(ScalarOp::log, Ex::input(1)), b.dtype());
}

/// In the order of the enumeration.
constexpr ValueId (*builders[])(Build&) = {sum, mean,   max,         min,      prod,
                                           any, all_of, log_sum_exp, variance, standard_deviation};
static_assert(std::size(builders) == std::size(detail::reduction_names));

}  // namespace

Reduction reduction_named(std::string_view name) {
  if (const auto found = parse_reduction(name)) return *found;
  std::string names;
  for (std::string_view known : detail::reduction_names)
    names += (names.empty() ? "" : ", ") + std::string(known);
  throw Error(ErrorKind::reduction,
              "reduce: unknown reduction '" + std::string(name) + "'\n  help: one of " + names);
}

ValueId build_reduction(Graph& graph, Reduction reduction, const Solved& solved, ValueId x,
                        DType result) {
  Build build(graph, solved, x, result);
  return builders[static_cast<std::size_t>(reduction)](build);
}

void require_defined(Reduction reduction, DType dtype, const Solved& solved,
                     const grammar::Pattern& pattern, const Shape& shape) {
  const std::string what(name(reduction));
  if (wants_floating(reduction) && !is_floating(dtype)) {
    fail(ErrorKind::dtype, "reduce",
         what + " of " + std::string(ein::name(dtype)) + " is not defined", pattern.text, {},
         {"help: cast first, x.to(ein::DType::f32)"});
  }
  const bool has_identity = reduction != Reduction::max && reduction != Reduction::min;
  if (has_identity || numel(solved.shape) == 0) return;
  for (std::size_t a = 0; a < solved.axes.size(); ++a) {
    if (solved.axes[a].size > 0 || uses(solved.write, static_cast<int>(a))) continue;
    const std::string& axis = solved.axes[a].name;
    const bool is_named = !axis.starts_with("...");
    const auto term =
        std::find_if(pattern.terms.begin(), pattern.terms.end(), [&](const grammar::Term& t) {
          return is_named ? pattern.name_of(t) == axis : t.kind == grammar::TermKind::ellipsis;
        });
    fail(ErrorKind::reduction, "reduce",
         what + " over no elements: " +
             (is_named ? "axis '" + axis + "' has size 0" : "an axis under '...' has size 0"),
         pattern.text, {{term->span, "0"}}, {"operand 1: " + shape.to_string()});
  }
}

}  // namespace ein
