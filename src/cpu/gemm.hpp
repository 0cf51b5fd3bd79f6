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

/// A reference to what is to be done with a part of a product that is ready, for the time of one
/// call: rows [row, row + rows) of columns [col, col + cols).
class Finish {
 public:
  Finish() = default;
  template <class F>
  Finish(const F& f)
      : object_(&f),
        call_([](const void* object, std::int64_t row, std::int64_t rows, std::int64_t col,
                 std::int64_t cols) { (*static_cast<const F*>(object))(row, rows, col, cols); }) {}
  explicit operator bool() const { return call_; }
  void operator()(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) const {
    if (is_transposed_) {
      call_(object_, col, cols, row, rows);
    } else {
      call_(object_, row, rows, col, cols);
    }
  }
  /// The same for the transposed product.
  Finish transposed() const {
    Finish result = *this;
    result.is_transposed_ = !is_transposed_;
    return result;
  }

 private:
  const void* object_ = nullptr;
  void (*call_)(const void*, std::int64_t, std::int64_t, std::int64_t, std::int64_t) = nullptr;
  bool is_transposed_ = false;
};

/// Whether gemm takes matrices of any strides. Otherwise one stride of each must be 1, or belong to
/// a dimension of size <= 1.
template <class C>
inline constexpr bool gemm_takes_any_strides = std::is_floating_point_v<C>;

/// c = a · b, or c += a · b, on the calling thread; c must not overlap the others. C is float,
/// double or std::uint64_t (integers wrap). `finish` is called for parts of c, while they are in
/// the first-level cache, and not again for what it has seen.
template <class C>
void gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
          bool accumulate, const Finish& finish = {});

/// A dot product, in lanes side by side, of the same types.
template <class C>
C dot(const C* a, const C* b, std::int64_t n);

}  // namespace ein::host
