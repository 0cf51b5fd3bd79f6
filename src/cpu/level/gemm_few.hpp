// Matrix products of few rows, which read each weight from memory once.
//
// The larger operand is called the weights, the other the rows. Weights come in units, as many as a
// vector register holds. Where they are neighbours along the depth, sums run along the lanes of
// vectors, to be added up at the end; where along the columns, each lane has a column of its own.
// Either way sums of a chunk of columns wait in memory as vectors while blocks of the depth pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_pack.hpp"
#include "cpu/level/gemm_panels.hpp"

namespace ein::host::EIN_LEVEL {

/// A value that is used more than once: GCC would read it from memory each time.
template <class V>
[[gnu::always_inline]] inline V kept(V v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
  return v;
}

/// How units of weights meet rows. `dot_parts` vectors of factors come from a unit along the depth,
/// `column_parts` from `depths` units below each other along the columns, to as many vectors of
/// sums, whose order `arrange` restores. `Row` is the type of packed rows.
template <class T>
struct Plain {
  using In = T;
  using Sum = T;
  using Row = T;
  static constexpr int numbers = vector_width<T>, dot_parts = 1, column_parts = 1, depths = 1;
  using Factors = Vector<T>;

  template <int>
  [[gnu::always_inline]] static Factors read(const T* w) {
    return load(w);
  }
  [[gnu::always_inline]] static Factors load_row(const T* x) { return load(x); }
  [[gnu::always_inline]] static void add(Vector<T>& sum, const Factors& w, const Factors& x) {
    sum += w * x;
  }
  [[gnu::always_inline]] static void read_columns(const T* w, std::int64_t, Factors (&to)[1]) {
    to[0] = load(w);
  }
  [[gnu::always_inline]] static Factors factor(const T* x) { return *x - Factors{}; }
  static void arrange(Vector<T> (&)[1]) {}
  static void pack(const T* from, std::int64_t stride, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
    std::fill(to + count, to + numbers, T{});
  }
  static T row(T x) { return x; }
};

/// bf16 is the upper half of f32: numbers in even and in odd places become a vector each.
struct Widened {
  using In = bf16;
  using Sum = float;
  using Row = float;
  [[maybe_unused]] static constexpr int width = vector_width<float>, numbers = 2 * width,
                                        dot_parts = 2, column_parts = 2, depths = 1;
  using Factors = Vector<float>;

  template <int part>
  [[gnu::always_inline]] static Factors read(const bf16* w) {
    Vector<std::uint32_t> both;
    std::memcpy(&both, w, sizeof both);
    return (Factors)(part == 0 ? both << 16 : both & 0xffff0000U);
  }
  [[gnu::always_inline]] static Factors load_row(const float* x) { return load(x); }
  [[gnu::always_inline]] static void add(Factors& sum, const Factors& w, const Factors& x) {
    sum += w * x;
  }
  [[gnu::always_inline]] static void read_columns(const bf16* w, std::int64_t, Factors (&to)[2]) {
    repeat<2>([&](auto part) { to[part] = read<part>(w); });
  }
  [[gnu::always_inline]] static Factors factor(const float* x) { return *x - Factors{}; }
  static void arrange(Factors (&sums)[2]) {
    constexpr std::make_integer_sequence<int, width> each;
    const Factors even = sums[0], odd = sums[1];
    sums[0] = interleave_low(even, odd, each);
    sums[1] = interleave_high(even, odd, each);
  }
  static void pack(const bf16* from, std::int64_t stride, std::int64_t count, float* to) {
    for (int i = 0; i < numbers; ++i) {
      to[i % 2 * width + i / 2] = i < count ? convert<float>(from[i * stride]) : 0.0F;
    }
  }
  static float row(bf16 x) { return convert<float>(x); }
};

#if defined(__AVX512BF16__)
/// Pairs along the depth, as VDPBF16PS takes them.
struct Pairs {
  using In = bf16;
  using Sum = float;
  using Row = bf16;
  static constexpr int numbers = 32, dot_parts = 1, column_parts = 2, depths = 2;
  using Factors = __m512i;

