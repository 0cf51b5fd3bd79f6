#include "graph/reductions.hpp"

#include <algorithm>

#include "graph/build.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

/// The graph of one reduction while it is built. "Full" values have one dimension per axis of the
/// pattern; "result" values have the result's shape.
class Build {
 public:
  Build(Graph& graph, const Solved& solved, ValueId x, DType result)
      : graph_(graph),
        solved_(solved),
        x_{x, solved.reads[0]},
        dtype_(result),
        wide_(common_compute_type(graph.op(x).dtype, result)) {
    full_.access = plain_access(solved.axes.size());
    full_.shape = shape_of(full_.access, solved.axes);
    for (std::size_t a = 0; a < solved.axes.size(); ++a) {
      if (!uses(solved.write, static_cast<int>(a))) reduced_.push_back(solved.axes[a].size);
    }
  }

  const NamedValue& x() const { return x_; }
  /// The number of elements behind each result.
  Ex elements() const { return points_of(reduced_); }
  bool has_elements() const {
    return std::none_of(reduced_.begin(), reduced_.end(), [](Size size) { return size == 0; });
  }
  /// The dtype of the result, and that of partial results.
  DType dtype() const { return dtype_; }
  DType wide() const { return wide_; }

  /// A result value of x or of a full one.
  NamedValue combine(Combine how, const NamedValue& from, DType dtype) {
    Op op = op_of(OpKind::reduce, {from}, result(), dtype);
    op.combine = how;
    return add(std::move(op));
  }
  /// The same as a constant to differentiation.
  NamedValue detach(const NamedValue& value) {
    graph_.ops[static_cast<std::size_t>(value.id)].detached = true;
    return value;
  }
  /// A full value, of partial results' dtype or another.
  NamedValue spread(const std::vector<NamedValue>& inputs, const Ex& formula) {
    return spread(inputs, formula, wide_);
  }
  NamedValue spread(const std::vector<NamedValue>& inputs, const Ex& formula, DType dtype) {
    return map(inputs, formula, full_, dtype);
  }
  /// A result value from result values.
  NamedValue finish(const std::vector<NamedValue>& inputs, const Ex& formula, DType dtype) {
    return map(inputs, formula, result(), dtype);
  }

 private:
  Place result() const { return {solved_.write, solved_.shape}; }
  NamedValue map(const std::vector<NamedValue>& inputs, const Ex& formula, const Place& place,
                 DType dtype) {
    Op op = op_of(OpKind::map, inputs, place, dtype);
    op.expr = formula;
    op.compute = compute_type(wide_);
    return add(std::move(op));
  }
  NamedValue add(Op op) {
    const Access access = op.write;
    op.axes = solved_.axes;
    drop_unused_axes(op);
    return {append(graph_, std::move(op)), access};
  }

  Graph& graph_;
  const Solved& solved_;
  NamedValue x_;
  DType dtype_;  // of the result
  DType wide_;   // of partial results
  Place full_;
  std::vector<Size> reduced_;
};

NamedValue combined(Build& b, Combine how) { return b.combine(how, b.x(), b.dtype()); }
NamedValue sum(Build& b) { return combined(b, Combine::sum); }
NamedValue prod(Build& b) { return combined(b, Combine::prod); }
NamedValue max(Build& b) { return combined(b, Combine::max); }
NamedValue min(Build& b) { return combined(b, Combine::min); }
NamedValue any(Build& b) { return combined(b, Combine::any); }
NamedValue all_of(Build& b) { return combined(b, Combine::all); }

NamedValue mean_as(Build& b, DType dtype) {
  return b.finish({b.combine(Combine::sum, b.x(), b.wide())}, Ex::input(0) / b.elements(), dtype);
}
NamedValue mean(Build& b) { return mean_as(b, b.dtype()); }

