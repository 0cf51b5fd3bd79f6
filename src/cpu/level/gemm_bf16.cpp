// Matrix products of bf16 without copies in f32, on processors that multiply pairs of them: in
// vectors (AVX512-BF16), or in tiles of 16 rows (AMX).
#include "cpu/level/kernels.hpp"
#include "cpu/level/tiles.hpp"

#if (defined(__AVX512BF16__) || defined(EIN_TILE_ZERO)) && defined(__AVX512BW__) && \
    defined(__AVX512VL__)

#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_pack.hpp"
#include "cpu/level/gemm_pairs.hpp"
#include "cpu/level/gemm_panels.hpp"
#include "machine/cache.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

constexpr std::int64_t width = pair_width, columns = tile_columns<float>;

/// Numbers as others of their size, which vectors may hold.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, T>;
template <class T>
Bits<T>* bits_of(T* numbers) {
  return reinterpret_cast<Bits<T>*>(numbers);
}
template <class T>
const Bits<T>* bits_of(const T* numbers) {
  return reinterpret_cast<const Bits<T>*>(numbers);
}
template <class T>
auto bits_of(const MatrixRef<T>& m) {
  auto* const data = bits_of(m.data);
  return MatrixRef<std::remove_pointer_t<decltype(data)>>{
      data, m.rows, m.cols, m.row_stride, m.col_stride, m.row_runs, m.col_runs};
}

/// The largest block of b, in columns and in pairs of depth. It takes at most half of the
/// second-level cache while all of a is multiplied by it.
constexpr std::int64_t block_columns = 512, block_pairs = most_bf16_terms / 2;

/// So many of the sums of `lanes`, as the result has them.
[[gnu::always_inline]] inline void store_sum(float* to, __m512 sum, __mmask16 lanes) {
  _mm512_mask_storeu_ps(to, lanes, sum);
}
[[gnu::always_inline]] inline void store_sum(bf16* to, __m512 sum, __mmask16 lanes) {
#if defined(__AVX512BF16__)
  _mm256_mask_storeu_epi16(to, lanes, (__m256i)_mm512_cvtneps_pbh(sum));
#else
  const __m512i bits = _mm512_castps_si512(sum);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __m512i rounded = _mm512_mask_or_epi32(nearest, _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q),
                                               bits, _mm512_set1_epi32(0x00400000));
  _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
#endif
}

#if defined(EIN_TILE_ZERO)

/// A panel is two tiles high; a tile is `deep_pairs` deep.
constexpr int panel_rows = 32, row_unit = 16;
constexpr std::int64_t deep_pairs = 16;

/// The products of rows of a, their pairs neighbours, and of b, a row for the pairs of one depth,
/// which is a multiple of deep_pairs: one or two tiles of rows by as many of columns. `sums` has
/// rows of tile_columns.
void multiply_tiles(const bf16* a, std::int64_t a_row_stride, bool two_of_rows, const Pair* b,
                    bool two_of_columns, std::int64_t pairs, float* sums) {
  const std::int64_t a_bytes = a_row_stride * std::int64_t{sizeof(bf16)};
  const std::int64_t b_row = two_of_columns ? columns : width;
  const std::int64_t b_bytes = b_row * std::int64_t{sizeof(Pair)};
  EIN_TILE_ZERO(0);
  EIN_TILE_ZERO(1);
  EIN_TILE_ZERO(2);
  EIN_TILE_ZERO(3);
  for (; pairs > 0; pairs -= deep_pairs, a += 2 * deep_pairs, b += deep_pairs * b_row) {
    EIN_TILE_LOAD(6, b, b_bytes);
    EIN_TILE_LOAD(4, a, a_bytes);
    EIN_TILE_MULTIPLY_ADD(0, 4, 6);
    if (two_of_columns) {
      EIN_TILE_LOAD(7, b + width, b_bytes);
      EIN_TILE_MULTIPLY_ADD(1, 4, 7);
    }
    if (two_of_rows) {
      EIN_TILE_LOAD(5, a + row_unit * a_row_stride, a_bytes);
      EIN_TILE_MULTIPLY_ADD(2, 5, 6);
      if (two_of_columns) EIN_TILE_MULTIPLY_ADD(3, 5, 7);
    }
  }
  constexpr std::int64_t sums_bytes = columns * std::int64_t{sizeof(float)};
  EIN_TILE_STORE(0, sums, sums_bytes);
  EIN_TILE_STORE(1, sums + width, sums_bytes);
  EIN_TILE_STORE(2, sums + row_unit * columns, sums_bytes);
  EIN_TILE_STORE(3, sums + row_unit * columns + width, sums_bytes);
}

