#include "graph/reductions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <ein/detail/result_dtype.hpp>
#include "graph/build.hpp"
#include "graph/squares.hpp"
#include "size/ask.hpp"
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
  bool reads_inside() const {
    return stays_inside(x_.access, graph_.op(x_.id).shape, solved_.axes);
  }
  /// That number where some are beside x, maybe as another one of `inputs`: along the dimensions
  /// that are read whole it is the same everywhere.
  Ex elements_inside(std::vector<NamedValue>& inputs) {
    NamedValue ones;
    Shape shape;
    for (std::size_t d = 0; d < x_.access.size(); ++d) {
      const Size length = graph_.op(x_.id).shape[d];
      if (stays_inside({x_.access[d]}, {length}, solved_.axes)) continue;
      shape.push_back(length);
      ones.access.push_back(x_.access[d]);
    }
    ones.id = filled(graph_, shape, wide_, Ex(1.0));
    std::vector<int> kept;
    std::vector<Size> others;  // axes that are reduced, of dimensions that are read whole
    for (std::size_t a = 0; a < solved_.axes.size(); ++a) {
      const auto axis = static_cast<int>(a);
      const bool is_kept = uses(solved_.write, axis);
      if (!uses(ones.access, axis) && !is_kept && uses(x_.access, axis))
        others.push_back(solved_.axes[a].size);
      if (uses(ones.access, axis) && is_kept) kept.push_back(axis);
    }
    const Access write = plain_access(kept);
    Op op = op_of(OpKind::reduce, {ones}, {write, shape_of(write, solved_.axes)}, wide_);
    inputs.push_back(add(std::move(op)));
    return Ex::input(static_cast<int>(inputs.size()) - 1) * points_of(others);
  }
  bool has_elements() const {
    return std::none_of(reduced_.begin(), reduced_.end(),
                        [](Size size) { return ask_equal(size, 0); });
  }
  /// The dtype of the result, and that of partial results.
  DType dtype() const { return dtype_; }
  DType wide() const { return wide_; }
  /// Partial results are f64 from now on.
  void widen() { wide_ = DType::f64; }

  /// A result value of x or of a full one.
  NamedValue combine(Combine how, const NamedValue& from, DType dtype) {
    Op op = op_of(OpKind::reduce, {from}, result(), dtype);
    op.combine = how;
    return add(std::move(op));
  }
  /// The same as a constant to differentiation.
  NamedValue detach(const NamedValue& value) {
    graph_.ops[static_cast<std::size_t>(value.id)].marks.detached = true;
    return value;
  }
  /// A full value, of partial results' dtype or another.
  NamedValue map_full(const std::vector<NamedValue>& inputs, const Ex& formula) {
    return map_full(inputs, formula, wide_);
  }
  NamedValue map_full(const std::vector<NamedValue>& inputs, const Ex& formula, DType dtype) {
    return map(inputs, formula, full_, dtype);
  }
  /// Result values as partial results: from full ones, from others.
  NamedValue sum_row(const NamedValue& full) { return combine(Combine::sum, full, wide_); }
  NamedValue map_row(const std::vector<NamedValue>& inputs, const Ex& formula) {
    return finish(inputs, formula, wide_);
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

/// √value; 0 with the slope 0 where value is 0, and there is a corner, as PyTorch does.
Ex root(const Ex& value) {
  const Ex is_zero = Ex::apply(ScalarOp::eq, value, Ex(0.0));
  return where(is_zero, Ex(0.0), Ex::apply(ScalarOp::sqrt, where(is_zero, Ex(1.0), value)));
}

/// The elements of x that a reduction is of: all, or those that are numbers.
struct Elements {
  Build& b;
  bool skips_nan = false;

  /// A formula of x, input 0; `otherwise` for an element that is skipped.
  Ex only(const Ex& formula, double otherwise = 0) const {
    const Ex is_nan = Ex::apply(ScalarOp::ne, Ex::input(0), Ex::input(0));
    return skips_nan ? where(is_nan, Ex(otherwise), formula) : formula;
  }
  NamedValue sum_of(const std::vector<NamedValue>& inputs, const Ex& formula) const {
    return b.sum_row(b.map_full(inputs, only(formula)));
  }
  /// How many there are, maybe as another one of `inputs`.
  Ex count(std::vector<NamedValue>& inputs) const {
    if (!skips_nan && b.reads_inside()) return b.elements();
    if (!skips_nan) return b.elements_inside(inputs);
    inputs.push_back(sum_of({b.x()}, Ex(1.0)));
    return Ex::input(static_cast<int>(inputs.size()) - 1);
  }
};

NamedValue mean_of(const Elements& elements, DType dtype) {
  Build& b = elements.b;
  const bool is_window = !elements.skips_nan && !b.reads_inside();
  std::vector<NamedValue> inputs{is_window ? b.combine(Combine::sum, b.x(), b.wide())
                                           : elements.sum_of({b.x()}, Ex::input(0))};
  const Ex mean = Ex::input(0) / elements.count(inputs);
  return elements.b.finish(inputs, mean, dtype);
}

NamedValue mean(Build& b) { return mean_of({b}, b.dtype()); }

struct VarianceOptions {
  bool is_sample = false, takes_root = false, skips_nan = false;
};

/// From deviations d = x - c from a centre c near the mean: (Σ|d|² - |Σd|² / n) / n, whatever c is.
/// That the mean is rounded costs no digits so (Chan, Golub, LeVeque 1983, equation 1.7). As the
/// result does not depend on c, neither does its derivative.
NamedValue variance(Build& b, const VarianceOptions& options) {
  const Elements elements{b, options.skips_nan};
  const NamedValue centre = b.detach(mean_of(elements, b.wide()));
  const auto square_of = [&](const Ex& value) {
    const Ex size = is_complex(b.wide()) ? Ex::apply(ScalarOp::abs, value) : value;
    return size * size;
  };
  const Ex d = Ex::input(0) - Ex::input(1);
  const auto sum_of = [&](const Ex& formula, DType dtype) {
    const NamedValue full = b.map_full({b.x(), centre}, elements.only(formula), dtype);
    return b.combine(Combine::sum, full, dtype);
  };
  std::vector<NamedValue> sums{sum_of(square_of(d), real_dtype(b.wide())), sum_of(d, b.wide())};
  const Ex count = elements.count(sums);
  Ex value = at_least_zero(Ex::input(0) / count - square_of(Ex::input(1) / count));
  if (options.is_sample)
    value = value * (count / Ex::apply(ScalarOp::max, count - Ex(1.0), Ex(0.0)));
  return b.finish(sums, options.takes_root ? root(value) : value, b.dtype());
}
NamedValue var(Build& b) { return variance(b, {}); }
NamedValue standard_deviation(Build& b) { return variance(b, {.takes_root = true}); }
NamedValue sample_var(Build& b) { return variance(b, {.is_sample = true}); }
NamedValue sample_std(Build& b) { return variance(b, {.is_sample = true, .takes_root = true}); }
NamedValue nanvar(Build& b) { return variance(b, {.skips_nan = true}); }
NamedValue nanstd(Build& b) { return variance(b, {.takes_root = true, .skips_nan = true}); }

/// In f64, whose range squares of narrower numbers do not leave; those of f64 itself may.
NamedValue norm(Build& b) {
  const Ex x = Ex::input(0);
  const bool may_leave = b.wide() == DType::f64;
  b.widen();
  const NamedValue sum = b.sum_row(b.map_full({b.x()}, x * x));
  if (!may_leave) return b.finish({sum}, root(x), b.dtype());
  const SumOfSquares squares =
      in_range(b, sum, {b.x()}, [&](const Ex& scale) { return x * scale; });
  return b.finish({squares.sum, squares.scale}, root(Ex::input(0)) / Ex::input(1), b.dtype());
}

NamedValue nansum(Build& b) {
  return b.combine(Combine::sum, b.map_full({b.x()}, Elements{b, true}.only(Ex::input(0))),
                   b.dtype());
}
NamedValue nanprod(Build& b) {
  return b.combine(Combine::prod, b.map_full({b.x()}, Elements{b, true}.only(Ex::input(0), 1)),
                   b.dtype());
}
NamedValue nanmean(Build& b) { return mean_of({b, true}, b.dtype()); }

/// NaN where nothing else is.
NamedValue nan_extreme(Build& b, Combine how, double least) {
  const Ex x = Ex::input(0);
  const NamedValue extreme =
      b.combine(how, b.map_full({b.x()}, Elements{b, true}.only(x, least)), b.wide());
  const NamedValue are_numbers =
      b.combine(Combine::max, b.map_full({b.x()}, Ex::apply(ScalarOp::eq, x, x)), b.wide());
  return b.finish({extreme, are_numbers}, where(Ex::input(1), Ex::input(0), Ex(NAN)), b.dtype());
}
NamedValue nanmax(Build& b) { return nan_extreme(b, Combine::max, -INFINITY); }
NamedValue nanmin(Build& b) { return nan_extreme(b, Combine::min, INFINITY); }

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
  const NamedValue e = b.map_full({b.x(), m}, Ex::apply(ScalarOp::exp, x - finite(Ex::input(1))));
  const NamedValue s = b.combine(Combine::sum, e, b.wide());
  return b.finish({m, s}, finite(Ex::input(0)) + Ex::apply(ScalarOp::log, Ex::input(1)), b.dtype());
}

