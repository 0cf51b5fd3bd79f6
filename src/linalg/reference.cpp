#include "linalg/reference.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "size/ask.hpp"

namespace ein::linalg {
namespace {

using Real = long double;
constexpr Real epsilon = std::numeric_limits<double>::epsilon();

struct Table {
  std::size_t rows = 0, columns = 0;
  std::vector<Real> elements{};

  Table(std::size_t n, std::size_t m) : rows(n), columns(m), elements(n * m) {}
  Table(std::size_t n, std::size_t m, const std::vector<double>& values)
      : rows(n), columns(m), elements(values.begin(), values.end()) {}
  static Table identity(std::size_t n) {
    Table result(n, n);
    for (std::size_t i = 0; i < n; ++i) result(i, i) = 1;
    return result;
  }

  Real& operator()(std::size_t i, std::size_t j) { return elements[i * columns + j]; }
  Real operator()(std::size_t i, std::size_t j) const { return elements[i * columns + j]; }
  Table transposed() const {
    Table result(columns, rows);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) result(j, i) = (*this)(i, j);
    }
    return result;
  }
  void negate_row(std::size_t i) {
    for (std::size_t j = 0; j < columns; ++j) (*this)(i, j) = -(*this)(i, j);
  }
  void negate_column(std::size_t j) {
    for (std::size_t i = 0; i < rows; ++i) (*this)(i, j) = -(*this)(i, j);
  }
  /// Σ over i of element (i, j) · (i, k).
  Real dot(std::size_t j, std::size_t k) const {
    Real sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += (*this)(i, j) * (*this)(i, k);
    return sum;
  }
  /// Turns columns p and q by an angle.
  void turn(std::size_t p, std::size_t q, Real c, Real s) {
    for (std::size_t i = 0; i < rows; ++i) {
      const Real x = (*this)(i, p), y = (*this)(i, q);
      (*this)(i, p) = c * x - s * y;
      (*this)(i, q) = s * x + c * y;
    }
  }
  bool points_down(std::size_t j) const {
    std::size_t most = 0;
    for (std::size_t i = 1; i < rows; ++i) {
      if (std::abs((*this)(i, j)) > std::abs((*this)(most, j))) most = i;
    }
    return (*this)(most, j) < 0;
  }
  Table with_columns(const std::vector<std::size_t>& order) const {
    Table result(rows, order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      for (std::size_t i = 0; i < rows; ++i) result(i, k) = (*this)(i, order[k]);
    }
    return result;
  }
};

/// Gaussian elimination with partial pivoting; `b` becomes a⁻¹ b. The determinant.
Real eliminate(Table a, Table& b) {
  Real det = 1;
  for (std::size_t k = 0; k < a.rows; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < a.rows; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    for (std::size_t j = 0; pivot != k && j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
    for (std::size_t j = 0; pivot != k && j < b.columns; ++j) std::swap(b(k, j), b(pivot, j));
    if (pivot != k) det = -det;
    det *= a(k, k);
    if (a(k, k) == 0) return 0;
    for (std::size_t i = 0; i < a.rows; ++i) {
      if (i == k) continue;
      const Real factor = a(i, k) / a(k, k);
      for (std::size_t j = k; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
      for (std::size_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
  return det;
}

/// Element by element, row after row (Cholesky-Banachiewicz); false where there is none.
bool cholesky(const Table& a, Table& l) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Real rest = a(i, j);
      for (std::size_t k = 0; k < j; ++k) rest -= l(i, k) * l(j, k);
      if (i == j && !(rest > 0)) return false;
      l(i, j) = i == j ? std::sqrt(rest) : rest / l(j, j);
    }
  }
  return true;
}

/// By reflections; q is rows × r.
void qr(Table a, Table& q, Table& r) {
  Table all = Table::identity(a.rows);  // transposed
  for (std::size_t k = 0; k < r.rows; ++k) {
    Real norm = 0;
    for (std::size_t i = k; i < a.rows; ++i) norm += a(i, k) * a(i, k);
    norm = std::sqrt(norm);
    std::vector<Real> v(a.rows, 0);
    for (std::size_t i = k; i < a.rows; ++i) v[i] = a(i, k);
    v[k] += v[k] < 0 ? -norm : norm;
    const Real square = std::inner_product(v.begin(), v.end(), v.begin(), Real(0));
    if (square == 0) continue;
    for (Table* of : {&a, &all}) {
      for (std::size_t j = 0; j < of->columns; ++j) {
        Real dot = 0;
        for (std::size_t i = k; i < of->rows; ++i) dot += v[i] * (*of)(i, j);
        for (std::size_t i = k; i < of->rows; ++i) (*of)(i, j) -= 2 * dot / square * v[i];
      }
    }
  }
  for (std::size_t k = 0; k < r.rows; ++k) {
    if (a(k, k) < 0) {
      a.negate_row(k);
      all.negate_row(k);
    }
    for (std::size_t j = k; j < a.columns; ++j) r(k, j) = a(k, j);
    for (std::size_t i = 0; i < q.rows; ++i) q(i, k) = all(k, i);
  }
}

std::vector<std::size_t> order_of(const std::vector<Real>& values, bool descending) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return descending ? values[a] > values[b] : values[a] < values[b];
  });
  return order;
}