#else

constexpr int panel_rows = tile_rows, row_unit = 1;
constexpr std::int64_t deep_pairs = 1;

/// There are no tiles.
class Tiles {};

Pair load_pair(const bf16* from) {
  Pair value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// What the micro-kernel works on. a may have any strides, in numbers, but each pair in one place;
/// rows of b hold the pairs of one depth side by side; those of c are contiguous.
template <class C>
struct PairTile {
  std::int64_t pairs = 0;
  const bf16* a = nullptr;
  std::int64_t a_row_stride = 0, a_pair_stride = 0;
  const Pair* b = nullptr;
  C* c = nullptr;
  std::int64_t c_row_stride = 0;
  Lanes last = 0;  // which columns the last vector has
  bool accumulate = false;
};

/// c = a · b, or c += a · b, for `rows` rows and `vectors` vectors of columns.
template <class C, int rows, int vectors>
void multiply_pairs(const PairTile<C>& tile) {
  constexpr int pointers = (rows + 2) / 3;  // as in multiply_tile
  const bf16* a[pointers];
  const std::int64_t a_row = tile.a_row_stride;
  repeat<pointers>([&](auto p) { a[p] = tile.a + 3 * p * a_row; });
  const Pair* b = tile.b;
  __m512 sum[rows][vectors];
  repeat<rows>([&](auto i) { repeat<vectors>([&](auto j) { sum[i][j] = _mm512_setzero_ps(); }); });
  for (std::int64_t k = tile.pairs; k > 0; --k) {
    __m512i row[vectors];
    repeat<vectors>([&](auto j) { row[j] = _mm512_loadu_si512(b + j * width); });
    repeat<rows>([&](auto i) {
      const __m512i factor =
          _mm512_set1_epi32(static_cast<int>(load_pair(a[i / 3] + i % 3 * a_row)));
      repeat<vectors>([&](auto j) {
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)factor, (__m512bh)row[j]);
      });
    });
    repeat<pointers>([&](auto p) { a[p] += tile.a_pair_stride; });
    b += vectors * width;
  }
  repeat<rows>([&](auto i) {
    C* const c = tile.c + i * tile.c_row_stride;
    repeat<vectors>([&](auto j) {
      const __mmask16 lanes = j + 1 < vectors ? __mmask16(0xffff) : tile.last;
      if constexpr (std::is_same_v<C, float>) {
        if (tile.accumulate)
          sum[i][j] = _mm512_add_ps(sum[i][j], _mm512_maskz_loadu_ps(lanes, c + j * width));
      }
      store_sum(c + j * width, sum[i][j], lanes);
    });
  });
}

/// For each number of rows less 1 and of vectors less 1.
template <class C>
struct PairTileTable {
  void (*multiply[tile_rows][tile_vectors])(const PairTile<C>&);
};
template <class C>
constexpr PairTileTable<C> make_pair_tile_table() {
  PairTileTable<C> table{};
  repeat<tile_rows>([&](auto i) {
    repeat<tile_vectors>([&](auto j) { table.multiply[i][j] = multiply_pairs<C, i + 1, j + 1>; });
  });
  return table;
}
template <class C>
constexpr PairTileTable<C> pair_tile_table = make_pair_tile_table<C>();

#endif

template <class C>
class PairProduct : public PanelProduct<PairProduct<C>, C, bf16, Pair, panel_rows, row_unit> {
  using Base = PanelProduct<PairProduct, C, bf16, Pair, panel_rows, row_unit>;
  friend Base;
  using Base::a_, Base::b_, Base::c_, Base::panels_, Base::finish_;
  using Base::a_at, Base::first_row, Base::finish, Base::fetch;
  using Base::accumulate_, Base::is_last_;
  using Base::column_, Base::cols_, Base::first_k_, Base::depth_;