/// In the order of the enumeration.
constexpr NamedValue (*builders[])(Build&) = {
    sum,        mean,       max,         min,    prod,
    any,        all_of,     log_sum_exp, var,    standard_deviation,
    sample_var, sample_std, norm,        nansum, nanmean,
    nanmax,     nanmin,     nanprod,     nanvar, nanstd};
static_assert(std::size(builders) == std::size(detail::reduction_names));

}  // namespace

namespace {

/// How a reduction combines its elements, if it does nothing else with them but divide by their
/// number.
std::optional<Combine> combination_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return Combine::sum;
    case Reduction::prod:
      return Combine::prod;
    case Reduction::max:
      return Combine::max;
    case Reduction::min:
      return Combine::min;
    case Reduction::any:
      return Combine::any;
    case Reduction::all:
      return Combine::all;
    default:
      return std::nullopt;
  }
}

}  // namespace

Ex nothing_beside(Reduction reduction, DType dtype) {
  if (const auto combine = combination_of(reduction)) return nothing_of(*combine, dtype);
  return Ex(reduction == Reduction::norm        ? 0.0
            : reduction == Reduction::logsumexp ? -INFINITY
                                                : NAN);
}

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
  // Sum, max ... of one element is that element: nothing to compute.
  const bool is_identity = reduction == Reduction::sum || reduction == Reduction::prod ||
                           reduction == Reduction::max || reduction == Reduction::min ||
                           reduction == Reduction::mean;
  if (!reduces(solved.write, solved.axes) && is_identity && !solved.has_braces) {
    Op op = op_of(OpKind::reindex, {{x, solved.reads[0]}}, {solved.write, solved.shape},
                  graph.op(x).dtype);
    op.axes = solved.axes;
    drop_unused_axes(op);
    return append(graph, std::move(op));
  }
  if (!combination_of(reduction)) {
    Solved inside = solved;
    x = padded(graph, x, inside.reads[0], inside.axes,
               nothing_beside(reduction, graph.op(x).dtype));
    Build build(graph, inside, x, result);
    return builders[static_cast<std::size_t>(reduction)](build).id;
  }
  Build build(graph, solved, x, result);
  return builders[static_cast<std::size_t>(reduction)](build).id;
}

