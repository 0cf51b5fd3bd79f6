#include "linalg/decompose.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "size/ask.hpp"

namespace ein::linalg {
namespace {

using Eigen::Dynamic, Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Rows = Eigen::Map<Eigen::Matrix<double, Dynamic, Dynamic, Eigen::RowMajor>>;

/// Triangular factors in the memory of the matrix. What else Eigen keeps is in the object where
/// sides are of at most Most, else on the heap.
template <int Most>
class Triangular {
 public:
  using Columns = Eigen::Map<Eigen::Matrix<double, Dynamic, Dynamic, Eigen::ColMajor, Most, Most>>;
  using InPlace = Eigen::Ref<Eigen::Matrix<double, Dynamic, Dynamic, Eigen::ColMajor, Most, Most>>;

  Triangular(const MatrixSizes& sizes, double* a, double* b, double* result)
      : n_(sizes.rows), right_(sizes.right), a_(a, n_, n_), b_(b), result_(result) {}

  Failure run(MatrixFunction function) {
    if (function == MatrixFunction::cholesky) return cholesky();
    const Eigen::PartialPivLU<InPlace> lu(a_);
    if (function == MatrixFunction::det) {
      *result_ = lu.determinant();
      return Failure::none;
    }
    if ((a_.diagonal().array() == 0.0).any()) return Failure::singular;
    if (function == MatrixFunction::inverse) {
      right_ = n_;
      Columns(b_, n_, n_).setIdentity();
    }
    Rows(result_, n_, right_) = lu.solve(Columns(b_, n_, right_));
    return Failure::none;
  }

 private:
  Failure cholesky() {
    const Eigen::LLT<InPlace> llt(a_);
    // Where the diagonal is NaN, Eigen goes on.
    if (llt.info() != Eigen::Success || !(a_.diagonal().array() > 0.0).all())
      return Failure::not_positive_definite;
    Rows l(result_, n_, n_);
    l.setZero();
    l.triangularView<Eigen::Lower>() = a_;
    return Failure::none;
  }

  Index n_, right_;
  Columns a_;
  double* b_;
  double* result_;
};

/// Whether the vector is to be negated: its element of the greatest magnitude, the first of these,
/// is to be positive.
template <class Vector>
bool points_down(const Vector& v) {
  Index at = 0;
  v.cwiseAbs().maxCoeff(&at);
  return v(at) < 0;
}

/// Multiplies the matrix by a power of 2, which is returned, so that its greatest magnitude is
/// about 1: Householder's reflections square elements.
double scale(Eigen::Map<Matrix>& a) {
  const double greatest = a.cwiseAbs().maxCoeff();
  if (!(greatest > 0 && std::isfinite(greatest))) return 1;
  const int exponent = std::clamp(-std::ilogb(greatest), -1022, 1022);
  const double factor = std::ldexp(1.0, exponent);
  a *= factor;
  return factor;
}

void qr(Eigen::Map<Matrix> a, double* result) {
  const Index n = a.rows(), m = a.cols(), r = std::min(n, m);
  const double factor = scale(a);
  const Eigen::HouseholderQR<Eigen::Ref<Matrix>> qr(a);
  Rows q_part(result, n, r), r_part(result + n * r, r, m);
  Matrix q = Matrix::Identity(n, r);
  q.applyOnTheLeft(qr.householderQ());
  r_part.setZero();
  r_part.triangularView<Eigen::Upper>() = a.topRows(r) / factor;
  for (Index k = 0; k < r; ++k) {
    if (!(r_part(k, k) < 0)) continue;
    q.col(k) = -q.col(k);
    r_part.row(k).tail(m - k) = -r_part.row(k).tail(m - k);
  }
  q_part = q;
}

Failure svd(const Eigen::Map<Matrix>& a, double* result) {
  const Index n = a.rows(), m = a.cols(), r = std::min(n, m);
  const Eigen::BDCSVD<Matrix> svd(a, Eigen::ComputeThinU | Eigen::ComputeThinV);
  if (svd.info() != Eigen::Success) return Failure::no_convergence;
  Rows u(result, n, r), s(result + n * r, r, 1), v(result + n * r + r, r, m);
  u = svd.matrixU();
  s = svd.singularValues();
  v = svd.matrixV().transpose();
  for (Index k = 0; k < r; ++k) {
    if (!points_down(u.col(k))) continue;
    u.col(k) = -u.col(k);
    v.row(k) = -v.row(k);
  }
  return Failure::none;
}

Failure eigh(const Eigen::Map<Matrix>& a, double* result) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(a);
  if (solver.info() != Eigen::Success) return Failure::no_convergence;
  const Index n = a.rows();
  Rows(result, n, 1) = solver.eigenvalues();
  Rows vectors(result + n, n, n);
  vectors = solver.eigenvectors();
  for (Index k = 0; k < n; ++k) {
    if (points_down(vectors.col(k))) vectors.col(k) = -vectors.col(k);
  }
  return Failure::none;
}

}  // namespace

Failure decompose(MatrixFunction function, const MatrixSizes& sizes, double epsilon, double* a,
                  double* b, double* result) {
  if (sizes.rank() == 0) {
    // The product of no numbers; the least squares of nothing.
    std::fill_n(result, result_size(function, sizes), function == MatrixFunction::det ? 1.0 : 0.0);
    return Failure::none;
  }
  Eigen::Map<Matrix> matrix(a, sizes.rows, sizes.columns);
  switch (function) {
    case MatrixFunction::inverse:
    case MatrixFunction::det:
    case MatrixFunction::cholesky:
    case MatrixFunction::solve: {
      constexpr std::int64_t small = 16;
      return std::max(sizes.rows, sizes.right) <= small
                 ? Triangular<small>(sizes, a, b, result).run(function)
                 : Triangular<Dynamic>(sizes, a, b, result).run(function);
    }
    case MatrixFunction::lstsq: {
      if (!matrix.allFinite()) return Failure::not_finite;
      Eigen::CompleteOrthogonalDecomposition<Matrix> decomposition;
      decomposition.setThreshold(epsilon * static_cast<double>(sizes.rank()));
      const double factor = scale(matrix);
      decomposition.compute(matrix);
      Rows(result, sizes.columns, sizes.right) =
          factor * decomposition.solve(Eigen::Map<Matrix>(b, sizes.rows, sizes.right));
      return Failure::none;
    }
    case MatrixFunction::qr:
      qr(matrix, result);
      return Failure::none;
    case MatrixFunction::svd:
      return matrix.allFinite() ? svd(matrix, result) : Failure::not_finite;
    case MatrixFunction::eigh:
      matrix.triangularView<Eigen::StrictlyUpper>() = matrix.transpose();
      return matrix.allFinite() ? eigh(matrix, result) : Failure::not_finite;
  }
  return Failure::none;
}

}  // namespace ein::linalg