 public:
  using Base::Base;

  void run(bool accumulate) {
    constexpr std::int64_t pair_bytes = sizeof(Pair);
    const std::int64_t pairs = ceil_div(a_.cols, 2), depths = ceil_div(pairs, block_pairs);
    const std::int64_t deepest = whole(ceil_div(pairs, depths));
    const std::int64_t fit = caches().l2 / 2 / pair_bytes / deepest / columns * columns;
    const std::int64_t most_columns = std::clamp(fit, columns, block_columns);
    const std::int64_t numbers =
        std::min(most_columns, ceil_div(c_.cols, columns) * columns) * deepest;
    for (column_ = 0; column_ < c_.cols; column_ += most_columns) {
      cols_ = std::min(c_.cols - column_, most_columns);
      for (std::int64_t d = 0; d < depths; ++d) {
        const std::int64_t first = pairs * d / depths;
        pairs_ = pairs * (d + 1) / depths - first;
        padded_pairs_ = whole(pairs_);
        first_k_ = 2 * first;
        depth_ = std::min(a_.cols - first_k_, 2 * pairs_);
        accumulate_ = accumulate || d > 0;
        is_last_ = d + 1 == depths;
        // Panels of a that are packed together take a seventh of the cache.
        group_ =
            std::max<std::int64_t>(1, caches().l2 / 7 / (panel_rows * padded_pairs_ * pair_bytes));
        this->multiply_block({numbers, false}, group_);
      }
    }
  }

 private:
  static std::int64_t whole(std::int64_t pairs) { return ceil_div(pairs, deep_pairs) * deep_pairs; }

  void pack_panel(std::int64_t panel, Pair* block) const {
    const std::int64_t first = panel * columns, cols = std::min(columns, cols_ - first);
    const std::int64_t padded = ceil_div(cols, width) * width;
    Pair* const to = block + first * padded_pairs_;
    pack_pairs(part_of(b_, {first_k_, depth_, column_ + first, cols}), to, padded);
    std::fill(to + pairs_ * padded, to + padded_pairs_ * padded, 0);
  }

  /// A part of a matrix; a copy of one that lies in runs, which lasts until the next.
  static MatrixRef<const bf16> part_of(const MatrixRef<const bf16>& m, const Part& part) {
    if (!m.has_runs()) {
      return {m.data + part.row * m.row_stride + part.col * m.col_stride, part.rows, part.cols,
              m.row_stride, m.col_stride};
    }
    struct OfRuns {};
    bf16* const copy = thread_buffer<bf16, OfRuns>(part.rows * part.cols);
    if (!lies_in_columns(m, part)) {
      gather(bits_of(m), part, bits_of(copy), part.cols);
      return {copy, part.rows, part.cols, part.cols, 1};
    }
    gather(bits_of(m.transposed()), {part.col, part.cols, part.row, part.rows}, bits_of(copy),
           part.rows);
    return {copy, part.rows, part.cols, 1, part.rows};
  }

  void multiply_panels(std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to,
                       const Pair* block) const {
    [[maybe_unused]] const Tiles tiles;
    struct OfA {};
    const std::int64_t panel_pairs = panel_rows * padded_pairs_;
    const bool packs_all = a_.has_runs() || a_.col_stride != 1 || depth_ % (2 * deep_pairs) != 0;
    const bool packs = packs_all || c_.rows % row_unit != 0;
    Pair* const packed =
        packs ? thread_buffer<Pair, OfA>(std::min(group_, last - first) * panel_pairs) : nullptr;
    for (; first < last; first += group_) {
      const std::int64_t end = std::min(last, first + group_);
      if (packs) pack_a(packs_all ? first : end - 1, end, packed);
      for (std::int64_t p = first; p < end; ++p) {
        const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
        const bool is_packed = packs_all || (packs && p + 1 == end);
        const PairRows a = is_packed ? rows_of(packed, packs_all ? p - first : 0, rows)
                                     : PairRows{a_at(row), a_.row_stride, 2};
        if constexpr (std::is_same_v<C, bf16>) {
          if (finish_ && rows > 0) {
            struct OfSums {};
            const MatrixRef<float> sums = finish_.sums_at(
                thread_buffer<float, OfSums>(panel_rows * block_columns), rows, to - from);
            multiply_panel(sums, a, row, from, block);
            finish(p, p + 1, from, to, sums.data);
            continue;
          }
        }
        if (c_.has_runs()) {
          multiply_runs({row, rows, column_ + from, to - from}, a, from, block);
        } else {
          multiply_panel<C>({c_.data + row * c_.row_stride + (column_ + from) * c_.col_stride, rows,
                             to - from, c_.row_stride, c_.col_stride},
                            a, row, from, block);
        }
        finish(p, p + 1, from, to);
      }
    }
  }