  template <int>
  [[gnu::always_inline]] static Factors read(const bf16* w) {
    return _mm512_loadu_si512(w);
  }
  [[gnu::always_inline]] static Factors load_row(const bf16* x) { return read<0>(x); }
  [[gnu::always_inline]] static void add(Vector<float>& sum, const Factors& w, const Factors& x) {
    sum = (Vector<float>)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)w);
  }
  [[gnu::always_inline]] static void read_columns(const bf16* w, std::int64_t row_stride,
                                                  Factors (&to)[2]) {
    const __m512i low = _mm512_loadu_si512(w), high = _mm512_loadu_si512(w + row_stride);
    to[0] = _mm512_unpacklo_epi16(low, high);
    to[1] = _mm512_unpackhi_epi16(low, high);
  }
  [[gnu::always_inline]] static __m512i factor(const bf16* x) {
    int pair;
    std::memcpy(&pair, x, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  /// Unpacked were the lower and the upper half of each 128 bits.
  static void arrange(Vector<float> (&sums)[2]) {
    const Vector<float> x = sums[0], y = sums[1];
    sums[0] = __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    sums[1] =
        __builtin_shufflevector(x, y, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  }
  static void pack(const bf16* from, std::int64_t stride, std::int64_t count, bf16* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
    std::fill(to + count, to + numbers, bf16{});
  }
  static bf16 row(bf16 x) { return x; }
};
#endif

template <class In>
struct FactorsOf {
  using type = Plain<In>;
};
template <>
struct FactorsOf<bf16> {
#if defined(__AVX512BF16__)
  using type = Pairs;
#else
  using type = Widened;
#endif
};

/// Rows that meet a unit together: their sums, with units and a factor, fill the registers.
constexpr int most_rows = vector_registers == 32 ? 8 : 6;
constexpr int tile_units(int rows, int parts) {
  return std::clamp((vector_registers - 2) / ((rows + 1) * parts), 1, 8 / parts);
}

/// At most so many bytes of packed rows stay in the first-level cache while a chunk of weights
/// meets them.
constexpr std::int64_t block_bytes = 1 << 14;
/// Where units are neighbours along the columns, the sums of a chunk meet some steps along the
/// depth at once: enough to be read rarely, few enough for weights that lie a power of 2 apart,
/// which compete for places in the caches. More rows mean smaller chunks. A vector as long as a
/// cache line takes lines that were fetched in advance. Shorter ones read a line in parts: rows
/// that meet it together do best with 8 steps, whose lines the processor fetches by itself; several
/// groups of rows work on a copy of the weights while the next ones are fetched (0.4 to 0.7 of the
/// time on Zen 3).
constexpr std::int64_t most_steps = 32;
constexpr bool reads_whole_lines = vector_bytes >= 64;
constexpr std::int64_t steps_of(std::int64_t rows) {
  if constexpr (reads_whole_lines) return rows <= most_rows / 2 ? most_steps / 2 : most_steps;
  return rows <= most_rows ? 8 : most_steps;
}
/// Of a copy of weights.
constexpr std::int64_t copied_columns = 128;
/// Sums of a chunk, as vectors.
constexpr std::int64_t most_sums = 1024;
/// Rows are packed for as much of the depth at a time as fits into so many bytes.
constexpr std::int64_t packed_bytes = 1 << 19;

/// Where weights are fetched to in advance: they would push the rows out of the first level.
constexpr int second_level = 2;

/// sums = or += rows · weights along the lanes: `units` units of each row and each of the columns,
/// which have `to_stride` sums each.
template <class F>
struct Dots {
  std::int64_t units;
  const typename F::Row* x;  // a unit of each row, then the next
  const typename F::In* w;
  std::int64_t w_stride;
  Vector<typename F::Sum>* to;
  std::int64_t to_stride;
  bool accumulate;
};

template <class F, int rows, int weights>
void add_dots(const Dots<F>& dots) {
  constexpr int vector_numbers = vector_bytes / static_cast<int>(sizeof(typename F::Row));
  using V = Vector<typename F::Sum>;
  V sum[weights][rows];
  const auto each_sum = [&](const auto& f) __attribute__((always_inline)) {
    repeat<weights>([&](auto j) __attribute__((always_inline)) {
      repeat<rows>([&](auto i) __attribute__((always_inline)) {
        f(sum[j][i], dots.to[j * dots.to_stride + i]);
      });
    });
  };
  each_sum([&](V & in_register, const V& in_memory)
               __attribute__((always_inline)) { in_register = dots.accumulate ? in_memory : V{}; });
  constexpr int pointers = (weights + 2) / 3;  // as in multiply_tile
  const typename F::In* w[pointers];
  const std::int64_t stride = dots.w_stride;
  repeat<pointers>([&](auto p) { w[p] = dots.w + 3 * p * stride; });
  const typename F::Row* x = dots.x;
  for (std::int64_t unit = dots.units; unit > 0; --unit) {
    repeat<F::dot_parts>([&](auto part) __attribute__((always_inline)) {
      typename F::Factors factors[weights];
      repeat<weights>([&](auto j) __attribute__((always_inline)) {
        const typename F::In* const from = w[j / 3] + j % 3 * stride;
        factors[j] = F::template read<part>(from);
        if (part == 0) __builtin_prefetch(from + weights * stride, 0, second_level);
      });
      repeat<rows>([&](auto i) __attribute__((always_inline)) {
        const auto factor = kept(F::load_row(x + (i * F::dot_parts + part) * vector_numbers));
        repeat<weights>([&](auto j) __attribute__((always_inline)) {
          F::add(sum[j][i], factors[j], factor);
        });
      });
    });
    repeat<pointers>([&](auto p) { w[p] += F::numbers; });
    x += rows * F::dot_parts * vector_numbers;
  }
  each_sum([&](const V& in_register, V& in_memory)
               __attribute__((always_inline)) { in_memory = in_register; });
}

/// sums = or += rows · weights for a column in each lane. Those of a unit are `to_stride` parts of
/// rows.
template <class F>
struct Columns {
  std::int64_t steps;
  const typename F::Row* x;  // a factor of each row, then the next
  const typename F::In* w;
  std::int64_t row_stride;
  const typename F::In* next;  // weights to be fetched meanwhile, or those at hand
  std::int64_t next_stride;
  Vector<typename F::Sum>* to;
  std::int64_t to_stride;
  bool accumulate;
};

template <class F, int rows, int units>
void add_columns(const Columns<F>& columns) {
  using V = Vector<typename F::Sum>;
  constexpr int parts = F::column_parts;
  V sum[rows][units][parts];
  const auto each_sum = [&](const auto& f) __attribute__((always_inline)) {
    repeat<units>([&](auto u) __attribute__((always_inline)) {
      repeat<rows>([&](auto i) __attribute__((always_inline)) {
        repeat<parts>([&](auto p) __attribute__((always_inline)) {
          f(sum[i][u][p], columns.to[u * columns.to_stride + i * parts + p]);
        });
      });
    });
  };
  each_sum([&](V & in_register, const V& in_memory) __attribute__((always_inline)) {
    in_register = columns.accumulate ? in_memory : V{};
  });
  const typename F::In* w = columns.w;
  const typename F::Row* x = columns.x;
  const std::int64_t stride = columns.row_stride;
  const typename F::In* next = columns.next;
  for (std::int64_t step = columns.steps; step > 0; --step) {
    typename F::Factors factors[units][parts];
    repeat<units>([&](auto u) __attribute__((always_inline)) {
      F::read_columns(w + u * F::numbers, stride, factors[u]);
      repeat<F::depths>([&](auto d) __attribute__((always_inline)) {
        __builtin_prefetch(next + u * F::numbers + d * columns.next_stride, 0, second_level);
      });
    });
    repeat<rows>([&](auto i) __attribute__((always_inline)) {
      const auto factor = kept(F::factor(x + i * F::depths));
      repeat<units>([&](auto u) __attribute__((always_inline)) {
        repeat<parts>([&](auto p) __attribute__((always_inline)) {
          F::add(sum[i][u][p], factors[u][p], factor);
        });
      });
    });
    w += F::depths * stride;
    next += F::depths * columns.next_stride;
    x += F::depths * rows;
  }
  each_sum([&](const V& in_register, V& in_memory)
               __attribute__((always_inline)) { in_memory = in_register; });
}

/// For each number of rows less 1, of one and of as many units as fit.
template <class F>
struct FewTable {
  struct Entry {
    int weights, units;  // in a tile of dots, and of columns
    void (*dots[2])(const Dots<F>&);
    void (*columns[2])(const Columns<F>&);
  };
  Entry of[most_rows];
};
template <class F>
constexpr FewTable<F> make_few_table() {
  FewTable<F> table{};
  repeat<most_rows>([&](auto i) {
    constexpr int weights = tile_units(i + 1, 1), units = tile_units(i + 1, F::column_parts);
    table.of[i] = {weights,
                   units,
                   {add_dots<F, i + 1, 1>, add_dots<F, i + 1, weights>},
                   {add_columns<F, i + 1, 1>, add_columns<F, i + 1, units>}};
  });
  return table;
}
template <class F>
constexpr FewTable<F> few_table = make_few_table<F>();

/// The lanes of vectors 0, …, width - 1 added up, to as many lanes.
template <class T, int n = vector_width<T>>
[[gnu::always_inline]] inline Vector<T> sums_of_lanes(Vector<T> (&v)[vector_width<T>]) {
  if constexpr (n == 1) {
    return v[0];
  } else {
    constexpr std::make_integer_sequence<int, vector_width<T>> each;
    repeat<n / 2>([&](auto i) {
      v[i] = interleave_low(v[i], v[i + n / 2], each) + interleave_high(v[i], v[i + n / 2], each);
    });
    return sums_of_lanes<T, n / 2>(v);
  }
}

template <class F>
struct Scratch {
  using Sum = typename F::Sum;
  alignas(64) std::byte x[packed_bytes];
  alignas(64) Vector<Sum> sums[most_sums];
  alignas(64) typename F::In edge[most_steps * F::depths * F::numbers];
  alignas(64) typename F::In copy[reads_whole_lines ? 1 : most_steps * F::depths * copied_columns];
  alignas(64) typename F::In row[F::depths == 1 ? 1 : most_sums * F::numbers];
};

template <class F, class C>
class FewRowsProduct {
  using In = typename F::In;
  using Sum = typename F::Sum;
  using Row = typename F::Row;
  static constexpr std::int64_t numbers = F::numbers, width = vector_width<Sum>,
                                parts = F::column_parts;

 public:
  FewRowsProduct(const MatrixRef<C>& c, const MatrixRef<const In>& x, const MatrixRef<const In>& w,
                 bool accumulate, const Finish& finish)
      : c_(c),
        x_(x),
        w_(w),
        finish_(finish),
        accumulate_(accumulate),
        groups_(ceil_div(c.rows, most_rows)),
        scratch_(thread_scratch<Scratch<F>>()) {}

  void run() {
    const bool is_dots = w_.row_stride == 1;
    const std::int64_t piece = packed_bytes / static_cast<std::int64_t>(sizeof(Row)) / c_.rows /
                               (2 * numbers) * (2 * numbers);
    const std::int64_t chunk =
        is_dots ? most_sums / c_.rows : most_sums / (c_.rows * parts) / 8 * 8 * numbers;
    for (std::int64_t j = 0; j < c_.cols; j += chunk) {
      column_ = j;
      cols_ = std::min(chunk, c_.cols - j);
      if (!std::is_same_v<C, Sum> && finish_) {
        struct OfSums {};
        to_finish_ = finish_.sums_at(thread_buffer<float, OfSums>(c_.rows * cols_), c_.rows, cols_);
      }
      for (first_k_ = 0; first_k_ < x_.cols; first_k_ += piece) {
        depth_ = std::min(piece, x_.cols - first_k_);
        const bool packs = j == 0 || x_.cols > piece;
        if (is_dots) {
          if (packs) pack_dots();
          multiply_dots();
        } else {
          if (packs) pack_columns();
          multiply_columns();
        }
      }
      if (is_dots) {
        store_dots();
      } else {
        store_columns();
      }
      if (finish_) finish_(0, c_.rows, column_, cols_, to_finish_.data);
    }
  }

 private:
  std::int64_t first_row(std::int64_t group) const { return c_.rows * group / groups_; }
  Row* packed() const { return reinterpret_cast<Row*>(scratch_.x); }
  const In* weights_at(std::int64_t k, std::int64_t j) const {
    return w_.data + (first_k_ + k) * w_.row_stride + (column_ + j) * w_.col_stride;
  }
  const In* row_at(std::int64_t i, std::int64_t k) const {
    return x_.data + i * x_.row_stride + (first_k_ + k) * x_.col_stride;
  }

  // --- weights side by side along the depth ---

  /// Numbers in a packed unit of a row.
  static constexpr std::int64_t unit = F::dot_parts * vector_bytes / sizeof(Row);

  void pack_dots() {
    Row* to = packed();
    for (std::int64_t g = 0; g < groups_; ++g) {
      for (std::int64_t k = 0; k < depth_; k += numbers) {
        for (std::int64_t i = first_row(g); i < first_row(g + 1); ++i, to += unit) {
          F::pack(row_at(i, k), x_.col_stride, std::min(numbers, depth_ - k), to);
        }
      }
    }
  }

  void multiply_dots() {
    const std::int64_t whole = depth_ / numbers, units = ceil_div(depth_, numbers);
    const std::int64_t most =
        block_bytes / (ceil_div(c_.rows, groups_) * unit * static_cast<std::int64_t>(sizeof(Row)));
    for (std::int64_t u = 0; u < units; u += most) {
      const std::int64_t count = std::min(most, whole - u);
      for (std::int64_t g = 0; g < groups_; ++g) {
        const std::int64_t row = first_row(g), rows = first_row(g + 1) - row;
        const auto& entry = few_table<F>.of[rows - 1];
        const Row* const x = packed() + (row * units + u * rows) * unit;
        for (std::int64_t j = 0; j < cols_;) {
          const bool is_whole = cols_ - j >= entry.weights;
          const std::int64_t columns = is_whole ? entry.weights : 1;
          Vector<Sum>* const to = scratch_.sums + j * c_.rows + row;
          bool accumulate = first_k_ + u > 0;
          if (count > 0) {
            entry.dots[is_whole](
                {count, x, weights_at(u * numbers, j), w_.col_stride, to, c_.rows, accumulate});
            accumulate = true;
          }
          if (u + most >= units && whole < units) {
            const std::int64_t rest = depth_ - whole * numbers;
            for (std::int64_t l = 0; l < columns; ++l) {
              const In* const from = weights_at(whole * numbers, j + l);
              In* const edge = scratch_.edge + l * numbers;
              std::fill(std::copy_n(from, rest, edge), edge + numbers, In{});
            }
            entry.dots[is_whole]({1, packed() + (row * units + whole * rows) * unit, scratch_.edge,
                                  numbers, to, c_.rows, accumulate});
          }
          j += columns;
        }
      }
    }
  }

  void store_dots() {
    for (std::int64_t j = 0; j < cols_; j += width) {
      const std::int64_t count = std::min(width, cols_ - j);
      for (std::int64_t i = 0; i < c_.rows; ++i) {
        const Vector<Sum>* const sums = scratch_.sums + j * c_.rows + i;
        Vector<Sum> v[width];
        for (std::int64_t l = 0; l < width; ++l)
          v[l] = l < count ? sums[l * c_.rows] : Vector<Sum>{};
        put(i, j, count, sums_of_lanes<Sum>(v));
      }
    }
  }

  // --- weights side by side along the columns ---

  void pack_columns() {
    Row* to = packed();
    for (std::int64_t g = 0; g < groups_; ++g) {
      for (std::int64_t k = 0; k < depth_; k += F::depths) {
        for (std::int64_t i = first_row(g); i < first_row(g + 1); ++i) {
          for (std::int64_t d = 0; d < F::depths; ++d) {
            *to++ = k + d < depth_ ? F::row(*row_at(i, k + d)) : Row{};
          }
        }
      }
    }
  }

  void multiply_columns() {
    const std::int64_t block_depth = steps_of(c_.rows) * F::depths;
    for (std::int64_t k = 0; k < depth_; k += block_depth) {
      std::int64_t depth = std::min(block_depth, depth_ - k);
      const std::int64_t pairless = depth % F::depths;
      depth -= pairless;
      if (depth > 0) {
        multiply_rows(weights_at(k, 0), w_.row_stride, k, depth / F::depths, first_k_ + k > 0);
      }
      if (pairless > 0) {
        // The last alone, above zeros.
        In* const row = scratch_.row;
        std::copy_n(weights_at(k + depth, 0), cols_, row);
        std::fill_n(row + cols_, cols_, In{});
        multiply_rows(row, cols_, k + depth, 1, first_k_ + k + depth > 0);
      }
    }
  }

  /// `steps` of the depth, from k on, whose weights lie at `w`.
  void multiply_rows(const In* w, std::int64_t row_stride, std::int64_t k, std::int64_t steps,
                     bool accumulate) {
    const std::int64_t whole = cols_ / numbers, rest = cols_ % numbers;
    if (rest > 0) {
      for (std::int64_t d = 0; d < steps * F::depths; ++d) {
        In* const edge = scratch_.edge + d * numbers;
        std::fill(std::copy_n(w + d * row_stride + whole * numbers, rest, edge), edge + numbers,
                  In{});
      }
    }
    const In* const next_rows = w + steps_of(c_.rows) * F::depths * row_stride;
    const std::int64_t all_steps = ceil_div(depth_, F::depths), to_stride = c_.rows * parts;
    const bool copies = !reads_whole_lines && groups_ > 1;
    const std::int64_t most = copies ? copied_columns / numbers : std::max(whole, std::int64_t{1});
    for (std::int64_t first = 0; first == 0 || first < whole; first += most) {
      const std::int64_t end = std::min(whole, first + most);
      const In* block = w + first * numbers;
      std::int64_t stride = row_stride;
      const In* next = (reads_whole_lines ? next_rows : w) + first * numbers;
      if (copies) {
        next = end < whole ? w + end * numbers : next_rows;
        stride = (end - first) * numbers;
        for (std::int64_t d = 0; d < steps * F::depths; ++d)
          std::copy_n(block + d * row_stride, stride, scratch_.copy + d * stride);
        block = scratch_.copy;
      }
      for (std::int64_t g = 0; g < groups_; ++g) {
        const std::int64_t row = first_row(g), rows = first_row(g + 1) - row;
        const auto& entry = few_table<F>.of[rows - 1];
        const Row* const x = packed() + row * all_steps * F::depths + k * rows;
        Vector<Sum>* const to = scratch_.sums + row * parts;
        for (std::int64_t u = first; u < end;) {
          const bool is_whole = end - u >= entry.units;
          const std::int64_t at = (u - first) * numbers;
          entry.columns[is_whole]({steps, x, block + at, stride, next + at, row_stride,
                                   to + u * to_stride, to_stride, accumulate});
          u += is_whole ? entry.units : 1;
        }
        if (end == whole && rest > 0) {
          entry.columns[0]({steps, x, scratch_.edge, numbers, scratch_.edge, numbers,
                            to + whole * to_stride, to_stride, accumulate});
        }
      }
    }
  }

  void store_columns() {
    for (std::int64_t j = 0; j < cols_; j += numbers) {
      for (std::int64_t i = 0; i < c_.rows; ++i) {
        Vector<Sum>* const sums = scratch_.sums + (j / numbers * c_.rows + i) * parts;
        Vector<Sum> v[parts];
        for (int p = 0; p < parts; ++p) v[p] = sums[p];
        F::arrange(v);
        for (int p = 0; p < parts && j + p * width < cols_; ++p)
          put(i, j + p * width, std::min(width, cols_ - j - p * width), v[p]);
      }
    }
  }

  // --- the result ---

  /// `count` sums of row i, from column j of the chunk on.
  void put(std::int64_t i, std::int64_t j, std::int64_t count, const Vector<Sum>& sums) const {
    C* const to = c_.data + i * c_.row_stride + (column_ + j) * c_.col_stride;
    if constexpr (std::is_same_v<C, Sum>) {
      if (count == width && c_.col_stride == 1)
        return store<C>(to, accumulate_ ? load(to) + sums : sums);
    } else if (finish_) {
      float* const sum = to_finish_.data + i * to_finish_.row_stride + j * to_finish_.col_stride;
      if (count == width && to_finish_.col_stride == 1) return store<float>(sum, sums);
      for (std::int64_t l = 0; l < count; ++l) sum[l * to_finish_.col_stride] = sums[l];
      return;
    }
    for (std::int64_t l = 0; l < count; ++l) {
      C& element = to[l * c_.col_stride];
      if constexpr (std::is_same_v<C, Sum>) {
        element = accumulate_ ? element + sums[l] : sums[l];
      } else {
        element = convert<C>(sums[l]);
      }
    }
  }

  const MatrixRef<C> c_;
  const MatrixRef<const In> x_, w_;
  const Finish finish_;
  const bool accumulate_;
  const std::int64_t groups_;  // of rows
  Scratch<F>& scratch_;
  MatrixRef<float> to_finish_{};  // the sums of the chunk, if they are not written to c
  std::int64_t column_ = 0, cols_ = 0, first_k_ = 0, depth_ = 0;  // the chunk, and the piece
};

template <class C, class In>
void few_rows_product(const MatrixRef<C>& c, const MatrixRef<const In>& a,
                      const MatrixRef<const In>& b, bool accumulate, const Finish& finish) {
  using Factors = typename FactorsOf<In>::type;
  if (has_few_columns(c, a, b)) {
    FewRowsProduct<Factors, C>(c.transposed(), b.transposed(), a.transposed(), accumulate,
                               finish.transposed())
        .run();
  } else {
    FewRowsProduct<Factors, C>(c, a, b, accumulate, finish).run();
  }
}

}  // namespace ein::host::EIN_LEVEL
