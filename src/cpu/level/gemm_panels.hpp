// What the matrix products in blocks have in common, whatever they multiply.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <type_traits>

#include <ein/parallel.hpp>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/parallel.hpp"
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

/// Whose memory a thread packs into.
struct OfA {};
struct OfB {};

/// A product whose rows are cut into panels as high as a tile, or nearly so, that meet one block of
/// b after the other. The threads of the pool do each block together, if the product is worth it.
///
/// A Product has `pack_panel(i)`, which packs the columns of tile i of the block of b, and
/// `multiply_panels(first, last, from, to)`: panels [first, last) of rows by columns [from, to) of
/// the block. Many threads call both at once.
template <class Product, class C, class In>
class PanelProduct {
 public:
  PanelProduct(const MatrixRef<C>& c, const MatrixRef<const In>& a, const MatrixRef<const In>& b,
               const Finish& finish)
      : c_(c), a_(a), b_(b), finish_(finish), panels_(ceil_div(c.rows, tile_rows)) {}

 protected:
  /// Of the results.
  static constexpr std::int64_t columns =
      tile_columns<std::conditional_t<sizeof(C) == 8, C, float>>;

  /// Where panel `p` of the rows begins.
  std::int64_t first_row(std::int64_t p) const { return c_.rows * p / panels_; }
  const In* a_at(std::int64_t row) const {
    return a_.data + row * a_.row_stride + first_k_ * a_.col_stride;
  }

  /// All rows of the product with the block of b, of which tiles are packed if that is so. Units of
  /// work are panels of rows, by chunks of columns where there are few panels; a thread takes up to
  /// `group` of them at once.
  void multiply_block(bool packs_b, std::int64_t group) {
    const std::int64_t tiles = ceil_div(cols_, columns);
    tiles_to_pack_ = packs_b ? tiles : 0;
    next_to_pack_.store(0, std::memory_order_relaxed);
    packed_.store(0, std::memory_order_relaxed);
    if (!is_shared_) {
      pack_b();
      return product().multiply_panels(0, panels_, 0, cols_);
    }
    const std::int64_t wanted = 8 * num_threads();
    const auto chunks = std::clamp<std::int64_t>(ceil_div(wanted, panels_), 1, ceil_div(tiles, 4));
    const auto units = [&](std::int64_t begin, std::int64_t end) {
      pack_b();
      while (begin < end) {
        const std::int64_t chunk = begin / panels_, first = begin % panels_;
        const std::int64_t last = std::min(panels_, first + (end - begin));
        product().multiply_panels(first, last, tiles * chunk / chunks * columns,
                                  std::min(cols_, tiles * (chunk + 1) / chunks * columns));
        begin += last - first;
      }
    };
    parallel_for(chunks * panels_, units, group);
  }

  /// Of panels [first, end) and columns [from, to) of the block, if they are complete.
  void finish(std::int64_t first, std::int64_t end, std::int64_t from, std::int64_t to) const {
    if (finish_ && is_last_)
      finish_(first_row(first), first_row(end) - first_row(first), column_ + from, to - from);
  }

  const MatrixRef<C> c_;
  const MatrixRef<const In> a_, b_;
  const Finish& finish_;
  const std::int64_t panels_;  // of rows
  // The block of b, whether its products are added to c, and whether they make c complete.
  std::int64_t column_ = 0, cols_ = 0, first_k_ = 0, depth_ = 0;
  bool accumulate_ = false, is_last_ = false;

 private:
  Product& product() { return static_cast<Product&>(*this); }

  /// Packs what is left of the block of b, and waits until others have packed theirs.
  void pack_b() {
    if (packed_.load(std::memory_order_acquire) == tiles_to_pack_) return;
    for (std::int64_t i;
         (i = next_to_pack_.fetch_add(1, std::memory_order_relaxed)) < tiles_to_pack_;
         packed_.fetch_add(1, std::memory_order_release)) {
      product().pack_panel(i);
    }
    while (packed_.load(std::memory_order_acquire) < tiles_to_pack_) pause();
  }

  const bool is_shared_ =
      multiply_adds(c_.rows, c_.cols, a_.cols) >= 2 * least_multiply_adds && runs_in_parallel();
  std::int64_t tiles_to_pack_ = 0;
  std::atomic<std::int64_t> next_to_pack_{0}, packed_{0};
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