  struct PairRows;

  /// A panel of a result that lies in runs, through a copy.
  void multiply_runs(const Part& part, const PairRows& a, std::int64_t from,
                     const Pair* block) const {
    struct OfResults {};
    C* const copy = thread_buffer<C, OfResults>(panel_rows * block_columns);
    const auto bits = bits_of(c_);
    if (accumulate_) gather(bits.read_only(), part, bits_of(copy), part.cols);
    multiply_panel<C>({copy, part.rows, part.cols, part.cols, 1}, a, part.row, from, block);
    spread<Bits<C>>(bits_of(copy), part.cols, bits, part);
  }

  /// The pairs of a panel of a.
  struct PairRows {
    const bf16* data;
    std::int64_t row_stride, pair_stride;
  };

#if defined(EIN_TILE_ZERO)

  /// Panel number `panel` of those that are packed.
  PairRows rows_of(const Pair* packed, std::int64_t panel, std::int64_t) const {
    return {reinterpret_cast<const bf16*>(packed + panel * panel_rows * padded_pairs_),
            2 * padded_pairs_, 2};
  }

  /// Panels [first, end) of rows of a, each row with zeros behind its depth.
  void pack_a(std::int64_t first, std::int64_t end, Pair* packed) const {
    for (std::int64_t p = first; p < end; ++p, packed += panel_rows * padded_pairs_) {
      const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
      for (std::int64_t i = 0; i < rows; i += row_unit) {
        const std::int64_t count = std::min<std::int64_t>(row_unit, rows - i);
        pack_tile_of_a(part_of(a_, {row + i, count, first_k_, depth_}), packed + i * padded_pairs_);
      }
    }
  }
  void pack_tile_of_a(const MatrixRef<const bf16>& a, Pair* to) const {
    const bf16* from = a.data;
    if (a.row_stride == 1 && a.col_stride != 1) {
      const __mmask16 lanes = first_lanes(a.rows);
      for (std::int64_t p = 0; p < padded_pairs_; p += width) {
        const auto column = [&](std::int64_t k) {
          return k < depth_ ? _mm512_cvtepu16_epi32(
                                  _mm256_maskz_loadu_epi16(lanes, from + k * a.col_stride))
                            : _mm512_setzero_si512();
        };
        const auto pairs = [&](int j) {
          const std::int64_t k = 2 * (p + j);
          return (Vector<float>)_mm512_or_si512(column(k), _mm512_slli_epi32(column(k + 1), 16));
        };
        transpose_square(pairs, reinterpret_cast<float*>(to + p), padded_pairs_);
      }
      return;
    }
    for (std::int64_t i = 0; i < a.rows; ++i, from += a.row_stride, to += padded_pairs_) {
      bf16* const row = reinterpret_cast<bf16*>(to);
      if (a.col_stride == 1)
        std::copy_n(from, depth_, row);
      else
        for (std::int64_t k = 0; k < depth_; ++k) row[k] = from[k * a.col_stride];
      std::fill(row + depth_, row + 2 * padded_pairs_, bf16{0});
    }
  }

