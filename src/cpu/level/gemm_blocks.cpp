#include "cpu/level/kernels.hpp"

#include <algorithm>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_pack.hpp"
#include "cpu/level/gemm_panels.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

/// A block of b stays in the second-level cache while all of a meets it; one panel of it (a tile
/// wide) and one of a (a tile high) stay in the first.
constexpr std::int64_t block_depth = 256, block_panels = 16;

/// So many panels of a are packed together at most: where columns of a lie side by side, a few
/// depths of each in turn, since a panel alone would read a part of each cache line.
constexpr std::int64_t packed_panels = 12, packed_depth = 16;

/// In a large product it is panels of a that stay in the second-level cache, while b's, in the
/// third, meet them one after the other: a is read and packed less often. Twice as deep, it reads
/// and writes the result half as often.
constexpr std::int64_t large_panels = 64, large_depth = 2 * block_depth,
                       large_packed_panels = packed_panels / 2;
template <class T>
bool is_large(const MatrixRef<const T>& a, std::int64_t cols) {
  // Otherwise each block of b reads rows of a as they lie, but has anything else packed anew.
  const std::int64_t blocks = a.col_stride == 1 ? 2 : 1;
  return a.rows >= 512 && a.cols > 2 * block_depth &&
         cols > blocks * block_panels * tile_columns<T>;
}

/// Up to so many tiles side by side read a panel of a too rarely for its packing to pay.
constexpr std::int64_t few_tiles = 8;

/// Up to so many rows of a read b too rarely for its packing to pay.
constexpr std::int64_t few_rows = 128;

template <class T>
struct Scratch {
  alignas(64) T a[packed_panels * tile_rows * block_depth + vector_width<T>];
  alignas(64) T c[tile_rows * tile_columns<T>];
  alignas(64) T b[large_depth * large_panels * tile_columns<T>];
};

template <class T>
class BlockedProduct : PanelProduct<T, T, Scratch<T>> {
  using Base = PanelProduct<T, T, Scratch<T>>;
  using Base::a_, Base::b_, Base::c_, Base::finish_, Base::panels_, Base::scratch_;
  using Base::a_at, Base::first_row;
  using Base::column_, Base::cols_, Base::first_k_, Base::depth_;

 public:
  using Base::Base;

  void run(bool accumulate) {
    const bool large = is_large(a_, c_.cols);
    const std::int64_t depths = ceil_div(a_.cols, large ? large_depth : block_depth);
    group_ = large ? large_packed_panels : packed_panels;
    const std::int64_t most_columns = (large ? large_panels : block_panels) * columns;
    for (std::int64_t j = 0; j < c_.cols; j += most_columns) {
      for (std::int64_t d = 0; d < depths; ++d) {
        column_ = j;
        cols_ = std::min(c_.cols - j, most_columns);
        first_k_ = a_.cols * d / depths;
        depth_ = a_.cols * (d + 1) / depths - first_k_;
        pack_b();
        if (large) {
          multiply_large(accumulate || d > 0, d + 1 == depths);
        } else {
          multiply_block(accumulate || d > 0, d + 1 == depths);
        }
      }
    }
  }

 private:
  static constexpr std::int64_t width = vector_width<T>, columns = tile_columns<T>;

  /// Rows at such a distance compete for one place in a first-level cache; narrow vectors leave the
  /// micro-kernel too little time to fetch them from the second again and again.
  static std::int64_t rows_that_read(std::int64_t b_row_stride) {
    const bool compete = b_row_stride * static_cast<std::int64_t>(sizeof(T)) % 4096 == 0;
    return compete && vector_bytes < 64 ? tile_rows : few_rows;
  }

  /// Whether the micro-kernel takes rows of `cols` columns as they lie.
  static bool takes(std::int64_t cols) { return has_lanes || cols % width == 0; }

  const T* b_at(std::int64_t j) const {
    return b_.data + first_k_ * b_.row_stride + (column_ + j) * b_.col_stride;
  }
  bool reads_b(std::int64_t cols) const { return reads_b_ && takes(cols); }

  void pack_b() {
    for (std::int64_t j = 0; j < cols_; j += columns) {
      const std::int64_t cols = std::min(columns, cols_ - j);
      if (reads_b(cols)) continue;
      pack_rows(b_at(j), b_.row_stride, b_.col_stride, depth_, cols, scratch_.b + j * depth_,
                ceil_div(cols, width) * width);
    }
  }

  /// All rows of the product with the block of b, which are complete with the last.
  void multiply_block(bool accumulate, bool is_last) {
    const bool packs = packs_a();
    for (std::int64_t p = 0; p < panels_; ++p) {
      if (packs && p % group_ == 0) pack_a(p, std::min(p + group_, panels_));
      const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
      multiply_panel(row, rows, packs ? packed_a(p) : nullptr, accumulate);
      if (finish_ && is_last) finish_(row, rows, column_, cols_);
    }
  }

