// Formulas of real numbers that share their steps, and pairs of them that are complex numbers.
#pragma once

#include <optional>

#include <ein/scalar_expr.hpp>

namespace ein {

/// The steps of formulas, each once. An Ex has its steps to itself, so that a formula of hundreds
/// of them takes long to build.
class Formula {
 public:
  /// Where the step is, or is now.
  int add(const ScalarStep& step);
  /// Where the value of `expr` is; its constants rounded to f32 if `rounds`.
  int add(const ScalarExpr& expr, bool rounds = false);
  Ex value(int at) const;
  const ScalarStep& step(int at) const { return steps_.steps[static_cast<std::size_t>(at)]; }

 private:
  ScalarExpr steps_;
};

/// A real number: a step of a formula.
struct Real {
  Formula* formula = nullptr;
  int at = -1;

  Real number(double value) const { return {formula, formula->add(Ex(value).expr())}; }
};

/// A complex number as its parts; a real one has no imaginary part.
struct Complex {
  Real real;
  std::optional<Real> imag{};
};

inline Real apply(ScalarOp op, Real a) {
  return {a.formula, a.formula->add({.op = op, .args = {a.at, -1, -1}})};
}
inline Real apply(ScalarOp op, Real a, Real b) {
  return {a.formula, a.formula->add({.op = op, .args = {a.at, b.at, -1}})};
}
/// `a` where `condition` is not 0, else `b`.
inline Real where(Real condition, Real a, Real b) {
  return {a.formula, a.formula->add({.op = ScalarOp::where, .args = {condition.at, a.at, b.at}})};
}
inline Real where(Real condition, Real a, double b) { return where(condition, a, a.number(b)); }
inline Real where(Real condition, double a, Real b) { return where(condition, b.number(a), b); }
inline Real where(Real condition, double a, double b) {
  return where(condition, condition.number(a), condition.number(b));
}

#define EIN_OPERATOR(sign, op)                                                    \
  inline Real operator sign(Real a, Real b) { return apply(ScalarOp::op, a, b); } \
  inline Real operator sign(Real a, double b) { return a sign a.number(b); }      \
  inline Real operator sign(double a, Real b) { return b.number(a) sign b; }
EIN_OPERATOR(+, add)
EIN_OPERATOR(-, sub)
EIN_OPERATOR(*, mul)
EIN_OPERATOR(/, div)
EIN_OPERATOR(<, lt)
EIN_OPERATOR(<=, le)
EIN_OPERATOR(>, gt)
EIN_OPERATOR(>=, ge)
EIN_OPERATOR(==, eq)
EIN_OPERATOR(!=, ne)
#undef EIN_OPERATOR
inline Real operator-(Real a) { return apply(ScalarOp::neg, a); }
inline Real both(Real a, Real b) { return apply(ScalarOp::logical_and, a, b); }
inline Real either(Real a, Real b) { return apply(ScalarOp::logical_or, a, b); }
inline Real abs(Real a) { return apply(ScalarOp::abs, a); }
inline Real larger(Real a, Real b) { return apply(ScalarOp::max, a, b); }
inline Real square(Real a) { return a * a; }

inline Real imag_of(const Complex& z) { return z.imag ? *z.imag : z.real.number(0.0); }
inline Complex operator-(const Complex& z) {
  Complex value{-z.real};
  if (z.imag) value.imag = -*z.imag;
  return value;
}
inline Complex operator+(const Complex& z, const Complex& w) {
  Complex sum{z.real + w.real};
  if (z.imag && w.imag)
    sum.imag = *z.imag + *w.imag;
  else if (z.imag || w.imag)
    sum.imag = z.imag ? z.imag : w.imag;
  return sum;
}
inline Complex operator-(const Complex& z, const Complex& w) {
  Complex difference{z.real - w.real};
  if (z.imag && w.imag)
    difference.imag = *z.imag - *w.imag;
  else if (z.imag || w.imag)
    difference.imag = z.imag ? *z.imag : -*w.imag;
  return difference;
}
inline Complex operator*(const Complex& z, const Complex& w) {
  if (!z.imag) {
    Complex product{z.real * w.real};
    if (w.imag) product.imag = z.real * *w.imag;
    return product;
  }
  if (!w.imag) return w * z;
  return {z.real * w.real - *z.imag * *w.imag, z.real * *w.imag + *z.imag * w.real};
}
inline Complex operator*(const Complex& z, double factor) {
  return z * Complex{z.real.number(factor)};
}
inline Complex times_i(const Complex& z) { return {-imag_of(z), z.real}; }
inline Complex minus_times_i(const Complex& z) { return {imag_of(z), -z.real}; }
inline Complex where(Real condition, const Complex& z, const Complex& w) {
  Complex value{where(condition, z.real, w.real)};
  if (z.imag || w.imag) value.imag = where(condition, imag_of(z), imag_of(w));
  return value;
}
/// Whether a number differs from 0.
inline Real is_true(const Complex& z) {
  const Real real = z.real != 0.0;
  return z.imag ? either(real, *z.imag != 0.0) : real;
}

}  // namespace ein