  /// c = a · b, or c += a · b, of the rows from `row` on and the columns of the block of b that
  /// begin at `from`.
  template <class T>
  void multiply_panel(const MatrixRef<T>& c, const PairRows& a, std::int64_t row, std::int64_t from,
                      const Pair* block) const {
    alignas(64) float sums[panel_rows * columns];
    for (std::int64_t j = 0; j < c.cols && c.rows > 0; j += columns) {
      const std::int64_t cols = std::min(columns, c.cols - j);
      fetch(row, c.rows, from + j, cols);
      multiply_tiles(a.data, a.row_stride, c.rows > row_unit, block + (from + j) * padded_pairs_,
                     cols > width, padded_pairs_, sums);
      const MatrixRef<T> to{c.data + j * c.col_stride, c.rows, cols, c.row_stride, c.col_stride};
      if (c.col_stride != 1) {
        copy_sums(sums, to);
        continue;
      }
      for (std::int64_t i = 0; i < c.rows; ++i) {
        for (std::int64_t l = 0; l < cols; l += width) {
          T* const at = to.data + i * c.row_stride + l;
          const __mmask16 lanes = first_lanes(std::min(width, cols - l));
          __m512 sum = _mm512_load_ps(sums + i * columns + l);
          if constexpr (std::is_same_v<T, float>) {
            if (accumulate_) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(lanes, at));
          }
          store_sum(at, sum, lanes);
        }
      }
    }
  }

#else

  PairRows rows_of(const Pair* packed, std::int64_t panel, std::int64_t rows) const {
    return {reinterpret_cast<const bf16*>(packed + panel * panel_rows * padded_pairs_), 2,
            2 * rows};
  }

  /// Panels [first, end) of rows of a. A few depths of each in turn where one panel would read
  /// parts of cache lines.
  void pack_a(std::int64_t first, std::int64_t end, Pair* packed) const {
    const std::int64_t step = a_.row_stride == 1 ? 32 : depth_;
    for (std::int64_t k = 0; k < depth_; k += step) {
      for (std::int64_t p = first; p < end; ++p) {
        const std::int64_t row = first_row(p), rows = first_row(p + 1) - row;
        pack_pairs(part_of(a_, {row, rows, first_k_ + k, std::min(step, depth_ - k)}).transposed(),
                   packed + (p - first) * panel_rows * pairs_ + k / 2 * rows, rows);
      }
    }
  }

  /// c = a · b, or c += a · b, of the rows from `row` on and the columns of the block of b that
  /// begin at `from`.
  template <class T>
  void multiply_panel(const MatrixRef<T>& c, const PairRows& a, std::int64_t row, std::int64_t from,
                      const Pair* block) const {
    for (std::int64_t j = 0; j < c.cols; j += columns) {
      const std::int64_t cols = std::min(columns, c.cols - j), vectors = ceil_div(cols, width);
      fetch(row, c.rows, from + j, cols);
      const Pair* const b = block + (from + j) * pairs_;
      const __mmask16 last = first_lanes(cols - (vectors - 1) * width);
      const MatrixRef<T> to{c.data + j * c.col_stride, c.rows, cols, c.row_stride, c.col_stride};
      if (c.col_stride == 1) {
        pair_tile_table<T>.multiply[c.rows - 1][vectors - 1]({pairs_, a.data, a.row_stride,
                                                              a.pair_stride, b, to.data,
                                                              c.row_stride, last, accumulate_});
        continue;
      }
      alignas(64) float sums[panel_rows * columns];
      pair_tile_table<float>.multiply[c.rows - 1][vectors - 1](
          {pairs_, a.data, a.row_stride, a.pair_stride, b, sums, columns, last, false});
      copy_sums(sums, to);
    }
  }

#endif

  /// To what has no rows.
  template <class T>
  void copy_sums(const float* sums, const MatrixRef<T>& c) const {
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t l = 0; l < c.cols; ++l) {
        T& to = c.data[i * c.row_stride + l * c.col_stride];
        const float sum = sums[i * columns + l];
        if constexpr (std::is_same_v<T, float>) {
          to = accumulate_ ? to + sum : sum;
        } else {
          to = convert<bf16>(sum);
        }
      }
    }
  }

  std::int64_t pairs_ = 0;         // deep is the block of b
  std::int64_t padded_pairs_ = 0;  // and with zeros behind, a multiple of deep_pairs
  std::int64_t group_ = 0;         // panels of a packed together
};

