// Matrix products of few rows of bf16 by tiles (AMX), which read each weight from memory once.
// A tile holds all rows at once, and 16 columns, or steps of the depth in pairs.
#include "cpu/level/kernels.hpp"
#include "cpu/level/tiles.hpp"

#if defined(EIN_TILE_ZERO)

#include <immintrin.h>

#include <algorithm>

#include "cpu/level/gemm_few_result.hpp"
#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_pack.hpp"
#include "cpu/level/gemm_pairs.hpp"
#include "cpu/level/gemm_panels.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

/// Rows of pairs in a tile, numbers along its depth, and its bytes.
constexpr std::int64_t width = pair_width, deep = 2 * pair_width, tile_bytes = 1024;
static_assert(most_few_rows == width);
/// Between rows of a packed tile, or of one of sums.
constexpr std::int64_t row_bytes = 64;
/// Rows are packed, and numbers added one by one, for so much of the depth at a time.
constexpr std::int64_t most_depth = (1 << 19) / tile_bytes * deep;

class FewRowsInTiles {
 public:
  FewRowsInTiles(const Caches& caches, const MatrixRef<const bf16>& x,
                 const MatrixRef<const bf16>& w)
      : x_(x), w_(w), sums_bytes_(caches.l2 / 4) {}

  template <class C>
  void run(FewRowsResult<C, float>& result) {
    const Tiles tiles;
    const bool along_depth = w_.row_stride == 1;
    // Two tiles of sums for so many columns.
    const std::int64_t together = along_depth ? width : 2 * width;
    const std::int64_t chunk = std::min(std::max(sums_bytes_ / (2 * tile_bytes), std::int64_t{1}),
                                        ceil_div(w_.cols, together)) *
                               together;
    struct OfX {};
    struct OfSums {};
    x_tiles_ = thread_buffer<Pair, OfX>(ceil_div(std::min(most_depth, x_.cols), deep) * tile);
    const std::int64_t most_sums = chunk / together * 2 * tile;
    sums_ = thread_buffer<float, OfSums>(x_.cols > most_depth ? 2 * most_sums : most_sums);
    totals_.lie_at(sums_ + most_sums);
    for (column_ = 0; column_ < w_.cols; column_ += chunk) {
      cols_ = std::min(chunk, w_.cols - column_);
      result.begin(column_, cols_);
      totals_.begin(ceil_div(cols_, together) * 2 * tile);
      for (first_k_ = 0; first_k_ < x_.cols; first_k_ += most_depth) {
        if (first_k_ > 0) totals_.take(sums_);
        depth_ = std::min(most_depth, x_.cols - first_k_);
        const bool packs = column_ == 0 || x_.cols > most_depth;
        if (along_depth) {
          if (packs) pack_pairs_of_x();
          multiply_along_depth();
        } else {
          if (packs) pack_rows_of_x();
          multiply_along_columns();
        }
      }
      totals_.add_to(sums_);
      if (along_depth) {
        store_turned(result);
      } else {
        store(result);
      }
      result.end();
    }
  }

 private:
  static constexpr std::int64_t tile = tile_bytes / sizeof(Pair);

  const bf16* weights_at(std::int64_t k, std::int64_t j) const {
    return w_.data + (first_k_ + k) * w_.row_stride + (column_ + j) * w_.col_stride;
  }
  void load_sums(const float* from, bool are_there) const {
    if (are_there) {
      EIN_TILE_LOAD(0, from, row_bytes);
      EIN_TILE_LOAD(1, from + tile, row_bytes);
    } else {
      EIN_TILE_ZERO(0);
      EIN_TILE_ZERO(1);
    }
  }
  void store_sums(float* to) const {
    EIN_TILE_STORE(0, to, row_bytes);
    EIN_TILE_STORE(1, to + tile, row_bytes);
  }

  // --- weights side by side along the depth: sums have a column in each row ---

  /// The pairs of one depth of all rows side by side, zeros behind them.
  void pack_pairs_of_x() {
    const MatrixRef<const bf16> turned = x_.transposed();
    pack_pairs({turned.data + first_k_ * turned.row_stride, depth_, turned.cols, turned.row_stride,
                turned.col_stride},
               x_tiles_, width);
    const std::int64_t pairs = ceil_div(depth_, 2);
    std::fill(x_tiles_ + pairs * width, x_tiles_ + ceil_div(depth_, deep) * tile, 0);
  }

  /// 16 columns at a time, which have a tile of sums for even steps of the depth and one for odd.
  [[gnu::noinline]] void multiply_along_depth() {
    const std::int64_t stride = w_.col_stride, bytes = stride * std::int64_t{sizeof(bf16)};
    float* sums = sums_;
    for (std::int64_t j = 0; j < cols_; j += width, sums += 2 * tile) {
      const std::int64_t cols = std::min(width, cols_ - j);
      const Pair* x = x_tiles_;
      load_sums(sums, false);
      std::int64_t k = 0;
      for (; cols == width && k + 2 * deep <= depth_; k += 2 * deep, x += 2 * tile) {
        const bf16* const from = weights_at(k, j);
        EIN_TILE_LOAD(4, from, bytes);
        EIN_TILE_LOAD(6, x, row_bytes);
        EIN_TILE_MULTIPLY_ADD(0, 4, 6);
        EIN_TILE_LOAD(5, from + deep, bytes);
        EIN_TILE_LOAD(7, x + tile, row_bytes);
        EIN_TILE_MULTIPLY_ADD(1, 5, 7);
        // Those of the next columns.
        for (std::int64_t l = width; l < 2 * width; ++l) {
          _mm_prefetch(from + l * stride, _MM_HINT_T1);
          _mm_prefetch(from + l * stride + deep, _MM_HINT_T1);
        }
      }
      for (; k < depth_; k += deep, x += tile) {
        // A copy with zeros behind.
        alignas(64) bf16 edge[width * deep];
        const std::int64_t count = std::min(deep, depth_ - k);
        for (std::int64_t l = 0; l < width; ++l) {
          bf16* const to = edge + l * deep;
          bf16* const end = l < cols ? std::copy_n(weights_at(k, j + l), count, to) : to;
          std::fill(end, to + deep, bf16{});
        }
        EIN_TILE_LOAD(4, edge, row_bytes);
        EIN_TILE_LOAD(6, x, row_bytes);
        EIN_TILE_MULTIPLY_ADD(0, 4, 6);
      }
      store_sums(sums);
    }
  }

