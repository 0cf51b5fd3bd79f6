// Interval: all values that a correct engine may give for one element, as numbers of the reference
// interpreter.
//
// The ends come from rules that every engine keeps:
// - A map rounds after each step. Only a product may stay unrounded (fused multiply-add).
// - A sum of n terms has any order: it is within n · 2u · Σ|term| of the exact one, with the unit
//   roundoff u of the type that it computes in; and is exact where each partial sum in any order
//   is.
// - A function is within `function_ulps` units in the last place, and exact at 0, infinities and
//   NaN. Of bf16 and f16, gelu and its kin are off by another `short_form_ulps` before they are
//   rounded.
// So an interval is a single number, and engines must give its bits, wherever nothing depends on
// the order.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/graph.hpp>
#include "graph/build.hpp"
#include "nest/random.hpp"
#include "oracle/interpret.hpp"
#include "tensor/compute_type.hpp"

namespace ein::attack {

/// A position or an order depends on a value that is not known exactly.
struct Uncertain : std::runtime_error {
  Uncertain() : std::runtime_error("depends on rounding") {}
};

/// Of exp, log, tanh, erf and their like: ein keeps 2.5, NumPy and PyTorch 4; pow as it comes.
inline constexpr int function_ulps = 4, pow_ulps = 8;
/// Units of f32: 8.3e-5 (src/passes/short_forms.hpp).
inline constexpr int short_form_ulps = 700;

/// Whether a comes before b, where -0 comes before 0.
inline bool precedes(double a, double b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

/// Where a function is defined, NaN elsewhere; and values that it does not leave.
struct Bounds {
  double from = -INFINITY, to = INFINITY, least = -INFINITY, most = INFINITY;
};

class Interval {
 public:
  Interval() = default;
  explicit Interval(double value) : Interval(value, value) {}
  Interval(double low, double high) : low_(low), high_(high) {
    if (std::isnan(low) || std::isnan(high)) *this = only_nan();
    magnitude_ = std::max(std::abs(low_), std::abs(high_));
    smallest_ = low_ == 0 ? INFINITY : std::abs(low_);
    granule_ = is_point() ? lowest_bit(low_) : -5000;
  }
  /// Anything, as where the order of operations decides whether something overflows.
  static Interval anything() {
    return is_integral(context().compute) ? limits(context().compute) : unknown();
  }
  /// Any value of any dtype.
  static Interval unknown() {
    Interval x(-INFINITY, INFINITY);
    x.nan_ = true;
    return x;
  }

  double low() const { return low_; }
  double high() const { return high_; }
  /// Whether it may be NaN; with low() > high(), it is.
  bool nan() const { return nan_; }
  bool has_numbers() const { return !(low_ > high_); }
  bool is_point() const {
    return !nan_ && low_ == high_ && std::signbit(low_) == std::signbit(high_);
  }
  bool contains(double value) const {
    return std::isnan(value) ? nan_
                             : has_numbers() && !precedes(value, low_) && !precedes(high_, value);
  }

  // --- what the interpreter says and asks ---

  /// Operations are of this graph from now on.
  static void begin(const Graph& graph) { context().graph = &graph; }
  /// Numbers belong to this operation from now on.
  static void begin(const Op& op) {
    Context& now = context();
    now.compute = op.kind == OpKind::map ? op.compute : compute_type(op.dtype);
    now.kind = op.kind;
    const bool combines =
        op.kind == OpKind::reduce || op.kind == OpKind::scan || op.kind == OpKind::scatter;
    now.sums = op.kind == OpKind::contract || (combines && op.combine == Combine::sum);
    now.multiplies = combines && op.combine == Combine::prod;
    now.takes_short_forms =
        op.kind == OpKind::map && (op.dtype == DType::bf16 || op.dtype == DType::f16);
    now.factors = op.kind == OpKind::contract ? static_cast<int>(op.inputs.size()) : 1;
    now.reduces = now.spreads = false;
    now.flushes = op.kind == OpKind::contract &&
                  std::any_of(op.inputs.begin(), op.inputs.end(),
                              [&](ValueId x) { return now.graph->op(x).dtype == DType::bf16; });
    now.reorders = op.kind == OpKind::contract && op.inputs.size() > 2;
    for (int a = 0; op.kind == OpKind::contract && a < static_cast<int>(op.axes.size()); ++a) {
      if (is_kept(op, a)) continue;
      now.reduces = true;
      now.reorders |= !std::all_of(op.reads.begin(), op.reads.end(),
                                   [&](const Access& read) { return uses(read, a); });
    }
  }
  /// Where a sum's indices leave its operands, or meet in its result, engines may multiply 0 by
  /// what is beside, and 0 by an infinity is NaN.
  static void read(const Op& op, const std::vector<const std::vector<Interval>*>& inputs) {
    context().spreads =
        context().sums && has_windows(*context().graph, op) &&
        std::any_of(inputs.begin(), inputs.end(), [](const std::vector<Interval>* input) {
          return std::any_of(input->begin(), input->end(),
                             [](const Interval& x) { return x.may_overflow(); });
        });
  }
  /// An element or a constant as a step of a map takes it. Where steps are fused, a product of one
  /// before stays unrounded.
  Interval loaded() const {
    if (context().compute == DType::i64) return whole(*this);
    const Interval rounded(in_compute(low_), in_compute(high_));
    return with_nan(is_point() || !has_numbers() ? rounded : hull(*this, rounded));
  }
  /// As an element of `dtype` of the operation's result holds it.
  Interval stored(DType dtype) const {
    // Of matrices no bound is known here: their functions may cancel as much as they like.
    if (context().kind == OpKind::matrix || context().spreads) return anything();
    Interval x = *this;
    if (context().sums || context().multiplies) x = combined();
    if (context().sums && x.has_numbers()) {
      const bool adds = context().kind != OpKind::contract || context().reduces;
      if (adds && x.high_ == 0 && std::signbit(x.high_)) x = x.with_nan(Interval(x.low_, 0.0));
      if (context().reduces && x.low_ == 0 && !std::signbit(x.low_))
        x = x.with_nan(Interval(-0.0, x.high_));
    }
    if (!is_floating(dtype)) return x.stored_whole(dtype);
    const bool is_product =
        dtype == DType::f32 && context().compute == DType::f32 && context().kind == OpKind::map;
    if (dtype == DType::f64 || is_product) return x.fresh();
    return x.as(dtype);
  }
  /// Rounded to a floating-point dtype.
  Interval as(DType dtype) const {
    return with_nan(Interval(in_dtype(low_, dtype), in_dtype(high_, dtype)));
  }

  friend Interval operator+(const Interval& a, const Interval& b) {
    if (context().sums) return summed(a, b);
    return corners(a, b,
                   [](double x, double y) { return rounded(x + y, sum_error(x, y, x + y) != 0); });
  }
  friend Interval operator-(const Interval& a, const Interval& b) { return a + negated(b); }
  friend Interval operator*(const Interval& a, const Interval& b) {
    if (context().reorders && (a.is_wild() || b.is_wild())) return anything();
    Interval x =
        context().flushes ? corners(a.flushed(), b.flushed(), product) : corners(a, b, product);
    if (a.straddles_zero_beside_infinity(b) || b.straddles_zero_beside_infinity(a)) x = anything();
    if (context().sums && context().kind == OpKind::scan) {
      // A factor of what was summed before.
      x.terms_ = a.terms_ + 1;
      x.magnitude_ = a.magnitude_ * std::max(std::abs(b.low_), std::abs(b.high_));
      x.granule_ = -5000;
    } else if (context().multiplies) {
      x.terms_ = a.terms_ + b.terms_;
      x.magnitude_ = std::max(1.0, a.magnitude_) * std::max(1.0, b.magnitude_);
      x.smallest_ = std::min(1.0, a.smallest_) * std::min(1.0, b.smallest_);
    } else if (context().kind == OpKind::contract) {
      x.granule_ = std::max(-5000, a.granule_ + b.granule_);
    }
    return x;
  }
  friend Interval operator/(const Interval& a, const Interval& b) {
    if (b.has_numbers() && b.low_ <= 0 && b.high_ >= 0 && !(b.is_point() && a.is_point()))
      return anything();
    return corners(a, b, [](double x, double y) {
      const double q = x / y;
      return rounded(q, std::isfinite(q) && std::fma(q, y, -x) != 0);
    });
  }
  friend Interval operator<(const Interval& a, const Interval& b) {
    return truth(a.low_ < b.high_, !(a.high_ < b.low_), a, b);
  }
  friend Interval operator<=(const Interval& a, const Interval& b) {
    return truth(a.low_ <= b.high_, !(a.high_ <= b.low_), a, b);
  }
  friend Interval operator>(const Interval& a, const Interval& b) { return b < a; }
  friend Interval operator>=(const Interval& a, const Interval& b) { return b <= a; }
  friend Interval operator==(const Interval& a, const Interval& b) {
    return truth(a.low_ <= b.high_ && b.low_ <= a.high_, !(a.low_ == b.high_ && a.high_ == b.low_),
                 a, b);
  }
  friend Interval operator!=(const Interval& a, const Interval& b) { return is_zero(a == b); }
  friend Interval minimum(const Interval& a, const Interval& b) { return chosen(a, b, -1); }
  friend Interval maximum(const Interval& a, const Interval& b) {
    return whole(turned(chosen(turned(a), turned(b), -1)));
  }
  friend Interval select(const Interval& condition, const Interval& a, const Interval& b) {
    const Interval test = is_nonzero(condition);
    return test.low_ == 1 ? a : test.high_ == 0 ? b : hull(a, b);
  }
  friend Interval both(const Interval& a, const Interval& b) {
    const Interval x = is_nonzero(a), y = is_nonzero(b);
    return {std::min(x.low_, y.low_), std::min(x.high_, y.high_)};
  }
  friend Interval either(const Interval& a, const Interval& b) {
    const Interval x = is_nonzero(a), y = is_nonzero(b);
    return {std::max(x.low_, y.low_), std::max(x.high_, y.high_)};
  }
  friend Interval is_zero(const Interval& a) {
    const Interval x = is_nonzero(a);
    return {1 - x.high_, 1 - x.low_};
  }
  friend Interval is_nonzero(const Interval& a) {
    const bool may_be_zero = a.has_numbers() && a.low_ <= 0 && a.high_ >= 0;
    const bool may_differ = a.nan_ || (a.has_numbers() && !(a.low_ == 0 && a.high_ == 0));
    return {may_be_zero ? 0.0 : 1.0, may_differ ? 1.0 : 0.0};
  }
  friend Interval negated(const Interval& a) {
    return a.with_nan(a.has_numbers() ? whole(Interval(-a.high_, -a.low_)) : only_nan());
  }
  friend Interval abs(const Interval& a) {
    if (!a.has_numbers() || !std::signbit(a.low_)) return a;
    if (std::signbit(a.high_)) return negated(a);
    return a.with_nan(
        whole(Interval(0.0, std::max(-a.low_, a.high_))));  // the lowest whole number is its own
  }
  friend Interval sqrt(const Interval& a) {
    return a.mapped(0, [](double v) { return rounded(std::sqrt(v), false); }, {.from = -0.0});
  }
  friend Interval rsqrt(const Interval& a) {
    if (a.has_numbers() && a.low_ <= 0 && !a.is_point()) return anything();
    return a.mapped(function_ulps, [](double v) { return Interval(1 / std::sqrt(v)); });
  }
  friend Interval exp(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::exp(v)); }, {.least = 0.0});
  }
  friend Interval log(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::log(v)); }, {.from = -0.0});
  }
  friend Interval exp2(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::exp2(v)); }, {.least = 0.0});
  }
  friend Interval expm1(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::expm1(v)); },
                    {.least = -1.0});
  }
  friend Interval log2(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::log2(v)); }, {.from = -0.0});
  }
  friend Interval log1p(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::log1p(v)); },
                    {.from = -1.0});
  }
  friend Interval sinh(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::sinh(v)); });
  }
  friend Interval atan(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::atan(v)); });
  }
  // These end at -1 and 1.
  friend Interval asin(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::asin(v)); },
                    {.from = -1, .to = 1});
  }
  friend Interval acos(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::acos(v)); },
                    {.from = -1, .to = 1});
  }
  friend Interval erfinv(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(reference::erfinv(v)); },
                    {.from = -1, .to = 1});
  }
  // These rise and fall.
  friend Interval sin(const Interval& a) { return a.wave(std::sin); }
  friend Interval cos(const Interval& a) { return a.wave(std::cos); }
  friend Interval tan(const Interval& a) { return a.at_point(std::tan); }
  friend Interval cosh(const Interval& a) { return a.dipping(std::cosh, 0); }
  friend Interval as_bf16(const Interval& a) { return a.as(DType::bf16); }
  friend Interval as_f16(const Interval& a) { return a.as(DType::f16); }
  friend Interval floor(const Interval& a) {
    return a.mapped(0, [](double v) { return Interval(std::floor(v)); });
  }
  friend Interval ceil(const Interval& a) {
    return a.mapped(0, [](double v) { return Interval(std::ceil(v)); });
  }
  friend Interval round(const Interval& a) {
    return a.mapped(0, [](double v) { return Interval(std::nearbyint(v)); });
  }
  friend Interval trunc(const Interval& a) {
    return a.mapped(0, [](double v) { return Interval(std::trunc(v)); });
  }
  friend Interval atan2(const Interval& a, const Interval& b) {
    return at_points(a, b, function_ulps, [](double x, double y) { return std::atan2(x, y); });
  }
  friend Interval hypot(const Interval& a, const Interval& b) {
    return at_points(a, b, function_ulps, [](double x, double y) { return std::hypot(x, y); });
  }
  friend Interval remainder(const Interval& a, const Interval& b) {
    // fmod is exact; the sum after it rounds.
    return at_points(a, b, 0, [](double x, double y) {
      return reference::remainder(x, y) + (is_integral(context().compute) ? 0.0 : -0.0);
    });
  }
  friend Interval floor_divide(const Interval& a, const Interval& b) {
    // Of floats the quotient that is rounded down is itself rounded.
    const bool is_f32 = context().compute == DType::f32;
    const auto value = [](double x, double y) { return reference::floor_divide(x, y); };
    const Interval exact = at_points(a, b, 0, value);
    if (is_integral(context().compute)) return whole(exact);
    const bool is_small = exact.is_point() && std::abs(exact.low_) < (is_f32 ? 0x1p20 : 0x1p50);
    return is_small || !exact.is_point() ? exact : at_points(a, b, function_ulps, value);
  }
  /// Beside the greater term, off by units of what is added to it.
  friend Interval logaddexp(const Interval& a, const Interval& b) {
    return corners(a, b, [](double x, double y) {
      const double value = reference::logaddexp(x, y);
      if (!std::isfinite(value)) return Interval(value);
      const double unit = std::ldexp(1.0, context().compute == DType::f32 ? -23 : -52);
      const double added = value - std::max(x, y);
      const double error = unit * (std::abs(value) + 2 * function_ulps * added) + tiniest();
      return Interval(in_compute(value - error), in_compute(value + error));
    });
  }
  template <class F>
  friend Interval on_bits(const Interval& a, const Interval& b, F f) {
    if (a.magnitude_ > 0x1p53 || b.magnitude_ > 0x1p53) return anything();
    return whole(
        at_points(a, b, 0, [f](double x, double y) { return reference::on_bits(x, y, f); }));
  }
  friend Interval tanh(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::tanh(v)); },
                    {.least = -1, .most = 1});
  }
  friend Interval erf(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(std::erf(v)); },
                    {.least = -1, .most = 1});
  }
  friend Interval sigmoid(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(reference::sigmoid(v)); },
                    {.least = 0, .most = 1});
  }
  friend Interval normal_cdf(const Interval& a) {
    return a
        .mapped(function_ulps, [](double v) { return Interval(reference::normal_cdf(v)); },
                {.least = 0, .most = 1})
        .of_short_form(0, 1);
  }
  friend Interval silu(const Interval& a) {
    return a.dipping(reference::silu, -1.2784645427610738);
  }
  friend Interval gelu(const Interval& a) {
    return a.dipping(reference::gelu, -0.75179152770330635).of_short_form();
  }
  /// As a sum: near its root it is off by units of its terms.
  friend Interval gelu_slope(const Interval& a) {
    const Interval near = maximum(minimum(a, Interval(50)), Interval(-50));
    const Interval sum =
        normal_cdf(a) + near * (Interval(0.3989422804014327) * exp(a * a * Interval(-0.5)));
    const Interval wide = sum.of_short_form();
    return a.low_ == -INFINITY ? hull(wide, Interval(-0.0)) : wide;  // a limit from below
  }
  friend Interval pow(const Interval& a, const Interval& b) {
    const bool whole_numbers = is_integral(context().compute);
    if (whole_numbers && !(a.is_point() && b.is_point() && b.low_ >= 0)) return anything();
    if (!(a.is_point() && b.is_point()) && !(a.has_numbers() && a.low_ > 0 && !a.nan_ && !b.nan_))
      return anything();
    return corners(a, b, [&](double x, double y) {
      const double value = std::pow(x, y);
      if (whole_numbers || std::isnan(value) || y == 1 || y == 0 || x == 1 || x == 0 ||
          std::isinf(x))
        return whole(Interval(value));
      return widened(value, pow_ulps);
    });
  }
  friend Interval normal_quantile(const Interval& a) {
    return a.mapped(function_ulps, [](double v) { return Interval(random::normal_quantile(v)); });
  }
  friend Interval normal(const Interval& a) {
    return widened(random::normal_of_uniform(a.low_), function_ulps);
  }
  friend double value_of(const Interval& a) {
    if (!a.has_numbers()) return std::numeric_limits<double>::quiet_NaN();
    if (a.nan_ || a.low_ != a.high_) throw Uncertain();
    return a.low_;
  }

 private:
  struct Context {
    const Graph* graph = nullptr;
    DType compute = DType::f32;
    OpKind kind = OpKind::map;
    bool sums = false, multiplies = false;
    bool reduces = false;  // a contraction that sums
    bool flushes =
        false;  // one of bf16, whose instructions take subnormal numbers for 0 and give none
    bool reorders = false;  // one that may sum an operand, or multiply two of three, first
    bool takes_short_forms = false;
    bool spreads = false;  // an infinity or NaN to all elements
    int factors = 1;
  };
  static Context& context() {
    static thread_local Context now;
    return now;
  }

  static Interval only_nan() {
    Interval x;
    x.low_ = INFINITY;
    x.high_ = -INFINITY;
    x.nan_ = true;
    return x;
  }
  Interval with_nan(Interval x) const {
    if (!has_numbers()) return only_nan();
    x.nan_ |= nan_;
    return x;
  }
  /// Without what it remembers of the terms it is made of.
  Interval fresh() const { return has_numbers() ? with_nan(Interval(low_, high_)) : only_nan(); }
  /// A function of one number that is known, or anything.
  Interval at_point(double (*f)(double)) const {
    if (!is_point()) return has_numbers() ? anything() : only_nan();
    const double value = f(low_);
    return value == 0 ? Interval(value) : widened(value, function_ulps);
  }
  /// A function between -1 and 1 that goes on for ever.
  Interval wave(double (*f)(double)) const {
    if (is_point() || !has_numbers()) return at_point(f);
    Interval x(widened(-1, function_ulps).low_, widened(1, function_ulps).high_);
    x.nan_ = nan_ || std::isinf(low_) || std::isinf(high_);
    return x;
  }
  template <class F>
  static Interval at_points(const Interval& a, const Interval& b, int ulps, F&& f) {
    if (!a.has_numbers() || !b.has_numbers()) return anything();
    if (!a.is_point() || !b.is_point()) return anything();
    const double value = f(a.low_, b.low_);
    return ulps == 0 || value == 0 ? rounded(value, false) : widened(value, ulps);
  }
  /// What a function's short form may give besides, between these bounds.
  Interval of_short_form(double least = -INFINITY, double most = INFINITY) const {
    if (!context().takes_short_forms || !has_numbers()) return *this;
    const auto wide = [&](double value) {
      if (value == 0 || std::isinf(value)) return Interval(value);
      const Interval x = widened(value, short_form_ulps);
      return Interval(std::max(x.low_, least), std::min(x.high_, most));
    };
    return with_nan(hull(wide(low_), wide(high_)));
  }
  /// A function that falls up to `bottom` and rises from there.
  Interval dipping(double (*f)(double), double bottom) const {
    const auto values = [&](const Interval& x) {
      return x.mapped(function_ulps, [f](double v) { return Interval(f(v)); });
    };
    const Interval ends = values(*this);
    return has_numbers() && low_ < bottom && bottom < high_ ? hull(ends, values(Interval(bottom)))
                                                            : ends;
  }
  static Interval hull(const Interval& a, const Interval& b) {
    if (!a.has_numbers()) return a.has_numbers() == b.has_numbers() ? a : hull(b, a);
    Interval x = a;
    if (b.has_numbers())
      x = Interval(precedes(b.low_, a.low_) ? b.low_ : a.low_,
                   precedes(a.high_, b.high_) ? b.high_ : a.high_);
    x.nan_ = a.nan_ || b.nan_;
    return x;
  }

  /// The numbers of the other sign, which need not be of the type.
  static Interval turned(const Interval& a) {
    return a.with_nan(a.has_numbers() ? Interval(-a.high_, -a.low_) : only_nan());
  }

  // --- rounding ---

  static int lowest_bit(double x) {
    if (x == 0 || !std::isfinite(x)) return 2000;
    const auto bits = std::bit_cast<std::uint64_t>(x),
               fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    return exponent == 0 ? std::countr_zero(fraction) - 1074
                         : std::countr_zero(fraction | std::uint64_t{1} << 52) + exponent - 1075;
  }
  // Not inline: GCC 12 leaves out the conversion of what nextafter gives.
  [[gnu::noinline]] static double in_compute(double x) {
    return context().compute == DType::f32 ? static_cast<double>(convert<float>(x)) : x;
  }
  static double in_dtype(double x, DType dtype) {
    return visit(dtype,
                 [&]<class T>(std::type_identity<T>) { return convert<double>(convert<T>(x)); });
  }
  static double digits() { return context().compute == DType::f32 ? 24 : 53; }
  static double largest() {
    return finfo(context().compute == DType::f32 ? DType::f32 : DType::f64).max;
  }
  static double tiniest() {
    return finfo(context().compute == DType::f32 ? DType::f32 : DType::f64).smallest_subnormal;
  }
  /// Whole numbers beyond what doubles hold exactly are not followed: they may wrap.
  static Interval whole(Interval x) {
    const double least = context().compute == DType::u64 ? 0 : -0x1p53;
    if (is_integral(context().compute) && x.has_numbers() &&
        !(x.low_ >= least && x.high_ <= 0x1p53))
      return anything();
    // Whole numbers have one zero.
    if (is_integral(context().compute)) return Interval(x.low_ + 0.0, x.high_ + 0.0);
    return x;
  }
  /// The rounded value of a step; `inexact` if the double is not yet it.
  static Interval rounded(double value, bool inexact) {
    if (is_integral(context().compute)) return whole(Interval(value));
    if (context().compute != DType::f32 || !inexact || !std::isfinite(value))
      return Interval(in_compute(value));
    return {in_compute(std::nextafter(value, -INFINITY)),
            in_compute(std::nextafter(value, INFINITY))};
  }
  static double sum_error(double x, double y, double sum) {
    if (!std::isfinite(sum)) return 0;
    const double part = sum - x;
    return (x - (sum - part)) + (y - part);
  }
  /// A product that may be rounded or not.
  static Interval product(double x, double y) {
    const double value = x * y;
    if (is_integral(context().compute)) return whole(Interval(value));
    const double error = std::isfinite(value) ? std::fma(x, y, -value) : 0;
    Interval exact(value);
    if (error != 0 || (value == 0 && x != 0 && y != 0)) {
      exact = Interval(std::nextafter(value, -INFINITY), std::nextafter(value, INFINITY));
      if (std::abs(value) <= tiniest()) exact = hull(exact, Interval(std::copysign(0.0, value)));
    }
    if (context().kind == OpKind::contract) return exact;
    return hull(exact, hull(Interval(in_compute(exact.low_)), Interval(in_compute(exact.high_))));
  }
  static Interval widened(double value, int ulps) {
    if (!std::isfinite(value)) return Interval(value);
    const double unit = std::max(
        std::ldexp(std::abs(value), context().compute == DType::f32 ? -23 : -52), tiniest());
    return {in_compute(value - ulps * unit), in_compute(value + ulps * unit)};
  }

  // --- steps ---

  /// Of a function of two numbers that is monotone in each.
  template <class F>
  static Interval corners(const Interval& a, const Interval& b, F&& f) {
    const bool nan = a.nan_ || b.nan_;
    if (!a.has_numbers() || !b.has_numbers()) return only_nan();
    Interval x = f(a.low_, b.low_);
    const auto is_one = [](const Interval& v) {
      return v.low_ == v.high_ && std::signbit(v.low_) == std::signbit(v.high_);
    };
    if (!(is_one(a) && is_one(b))) {
      const Interval others[] = {f(a.low_, b.high_), f(a.high_, b.low_), f(a.high_, b.high_)};
      bool is_lost = !x.has_numbers();
      for (const Interval& other : others) {
        is_lost |= !other.has_numbers();
        x = hull(x, other);
      }
      // Infinities of both signs, or 0 and an infinity, met at a corner; what lies between may be
      // any number.
      if (is_lost) x = anything();
    }
    x.nan_ |= nan;
    return x;
  }
  /// Of an increasing function (or a decreasing one) with an error of so many units in the last
  /// place, where it is not exact.
  template <class F>
  Interval mapped(int ulps, F&& f, Bounds bounds = {}) const {
    if (!has_numbers() || high_ < bounds.from || low_ > bounds.to) return only_nan();
    const auto at = [&](double v) {
      const Interval x = f(v);
      if (!x.has_numbers() || ulps == 0 || std::isinf(x.low_)) return x;
      if (v == 0 || std::isinf(v)) return Interval(in_compute(x.low_), in_compute(x.high_));
      const Interval wide = widened(x.low_, ulps);
      return Interval(std::max(wide.low_, bounds.least), std::min(wide.high_, bounds.most));
    };
    if (low_ == high_ && std::signbit(low_) == std::signbit(high_)) return with_nan(at(low_));
    // What it is at the edge, a pole perhaps, is among the values of an argument that may lie on
    // either side.
    Interval x = hull(at(low_ < bounds.from ? bounds.from : low_),
                      at(high_ > bounds.to ? bounds.to : high_));
    x.nan_ |= nan_ || low_ < bounds.from || high_ > bounds.to;
    return x;
  }
  static Interval truth(bool may_hold, bool may_fail, const Interval& a, const Interval& b) {
    if (!a.has_numbers() || !b.has_numbers()) return {0, 0};
    may_fail |= a.nan_ || b.nan_;
    return {may_fail ? 0.0 : 1.0, may_hold ? 1.0 : 0.0};
  }
  /// The least; of zeros of either sign, any.
  static Interval chosen(const Interval& a, const Interval& b, int) {
    if (!a.has_numbers() || !b.has_numbers()) return only_nan();
    Interval x(precedes(b.low_, a.low_) ? b.low_ : a.low_,
               precedes(b.high_, a.high_) ? b.high_ : a.high_);
    const auto has_zero = [](const Interval& v, bool negative) {
      return v.contains(negative ? -0.0 : 0.0);
    };
    if (x.low_ == 0 || x.high_ == 0) {
      const bool ties =
          (has_zero(a, true) && has_zero(b, false)) || (has_zero(a, false) && has_zero(b, true));
      if (ties) x = Interval(x.low_ == 0 ? -0.0 : x.low_, x.high_ == 0 ? 0.0 : x.high_);
    }
    x.nan_ = a.nan_ || b.nan_;
    return whole(x);
  }
  /// With 0 for what is subnormal in it.
  Interval flushed() const {
    Interval x = *this;
    if (has_numbers() && high_ > 0 && low_ < 0x1p-126) x = hull(x, Interval(0.0));
    if (has_numbers() && low_ < 0 && high_ > -0x1p-126) x = hull(x, Interval(-0.0));
    return x;
  }
  /// Whether it, or a product of it, may be infinite or NaN.
  bool may_overflow() const {
    return nan_ || !std::isfinite(low_) || !std::isfinite(high_) || magnitude_ > 0x1p30;
  }
  bool is_wild() const { return may_overflow() || (magnitude_ != 0 && magnitude_ < 0x1p-30); }
  bool straddles_zero_beside_infinity(const Interval& b) const {
    const bool zero = has_numbers() && low_ <= 0 && high_ >= 0 && !is_point();
    return zero && b.has_numbers() && (std::isinf(b.low_) || std::isinf(b.high_));
  }

  // --- sums and products of many ---

  static Interval summed(const Interval& a, const Interval& b) {
    if (!a.has_numbers() || !b.has_numbers()) return only_nan();
    if (is_integral(context().compute)) {
      const Interval x = whole(a), y = whole(b);
      return whole(Interval(x.low_ + y.low_, x.high_ + y.high_));
    }
    const double low = a.low_ + b.low_, high = a.high_ + b.high_;
    // Infinities of both signs are not to meet in the middle either.
    const bool is_plain = std::isfinite(low) && std::isfinite(high);
    Interval x = is_plain ? Interval(low, high)
                          : corners(a, b, [](double v, double w) { return Interval(v + w); });
    x.nan_ |= a.nan_ || b.nan_;
    x.terms_ = a.terms_ + b.terms_;
    x.magnitude_ = (std::isfinite(a.magnitude_) ? a.magnitude_ : 0) +
                   (std::isfinite(b.magnitude_) ? b.magnitude_ : 0);
    x.granule_ = std::min(a.granule_, b.granule_);
    return x;
  }
  /// With the error of the combination of all terms.
  Interval combined() const {
    if (!has_numbers()) return only_nan();
    if (is_integral(context().compute)) return whole(fresh());
    const bool is_sum = context().sums;
    const double finite = std::isfinite(magnitude_) ? magnitude_ : 0;
    if (finite > largest() / 2 ||
        (!is_sum && (magnitude_ > largest() / 2 || smallest_ < finfo(context().compute).tiny))) {
      // A single term is as it is.
      if (terms_ > 1 || context().factors > 1) return anything();
    }
    if (low_ == high_ && std::isinf(low_)) return fresh();
    // A part below this is lost.
    const double least = context().flushes ? 0x1p-126 : tiniest();
    if (low_ == high_ && !nan_) {
      const bool is_exact =
          is_sum ? finite <= std::ldexp(1.0, static_cast<int>(digits()) + granule_) &&
                       granule_ >= std::ilogb(least)
                 : in_compute(low_) == low_;
      if (is_exact && in_compute(low_) == low_) return fresh();
    }
    if (terms_ == 1 && context().factors <= 2) {
      const Interval x = with_nan(hull(Interval(in_compute(low_)), Interval(in_compute(high_))));
      return context().flushes ? x.flushed() : x;
    }
    const double unit = std::ldexp(1.0, 1 - static_cast<int>(digits()));
    const double largest_value = is_sum ? finite : std::max(std::abs(low_), std::abs(high_));
    const double error = (terms_ + context().factors) * (unit * largest_value + least);
    Interval x(in_compute(low_ - error), in_compute(high_ + error));
    return with_nan(x);
  }

  /// The numbers of an integer dtype. Some limits of 64 bits are rounded up.
  static Interval limits(DType dtype) {
    return visit(dtype, []<class T>(std::type_identity<T>) {
      return Interval(convert<double>(std::numeric_limits<T>::min()),
                      convert<double>(std::numeric_limits<T>::max()));
    });
  }
  Interval stored_whole(DType dtype) const {
    if (dtype == DType::boolean) return is_nonzero(*this);
    const Interval all = limits(dtype);
    const double least = all.low_, most = all.high_;
    if (is_integral(context().compute)) {
      if (std::max(std::abs(low_), std::abs(high_)) > 0x1p53) return all;
      if (low_ >= least && high_ <= most) return fresh();
      if (low_ != high_) return all;
      const double wrapped = in_integer(static_cast<std::int64_t>(low_), dtype);
      return std::abs(wrapped) > 0x1p53 ? all : Interval(wrapped);
    }
    if (!has_numbers()) return Interval(0.0);
    const auto whole_number = [&](double v) {
      return std::clamp(std::trunc(v), least, most) + 0.0;
    };
    const Interval x(whole_number(low_), whole_number(high_));
    return nan_ ? hull(x, Interval(0.0)) : x;
  }
  static double in_integer(std::int64_t x, DType dtype) {
    return visit(dtype,
                 [&]<class T>(std::type_identity<T>) { return convert<double>(convert<T>(x)); });
  }

  double low_ = 0, high_ = 0;  // -0 before 0
  bool nan_ = false;
  // Of a combination of many:
  double terms_ = 1;
  double magnitude_ = 0;        // Σ|term|, or the product of those above 1
  double smallest_ = INFINITY;  // the product of those below 1
  int granule_ =
      2000;  // every term is a multiple of this power of two; -5000: none is known exactly
};

}  // namespace ein::attack
