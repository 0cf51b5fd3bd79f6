// What a graph can do with matrices as a whole: one row for each function.
#pragma once

#include <ein/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ein {

/// A function of each n × m matrix of its first operand. Where the result has parts, they follow
/// each other along one packed dimension, each in row-major order; r is min(n, m).
#define EIN_FOR_EACH_MATRIX_FUNCTION(X)                                                      \
  /* name, operands, is square, is packed */                                                 \
  X(inverse, 1, true, false)  /* m × n */                                                   \
  X(det, 1, true, false)      /* a number */                                                 \
  X(cholesky, 1, true, false) /* n × n, lower; reads the lower triangle */                  \
  X(solve, 2, true, false)    /* the second operand: n, and axes of its own; m, and these */ \
  X(lstsq, 2, false, false)   /* the same */                                                 \
  X(qr, 1, false, true)       /* Q, n × r, and R, r × m, with a diagonal >= 0 */           \
  X(svd, 1, false, true)      /* U, n × r; r values, the greatest first; Vᵀ, r × m */    \
  X(eigh, 1, true, true)      /* n values, the least first; n × n, a vector in each column */

enum class MatrixFunction : std::uint8_t {
#define EIN_ENUMERATOR(name, operands, is_square, is_packed) name,
  EIN_FOR_EACH_MATRIX_FUNCTION(EIN_ENUMERATOR)
#undef EIN_ENUMERATOR
};

struct MatrixFunctionInfo {
  std::string_view name;
  std::size_t operands;
  bool is_square, is_packed;
};
inline constexpr MatrixFunctionInfo matrix_functions[] = {
#define EIN_ROW(name, operands, is_square, is_packed) {#name, operands, is_square, is_packed},
    EIN_FOR_EACH_MATRIX_FUNCTION(EIN_ROW)
#undef EIN_ROW
};
constexpr const MatrixFunctionInfo& info(MatrixFunction function) {
  return matrix_functions[static_cast<std::size_t>(function)];
}
constexpr std::string_view name(MatrixFunction function) { return info(function).name; }

/// What an axis is to a function of matrices.
enum class MatrixAxis : std::uint8_t {
  batch,    ///< there is a matrix for each index
  rows,     ///< of the first operand
  columns,  ///< of the first operand
  right,    ///< only the second operand has it, and the result
  packed,   ///< the parts of the result
};

}  // namespace ein