/// The cosine and sine that make two columns with these squares and this product orthogonal.
std::pair<Real, Real> turn_of(Real p, Real q, Real both) {
  const Real zeta = (q - p) / (2 * both),
             t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)),
             c = 1 / std::sqrt(1 + t * t);
  return {c, c * t};
}

constexpr int sweeps = 60;

/// The cyclic Jacobi method; reads the lower triangle.
std::vector<Real> eigh(Table a, Table& vectors) {
  const std::size_t n = a.rows;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) a(i, j) = a(j, i);
  }
  Table v = Table::identity(n);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const auto [c, s] = turn_of(a(p, p), a(q, q), a(p, q));
        a.turn(p, q, c, s);
        a = a.transposed();
        a.turn(p, q, c, s);
        a = a.transposed();
        a(p, q) = a(q, p) = 0;
        v.turn(p, q, c, s);
      }
    }
  }
  std::vector<Real> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a(i, i));
  const std::vector<std::size_t> order = order_of(values, false);
  vectors = v.with_columns(order);
  std::vector<Real> sorted;
  for (const std::size_t k : order) sorted.push_back(values[k]);
  for (std::size_t k = 0; k < n; ++k) {
    if (vectors.points_down(k)) vectors.negate_column(k);
  }
  return sorted;
}

/// Makes column k of u a unit vector that is orthogonal to those before it.
void complete(Table& u, std::size_t k) {
  for (std::size_t unit = 0; unit < u.rows; ++unit) {
    for (std::size_t i = 0; i < u.rows; ++i) u(i, k) = i == unit;
    for (int again = 0; again < 2; ++again) {
      for (std::size_t j = 0; j < k; ++j) {
        const Real along = u.dot(j, k);
        for (std::size_t i = 0; i < u.rows; ++i) u(i, k) -= along * u(i, j);
      }
    }
    const Real norm = std::sqrt(u.dot(k, k));
    if (norm < Real(0.5) / static_cast<Real>(u.rows)) continue;
    for (std::size_t i = 0; i < u.rows; ++i) u(i, k) /= norm;
    return;
  }
}

/// The one-sided Jacobi method (Hestenes 1958) on the columns of a, which has at least as many
/// rows.
std::vector<Real> svd_of_tall(Table a, Table& u, Table& v) {
  const std::size_t m = a.columns;
  Table turned = Table::identity(m);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t p = 0; p < m; ++p) {
      for (std::size_t q = p + 1; q < m; ++q) {
        const Real both = a.dot(p, q), pp = a.dot(p, p), qq = a.dot(q, q);
        if (std::abs(both) <= std::numeric_limits<Real>::epsilon() * std::sqrt(pp * qq)) continue;
        const auto [c, s] = turn_of(pp, qq, both);
        a.turn(p, q, c, s);
        turned.turn(p, q, c, s);
      }
    }
  }
  std::vector<Real> lengths, values;
  for (std::size_t k = 0; k < m; ++k) lengths.push_back(std::sqrt(a.dot(k, k)));
  const std::vector<std::size_t> order = order_of(lengths, true);
  u = a.with_columns(order);
  v = turned.with_columns(order);
  for (std::size_t k = 0; k < m; ++k) {
    values.push_back(lengths[order[k]]);
    if (values[k] <= epsilon * epsilon * values[0]) {
      complete(u, k);
      continue;
    }
    for (std::size_t i = 0; i < u.rows; ++i) u(i, k) /= values[k];
  }
  return values;
}

