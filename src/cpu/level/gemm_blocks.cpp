#include "cpu/level/kernels.hpp"

#include <algorithm>
#include <numeric>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_pack.hpp"
#include "cpu/level/gemm_panels.hpp"
#include "machine/cache.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

/// Packing a panel of a does not pay if at most this many tiles side by side read it.
constexpr std::int64_t few_tiles = 8;

/// Packing b does not pay if a has at most this many rows.
constexpr std::int64_t few_rows = 128;

/// The depth of each panel that is packed in turn where columns of a are contiguous: a panel alone
/// would read a part of each cache line.
constexpr std::int64_t packed_depth = 16;

/// Blocks of b less deep than this are not worth it to read a as it lies.
constexpr std::int64_t least_depth = 96;

/// How a product is cut into blocks.
struct Blocking {
  std::int64_t depth, columns;  // of a block of b; columns of whole tiles
  std::int64_t group;           // panels of a that are packed together
  bool keeps_a;  // it is panels of a that stay in the second-level cache, not the block of b
};

/// Those of a machine.
struct Blockings {
  Caches caches;
  Blocking usual, large;
};

/// One panel of b, a tile wide, fits in the first-level cache; more than 256 deep it gained nothing
/// on Zen 4 and Zen 5. The block of b takes half of the second, and the panels of a that meet it
/// next a seventh.
///
/// In a large product the block of b takes an eighth of the last level, and its panels meet those
/// of a: so a is read and packed less often. It is twice as deep, so that the result is read and
/// written half as often.
template <class T>
Blockings blockings_of(const Caches& caches) {
  constexpr std::int64_t size = sizeof(T), most_depth = 256, step = 16;
  const auto whole = [](std::int64_t number, std::int64_t unit) {
    return std::max(number / unit, std::int64_t{1}) * unit;
  };
  const auto blocking = [&](std::int64_t depth, std::int64_t block_bytes, bool keeps_a) {
    return Blocking{depth, whole(block_bytes / (depth * size), tile_columns<T>),
                    whole(caches.l2 / 7 / (tile_rows * depth * size), 1), keeps_a};
  };
  const std::int64_t depth =
      std::min(most_depth, whole(caches.l1 / (tile_columns<T> * size), step));
  return {caches, blocking(depth, caches.l2 / 2, false),
          blocking(2 * depth, std::max(caches.l3 / 8, caches.l2 / 2), true)};
}

template <class T>
const Blocking& blocking_of(const Caches& caches, const MatrixRef<const T>& a, std::int64_t cols) {
  thread_local Blockings known{};  // some divisions are as long as a small product
  if (known.caches != caches) known = blockings_of<T>(caches);
  // Otherwise each block of b reads rows of a as they lie, but has anything else packed anew.
  const std::int64_t blocks = a.col_stride == 1 ? 2 : 1;
  const bool is_large =
      a.rows >= 512 && a.cols > 2 * known.usual.depth && cols > blocks * known.usual.columns;
  return is_large ? known.large : known.usual;
}

/// Whether the first-level cache has places for `rows` lines, `stride` bytes apart.
bool has_places(const Caches& caches, std::int64_t rows, std::int64_t stride) {
  return rows * std::gcd(stride, caches.l1_way) <= caches.l1;
}

template <class T>
class BlockedProduct : public PanelProduct<BlockedProduct<T>, T, T, T> {
  using Base = PanelProduct<BlockedProduct, T, T, T>;
  friend Base;
  using Base::a_, Base::b_, Base::c_, Base::panels_, Base::columns;
  using Base::a_at, Base::first_row, Base::finish, Base::fetch;
  using Base::accumulate_, Base::is_last_, Base::threads_;
  using Base::column_, Base::cols_, Base::first_k_, Base::depth_;

 public:
  BlockedProduct(const Caches& caches, const MatrixRef<T>& c, const MatrixRef<const T>& a,
                 const MatrixRef<const T>& b, const Finish& finish)
      : Base(c, a, b, finish), caches_(caches) {}

