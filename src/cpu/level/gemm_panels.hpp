// What the matrix products in blocks have in common, whatever they multiply.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <type_traits>

#include <ein/parallel.hpp>

#include "cpu/level/gemm_kernel.hpp"
#include "machine/parallel.hpp"
#include "machine/thread_end.hpp"
#include "size/size_arithmetic.hpp"

namespace ein::host::EIN_LEVEL {

/// Each thread's own, allocated when it first needs it.
template <class Scratch>
Scratch& thread_scratch() {
  return *made_once_by_thread([] { return std::make_unique_for_overwrite<Scratch>(); });
}

/// At least `count` numbers of the calling thread's own, at the beginning of a cache line. They are
/// its until it asks again, by the same `Tag`.
template <class T, class Tag>
T* thread_buffer(std::int64_t count) {
  struct Free {
    void operator()(T* numbers) const { ::operator delete[](numbers, std::align_val_t(64)); }
  };
  struct Buffer {
    std::unique_ptr<T[], Free> numbers;
    std::int64_t size = 0;
  };
  Buffer& own = made_once_by_thread([] { return Buffer(); });
  if (count > own.size) {
    own = Buffer();
    own.numbers.reset(static_cast<T*>(
        ::operator new[](static_cast<std::size_t>(count) * sizeof(T), std::align_val_t(64))));
    own.size = count;
  }
  return own.numbers.get();
}

/// A product whose rows are cut into panels as high as a tile, or nearly so, that meet one block of
/// b after the other. The threads of the pool do each block together, if the product is worth it.
/// What is to stay in a core's own caches is packed by its thread; a block of b that is for the
/// last level, which cores share, is packed once, by all.
///
/// A Product has `pack_panel(i, block)`, which packs the columns of tile i into their place in a
/// packed block of b, and `multiply_panels(first, last, from, to, block)`: panels [first, last) of
/// rows by columns [from, to) of the block. Many threads call both at once. `Packed` are the
/// numbers of a packed block. A panel has at most `panel_rows` rows, all but the last one a
/// multiple of `row_unit`; there may be panels without rows.
template <class Product, class C, class In, class Packed, int panel_rows = tile_rows,
          int row_unit = 1>
class PanelProduct {
 public:
  PanelProduct(const MatrixRef<C>& c, const MatrixRef<const In>& a, const MatrixRef<const In>& b,
               const Finish& finish)
      : c_(c), a_(a), b_(b), finish_(finish) {}

 protected:
  /// Of a tile.
  static constexpr std::int64_t columns =
      tile_columns<std::conditional_t<sizeof(C) == 8, C, float>>;

  /// Where panel `p` of the rows begins.
  std::int64_t first_row(std::int64_t p) const {
    return std::min(c_.rows, ceil_div(c_.rows, row_unit) * p / panels_ * row_unit);
  }
  const In* a_at(std::int64_t row) const {
    return a_.data + row * a_.row_stride + first_k_ * a_.col_stride;
  }

  /// How a block of b is packed: `numbers` in all, by all threads together or by each; 0 if it is
  /// read as it lies.
  struct Packing {
    std::int64_t numbers;
    bool together;
  };

