// Functions of matrices of jets: from the values that the interpreter has, iterations on what
// defines a result. An error of order k in the small numbers t_i becomes one of order 2 k in each
// of them (Newton), and t_i² is 0, so three make the first three derivatives exact.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "linalg/reference.hpp"
#include "support/jet.hpp"

namespace ein::test {

struct JetMatrix {
  std::size_t rows = 0, columns = 0;
  std::vector<Jet> elements{};

  JetMatrix(std::size_t n, std::size_t m) : rows(n), columns(m), elements(n * m) {}
  JetMatrix(std::size_t n, std::size_t m, const Jet* from)
      : rows(n), columns(m), elements(from, from + n * m) {}
  static JetMatrix identity(std::size_t n) {
    JetMatrix result(n, n);
    for (std::size_t i = 0; i < n; ++i) result(i, i) = Jet(1.0);
    return result;
  }

  Jet& operator()(std::size_t i, std::size_t j) { return elements[i * columns + j]; }
  const Jet& operator()(std::size_t i, std::size_t j) const { return elements[i * columns + j]; }
  JetMatrix transposed() const {
    JetMatrix result(columns, rows);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) result(j, i) = (*this)(i, j);
    }
    return result;
  }
  /// `count` columns from `first` on.
  JetMatrix part(std::size_t first, std::size_t count) const {
    JetMatrix result(rows, count);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < count; ++j) result(i, j) = (*this)(i, first + j);
    }
    return result;
  }

  friend JetMatrix operator*(const JetMatrix& a, const JetMatrix& b) {
    JetMatrix result(a.rows, b.columns);
    for (std::size_t i = 0; i < a.rows; ++i) {
      for (std::size_t k = 0; k < a.columns; ++k) {
        for (std::size_t j = 0; j < b.columns; ++j) result(i, j) = result(i, j) + a(i, k) * b(k, j);
      }
    }
    return result;
  }
  /// a + factor · b
  friend JetMatrix sum(const JetMatrix& a, double factor, const JetMatrix& b) {
    JetMatrix result = a;
    for (std::size_t e = 0; e < a.elements.size(); ++e)
      result.elements[e] = a.elements[e] + Jet(factor) * b.elements[e];
    return result;
  }
};

namespace jets {

constexpr int iterations = 3;

/// Of the reference, without slopes.
inline std::vector<Jet> values_of(MatrixFunction function, const JetMatrix& a) {
  std::vector<double> elements;
  for (const Jet& x : a.elements) elements.push_back(value_of(x));
  const linalg::MatrixSizes sizes{static_cast<std::int64_t>(a.rows),
                                  static_cast<std::int64_t>(a.columns), 0};
  std::vector<Jet> values;
  for (const double x : linalg::reference(function, sizes, elements, {})) values.emplace_back(x);
  return values;
}

/// X of A X = 1: X (2 - A X).
inline JetMatrix inverse(const JetMatrix& a) {
  const std::size_t n = a.rows;
  JetMatrix x(n, n, values_of(MatrixFunction::inverse, a).data());
  for (int k = 0; k < iterations; ++k)
    x = x * sum(JetMatrix::identity(n), 1, sum(JetMatrix::identity(n), -1, a * x));
  return x;
}

/// By the minors of the first row: a polynomial, also where it is 0.
inline Jet det(const JetMatrix& a) {
  if (a.rows == 0) return Jet(1.0);
  Jet result(0.0);
  for (std::size_t j = 0; j < a.columns; ++j) {
    JetMatrix minor(a.rows - 1, a.rows - 1);
    for (std::size_t i = 1; i < a.rows; ++i) {
      for (std::size_t k = 0; k + 1 < a.columns; ++k) minor(i - 1, k) = a(i, k + (k >= j));
    }
    const Jet term = a(0, j) * det(minor);
    result = j % 2 == 0 ? result + term : result - term;
  }
  return result;
}

inline JetMatrix cholesky(const JetMatrix& a) {
  JetMatrix l(a.rows, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Jet rest = a(i, j);
      for (std::size_t k = 0; k < j; ++k) rest = rest - l(i, k) * l(j, k);
      l(i, j) = i == j ? sqrt(rest) : rest / l(j, j);
    }
  }
  return l;
}

/// Gram-Schmidt, of the first columns of a wide one.
inline std::pair<JetMatrix, JetMatrix> qr(const JetMatrix& a) {
  const std::size_t r = std::min(a.rows, a.columns);
  JetMatrix q = a.part(0, r);
  for (std::size_t j = 0; j < r; ++j) {
    for (std::size_t k = 0; k <= j; ++k) {
      Jet along(0.0);
      for (std::size_t i = 0; i < q.rows; ++i) along = along + q(i, k) * q(i, j);
      for (std::size_t i = 0; i < q.rows; ++i)
        q(i, j) = k == j ? q(i, j) / sqrt(along) : q(i, j) - along * q(i, k);
    }
  }
  JetMatrix upper = q.transposed() * a;
  for (std::size_t i = 0; i < r; ++i) {
    for (std::size_t j = 0; j < i; ++j) upper(i, j) = Jet(0.0);
  }
  return {q, upper};
}