  void run(bool accumulate) {
    // Blocks end with the runs of a along the depth where rows are read as they lie.
    const std::int64_t runs = reads_runs_of_a() ? a_.cols / a_.col_runs.length : 1;
    const std::int64_t run = a_.cols / runs, pieces = ceil_div(run, blocking_.depth),
                       depths = runs * pieces;
    const auto edge = [&](std::int64_t d) {
      return d / pieces * run + run * (d % pieces) / pieces;
    };
    const std::int64_t numbers =
        std::min(blocking_.columns, ceil_div(c_.cols, columns) * columns) * ceil_div(run, pieces);
    for (column_ = 0; column_ < c_.cols; column_ += blocking_.columns) {
      cols_ = std::min(c_.cols - column_, blocking_.columns);
      for (std::int64_t d = 0; d < depths; ++d) {
        first_k_ = edge(d);
        depth_ = edge(d + 1) - first_k_;
        accumulate_ = accumulate || d > 0;
        is_last_ = d + 1 == depths;
        this->multiply_block({reads_b(cols_ % columns) ? 0 : numbers, blocking_.keeps_a},
                             blocking_.group);
      }
    }
  }

 private:
  static constexpr std::int64_t width = vector_width<T>;

  /// Up to how many rows of a read b as it lies. Narrow vectors leave the micro-kernel too little
  /// time to fetch rows that push each other out of the first-level cache from the second.
  std::int64_t rows_that_read() const {
    const auto stride = b_.row_stride * static_cast<std::int64_t>(sizeof(T));
    return stride % caches_.l1_way == 0 && vector_bytes < 64 ? tile_rows : few_rows;
  }

  /// Whether the micro-kernel takes rows of `cols` columns as they lie.
  static bool takes(std::int64_t cols) { return has_lanes || cols % width == 0; }

  /// Whether runs of a along the depth are long enough for blocks, and most of its panels have rows
  /// of one stride.
  bool reads_runs_of_a() const {
    return a_.col_runs && a_.col_stride == 1 && a_.col_runs.length >= least_depth &&
           a_.row_runs.count_from(0, c_.rows) >= std::min<std::int64_t>(2 * tile_rows, c_.rows);
  }
  /// Whether the micro-kernel reaches all of a panel of a as it lies.
  bool lies_evenly(std::int64_t row, std::int64_t rows) const {
    return a_.row_runs.count_from(row, rows) == rows &&
           a_.col_runs.count_from(first_k_, depth_) == depth_;
  }
  const T* a_begin(std::int64_t row) const {
    return a_.has_runs() ? a_.data + a_.row_at(row) + a_.col_at(first_k_) : a_at(row);
  }

  const T* b_at(std::int64_t j) const {
    return b_.data + first_k_ * b_.row_stride + (column_ + j) * b_.col_stride;
  }
  bool reads_b(std::int64_t cols) const { return reads_b_ && takes(cols); }

  void pack_panel(std::int64_t panel, T* block) const {
    const std::int64_t j = panel * columns, cols = std::min(columns, cols_ - j);
    if (reads_b(cols)) return;
    T* const to = block + j * depth_;
    const std::int64_t padded = ceil_div(cols, width) * width;
    if (b_.has_runs()) return pack_rows(b_, {first_k_, depth_, column_ + j, cols}, to, padded);
    pack_rows(b_at(j), b_.row_stride, b_.col_stride, depth_, cols, to, padded);
  }

  /// Panels [first, last) of rows by columns [from, to) of the block.
  void multiply_panels(std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to,
                       const T* block) const {
    struct OfA {};
    const bool packs_all = packs_a(to - from), packs = packs_all || a_.has_runs();
    const std::int64_t group = blocking_.group, panel_size = tile_rows * depth_;
    T* const packed =
        packs ? thread_buffer<T, OfA>(std::min(group, last - first) * panel_size + width) : nullptr;
    for (; first < last; first += group) {
      const std::int64_t end = std::min(last, first + group);
      if (packs) pack_a(first, end, packs_all, packed);
      const auto multiply = [&](std::int64_t p, std::int64_t begin_column,
                                std::int64_t end_column) {
        const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
        const bool is_packed = packs_all || (packs && !lies_evenly(row, rows));
        Tile<T> tile = tile_of(row, rows, is_packed ? packed + (p - first) * panel_size : nullptr);
        for (std::int64_t j = begin_column; j < end_column; j += columns)
          multiply_columns(tile, row, rows, j, block);
      };
      if (blocking_.keeps_a) {
        for (std::int64_t j = from; j < to; j += columns) {
          const std::int64_t end_column = std::min(to, j + columns);
          for (std::int64_t p = first; p < end; ++p) multiply(p, j, end_column);
          finish(first, end, j, end_column);
        }
      } else {
        for (std::int64_t p = first; p < end; ++p) {
          multiply(p, from, to);
          finish(p, p + 1, from, to);
        }
      }
    }
  }