namespace {

constexpr std::int64_t most_positions = 1 << 16;

/// A size as a number. A formula gets a guard for each number up to its own.
Size as_number(Size size) {
  for (std::int64_t n = 0; !size.is_number() && n < most_positions; ++n) {
    if (ask_equal(size, n)) return n;
  }
  return size;
}

/// Whether some window of a dimension is wholly outside: the first or the last one, or one whose
/// elements lie further apart than the dimension is long.
bool has_empty_window(const DimIndex& dim, const Solved& solved, Size length) {
  DimIndex kept{dim.offset, {}}, reduced;
  Size step = 0;
  for (const DimIndex::Term& term : dim.terms) {
    if (ask_equal(solved.axes[static_cast<std::size_t>(term.axis)].size, 0)) return false;
    const bool is_kept = uses(solved.write, term.axis);
    (is_kept ? kept : reduced).terms.push_back(term);
    if (is_kept) continue;
    const Size size = goes_backwards(term) ? -term.coefficient : term.coefficient;
    if (size > step) step = size;
  }
  const Range at = range_of(kept, solved.axes), within = range_of(reduced, solved.axes);
  if (at.first + within.last < 0 || at.last + within.first >= length) return true;
  if (step <= length) return false;
  std::vector<Axis> axes = solved.axes;
  for (const DimIndex::Term& term : dim.terms) {
    Size& size = axes[static_cast<std::size_t>(term.axis)].size;
    size = as_number(size);
  }
  const Size end = as_number(length);
  const auto begins = positions_of(kept, axes, most_positions),
             inside = positions_of(reduced, axes, most_positions);
  return begins && inside && end.is_number() &&
         std::any_of(begins->begin(), begins->end(), [&](std::int64_t begin) {
           const auto first = std::lower_bound(inside->begin(), inside->end(), -begin);
           return first == inside->end() || begin + *first >= end.word();
         });
}

/// Of a pattern with braces.
void require_windows(Reduction reduction, const Solved& solved, const grammar::Pattern& pattern,
                     const Shape& shape) {
  const std::string what(name(reduction));
  if (reduction != Reduction::sum && !covers(solved.write, solved.shape, solved.axes)) {
    fail(ErrorKind::reduction, "reduce",
         "braces of the output add up what meets, which " + what + " does not", pattern.text,
         mark_dims(pattern, pattern.output()), {"help: reduce with \"sum\", or einsum"});
  }
  if (stays_inside(solved.reads[0], shape, solved.axes)) return;
  const std::vector<Mark> marks = mark_dims(pattern, pattern.sides[0]);
  if (is_variance(reduction)) {
    fail(ErrorKind::reduction, "reduce", what + " reads beside its operand", pattern.text, marks,
         {"operand 1: " + shape.to_string(), "help: give fewer windows, which read inside"});
  }
  if (reduction != Reduction::max && reduction != Reduction::min) return;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const DimIndex& dim = solved.reads[0][d];
    if (stays_inside({dim}, {shape[d]}, solved.axes) || !has_empty_window(dim, solved, shape[d]))
      continue;
    fail(ErrorKind::reduction, "reduce", "a window of " + what + " is wholly outside", pattern.text,
         {marks[d]}, {"operand 1: " + shape.to_string(), "help: give fewer windows, or pad less"});
  }
}

}  // namespace