/// Results have to lie in rows. Of a product with a vector it is the matrix that counts: it is read
/// where it lies if the depth is contiguous, and packed fastest as b.
template <class C>
bool is_better_turned(const MatrixRef<C>& c, const MatrixRef<const bf16>& a,
                      const MatrixRef<const bf16>& b) {
  if (c.cols == 1) return a.col_stride != 1;
  if (c.rows == 1) return b.row_stride == 1;
  return c.col_stride != 1 && c.row_stride == 1;
}

template <class C>
void bf16_product(const MatrixRef<C>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish) {
  run_product(
      c, a, b, finish,
      [&](const auto& to, const auto& left, const auto& right, const Finish& done) {
        PairProduct<C>(to, left, right, done).run(accumulate);
      },
      is_better_turned<C>);
}

/// Sums of products of pairs, in f32.
double multiply_add(std::int64_t steps) {
#if defined(EIN_TILE_ZERO)
  const Tiles tiles;
  alignas(64) Pair small[16 * 16];
  alignas(64) float sums[16 * 16];
  std::fill(std::begin(small), std::end(small), pair(bf16{0x3a80}, bf16{0x3a80}));  // 2^-10
  EIN_TILE_LOAD(4, small, 64);
  EIN_TILE_LOAD(5, small, 64);
  EIN_TILE_ZERO(0);
  EIN_TILE_ZERO(1);
  EIN_TILE_ZERO(2);
  EIN_TILE_ZERO(3);
  for (std::int64_t step = 0; step < steps; ++step) {
    EIN_TILE_MULTIPLY_ADD(0, 4, 5);
    EIN_TILE_MULTIPLY_ADD(1, 4, 5);
    EIN_TILE_MULTIPLY_ADD(2, 4, 5);
    EIN_TILE_MULTIPLY_ADD(3, 4, 5);
  }
  EIN_TILE_STORE(0, sums, 64);
  keep(sums);
  EIN_TILE_STORE(1, sums, 64);
  keep(sums);
  EIN_TILE_STORE(2, sums, 64);
  keep(sums);
  EIN_TILE_STORE(3, sums, 64);
  keep(sums);
  return 4.0 * (2 * 16 * 16 * 32) * static_cast<double>(steps);
#else
  constexpr int chains = 12;
  const __m512bh small = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0x1p-10F), _mm512_set1_ps(0x1p-10F));
  Vector<float> x[chains];
  repeat<chains>([&](auto i) { x[i] = Vector<float>{} + static_cast<float>(i); });
  for (std::int64_t step = 0; step < steps; ++step) {
    repeat<chains>(
        [&](auto i) { x[i] = (Vector<float>)_mm512_dpbf16_ps((__m512)x[i], small, small); });
  }
  repeat<chains>([&](auto i) { keep(x[i]); });
  return 4.0 * vector_width<float> * chains * static_cast<double>(steps);
#endif
}

constexpr Bf16Products::InPairs table{bf16_product<float>, bf16_product<bf16>, multiply_add};
constexpr const Bf16Products::InPairs* in_pairs = &table;

}  // namespace
}  // namespace ein::host::EIN_LEVEL

#else

namespace ein::host::EIN_LEVEL {
namespace {
constexpr const Bf16Products::InPairs* in_pairs = nullptr;
}
}  // namespace ein::host::EIN_LEVEL

#endif

namespace ein::host::EIN_LEVEL {

extern const Bf16Products bf16_products;
constexpr Bf16Products bf16_products {
  .isa = isa,
#if defined(EIN_TILE_ZERO) && !defined(__AVX512BF16__)
  .few_rows = {},  // AVX-512's are as good
#else
  .few_rows = {few_rows_product<float, bf16>, few_rows_product<bf16, bf16>},
#endif
#if defined(EIN_TILE_ZERO)
      .few_rows_in_tiles = {few_rows_product_in_tiles<float>, few_rows_product_in_tiles<bf16>},
#else
  .few_rows_in_tiles = {},
#endif
  .in_pairs = in_pairs,
};

}  // namespace ein::host::EIN_LEVEL