  /// All rows of the product with the block of b. Units of work are panels of rows, by chunks of
  /// columns where there are few panels; a thread takes up to `group` of them at once.
  void multiply_block(const Packing& packing, std::int64_t group) {
    const std::int64_t tiles = ceil_div(cols_, columns);
    if (threads_ == 1) {
      Packed* const block = packing.numbers > 0 ? buffer_for_b(packing.numbers) : nullptr;
      pack(block, 0, tiles);
      return product().multiply_panels(0, panels_, 0, cols_, block);
    }
    Packed* const shared =
        packing.numbers > 0 && packing.together ? buffer_for_b(packing.numbers) : nullptr;
    next_to_pack_.store(0, std::memory_order_relaxed);
    packed_.store(0, std::memory_order_relaxed);
    const std::int64_t chunks =
        std::clamp<std::int64_t>(ceil_div(8 * threads_, panels_), 1, ceil_div(tiles, 4));
    const std::uint64_t first_ticket = next_ticket.fetch_add(static_cast<std::uint64_t>(chunks));
    const auto units = [&](std::int64_t begin, std::int64_t end) {
      if (shared) pack_together(shared, tiles);
      while (begin < end) {
        const std::int64_t chunk = begin / panels_, first = begin % panels_;
        const std::int64_t last = std::min(panels_, first + (end - begin));
        const std::int64_t from = tiles * chunk / chunks, to = tiles * (chunk + 1) / chunks;
        const Packed* block = shared;
        if (packing.numbers > 0 && !shared)
          block = own_block(packing.numbers, from, to,
                            first_ticket + static_cast<std::uint64_t>(chunk));
        product().multiply_panels(first, last, from * columns, std::min(cols_, to * columns),
                                  block);
        begin += last - first;
      }
    };
    parallel_for(chunks * panels_, units, group);
  }

  /// Of panels [first, end) and columns [from, to) of the block, if they are complete.
  void finish(std::int64_t first, std::int64_t end, std::int64_t from, std::int64_t to,
              const float* sums = nullptr) const {
    if (finish_ && is_last_ && first_row(first) < first_row(end))
      finish_(first_row(first), first_row(end) - first_row(first), column_ + from, to - from, sums);
  }

  /// Fetches what finishing a tile will read; its columns count from those of the block.
  [[gnu::always_inline]] void fetch(std::int64_t row, std::int64_t rows, std::int64_t col,
                                    std::int64_t cols) const {
    if (is_last_) finish_.fetch(row, rows, column_ + col, cols);
  }

  const MatrixRef<C> c_;
  const MatrixRef<const In> a_, b_;
  const Finish& finish_;
  const std::int64_t threads_ =
      multiply_adds(c_.rows, c_.cols, a_.cols) >= 2 * least_multiply_adds && runs_in_parallel()
          ? num_threads()
          : 1;
  /// Of rows: few of them as many for each thread.
  const std::int64_t panels_ = c_.rows < 8 * threads_ * panel_rows && c_.rows >= threads_
                                   ? ceil_div(ceil_div(c_.rows, panel_rows), threads_) * threads_
                                   : ceil_div(c_.rows, panel_rows);
  // The block of b, whether its products are added to c, and whether they make c complete.
  std::int64_t column_ = 0, cols_ = 0, first_k_ = 0, depth_ = 0;
  bool accumulate_ = false, is_last_ = false;

 private:
  Product& product() { return static_cast<Product&>(*this); }
  static Packed* buffer_for_b(std::int64_t numbers) {
    struct OfB {};
    return thread_buffer<Packed, OfB>(numbers);
  }

  void pack(Packed* block, std::int64_t first, std::int64_t last) {
    for (; block && first < last; ++first) product().pack_panel(first, block);
  }

  /// The calling thread's own block, in which tiles [first, last) are packed. It may be so from the
  /// call before: each ticket is for one chunk of one block of one product.
  const Packed* own_block(std::int64_t numbers, std::int64_t first, std::int64_t last,
                          std::uint64_t ticket) {
    thread_local std::uint64_t packed = 0;
    Packed* const block = buffer_for_b(numbers);
    if (packed != ticket) pack(block, first, last);
    packed = ticket;
    return block;
  }

  /// Packs what others have not begun to, and waits until they have done theirs.
  void pack_together(Packed* block, std::int64_t tiles) {
    if (packed_.load(std::memory_order_acquire) == tiles) return;
    for (std::int64_t i; (i = next_to_pack_.fetch_add(1, std::memory_order_relaxed)) < tiles;
         packed_.fetch_add(1, std::memory_order_release)) {
      product().pack_panel(i, block);
    }
    while (packed_.load(std::memory_order_acquire) < tiles) pause();
  }

  static inline std::atomic<std::uint64_t> next_ticket{1};
  std::atomic<std::int64_t> next_to_pack_{0}, packed_{0};  // tiles of a shared block
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