  template <class C>
  void store_turned(const FewRowsResult<C, float>& result) const {
    const float* sums = sums_;
    for (std::int64_t j = 0; j < cols_; j += width, sums += 2 * tile) {
      const std::int64_t count = std::min(width, cols_ - j);
      alignas(64) float rows[tile];
      const auto column = [&](int l) {
        return load(sums + l * width) + load(sums + tile + l * width);
      };
      transpose_square(column, rows, width);
      for (std::int64_t i = 0; i < x_.rows; ++i) result.put(i, j, count, load(rows + i * width));
    }
  }

  // --- weights side by side along the columns: sums have a row in each row ---

  /// A tile for each `deep` of the depth, zeros behind rows and depth.
  void pack_rows_of_x() {
    bf16* to = reinterpret_cast<bf16*>(x_tiles_);
    for (std::int64_t k = 0; k < depth_; k += deep) {
      const std::int64_t count = std::min(deep, depth_ - k);
      for (std::int64_t i = 0; i < width; ++i, to += deep) {
        bf16* end = to;
        if (i < x_.rows) {
          const bf16* const from = x_.data + i * x_.row_stride + (first_k_ + k) * x_.col_stride;
          if (x_.col_stride == 1) {
            end = std::copy_n(from, count, to);
          } else {
            for (std::int64_t l = 0; l < count; ++l) *end++ = from[l * x_.col_stride];
          }
        }
        std::fill(end, to + deep, bf16{});
      }
    }
  }

  /// Two tiles of columns at a time.
  [[gnu::noinline]] void multiply_along_columns() {
    constexpr std::int64_t columns = 2 * width;
    const std::int64_t stride = w_.row_stride, ahead = std::min(8 * columns, cols_);
    for (std::int64_t k = 0; k < depth_; k += deep) {
      const std::int64_t count = std::min(deep, depth_ - k);
      EIN_TILE_LOAD(4, x_tiles_ + k / deep * tile, row_bytes);
      float* sums = sums_;
      for (std::int64_t j = 0; j < cols_; j += columns, sums += 2 * tile) {
        const std::int64_t cols = std::min(columns, cols_ - j);
        const bf16* const from = weights_at(k, j);
        alignas(64) Pair pairs[2 * tile];
        if (count == deep && cols == columns) {
          // At the end of these rows, the beginning of the next.
          const std::int64_t to_next = j + ahead < cols_ ? ahead : ahead - cols_ + deep * stride;
          pack_tile(from, stride, deep, pairs, [&](const bf16* two_rows) {
            _mm_prefetch(two_rows + to_next, _MM_HINT_T1);
            _mm_prefetch(two_rows + stride + to_next, _MM_HINT_T1);
          });
        } else {
          std::fill(std::begin(pairs), std::end(pairs), 0);
          pack_pairs({from, count, cols, stride, 1}, pairs, columns);
        }
        load_sums(sums, k > 0);
        EIN_TILE_LOAD(6, pairs, 2 * row_bytes);
        EIN_TILE_MULTIPLY_ADD(0, 4, 6);
        EIN_TILE_LOAD(7, pairs + width, 2 * row_bytes);
        EIN_TILE_MULTIPLY_ADD(1, 4, 7);
        store_sums(sums);
      }
    }
  }

  template <class C>
  void store(const FewRowsResult<C, float>& result) const {
    const float* sums = sums_;
    for (std::int64_t j = 0; j < cols_; j += width, sums += tile) {
      const std::int64_t count = std::min(width, cols_ - j);
      for (std::int64_t i = 0; i < x_.rows; ++i) result.put(i, j, count, load(sums + i * width));
    }
  }

  const MatrixRef<const bf16> x_, w_;
  const std::int64_t sums_bytes_;  // of a chunk, in the second-level cache
  Pair* x_tiles_ = nullptr;        // of the piece of the depth
  float* sums_ = nullptr;          // of the chunk
  Totals<float> totals_;
  std::int64_t column_ = 0, cols_ = 0, first_k_ = 0, depth_ = 0;  // the chunk, and the piece
};

}  // namespace

template <class C>
void few_rows_product_in_tiles(const Caches& caches, const MatrixRef<C>& c,
                               const MatrixRef<const bf16>& a, const MatrixRef<const bf16>& b,
                               bool accumulate, const Finish& finish) {
  FewRowsResult<C, float> result(c, accumulate, finish);
  FewRowsInTiles(caches, a, b).run(result);
}
template void few_rows_product_in_tiles(const Caches&, const MatrixRef<float>&,
                                        const MatrixRef<const bf16>&, const MatrixRef<const bf16>&,
                                        bool, const Finish&);
template void few_rows_product_in_tiles(const Caches&, const MatrixRef<bf16>&,
                                        const MatrixRef<const bf16>&, const MatrixRef<const bf16>&,
                                        bool, const Finish&);

}  // namespace ein::host::EIN_LEVEL

#endif
