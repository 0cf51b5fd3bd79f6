// Linear algebra along named axes. The pattern marks the rows and the columns of a matrix with
// brackets, `inverse(m, "b [i j]")`; all other axes are a batch, and all may stand in any order.
// On the CPU, by Eigen; in f32 or f64.
//
// Errors of all: kind dtype for other dtypes, and where two operands' differ; device for operands
// on a GPU; size where a matrix is not square that must be. An Error about one matrix of a batch,
// of kind value, names it by its axes: "inverse: the matrix at b = 2 is singular".
//
// All have gradients, and these have gradients; docs/linalg.md says where they do not exist.
#pragma once

#include <ein/named.hpp>

namespace ein {

/// m⁻¹, whose rows are the columns of m: `inverse(m, "b [i j]")` has axes b j i. Errors: value
/// where m is singular.
Tensor inverse(const Tensor& m, const detail::NamedPattern1<Operation::inverse>& pattern);

/// The determinant: `det(m, "b [i j]")` has axis b. Where it is 0 its gradient is an Error.
Tensor det(const Tensor& m, const detail::NamedPattern1<Operation::det>& pattern);

/// The x with a x = b: `solve(a, b, "p [n m], p [n] k -> p [m] k")`. Axes that b has and a lacks
/// are right-hand sides for the same matrices. Errors: value where a is singular.
Tensor solve(const Tensor& a, const Tensor& b,
             const detail::NamedPattern2<Operation::solve>& pattern);

/// The x of the least ‖x‖ among those with the least ‖a x - b‖, for a of any shape and rank:
/// `lstsq(a, b, "p [n m], p [n] k -> p [m] k")`. By a complete orthogonal decomposition. Errors:
/// value where a is not finite.
Tensor lstsq(const Tensor& a, const Tensor& b,
             const detail::NamedPattern2<Operation::lstsq>& pattern);

/// The lower triangular l with a positive diagonal and l lᵀ = m, in the axes of m:
/// `cholesky(m, "b [i j]")`. Reads the lower triangle of m, where i >= j. Errors: value unless m is
/// positive definite.
Tensor cholesky(const Tensor& m, const detail::NamedPattern1<Operation::cholesky>& pattern);

/// m = q r with orthonormal columns of q and upper triangular r, whose diagonal is not negative.
/// With r for min(n, m), of "b [n m]" they have axes b n r and b r m.
struct QrFactors {
  Tensor q, r;
};
QrFactors qr(const Tensor& m, const detail::NamedPattern1<Operation::qr>& pattern);

/// m = u diag(s) vt with orthonormal columns of u and rows of vt, and s in descending order. With r
/// for min(n, m), of "b [n m]" they have axes b n r, b r and b r m. Of each column of u the element
/// of the greatest magnitude is positive.
struct SvdFactors {
  Tensor u, s, vt;
};
/// Errors: value where m is not finite.
SvdFactors svd(const Tensor& m, const detail::NamedPattern1<Operation::svd>& pattern);

/// m = vectors diag(values) vectorsᵀ, the values in ascending order. Of "b [i j]" they have axes b
/// j and b i j: a vector is a column, whose element of the greatest magnitude is positive.
struct Eigenpairs {
  Tensor values, vectors;
};
/// Of a symmetric m, of which the lower triangle is read, where i >= j. Errors: value where that is
/// not finite.
Eigenpairs eigh(const Tensor& m, const detail::NamedPattern1<Operation::eigh>& pattern);

}  // namespace ein