/// V with Vᵀ A V diagonal, near one that makes the values diagonal: V is turned by E, where what is
/// off the diagonal is (λ_j - λ_i) E_ij, and made orthogonal, V (3 - Vᵀ V) / 2.
inline std::pair<std::vector<Jet>, JetMatrix> diagonalized(const JetMatrix& a, JetMatrix v) {
  const std::size_t n = a.rows;
  for (int k = 0; k < iterations; ++k) {
    const JetMatrix m = v.transposed() * a * v;
    JetMatrix turn = JetMatrix::identity(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i != j) turn(i, j) = m(i, j) / (m(j, j) - m(i, i));
      }
    }
    v = v * turn;
    for (int again = 0; again < iterations; ++again) {
      const JetMatrix rest = sum(JetMatrix::identity(n), -1, v.transposed() * v);
      v = sum(v, 0.5, v * rest);
    }
  }
  const JetMatrix m = v.transposed() * a * v;
  std::vector<Jet> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(m(i, i));
  return {values, v};
}
/// Reads the lower triangle, of which the upper one is the mirror.
inline std::pair<std::vector<Jet>, JetMatrix> eigh(const JetMatrix& lower) {
  const std::size_t n = lower.rows;
  JetMatrix a = lower;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) a(i, j) = a(j, i);
  }
  return diagonalized(a, {n, n, values_of(MatrixFunction::eigh, a).data() + n});
}

struct Svd {
  JetMatrix u;
  std::vector<Jet> s;
  JetMatrix vt;
};
/// By the eigenvectors of Aᵀ A, so for s > 0.
inline Svd svd_of_tall(const JetMatrix& a, const JetMatrix& v_values) {
  auto [squares, v] = diagonalized(a.transposed() * a, v_values);
  Svd result{a * v, {}, v.transposed()};
  for (std::size_t k = 0; k < squares.size(); ++k) {
    result.s.push_back(sqrt(squares[k]));
    for (std::size_t i = 0; i < a.rows; ++i) result.u(i, k) = result.u(i, k) / result.s[k];
  }
  return result;
}
inline Svd svd(const JetMatrix& a) {
  const std::vector<Jet> values = values_of(MatrixFunction::svd, a);
  const std::size_t n = a.rows, m = a.columns;
  if (n >= m) return svd_of_tall(a, JetMatrix(m, m, values.data() + n * m + m).transposed());
  Svd turned = svd_of_tall(a.transposed(), JetMatrix(n, n, values.data()));
  return {turned.vt.transposed(), turned.s, turned.u.transposed()};
}

/// Of full rank: (Aᵀ A)⁻¹ Aᵀ b or Aᵀ (A Aᵀ)⁻¹ b.
inline JetMatrix lstsq(const JetMatrix& a, const JetMatrix& b) {
  const JetMatrix t = a.transposed();
  return a.rows >= a.columns ? inverse(t * a) * (t * b) : t * (inverse(a * t) * b);
}

}  // namespace jets

/// As linalg::reference(), of jets, for the interpreter.
inline std::vector<Jet> function_of_matrix(MatrixFunction function,
                                           const linalg::MatrixSizes& sizes,
                                           const std::vector<Jet>& a_elements,
                                           const std::vector<Jet>& b_elements) {
  const auto n = static_cast<std::size_t>(sizes.rows), m = static_cast<std::size_t>(sizes.columns);
  std::vector<Jet> result;
  if (n == 0 || m == 0) {
    result.resize(static_cast<std::size_t>(linalg::result_size(function, sizes)),
                  Jet(function == MatrixFunction::det ? 1.0 : 0.0));
    return result;
  }
  const JetMatrix a(n, m, a_elements.data());
  const JetMatrix b(n, static_cast<std::size_t>(sizes.right), b_elements.data());
  const auto put = [&](const std::vector<Jet>& part) {
    result.insert(result.end(), part.begin(), part.end());
  };
  switch (function) {
    case MatrixFunction::inverse:
      put(jets::inverse(a).elements);
      break;
    case MatrixFunction::det:
      put({jets::det(a)});
      break;
    case MatrixFunction::cholesky:
      put(jets::cholesky(a).elements);
      break;
    case MatrixFunction::solve:
      put((jets::inverse(a) * b).elements);
      break;
    case MatrixFunction::lstsq:
      put(jets::lstsq(a, b).elements);
      break;
    case MatrixFunction::qr: {
      const auto [q, r] = jets::qr(a);
      put(q.elements);
      put(r.elements);
      break;
    }
    case MatrixFunction::svd: {
      const jets::Svd parts = jets::svd(a);
      put(parts.u.elements);
      put(parts.s);
      put(parts.vt.elements);
      break;
    }
    case MatrixFunction::eigh: {
      const auto [values, vectors] = jets::eigh(a);
      put(values);
      put(vectors.elements);
      break;
    }
  }
  return result;
}

}  // namespace ein::test
