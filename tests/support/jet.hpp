// Jet: a number and its derivatives along three directions, to the third order, as a number of the
// reference interpreter: a true derivative of what a graph computes, by no rule of ein's.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include <ein/graph.hpp>
#include "oracle/interpret.hpp"
#include "support/reference_functions.hpp"

namespace ein::test {

/// Σ over subsets m of {1, 2, 3} of c[m] · Π t_i for i in m, with t_i² = 0: of x + t_1 u + t_2 v +
/// t_3 w, c[7] is the third derivative along u, v and w, c[5] the second along u and w.
///
/// Slopes of functions of one number come from differences of their values in extended precision;
/// at the ends of their domains they are NaN. The angle of (0, 0) has none. Equal elements share
/// the slope of a maximum, but in scans, where the last has it.
class Jet {
 public:
  static constexpr std::size_t count = 8;
  using Real = long double;

  Jet() = default;
  explicit Jet(double value) { c_[0] = value; }
  Real operator[](std::size_t m) const { return c_[m]; }
  Real& operator[](std::size_t m) { return c_[m]; }

  /// Whether a slope on the way was infinite or NaN since this was last set to false: a gradient
  /// may be NaN then, though nothing goes there.
  static bool& met_pole() {
    static thread_local bool met = false;
    return met;
  }

  static void begin(const Op& op) { context() = {op.kind == OpKind::scan, op.marks.detached}; }
  Jet stored(DType dtype) const {
    if (context().detaches) return Jet(value_of(*this));
    if (is_floating(dtype)) {
      Jet x = *this;
      x.ties_ = 1;
      return x;
    }
    return Jet(static_cast<double>(dtype == DType::boolean ? Real(c_[0] != 0) : std::trunc(c_[0])));
  }

  friend Jet operator+(const Jet& a, const Jet& b) {
    return each(a, b, [](Real x, Real y) { return x + y; });
  }
  friend Jet operator-(const Jet& a, const Jet& b) {
    return each(a, b, [](Real x, Real y) { return x - y; });
  }
  friend Jet operator*(const Jet& a, const Jet& b) {
    Jet x;
    for (std::size_t m = 0; m < count; ++m) {
      for (std::size_t part = m;; part = (part - 1) & m) {
        // A slope that is 0 stays so beside an infinite value, as constants have it.
        const Real u = a.c_[part], v = b.c_[m ^ part];
        if (m == 0 || (u != 0 && v != 0)) x.c_[m] += u * v;
        if (part == 0) break;
      }
    }
    return x.rounded();
  }
  friend Jet operator/(const Jet& a, const Jet& b) {
    const Real r = 1 / b.c_[0];
    Jet x = a * b.with_slopes(r, -r * r, 2 * r * r * r, -6 * r * r * r * r);
    x.c_[0] = a.c_[0] / b.c_[0];
    return x.rounded();
  }
  friend Jet negated(const Jet& a) {
    return each(a, a, [](Real x, Real) { return -x; });
  }
  friend Jet abs(const Jet& a) { return a.c_[0] > 0 ? a : a.c_[0] < 0 ? negated(a) : Jet(0.0); }

#define EIN_COMPARISON(op) \
  friend Jet operator op(const Jet& a, const Jet& b) { return Jet(a.c_[0] op b.c_[0] ? 1.0 : 0.0); }
  EIN_COMPARISON(<)
  EIN_COMPARISON(<=)
  EIN_COMPARISON(>)
  EIN_COMPARISON(>=)
  EIN_COMPARISON(==)
  EIN_COMPARISON(!=)
#undef EIN_COMPARISON
  friend Jet select(const Jet& test, const Jet& a, const Jet& b) { return test.c_[0] != 0 ? a : b; }
  friend Jet both(const Jet& a, const Jet& b) {
    return Jet(a.c_[0] != 0 && b.c_[0] != 0 ? 1.0 : 0.0);
  }
  friend Jet either(const Jet& a, const Jet& b) {
    return Jet(a.c_[0] != 0 || b.c_[0] != 0 ? 1.0 : 0.0);
  }
  friend Jet is_zero(const Jet& a) { return Jet(a.c_[0] == 0 ? 1.0 : 0.0); }
  friend Jet is_nonzero(const Jet& a) { return Jet(a.c_[0] != 0 ? 1.0 : 0.0); }
  friend double value_of(const Jet& a) { return static_cast<double>(a.c_[0]); }
  friend Jet maximum(const Jet& a, const Jet& b) { return chosen(a, b, a.c_[0] > b.c_[0]); }
  friend Jet minimum(const Jet& a, const Jet& b) { return chosen(a, b, a.c_[0] < b.c_[0]); }
  template <class F>
  friend Jet on_bits(const Jet& a, const Jet& b, F f) {
    return Jet(reference::on_bits(value_of(a), value_of(b), f));
  }
  friend Jet normal(const Jet& uniform) { return Jet(reference::normal(value_of(uniform))); }

#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  friend Jet name(const Jet& a) { return a.through(ScalarOp::name); }
#define EIN_ROUNDING(name, exact, host, adjoint, cuda) \
  friend Jet name(const Jet& a) { return Jet(reference::name(value_of(a))); }
#define EIN_CONVERSION(name, reference, host, adjoint, cuda) \
  friend Jet name(const Jet& a) { return a; }
#include <ein/detail/scalar_functions.hpp>