void require_defined(Reduction reduction, DType dtype, const Solved& solved,
                     const grammar::Pattern& pattern, const Shape& shape) {
  const std::string what(name(reduction));
  const bool is_of_complex = is_complex(dtype) && (reduction == Reduction::mean ||
                                                   !is_complex(result_dtype(reduction, dtype)));
  if (wants_floating(reduction) && !is_floating(dtype) && !is_of_complex) {
    fail(ErrorKind::dtype, "reduce",
         what + " of " + std::string(ein::name(dtype)) + " is not defined", pattern.text, {},
         {is_complex(dtype) ? "help: use ein::real(x), ein::imag(x) or ein::abs(x)"
                            : "help: cast first, x.to(ein::DType::f32)"});
  }
  if (solved.has_braces) require_windows(reduction, solved, pattern, shape);
  const bool has_identity = reduction != Reduction::max && reduction != Reduction::min &&
                            reduction != Reduction::nanmax && reduction != Reduction::nanmin;
  if (has_identity || ask_equal(numel(solved.shape), 0)) return;
  for (std::size_t a = 0; a < solved.axes.size(); ++a) {
    if (solved.axes[a].size > 0 || uses(solved.write, static_cast<int>(a))) continue;
    const std::string& axis = solved.axes[a].name;
    const bool is_named = !axis.starts_with("...");
    const auto term =
        std::find_if(pattern.terms.begin(), pattern.terms.end(), [&](const grammar::Term& t) {
          return is_named ? pattern.name_of(t) == axis : t.kind == grammar::TermKind::ellipsis;
        });
    fail(ErrorKind::reduction, "reduce",
         what + " over no elements is not defined: " +
             (is_named ? "axis '" + axis + "' has size 0" : "an axis under '...' has size 0"),
         pattern.text, {{term->span, "0"}}, {"operand 1: " + shape.to_string()});
  }
}

}  // namespace ein
