// Functions of complex numbers as formulas of their parts, with derivatives of their own.
#pragma once

#include <cstdint>
#include <optional>

#include <ein/dtype.hpp>
#include "passes/formula.hpp"

namespace ein {

/// The type in which `op` of complex numbers is computed whose parts are of `type`: f64 for some
/// functions of c64, which are rounded once so.
DType type_of_function(ScalarOp op, DType type);

/// Functions as formulas in `type`, f32 or f64. Errors are of a few units in the last place of the
/// larger part. Branch cuts are those of C99 and NumPy. The derivative of a value is that of the
/// function, not of its formula, `order` times over.
class ComplexFunctions {
 public:
  ComplexFunctions(DType type, int order) : type_(type), order_(order) {}

  /// None where there is no such function of complex numbers.
  std::optional<Complex> of(ScalarOp op, const Complex& z) const;
  std::optional<Complex> of(ScalarOp op, const Complex& z, const Complex& w) const;

 private:
  struct Range;
  const Range& range() const;
  /// The derivatives of this one's.
  ComplexFunctions next() const { return {type_, order_ - 1}; }
  template <class Slope>
  Complex with_slope(const Complex& value, const Complex& z, Slope slope) const;

  /// How a quotient takes |w|²: a sum of squares as it comes, or rounded once.
  enum class Norm : std::uint8_t { plain, exact };
  Real square_of_size(const Complex& w) const;
  Complex square_of(const Complex& w) const;
  Complex quotient(const Complex& z, const Complex& w, Norm norm_of = Norm::plain) const;
  Complex quotient_by_square(const Complex& z, const Complex& w) const;
  Complex reciprocal(const Complex& z) const;
  Complex modulus(const Complex& z) const;
  Complex direction(const Complex& z) const;
  Real log_modulus(const Complex& z) const;
  Complex exp_of(const Complex& z, double factor) const;
  Complex exp(const Complex& z) const;
  Complex exp2(const Complex& z) const;
  Complex expm1(const Complex& z) const;
  Complex log(const Complex& z) const;
  Complex log1p(const Complex& z) const;
  Complex sqrt(const Complex& z) const;
  Complex rsqrt(const Complex& z) const;
  Complex rsqrt_slope(const Complex& z) const;
  Complex sinh(const Complex& z) const;
  Complex cosh(const Complex& z) const;
  Complex tanh(const Complex& z) const;
  Complex damped(const Complex& value, const Complex& factor, Real root, Real rest) const;
  Complex over_square_of_cosh(Real a, Real b, const Complex& factor) const;
  Complex tanh_slope(const Complex& z) const;
  struct Arcs;
  Arcs arcs(const Complex& z) const;
  Complex asin(const Complex& z) const;
  Complex acos(const Complex& z) const;
  Complex asin_slope(const Complex& z) const;
  Complex atan(const Complex& z) const;
  Complex atan_slope(const Complex& z) const;
  Complex gated(const Complex& z, const Complex& factor) const;
  Complex sigmoid(const Complex& z) const;
  Complex sigmoid_slope(const Complex& z) const;
  Complex silu(const Complex& z) const;
  Complex whole_power(const Complex& z, int n) const;
  Complex power(const Complex& z, const Complex& w) const;

  DType type_;
  int order_;
};

}  // namespace ein
