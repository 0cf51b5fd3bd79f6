// Functions of one matrix, by Eigen. A translation unit of its own is all that knows it.
#pragma once

#include "linalg/function.hpp"

namespace ein::linalg {

/// Computes a function of `a`, rows × columns, and for two operands of `b`, rows × right; both are
/// column-major and overwritten. `inverse` wants memory at `b` for as many elements as `a` has. The
/// result comes row-major. NaN goes on to the result where nothing else is said; eigh, svd and
/// lstsq refuse what is not finite, and cholesky NaN. `epsilon` is that of the elements as they
/// were: to lstsq, pivots below epsilon · min(rows, columns) of the greatest are 0. Where no size
/// exceeds 16, inverse, det, solve and cholesky allocate nothing.
Failure decompose(MatrixFunction function, const MatrixSizes& sizes, double epsilon, double* a,
                  double* b, double* result);

}  // namespace ein::linalg