  Tile<T> tile_of(std::int64_t row, std::int64_t rows, const T* packed) const {
    Tile<T> tile;
    tile.depth = depth_;
    tile.a = packed ? packed : a_begin(row);
    tile.a_row_stride = packed ? 1 : a_.row_stride;
    tile.a_col_stride = packed ? rows : a_.col_stride;
    tile.accumulate = accumulate_;
    return tile;
  }

  /// Of the columns from `j` on as many as make a tile.
  void multiply_columns(Tile<T>& tile, std::int64_t row, std::int64_t rows, std::int64_t j,
                        const T* block) const {
    const std::int64_t cols = std::min(columns, cols_ - j), vectors = ceil_div(cols, width);
    const bool reads = reads_b(cols);
    fetch(row, rows, j, cols);
    tile.b = reads ? b_at(j) : block + j * depth_;
    tile.b_row_stride = reads ? b_.row_stride : vectors * width;
    tile.last = first_lanes(cols - (vectors - 1) * width);
    const auto kernel = tile_table<T>.multiply[rows - 1][vectors - 1][cols % width == 0];
    if (c_.has_runs()) return multiply_runs(tile, {row, rows, column_ + j, cols}, kernel);
    multiply(tile,
             {c_.data + row * c_.row_stride + (column_ + j) * c_.col_stride, rows, cols,
              c_.row_stride, c_.col_stride},
             kernel);
  }

  /// Rows of a are read one line after the other, if they do not push each other out of the
  /// first-level cache. Of columns each tile reads a part of a line here and there anew, and of
  /// what lies otherwise not even that.
  bool packs_a(std::int64_t cols) const {
    if (blocking_.keeps_a) return true;
    if (cols <= (a_.row_stride == 1 || a_.col_stride == 1 ? few_tiles : 1) * columns) return false;
    return a_.col_stride != 1 || !has_places(caches_, std::min<std::int64_t>(tile_rows, c_.rows),
                                             a_.row_stride * static_cast<std::int64_t>(sizeof(T)));
  }

  /// Panels [first, end) of the rows of a become columns side by side; of a matrix in runs maybe
  /// only those that do not lie evenly.
  void pack_a(std::int64_t first, std::int64_t end, bool all, T* packed) const {
    const auto packed_a = [&](std::int64_t p) { return packed + (p - first) * tile_rows * depth_; };
    if (a_.has_runs()) {
      for (std::int64_t p = first; p < end; ++p) {
        const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
        if (all || !lies_evenly(row, rows))
          turn_rows(a_, {row, rows, first_k_, depth_}, packed_a(p));
      }
      return;
    }
    if (a_.col_stride == 1) {
      for (std::int64_t p = first; p < end; ++p) {
        const std::int64_t row = first_row(p);
        turn_rows(a_at(row), a_.row_stride, first_row(p + 1) - row, depth_, packed_a(p));
      }
      return;
    }
    for (std::int64_t k = 0; k < depth_; k += packed_depth) {
      const std::int64_t depth = std::min(packed_depth, depth_ - k);
      for (std::int64_t p = first; p < end; ++p) {
        const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
        const T* const from = a_at(row) + k * a_.col_stride;
        T* const to = packed_a(p) + k * rows;
        if (a_.row_stride == 1) {
          tile_table<T>.pack_columns[rows - 1](from, a_.col_stride, depth, to);
          continue;
        }
        for (std::int64_t l = 0; l < depth; ++l) {
          for (std::int64_t i = 0; i < rows; ++i) {
            to[l * rows + i] = from[i * a_.row_stride + l * a_.col_stride];
          }
        }
      }
    }
  }