  friend Jet pow(const Jet& a, const Jet& b) {
    if (!b.is_constant()) return positive_pow(a, b);
    met_pole() |= a.c_[0] <= 0;  // where an exponent has no slope
    const Real n = b.c_[0];
    Real slopes[4], factor = 1;  // n (n - 1) … a^(n - k)
    for (int k = 0; k < 4; ++k) {
      slopes[k] = factor == 0 ? 0 : factor * std::pow(a.c_[0], n - static_cast<Real>(k));
      factor *= n - static_cast<Real>(k);
    }
    return a.with_slopes(slopes[0], slopes[1], slopes[2], slopes[3]);
  }
  friend Jet hypot(const Jet& a, const Jet& b) {
    met_pole() |= a.c_[0] == 0 && b.c_[0] == 0;
    return sqrt(a * a + b * b);
  }
  /// The angle from the point's own direction, at which the inverse tangent is 0, and that one's.
  friend Jet atan2(const Jet& y, const Jet& x) {
    if (y.c_[0] == 0 && x.c_[0] == 0) return Jet(std::atan2(value_of(y), value_of(x)));
    Jet x0, y0;
    x0.c_[0] = x.c_[0];
    y0.c_[0] = y.c_[0];
    Jet angle = atan((y * x0 - x * y0) / (x * x0 + y * y0));
    angle.c_[0] = std::atan2(y.c_[0], x.c_[0]);
    return angle;
  }
  friend Jet remainder(const Jet& a, const Jet& b) {
    Jet x = a - floor_divide(a, b) * b;
    x.c_[0] = reference::remainder(value_of(a), value_of(b));
    return x;
  }
  friend Jet floor_divide(const Jet& a, const Jet& b) {
    return Jet(reference::floor_divide(value_of(a), value_of(b)));
  }
  friend Jet logaddexp(const Jet& a, const Jet& b) {
    return b + (a - b).through(
                   [](Real x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))); });
  }

 private:
  /// Of the operation at hand.
  struct Context {
    bool scans = false, detaches = false;
  };
  static Context& context() {
    static thread_local Context now;
    return now;
  }
  /// With the value that f64 has, so that choices are the same.
  Jet rounded() const {
    Jet x = *this;
    x.c_[0] = static_cast<double>(c_[0]);
    met_pole() |= !std::isfinite(c_[4]) || !std::isfinite(c_[0]);
    return x;
  }
  bool is_constant() const {
    for (std::size_t m = 1; m < count; ++m) {
      if (c_[m] != 0) return false;
    }
    return true;
  }
  template <class F>
  static Jet each(const Jet& a, const Jet& b, F f) {
    Jet x;
    for (std::size_t m = 0; m < count; ++m) x.c_[m] = f(a.c_[m], b.c_[m]);
    return x.rounded();
  }
  static Jet chosen(const Jet& a, const Jet& b, bool is_a) {
    if (std::isnan(a.c_[0]) || std::isnan(b.c_[0])) return a + b;
    if (a.c_[0] != b.c_[0]) return is_a ? a : b;
    if (context().scans) return b;
    const Real all = a.ties_ + b.ties_;
    Jet x = each(a, b, [&](Real u, Real v) { return (u * a.ties_ + v * b.ties_) / all; });
    x.c_[0] = b.c_[0];
    x.ties_ = all;
    return x;
  }
  /// Of a positive base. Where that is 0 the exponent has no slope, but one of the slope.
  static Jet positive_pow(const Jet& a, const Jet& b) {
    Jet x = exp(b * log(a));
    x.c_[0] = static_cast<double>(std::pow(a.c_[0], b.c_[0]));
    return x;
  }

  /// f of this, by the value and the first three derivatives of f.
  Jet with_slopes(Real value, Real first, Real second, Real third) const {
    Jet d = *this;
    d.c_[0] = 0;
    const Jet squared = d * d, cubed = squared * d;
    Jet x;
    for (std::size_t m = 1; m < count && !is_constant(); ++m)
      x.c_[m] = first * d.c_[m] + second / 2 * squared.c_[m] + third / 6 * cubed.c_[m];
    x.c_[0] = value;
    met_pole() |= !std::isfinite(first);
    return x.rounded();
  }
  using Slopes = std::array<Real, 3>;
  /// By differences of nine values h apart, whose error is of order h⁸, and of the third h⁶.
  template <class F>
  static Slopes slopes_of(F f, Real x, Real h) {
    Real at[9];
    for (int k = -4; k <= 4; ++k) at[k + 4] = f(x + static_cast<Real>(k) * h);
    const auto odd = [&](int k) { return at[4 + k] - at[4 - k]; };
    const auto even = [&](int k) { return at[4 + k] + at[4 - k]; };
    return {
        (4 * odd(1) / 5 - odd(2) / 5 + 4 * odd(3) / 105 - odd(4) / 280) / h,
        (-205 * at[4] / 72 + 8 * even(1) / 5 - even(2) / 5 + 8 * even(3) / 315 - even(4) / 560) /
            (h * h),
        (-61 * odd(1) / 30 + 169 * odd(2) / 120 - 3 * odd(3) / 10 + 7 * odd(4) / 240) /
            (h * h * h)};
  }
  /// NaN where larger and smaller differences tell other slopes: near a pole.
  template <class F>
  Jet through(F f) const {
    const Real x = c_[0];
    if (std::isinf(x)) return with_slopes(f(x), 0, 0, 0);
    // A function that ends at 0 is as steep there as its argument is small.
    const Real h = (std::isfinite(f(-x)) ? Real(1) : std::abs(x)) / 256;
    const Slopes wide = slopes_of(f, x, 2 * h), narrow = slopes_of(f, x, h);
    bool agree = true;
    for (std::size_t k = 0; k < 3; ++k)
      agree &= std::abs(wide[k] - narrow[k]) <= 1e-5L * (std::abs(narrow[k]) + std::abs(f(x)));
    if (!agree) return with_slopes(f(x), NAN, NAN, NAN);
    return with_slopes(f(x), narrow[0], narrow[1], narrow[2]);
  }
  Jet through(ScalarOp op) const {
    for (const Function& function : functions()) {
      if (function.op == op) return through(function.wider);
    }
    throw std::logic_error("jet: a function without values in extended precision");
  }

  std::array<Real, count> c_{};
  Real ties_ = 1;  // elements that are equal to this maximum
};

}  // namespace ein::test

#include "support/jet_matrices.hpp"  // which the interpreter of jets finds
