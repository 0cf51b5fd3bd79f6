#include "cpu/gemm.hpp"

#include <Eigen/Core>
#include <utility>

namespace ein::cpu {
namespace {

template <class C, int Order>
using Mapped = Eigen::Map<Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Order>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class C, int Order>
using ConstMapped =
    Eigen::Map<const Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Order>, Eigen::Unaligned, Eigen::OuterStride<>>;

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

}  // namespace

template <class C>
void gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b, bool accumulate) {
  if (!c.is_column_major()) return gemm(c.transposed(), b.transposed(), a.transposed(), accumulate);
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

template void gemm(const MatrixRef<float>&, const MatrixRef<const float>&, const MatrixRef<const float>&, bool);
template void gemm(const MatrixRef<double>&, const MatrixRef<const double>&, const MatrixRef<const double>&, bool);
template void gemm(const MatrixRef<std::uint64_t>&, const MatrixRef<const std::uint64_t>&,
                   const MatrixRef<const std::uint64_t>&, bool);

}  // namespace ein::cpu