  /// Rows of the result lie far apart: fetched now, they are here when the micro-kernel adds to
  /// them. Inlined, since GCC drops calls of functions that do nothing but fetch.
  [[gnu::always_inline]] static void fetch_rows(const MatrixRef<T>& c) {
    const T* row = c.data;
    for (std::int64_t i = 0; i < c.rows; ++i, row += c.row_stride) {
      __builtin_prefetch(row, 1);
      __builtin_prefetch(row + width, 1);
      // One that does not begin with a cache line ends in a third.
      if (reinterpret_cast<std::uintptr_t>(row) % vector_bytes != 0)
        __builtin_prefetch(row + c.cols - 1, 1);
    }
  }

  /// The tile `c` of the result, through a copy where it has no rows that the micro-kernel takes.
  static void multiply(Tile<T>& tile, const MatrixRef<T>& c, void (*multiply)(const Tile<T>&)) {
    const bool has_rows = c.col_stride == 1;
    if (has_rows && takes(c.cols)) {
      tile.c = c.data;
      tile.c_row_stride = c.row_stride;
      if (tile.accumulate) fetch_rows(c);
      return multiply(tile);
    }
    alignas(64) T whole_rows[tile_rows * columns];
    tile.c = whole_rows;
    tile.c_row_stride = columns;
    const auto copy = [&](T* from, std::int64_t from_row, std::int64_t from_col, T* to,
                          std::int64_t to_row, std::int64_t to_col) {
      for (std::int64_t i = 0; i < c.rows; ++i, from += from_row, to += to_row) {
        if (has_rows) {
          copy_row(from, c.cols, to);
        } else {
          for (std::int64_t j = 0; j < c.cols; ++j) to[j * to_col] = from[j * from_col];
        }
      }
    };
    if (tile.accumulate) copy(c.data, c.row_stride, c.col_stride, whole_rows, columns, 1);
    multiply(tile);
    copy(whole_rows, columns, 1, c.data, c.row_stride, c.col_stride);
  }

  /// A tile of a result in runs, through a copy where they end inside.
  void multiply_runs(Tile<T>& tile, const Part& part, void (*kernel)(const Tile<T>&)) const {
    if (c_.row_runs.count_from(part.row, part.rows) == part.rows &&
        c_.col_runs.count_from(part.col, part.cols) == part.cols) {
      return multiply(tile,
                      {c_.data + c_.row_at(part.row) + c_.col_at(part.col), part.rows, part.cols,
                       c_.row_stride, c_.col_stride},
                      kernel);
    }
    alignas(64) T sums[tile_rows * columns];
    tile.c = sums;
    tile.c_row_stride = columns;
    if (tile.accumulate) gather(c_.read_only(), part, sums, columns);
    kernel(tile);
    spread<T>(sums, columns, c_, part);
  }

  const Caches& caches_;
  const Blocking& blocking_ = blocking_of<T>(caches_, a_, c_.cols);
  const bool reads_b_ =  // as it lies, where the micro-kernel takes it
      b_.col_stride == 1 && !b_.has_runs() && c_.rows <= threads_ * rows_that_read();
};

}  // namespace

template <class T>
void blocked_product(const Caches& caches, const MatrixRef<T>& c, const MatrixRef<const T>& a,
                     const MatrixRef<const T>& b, bool accumulate, const Finish& finish) {
  run_product(
      c, a, b, finish,
      [&](const auto& to, const auto& left, const auto& right, const Finish& done) {
        BlockedProduct<T>(caches, to, left, right, done).run(accumulate);
      },
      [](const auto& to, const auto&, const auto&) {
        return to.col_stride != 1 && to.row_stride == 1;
      });
}

#define EIN_INSTANTIATE(T)                                                                     \
  template void blocked_product(const Caches&, const MatrixRef<T>&, const MatrixRef<const T>&, \
                                const MatrixRef<const T>&, bool, const Finish&);
EIN_INSTANTIATE(float)
EIN_INSTANTIATE(double)
#undef EIN_INSTANTIATE

}  // namespace ein::host::EIN_LEVEL
