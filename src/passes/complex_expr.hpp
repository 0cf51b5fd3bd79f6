// The vocabulary of scalar expressions on complex numbers, each two real ones.
#pragma once

#include <functional>
#include <optional>

#include <ein/dtype.hpp>
#include <ein/scalar_expr.hpp>

namespace ein {

/// A complex number as its parts; a real one has no imaginary part.
struct ComplexEx {
  Ex real;
  std::optional<Ex> imag{};
};

/// Whether a number differs from 0: 0 or 1.
Ex is_true(const ComplexEx& z);

/// The type in which an expression on complex numbers is computed whose parts are of `type`: f64
/// where one of its functions wants that.
DType complex_compute_type(const ScalarExpr& expr, DType type);

/// The value of `expr`, whose input i is `input(i)`, with its first and second derivatives; parts
/// and constants are of `type`. `refuse` is called, and must throw, for an operation that complex
/// numbers lack. Branch cuts are those of C99 and NumPy.
ComplexEx complex_value(const ScalarExpr& expr, DType type,
                        const std::function<ComplexEx(int)>& input,
                        const std::function<void(ScalarOp)>& refuse);

}  // namespace ein
