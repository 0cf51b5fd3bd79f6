// Matrix products on operands as they lie.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ein::host {

/// A matrix in memory; strides in elements.
template <class C>
struct MatrixRef {
  C* data;
  std::int64_t rows, cols, row_stride, col_stride;

  MatrixRef transposed() const { return {data, cols, rows, col_stride, row_stride}; }
  /// Rows [begin, begin + count).
  MatrixRef rows_from(std::int64_t begin, std::int64_t count) const {
    return {data + begin * row_stride, count, cols, row_stride, col_stride};
  }
  bool is_column_major() const { return row_stride == 1 || rows <= 1; }
  bool is_row_major() const { return col_stride == 1 || cols <= 1; }
};

/// Whether gemm takes matrices of any strides. Otherwise one stride of each must be 1, or belong to
/// a dimension of size <= 1.
template <class C>
inline constexpr bool gemm_takes_any_strides = std::is_floating_point_v<C>;

/// c = a · b, or c += a · b, on the calling thread; c must not overlap the others. C is float,
/// double or std::uint64_t (integers wrap).
template <class C>
void gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
          bool accumulate);

}  // namespace ein::host
