// Functions of one matrix: the sizes and the order of their operands and results, what they cost,
// and how they fail. What computes them: decompose.hpp, and reference.hpp in plain loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <ein/detail/matrix_function.hpp>
#include <ein/error.hpp>

namespace ein::linalg {

/// The first operand is rows × columns, the second rows × right.
struct MatrixSizes {
  std::int64_t rows = 0, columns = 0, right = 0;
  std::int64_t rank() const { return std::min(rows, columns); }
};

/// The axes of a result, row-major; `batch` stands for none.
struct ResultAxes {
  MatrixAxis outer = MatrixAxis::batch, inner = MatrixAxis::batch;
};
constexpr ResultAxes result_axes(MatrixFunction function) {
  using enum MatrixAxis;
  switch (function) {
    case MatrixFunction::inverse:
      return {columns, rows};
    case MatrixFunction::det:
      return {};
    case MatrixFunction::cholesky:
      return {rows, columns};
    case MatrixFunction::solve:
    case MatrixFunction::lstsq:
      return {columns, right};
    case MatrixFunction::qr:
    case MatrixFunction::svd:
    case MatrixFunction::eigh:
      return {batch, packed};
  }
  return {};
}

/// The number of elements along an axis of the result.
inline std::int64_t size_along(MatrixFunction function, const MatrixSizes& of, MatrixAxis axis) {
  const std::int64_t n = of.rows, m = of.columns, r = of.rank();
  switch (axis) {
    case MatrixAxis::batch:
      return 1;
    case MatrixAxis::rows:
      return n;
    case MatrixAxis::columns:
      return m;
    case MatrixAxis::right:
      return of.right;
    case MatrixAxis::packed:
      return function == MatrixFunction::qr    ? n * r + r * m
             : function == MatrixFunction::svd ? n * r + r + r * m
                                               : n + n * n;
  }
  return 0;
}
inline std::int64_t result_size(MatrixFunction function, const MatrixSizes& of) {
  const auto [outer, inner] = result_axes(function);
  return size_along(function, of, outer) * size_along(function, of, inner);
}

/// About how many floating-point operations a function of one matrix takes, by the highest terms of
/// Golub, Van Loan, Matrix Computations, 4th edition: LU 3.2.6, triangular systems 3.1.4, Cholesky
/// 4.2.5, Householder QR and thin Q 5.2.2 and 5.1.6, least squares 5.3.3, symmetric eigenproblem
/// 8.3.3, thin SVD 8.6.4 (the cheaper of Golub-Reinsch and R-SVD).
inline double estimated_flops(MatrixFunction function, double rows, double columns, double right) {
  const double tall = std::max(rows, columns), n = std::min(rows, columns), cube = n * n * n;
  switch (function) {
    case MatrixFunction::inverse:
      return 2 * cube;
    case MatrixFunction::det:
      return 2 * cube / 3;
    case MatrixFunction::cholesky:
      return cube / 3;
    case MatrixFunction::solve:
      return 2 * cube / 3 + 2 * n * n * right;
    case MatrixFunction::lstsq:
      return 2 * tall * n * n - 2 * cube / 3 + (4 * tall * n - n * n) * right;
    case MatrixFunction::qr:
      return rows >= columns ? 4 * rows * n * n - 4 * cube / 3 : 2 * columns * n * n + 2 * cube / 3;
    case MatrixFunction::svd:
      return std::min(14 * tall * n * n + 8 * cube, 6 * tall * n * n + 20 * cube);
    case MatrixFunction::eigh:
      return 9 * cube;
  }
  return 0;
}

enum class Failure : std::uint8_t {
  none,
  singular,
  not_positive_definite,
  not_finite,
  no_convergence
};

/// The Error of a matrix; `where` is "b = 2, h = 0", or empty where there is one.
[[noreturn]] inline void raise(MatrixFunction function, Failure failure, const std::string& where) {
  constexpr const char* words[] = {"", "is singular", "is not positive definite",
                                   "has elements that are not finite", "did not come to a result"};
  throw Error(ErrorKind::value, std::string(name(function)) + ": the matrix" +
                                    (where.empty() ? "" : " at " + where) + " " +
                                    words[static_cast<std::size_t>(failure)]);
}

}  // namespace ein::linalg
