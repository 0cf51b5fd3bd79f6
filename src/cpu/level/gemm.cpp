// Matrix products by Eigen, and those too small for any preparation.

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#include "cpu/level/kernels.hpp"
#include "machine/fork.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

template <class C, int Order>
using Mapped = Eigen::Map<Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Order>, Eigen::Unaligned,
                          Eigen::OuterStride<>>;
template <class C, int Order>
using ConstMapped = Eigen::Map<const Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Order>,
                               Eigen::Unaligned, Eigen::OuterStride<>>;

template <class C, class A, class B>
void multiply(const MatrixRef<C>& c, const A& a, const B& b, bool accumulate) {
  Mapped<C, Eigen::ColMajor> to(c.data, c.rows, c.cols, Eigen::OuterStride<>(c.col_stride));
  if (accumulate) {
    to.noalias() += a * b;
  } else {
    to.noalias() = a * b;
  }
}

template <int Order, class C>
ConstMapped<C, Order> mapped(const MatrixRef<const C>& m) {
  const auto outer = Order == Eigen::ColMajor ? m.col_stride : m.row_stride;
  return {m.data, m.rows, m.cols, Eigen::OuterStride<>(outer)};
}

/// A product of at most this many multiply-adds takes longer to prepare than to compute.
template <class C>
constexpr std::int64_t most_small = std::is_floating_point_v<C> ? 8 * 8 * 8 : 16 * 16 * 16;

/// Columns [first, c.cols) of a small product in panels of `width` columns, then half as wide ones:
/// a panel's row of results stays in registers. b and c are row-major.
template <int width, class C>
void small_gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                bool accumulate, std::int64_t first = 0) {
  for (; c.cols - first >= width; first += width) {
    for (std::int64_t i = 0; i < c.rows; ++i) {
      C* to = c.data + i * c.row_stride + first;
      C sum[width] = {};
      if (accumulate) std::copy_n(to, width, sum);
      for (std::int64_t k = 0; k < a.cols; ++k) {
        const C factor = a.data[i * a.row_stride + k * a.col_stride];
        const C* row = b.data + k * b.row_stride + first;
        for (int j = 0; j < width; ++j) sum[j] += factor * row[j];
      }
      std::copy_n(sum, width, to);
    }
  }
  if constexpr (width > 1) small_gemm<width / 2>(c, a, b, accumulate, first);
}

/// Adds halves until one number is left, in vectors.
template <int lanes, class C>
[[gnu::always_inline]] inline C sum_of(const C* lane) {
  if constexpr (lanes == 1) {
    return *lane;
  } else {
    C half[lanes / 2];
    for (int l = 0; l < lanes / 2; ++l) half[l] = lane[l] + lane[l + lanes / 2];
    return sum_of<lanes / 2>(half);
  }
}

}  // namespace

/// In halves, as long as they are long: the error grows with the logarithm of n.
template <class C>
C dot(const C* a, const C* b, std::int64_t n) {
  constexpr std::int64_t lanes = 32, most_one_by_one = 512 * lanes;
  if (n > most_one_by_one) {
    const std::int64_t half = n / 2 / lanes * lanes;
    return dot(a, b, half) + dot(a + half, b + half, n - half);
  }
  C lane[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t l = 0; l < lanes; ++l) lane[l] += a[i + l] * b[i + l];
  }
  for (std::int64_t l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i];
  return sum_of<lanes>(lane);
}

template <class C>
void eigen_product(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   bool accumulate) {
  if (!c.is_column_major())
    return eigen_product(c.transposed(), b.transposed(), a.transposed(), accumulate);
  made_once([] { return Eigen::l1CacheSize(); });  // Eigen keeps the sizes in a function's static
  if (a.is_column_major()) {
    if (b.is_column_major()) {
      multiply(c, mapped<Eigen::ColMajor>(a), mapped<Eigen::ColMajor>(b), accumulate);
    } else {
      multiply(c, mapped<Eigen::ColMajor>(a), mapped<Eigen::RowMajor>(b), accumulate);
    }
  } else if (b.is_column_major()) {
    multiply(c, mapped<Eigen::RowMajor>(a), mapped<Eigen::ColMajor>(b), accumulate);
  } else {
    multiply(c, mapped<Eigen::RowMajor>(a), mapped<Eigen::RowMajor>(b), accumulate);
  }
}

template <class C>
bool small_product(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   bool accumulate) {
  if (c.rows == 1 && c.cols == 1 && a.col_stride == 1 && b.row_stride == 1) {
    const C value = dot(a.data, b.data, a.cols);
    *c.data = accumulate ? *c.data + value : value;
    return true;
  }
  if (c.rows <= 1 || c.cols <= 1 || c.rows * c.cols * a.cols > most_small<C>) return false;
  if (c.is_row_major() && b.is_row_major()) {
    small_gemm<16>(c, a, b, accumulate);
  } else if (c.is_column_major() && a.is_column_major()) {
    small_gemm<16>(c.transposed(), b.transposed(), a.transposed(), accumulate);
  } else {
    return false;
  }
  return true;
}

#define EIN_INSTANTIATE(C)                                                    \
  template C dot(const C*, const C*, std::int64_t);                           \
  template bool small_product(const MatrixRef<C>&, const MatrixRef<const C>&, \
                              const MatrixRef<const C>&, bool);               \
  template void eigen_product(const MatrixRef<C>&, const MatrixRef<const C>&, \
                              const MatrixRef<const C>&, bool);
EIN_INSTANTIATE(float)
EIN_INSTANTIATE(double)
EIN_INSTANTIATE(std::uint64_t)
#undef EIN_INSTANTIATE

}  // namespace ein::host::EIN_LEVEL