/// The variance from deviations d = x - c from a centre c near the mean: (Σ|d|² - |Σd|² / n) / n,
/// whatever c is. That the mean is rounded costs no digits so (Chan, Golub, LeVeque 1983, equation
/// 1.7). As the result does not depend on c, neither does its derivative.
NamedValue variance(Build& b, bool takes_root) {
  const NamedValue centre = b.detach(mean_as(b, b.wide()));
  const Ex d = Ex::input(0) - Ex::input(1);
  const auto square_of = [&](const Ex& value) {
    const Ex size = is_complex(b.wide()) ? Ex::apply(ScalarOp::abs, value) : value;
    return size * size;
  };
  const auto sum_of = [&](const Ex& formula, DType dtype) {
    return b.combine(Combine::sum, b.spread({b.x(), centre}, formula, dtype), dtype);
  };
  const NamedValue sum = sum_of(d, b.wide()), squares = sum_of(square_of(d), real_dtype(b.wide()));
  const Ex mean = Ex::input(1) / b.elements();
  const Ex value = Ex::input(0) / b.elements() - square_of(mean);
  // Rounding may leave less than nothing; NaN stays NaN.
  const Ex bounded = where(Ex::apply(ScalarOp::lt, value, Ex(0.0)), Ex(0.0), value);
  if (!takes_root) return b.finish({squares, sum}, bounded, b.dtype());
  // The deviation of equal values has a corner there. Its slope is taken to be 0, as PyTorch does:
  // the root is not of 0.
  const Ex is_zero = Ex::apply(ScalarOp::eq, bounded, Ex(0.0));
  const Ex root = Ex::apply(ScalarOp::sqrt, where(is_zero, Ex(1.0), bounded));
  return b.finish({squares, sum}, where(is_zero, Ex(0.0), root), b.dtype());
}
NamedValue variance(Build& b) { return variance(b, false); }
NamedValue standard_deviation(Build& b) { return variance(b, true); }

/// log Σ exp x = m + log Σ exp(x - m) with m = max x, where that is finite: an infinite m would
/// make inf - inf.
NamedValue log_sum_exp(Build& b) {
  const Ex x = Ex::input(0);
  if (!b.has_elements())
    return b.finish({b.combine(Combine::sum, b.x(), b.wide())}, Ex::apply(ScalarOp::log, x),
                    b.dtype());
  const auto finite = [](const Ex& m) {
    return where(Ex::apply(ScalarOp::eq, m - m, Ex(0.0)), m, Ex(0.0));
  };
  // The result does not depend on m, so neither does its derivative.
  const NamedValue m = b.detach(b.combine(Combine::max, b.x(), b.wide()));
  const NamedValue e = b.spread({b.x(), m}, Ex::apply(ScalarOp::exp, x - finite(Ex::input(1))));
  const NamedValue s = b.combine(Combine::sum, e, b.wide());
  return b.finish({m, s}, finite(Ex::input(0)) + Ex::apply(ScalarOp::log, Ex::input(1)), b.dtype());
}

/// In the order of the enumeration.
constexpr NamedValue (*builders[])(Build&) = {
    sum, mean, max, min, prod, any, all_of, log_sum_exp, variance, standard_deviation};
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
  return builders[static_cast<std::size_t>(reduction)](build).id;
}

void require_defined(Reduction reduction, DType dtype, const Solved& solved,
                     const grammar::Pattern& pattern, const Shape& shape) {
  const std::string what(name(reduction));
  const bool is_defined =
      is_floating(dtype) || (is_complex(dtype) && reduction != Reduction::logsumexp);
  if (wants_floating(reduction) && !is_defined) {
    fail(ErrorKind::dtype, "reduce",
         what + " of " + std::string(ein::name(dtype)) + " is not defined", pattern.text, {},
         {is_complex(dtype) ? "help: use ein::real(x), ein::imag(x) or ein::abs(x)"
                            : "help: cast first, x.to(ein::DType::f32)"});
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