std::vector<Real> svd(const Table& a, Table& u, Table& v) {
  std::vector<Real> values =
      a.rows >= a.columns ? svd_of_tall(a, u, v) : svd_of_tall(a.transposed(), v, u);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!u.points_down(k)) continue;
    u.negate_column(k);
    v.negate_column(k);
  }
  return values;
}

/// The solution of the least norm. Singular values that rounding makes count as 0.
Table lstsq(const Table& a, const Table& b) {
  Table u(0, 0), v(0, 0), x(a.columns, b.columns);
  const std::vector<Real> values = svd(a, u, v);
  const Real least = epsilon * static_cast<Real>(std::max(a.rows, a.columns)) * values[0];
  for (std::size_t r = 0; r < values.size() && values[r] > least; ++r) {
    for (std::size_t k = 0; k < b.columns; ++k) {
      Real along = 0;
      for (std::size_t i = 0; i < a.rows; ++i) along += u(i, r) * b(i, k);
      for (std::size_t j = 0; j < a.columns; ++j) x(j, k) += v(j, r) * along / values[r];
    }
  }
  return x;
}

}  // namespace

std::vector<double> reference(MatrixFunction function, const MatrixSizes& sizes,
                              const std::vector<double>& a_elements,
                              const std::vector<double>& b_elements) {
  const auto n = static_cast<std::size_t>(sizes.rows), m = static_cast<std::size_t>(sizes.columns),
             right = static_cast<std::size_t>(sizes.right);
  const std::size_t r = std::min(n, m);
  if (r == 0)
    return std::vector<double>(static_cast<std::size_t>(result_size(function, sizes)),
                               function == MatrixFunction::det ? 1.0 : 0.0);
  const Table a(n, m, a_elements);
  std::vector<double> result;
  const auto put = [&](const std::vector<Real>& part) {
    for (const Real x : part) result.push_back(static_cast<double>(x));
  };
  const auto require_finite = [&] {
    for (const double x : a_elements) {
      if (!std::isfinite(x)) raise(function, Failure::not_finite, "");
    }
  };
  switch (function) {
    case MatrixFunction::inverse:
    case MatrixFunction::solve: {
      Table b =
          function == MatrixFunction::solve ? Table(n, right, b_elements) : Table::identity(n);
      if (eliminate(a, b) == 0) raise(function, Failure::singular, "");
      put(b.elements);
      break;
    }
    case MatrixFunction::det: {
      Table nothing(n, 0);
      put({eliminate(a, nothing)});
      break;
    }
    case MatrixFunction::cholesky: {
      Table l(n, n);
      if (!cholesky(a, l)) raise(function, Failure::not_positive_definite, "");
      put(l.elements);
      break;
    }
    case MatrixFunction::lstsq:
      require_finite();
      put(lstsq(a, Table(n, right, b_elements)).elements);
      break;
    case MatrixFunction::qr: {
      Table q_part(n, r), r_part(r, m);
      qr(a, q_part, r_part);
      put(q_part.elements);
      put(r_part.elements);
      break;
    }
    case MatrixFunction::svd: {
      require_finite();
      Table u(0, 0), v(0, 0);
      const std::vector<Real> values = svd(a, u, v);
      put(u.elements);
      put(values);
      put(v.transposed().elements);
      break;
    }
    case MatrixFunction::eigh: {
      require_finite();
      Table vectors(0, 0);
      const std::vector<Real> values = eigh(a, vectors);
      put(values);
      put(vectors.elements);
      break;
    }
  }
  return result;
}

}  // namespace ein::linalg
