// What the matrix products in blocks have in common, whatever they multiply.
#pragma once

#include <memory>
#include <new>

#include "cpu/level/gemm_kernel.hpp"
#include "tensor/size_arithmetic.hpp"

namespace ein::host::EIN_LEVEL {

/// Each thread's own, allocated when it first needs it.
template <class Scratch>
Scratch& thread_scratch() {
  thread_local const auto own = std::make_unique_for_overwrite<Scratch>();
  return *own;
}

/// At least `count` numbers of the calling thread's own, at the beginning of a cache line. They are
/// its until it asks again, by the same `Tag`.
template <class T, class Tag>
T* thread_buffer(std::int64_t count) {
  struct Free {
    void operator()(T* numbers) const { ::operator delete[](numbers, std::align_val_t(64)); }
  };
  thread_local std::unique_ptr<T[], Free> own;
  thread_local std::int64_t size = 0;
  if (count > size) {
    size = 0;
    own.reset();
    own.reset(static_cast<T*>(
        ::operator new[](static_cast<std::size_t>(count) * sizeof(T), std::align_val_t(64))));
    size = count;
  }
  return own.get();
}

/// A product whose rows are cut into panels as high as a tile, or nearly so, and that meet one
/// block of b after the other.
template <class C, class In>
class PanelProduct {
 public:
  PanelProduct(const MatrixRef<C>& c, const MatrixRef<const In>& a, const MatrixRef<const In>& b,
               const Finish& finish)
      : c_(c), a_(a), b_(b), finish_(finish), panels_(ceil_div(c.rows, tile_rows)) {}

 protected:
  /// Where panel `p` of the rows begins.
  std::int64_t first_row(std::int64_t p) const { return c_.rows * p / panels_; }
  const In* a_at(std::int64_t row) const {
    return a_.data + row * a_.row_stride + first_k_ * a_.col_stride;
  }

  const MatrixRef<C> c_;
  const MatrixRef<const In> a_, b_;
  const Finish& finish_;
  const std::int64_t panels_;                                     // of rows
  std::int64_t column_ = 0, cols_ = 0, first_k_ = 0, depth_ = 0;  // the block of b
};

/// product(c, a, b, finish), or that of the transposed matrices where is_better_turned(c, a, b).
template <class C, class In, class Product, class Choice>
void run_product(const MatrixRef<C>& c, const MatrixRef<const In>& a, const MatrixRef<const In>& b,
                 const Finish& finish, const Product& product, const Choice& is_better_turned) {
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0) {
    // An operand without elements may have no address to start from.
    const In zero{};
    const MatrixRef<const In> column{&zero, c.rows, 1, 0, 0}, row{&zero, 1, c.cols, 0, 0};
    return run_product(c, column, row, finish, product, is_better_turned);
  }
  if (is_better_turned(c, a, b)) {
    product(c.transposed(), b.transposed(), a.transposed(), finish.transposed());
  } else {
    product(c, a, b, finish);
  }
}

}  // namespace ein::host::EIN_LEVEL