  /// The same, of several panels of a with one of b after the other.
  void multiply_large(bool accumulate, bool is_last) {
    for (std::int64_t first = 0; first < panels_; first += group_) {
      const std::int64_t end = std::min(panels_, first + group_);
      pack_a(first, end);
      for (std::int64_t j = 0; j < cols_; j += columns) {
        const std::int64_t cols = std::min(columns, cols_ - j);
        for (std::int64_t p = first; p < end; ++p) {
          const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
          Tile<T> tile = tile_of(row, rows, packed_a(p), accumulate);
          multiply_columns(tile, row, rows, j);
        }
        if (finish_ && is_last) {
          finish_(first_row(first), first_row(end) - first_row(first), column_ + j, cols);
        }
      }
    }
  }

  /// Rows [row, row + rows) of the product with the block of b; `packed` are those of a, if they
  /// are.
  void multiply_panel(std::int64_t row, std::int64_t rows, const T* packed, bool accumulate) {
    Tile<T> tile = tile_of(row, rows, packed, accumulate);
    for (std::int64_t j = 0; j < cols_; j += columns) multiply_columns(tile, row, rows, j);
  }

  Tile<T> tile_of(std::int64_t row, std::int64_t rows, const T* packed, bool accumulate) const {
    Tile<T> tile;
    tile.depth = depth_;
    tile.a = packed ? packed : a_at(row);
    tile.a_row_stride = packed ? 1 : a_.row_stride;
    tile.a_col_stride = packed ? rows : a_.col_stride;
    tile.accumulate = accumulate;
    return tile;
  }

  /// Of the columns from `j` on as many as make a tile.
  void multiply_columns(Tile<T>& tile, std::int64_t row, std::int64_t rows, std::int64_t j) {
    const std::int64_t cols = std::min(columns, cols_ - j), vectors = ceil_div(cols, width);
    const bool reads = reads_b(cols);
    tile.b = reads ? b_at(j) : scratch_.b + j * depth_;
    tile.b_row_stride = reads ? b_.row_stride : vectors * width;
    tile.last = first_lanes(cols - (vectors - 1) * width);
    const MatrixRef<T> c{c_.data + row * c_.row_stride + (column_ + j) * c_.col_stride, rows, cols,
                         c_.row_stride, c_.col_stride};
    multiply(tile, c, tile_table<T>.multiply[rows - 1][vectors - 1][cols % width == 0]);
  }

  /// Rows of a are read one line after the other. Of columns each tile reads a part of a line here
  /// and there anew, and of what lies otherwise not even that.
  bool packs_a() const {
    return a_.col_stride != 1 && cols_ > (a_.row_stride == 1 ? few_tiles : 1) * columns;
  }

  T* packed_a(std::int64_t p) const { return scratch_.a + p % group_ * tile_rows * depth_; }

  /// Panels [first, end) of the rows of a become columns side by side.
  void pack_a(std::int64_t first, std::int64_t end) {
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
  void multiply(Tile<T>& tile, const MatrixRef<T>& c, void (*multiply)(const Tile<T>&)) {
    const bool has_rows = c.col_stride == 1;
    if (has_rows && takes(c.cols)) {
      tile.c = c.data;
      tile.c_row_stride = c.row_stride;
      if (tile.accumulate) fetch_rows(c);
      return multiply(tile);
    }
    tile.c = scratch_.c;
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
    if (tile.accumulate) copy(c.data, c.row_stride, c.col_stride, scratch_.c, columns, 1);
    multiply(tile);
    copy(scratch_.c, columns, 1, c.data, c.row_stride, c.col_stride);
  }

  std::int64_t group_ = 0;  // so many panels of a are packed together
  const bool reads_b_ =     // as it lies, where the micro-kernel takes it
      b_.col_stride == 1 && c_.rows <= rows_that_read(b_.row_stride);
};

}  // namespace

template <class T>
void blocked_product(const MatrixRef<T>& c, const MatrixRef<const T>& a,
                     const MatrixRef<const T>& b, bool accumulate, const Finish& finish) {
  run_product<BlockedProduct<T>>(c, a, b, accumulate, finish,
                                 [](const auto& to, const auto&, const auto&) {
                                   return to.col_stride != 1 && to.row_stride == 1;
                                 });
}

template void blocked_product(const MatrixRef<float>&, const MatrixRef<const float>&,
                              const MatrixRef<const float>&, bool, const Finish&);
template void blocked_product(const MatrixRef<double>&, const MatrixRef<const double>&,
                              const MatrixRef<const double>&, bool, const Finish&);

}  // namespace ein::host::EIN_LEVEL
