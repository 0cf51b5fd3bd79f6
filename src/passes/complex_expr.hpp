// The vocabulary of scalar expressions on complex numbers, each two real ones.
#pragma once

#include <functional>
#include <optional>

#include <ein/scalar_expr.hpp>

namespace ein {

/// A complex number as its parts; a real one has no imaginary part.
struct ComplexEx {
  Ex real;
  std::optional<Ex> imag{};
};

/// Whether a number differs from 0: 0 or 1.
Ex is_true(const ComplexEx& z);

/// The value of `expr`, whose input i is `input(i)`. `refuse` is called, and must throw, for an
/// operation that complex numbers lack. Branch cuts are those of C99 and NumPy.
ComplexEx complex_value(const ScalarExpr& expr, const std::function<ComplexEx(int)>& input,
                        const std::function<void(ScalarOp)>& refuse);

}  // namespace ein
