// Matrix products of few rows, which read each weight from memory once.
//
// The larger operand is called the weights, the other the rows. Weights come in units, as many as a
// vector register holds. Where they are neighbours along the depth, sums run along the lanes of
// vectors, to be added up at the end; where along the columns, each lane has a column of its own.
// Either way sums of a chunk of columns wait in memory as vectors while blocks of the depth pass.
//
// Memory is read in a few long streams, of rows or columns of weights that are neighbours, which
// processors notice. What is read again, packed rows or sums, is to stay in the first-level cache:
// reading from the second takes as long as reading weights from memory. Where that cuts columns
// into blocks shorter than they are, the next block of a chunk of columns is fetched into the
// second-level cache while one is multiplied, so that memory is still read in whole pages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include "cpu/level/gemm_few_result.hpp"
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
  [[gnu::always_inline]] static void read_columns(const T* const (&w)[1], Factors (&to)[1]) {
    to[0] = load(w[0]);
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
  [[gnu::always_inline]] static void read_columns(const bf16* const (&w)[1], Factors (&to)[2]) {
    repeat<2>([&](auto part) { to[part] = read<part>(w[0]); });
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
  [[gnu::always_inline]] static void read_columns(const bf16* const (&w)[2], Factors (&to)[2]) {
    const __m512i low = kept(_mm512_loadu_si512(w[0])), high = kept(_mm512_loadu_si512(w[1]));
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
constexpr int most_rows = is_small ? 4 : vector_registers == 32 ? 8 : 6;
constexpr int units_that_fit(int rows, int parts) {
  return std::max((vector_registers - 2) / ((rows + 1) * parts), 1);
}
/// Where weights that come next are fetched to while others are multiplied. Fetched into the first
/// level they take the few places in which it waits for lines: half the speed on Zen 4.
constexpr int second_level = 2;

/// Columns of weights that are read together: with few rows about as many sums as hide the latency
/// of a multiply-add, with more as many columns as load each row rarely. More would push the rows
/// out of the first-level cache before they are wanted again. Three rows wait for memory, and two
/// streams of it are read faster than three; but in parts they wait for multiply-adds. One row
/// whose units are cache lines is faster with two lines of four columns in a turn than with one of
/// eight.
template <class F>
constexpr int dot_columns(int rows) {
  constexpr bool of_lines =
      vector_bytes == line_bytes && std::is_same_v<typename F::In, typename F::Sum>;
  if (of_lines && rows == 1) return 4;
  const int most = F::dot_parts == 1 ? 8 / rows : (8 + rows - 1) / rows;
  return std::min(units_that_fit(rows, 1), rows <= 4 ? most : 3);
}
/// So many units of them follow each other in a turn of the loop: one where sums fill the
/// registers, which GCC would else move to memory.
constexpr int dot_units(int rows, int columns) {
  const bool fits = (rows + 1) * columns + 2 < vector_registers;
  return fits && !is_small ? std::max(8 / columns, 1) : 1;
}

/// Steps of the depth that are multiplied together, so that sums are rarely read and written: rows
/// of weights, each a stream that the processor has to follow, or pairs of them. Rows often lie a
/// power of 2 apart, where 8 to 12 of them find places in a first-level cache.
template <class F>
constexpr int column_steps = is_small         ? 4
                             : F::depths == 1 ? 8
                                              : 6;
/// Units that are multiplied together: of two cache lines, or of one in parts.
constexpr int column_units(int rows, int parts) {
  return std::clamp(2 * static_cast<int>(line_bytes) / vector_bytes / parts, 1,
                    units_that_fit(rows, parts));
}
/// Whether the factors of all steps find room in registers beside sums and units. Of several groups
/// each has more than half the most rows, and factors of its own.
constexpr bool keeps_factors(int rows, int steps, int units) {
  return rows <= most_rows / 2 && rows * steps + (rows + 1) * units < vector_registers;
}

/// So many numbers are added one by one, at least, before their sum is added to others.
constexpr std::int64_t most_added = 512;

/// The most bytes of packed rows: these are packed for a part of the depth at a time.
constexpr std::int64_t packed_bytes = 1 << 19;

/// sums = or += rows · weights along the lanes: `units` units of each row and each of the columns,
/// which have `to_stride` sums each.
template <class F>
struct Dots {
  std::int64_t units;
  const typename F::Row* x;  // a unit of each row, then the next
  const typename F::In* w;
  std::int64_t w_stride;
  const typename F::In* next;  // weights to be fetched meanwhile, which lie in the same way
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
  const std::int64_t stride = dots.w_stride, to_next = dots.next - dots.w;
  repeat<pointers>([&](auto p) { w[p] = dots.w + 3 * p * stride; });
  const typename F::Row* x = dots.x;
  constexpr int line = line_bytes / static_cast<int>(sizeof(typename F::In));
  const auto add_unit = [&](auto at) __attribute__((always_inline)) {
    repeat<F::dot_parts>([&](auto part) __attribute__((always_inline)) {
      typename F::Factors factors[weights];
      repeat<weights>([&](auto j) __attribute__((always_inline)) {
        const typename F::In* const from = w[j / 3] + j % 3 * stride + at * F::numbers;
        factors[j] = F::template read<part>(from);
        if constexpr (rows > 2) factors[j] = kept(factors[j]);
        if constexpr (part == 0 && at * F::numbers % line == 0) {
          __builtin_prefetch(from + to_next, 0, second_level);
        }
      });
      repeat<rows>([&](auto i) __attribute__((always_inline)) {
        const auto factor =
            kept(F::load_row(x + ((at * rows + i) * F::dot_parts + part) * vector_numbers));
        repeat<weights>([&](auto j) __attribute__((always_inline)) {
          F::add(sum[j][i], factors[j], factor);
        });
      });
    });
  };
  const auto add_units = [&](auto count) __attribute__((always_inline)) {
    repeat<count>([&](auto at) __attribute__((always_inline)) { add_unit(at); });
    repeat<pointers>([&](auto p) { w[p] += count * F::numbers; });
    x += count * rows * F::dot_parts * vector_numbers;
  };
  std::int64_t unit = dots.units;
  constexpr int at_once = dot_units(rows, weights);
  for (; unit >= at_once; unit -= at_once) add_units(std::integral_constant<int, at_once>{});
  for (; unit > 0; --unit) add_units(std::integral_constant<int, 1>{});
  each_sum([&](const V& in_register, V& in_memory)
               __attribute__((always_inline)) { in_memory = in_register; });
}

/// sums += rows · weights for a column in each lane, of as many rows of weights as the kernel has
/// steps, for groups of as many rows as it has.
template <class F>
struct Columns {
  std::int64_t units, groups;
  const typename F::Row* x;  // a factor of each row of a group, then those of the next step
  std::int64_t x_stride;     // between groups
  const typename F::In* w;
  std::int64_t row_stride;
  const typename F::In* next;   // weights to be fetched meanwhile, which lie in the same way
  Vector<typename F::Sum>* to;  // parts of each row of each group, then those of the next unit
};

template <class F, int rows, int steps, int units>
void add_columns(const Columns<F>& columns) {
  using V = Vector<typename F::Sum>;
  constexpr int parts = F::column_parts;
  constexpr int pointers = (steps * F::depths + 2) / 3;  // as in multiply_tile
  const typename F::In* w[pointers];
  const std::int64_t stride = columns.row_stride;
  repeat<pointers>([&](auto p) { w[p] = columns.w + 3 * p * stride; });
  // Row after row, which is the order of memory.
  constexpr int line = line_bytes / static_cast<int>(sizeof(typename F::In)),
                fetched = steps * F::depths * units * F::numbers;
  const typename F::In* next = columns.next;
  const typename F::In* next_end = next + columns.units * F::numbers;
  V* to = columns.to;
  const std::int64_t groups = columns.groups, to_stride = groups * rows * parts;
  // Factors that find room beside the sums are read once.
  constexpr bool keeps = keeps_factors(rows, steps, units * parts);
  typename F::Factors factor[keeps ? steps * rows : 1];
  if constexpr (keeps) {
    repeat<steps * rows>([&](auto i) __attribute__((always_inline)) {
      factor[i] = kept(F::factor(columns.x + i * F::depths));
    });
  }
  for (std::int64_t count = columns.units; count > 0; count -= units) {
    if (count < columns.units) next += fetched;
    if (next >= next_end) {
      next += stride - columns.units * F::numbers;
      next_end += stride;
    }
    const typename F::Row* x = columns.x;
    for (std::int64_t g = groups; g > 0; --g) {
      V sum[rows][units][parts];
      const auto each_sum = [&](const auto& f) __attribute__((always_inline)) {
        repeat<units>([&](auto u) __attribute__((always_inline)) {
          repeat<rows>([&](auto i) __attribute__((always_inline)) {
            repeat<parts>([&](auto p) __attribute__((always_inline)) {
              f(sum[i][u][p], to[u * to_stride + i * parts + p]);
            });
          });
        });
      };
      each_sum([&](V & in_register, const V& in_memory)
                   __attribute__((always_inline)) { in_register = in_memory; });
      repeat<steps>([&](auto step) __attribute__((always_inline)) {
        typename F::Factors factors[units][parts];
        repeat<units>([&](auto u) __attribute__((always_inline)) {
          const typename F::In* from[F::depths];
          repeat<F::depths>([&](auto d) __attribute__((always_inline)) {
            constexpr int row = step * F::depths + d;
            from[d] = w[row / 3] + row % 3 * stride + u * F::numbers;
            constexpr int ahead = (row * units + u) * F::numbers;
            if constexpr (ahead % line == 0) __builtin_prefetch(next + ahead, 0, second_level);
          });
          F::read_columns(from, factors[u]);
        });
        repeat<rows>([&](auto i) __attribute__((always_inline)) {
          constexpr int at = step * rows + i;
          const auto multiply = [&](const auto& by) __attribute__((always_inline)) {
            repeat<units>([&](auto u) __attribute__((always_inline)) {
              repeat<parts>([&](auto p) __attribute__((always_inline)) {
                F::add(sum[i][u][p], factors[u][p], by);
              });
            });
          };
          if constexpr (keeps) {
            multiply(factor[at]);
          } else if constexpr (units * parts > 1) {
            multiply(kept(F::factor(x + at * F::depths)));
          } else {
            multiply(F::factor(x + at * F::depths));
          }
        });
      });
      each_sum([&](const V& in_register, V& in_memory)
                   __attribute__((always_inline)) { in_memory = in_register; });
      x += columns.x_stride;
      to += rows * parts;
    }
    repeat<pointers>([&](auto p) { w[p] += units * F::numbers; });
    to += (units - 1) * to_stride;
  }
}

/// For each number of rows less 1: of one column and of as many as are read together; of one step
/// and of as many, and of one unit and of those of a line.
template <class F>
struct FewTable {
  struct Entry {
    int dot_columns, column_units;
    void (*dots[2])(const Dots<F>&);
    void (*columns[2][2])(const Columns<F>&);
  };
  Entry of[most_rows];
};
template <class F>
constexpr FewTable<F> make_few_table() {
  FewTable<F> table{};
  repeat<most_rows>([&](auto i) {
    constexpr int rows = i + 1, columns = dot_columns<F>(rows),
                  units = column_units(rows, F::column_parts), steps = column_steps<F>;
    table.of[i] = {columns,
                   units,
                   {add_dots<F, rows, 1>, add_dots<F, rows, columns>},
                   {{add_columns<F, rows, 1, 1>, add_columns<F, rows, 1, units>},
                    {add_columns<F, rows, steps, 1>, add_columns<F, rows, steps, units>}}};
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
  alignas(64)
      typename F::In edge[std::max(column_steps<F> * F::depths, dot_columns<F>(1)) * F::numbers];
};

template <class F, class C>
class FewRowsProduct {
  using In = typename F::In;
  using Sum = typename F::Sum;
  using Row = typename F::Row;
  static constexpr std::int64_t numbers = F::numbers, width = vector_width<Sum>,
                                parts = F::column_parts;

 public:
  FewRowsProduct(const Caches& caches, const MatrixRef<C>& c, const MatrixRef<const In>& x,
                 const MatrixRef<const In>& w, bool accumulate, const Finish& finish)
      : c_(c),
        x_(x),
        w_(w),
        result_(c, accumulate, finish),
        groups_(ceil_div(c.rows, most_rows)),
        rows_bytes_(
            static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(caches.l1) / 2))),
        cached_bytes_(caches.l2 / 4),
        scratch_(thread_scratch<Scratch<F>>()) {}

  void run() {
    const bool is_dots = w_.row_stride == 1;
    const std::int64_t piece = packed_bytes / static_cast<std::int64_t>(sizeof(Row)) / all_rows() /
                               (2 * numbers) * (2 * numbers);
    const std::int64_t sums_bytes =  // of a column
        all_rows() * (is_dots ? vector_bytes : static_cast<std::int64_t>(sizeof(Sum)));
    const std::int64_t chunk = is_dots ? chunk_of_dots(sums_bytes, std::min(piece, x_.cols))
                                       : chunk_of(sums_bytes, 8 * numbers);
    struct OfProducts {};
    const std::int64_t vectors = chunk * sums_bytes / vector_bytes;
    sums_ = thread_buffer<Vector<Sum>, OfProducts>(x_.cols > most_added ? 2 * vectors : vectors);
    totals_.lie_at(sums_ + vectors);
    for (std::int64_t j = 0; j < c_.cols; j += chunk) {
      column_ = j;
      cols_ = std::min(chunk, c_.cols - j);
      result_.begin(column_, cols_);
      vectors_ = is_dots ? cols_ * c_.rows : ceil_div(cols_, numbers) * all_rows() * parts;
      added_ = 0;
      totals_.begin(vectors_);
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
      totals_.add_to(sums_);
      if (is_dots) {
        store_dots();
      } else {
        store_columns();
      }
      result_.end();
    }
  }

 private:
  /// Before other numbers are added: the sums go to the totals, if they are of enough of them.
  void add_to_totals() {
    if (added_ < most_added) return;
    totals_.take(sums_);
    added_ = 0;
  }

  std::int64_t first_row(std::int64_t group) const { return c_.rows * group / groups_; }
  std::int64_t most_in_group() const { return ceil_div(c_.rows, groups_); }
  static const auto& entry_of(std::int64_t rows) { return few_table<F>.of[rows - 1]; }
  /// Columns that are finished before the next ones, a multiple of `step`: `column_bytes` of each
  /// stay in the second-level cache.
  std::int64_t chunk_of(std::int64_t column_bytes, std::int64_t step) const {
    return std::min(std::max(cached_bytes_ / column_bytes / step, std::int64_t{1}),
                    ceil_div(c_.cols, step)) *
           step;
  }
  Row* packed() const { return reinterpret_cast<Row*>(scratch_.x); }
  const In* weights_at(std::int64_t k, std::int64_t j) const {
    return w_.data + (first_k_ + k) * w_.row_stride + (column_ + j) * w_.col_stride;
  }
  const In* row_at(std::int64_t i, std::int64_t k) const {
    return x_.data + i * x_.row_stride + (first_k_ + k) * x_.col_stride;
  }

  // --- weights side by side along the depth ---

  /// Of a column of weights, in units.
  static constexpr std::int64_t page_units =
      4096 / (numbers * static_cast<std::int64_t>(sizeof(In)));
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

  /// Also finds block_.
  std::int64_t chunk_of_dots(std::int64_t sums_bytes, std::int64_t depth) {
    const std::int64_t units = ceil_div(depth, numbers);
    const std::int64_t unit_bytes = unit * static_cast<std::int64_t>(sizeof(Row));
    block_ = std::max(rows_bytes_ / (most_in_group() * unit_bytes), std::int64_t{1});
    // Whole pages, or a power of 2 of a page: what is cut is translated and fetched ahead twice.
    block_ = block_ > page_units
                 ? block_ / page_units * page_units
                 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(block_)));
    // As many columns as any group reads together.
    const std::int64_t together =
        std::lcm(entry_of(c_.rows / groups_).dot_columns, entry_of(most_in_group()).dot_columns);
    // The next block's weights are fetched, or those of one are read again by the next group.
    const bool keeps_weights = block_ < units || groups_ > 1;
    const std::int64_t weights_bytes =
        std::min(block_, units) * numbers * static_cast<std::int64_t>(sizeof(In));
    return chunk_of(keeps_weights ? std::max(sums_bytes, weights_bytes) : sums_bytes, 4 * together);
  }

  void multiply_dots() {
    const std::int64_t units = ceil_div(depth_, numbers);
    for (std::int64_t u = 0; u < units; u += block_) {
      add_to_totals();
      for (std::int64_t g = 0; g < groups_; ++g) multiply_block(g, u);
      added_ += std::min(block_, units - u);
    }
  }

  /// Those of as many columns, from column j on, that are multiplied some time after those of
  /// [u, u + block_) of the depth.
  const In* dots_after(std::int64_t u, std::int64_t j, std::int64_t columns) const {
    if (block_ * numbers >= x_.cols) return weights_at(0, j + columns);
    const std::int64_t k = (u + block_) * numbers;
    if (k < depth_) return weights_at(k, j);
    if (first_k_ + depth_ < x_.cols) return weights_at(depth_, j);
    return w_.data + (column_ + cols_ + j) * w_.col_stride;
  }

  /// Group g by the columns of the chunk, from unit u of the depth on at most block_ units.
  void multiply_block(std::int64_t g, std::int64_t u) {
    const std::int64_t whole = depth_ / numbers, units = ceil_div(depth_, numbers);
    const std::int64_t count = std::min(block_, whole - u), row = first_row(g),
                       rows = first_row(g + 1) - row;
    const auto& entry = entry_of(rows);
    const Row* const x = packed() + (row * units + u * rows) * unit;
    for (std::int64_t j = 0; j < cols_;) {
      const bool is_whole = cols_ - j >= entry.dot_columns;
      const std::int64_t columns = is_whole ? entry.dot_columns : 1;
      Vector<Sum>* const to = sums_ + j * c_.rows + row;
      bool accumulate = added_ > 0;
      if (count > 0) {
        const In* const w = weights_at(u * numbers, j);
        const In* const next = g == 0 ? dots_after(u, j, columns) : w;
        entry.dots[is_whole]({count, x, w, w_.col_stride, next, to, c_.rows, accumulate});
        accumulate = true;
      }
      if (u + block_ >= units && whole < units) {
        const std::int64_t rest = depth_ - whole * numbers;
        for (std::int64_t l = 0; l < columns; ++l) {
          const In* const from = weights_at(whole * numbers, j + l);
          In* const edge = scratch_.edge + l * numbers;
          std::fill(std::copy_n(from, rest, edge), edge + numbers, In{});
        }
        entry.dots[is_whole]({1, packed() + (row * units + whole * rows) * unit, scratch_.edge,
                              numbers, scratch_.edge, to, c_.rows, accumulate});
      }
      j += columns;
    }
  }

  void store_dots() {
    for (std::int64_t j = 0; j < cols_; j += width) {
      const std::int64_t count = std::min(width, cols_ - j);
      for (std::int64_t i = 0; i < c_.rows; ++i) {
        const Vector<Sum>* const sums = sums_ + j * c_.rows + i;
        Vector<Sum> v[width];
        for (std::int64_t l = 0; l < width; ++l)
          v[l] = l < count ? sums[l * c_.rows] : Vector<Sum>{};
        result_.put(i, j, count, sums_of_lanes<Sum>(v));
      }
    }
  }

  // --- weights side by side along the columns ---

  /// Groups of as many rows each, the last maybe with zeros.
  std::int64_t all_rows() const { return groups_ * most_in_group(); }

  void pack_columns() {
    Row* to = packed();
    for (std::int64_t first = 0; first < all_rows(); first += most_in_group()) {
      for (std::int64_t k = 0; k < depth_; k += F::depths) {
        for (std::int64_t i = first; i < first + most_in_group(); ++i) {
          for (std::int64_t d = 0; d < F::depths; ++d) {
            *to++ = i < c_.rows && k + d < depth_ ? F::row(*row_at(i, k + d)) : Row{};
          }
        }
      }
    }
  }

  void multiply_columns() {
    constexpr std::int64_t most = column_steps<F> * F::depths;
    const std::int64_t whole = depth_ / F::depths * F::depths;
    for (std::int64_t k = 0; k < whole;) {
      const std::int64_t count = whole - k >= most ? most : F::depths;
      const In* const w = weights_at(k, 0);
      k += count;
      multiply_rows(w, w_.row_stride, k - count, count / F::depths,
                    k < whole ? weights_at(k, 0) : w);
    }
    if (whole < depth_) {
      // The last alone, above zeros.
      struct OfZeros {};
      In* const row = thread_buffer<In, OfZeros>(2 * cols_);
      std::fill_n(std::copy_n(weights_at(whole, 0), cols_, row), cols_, In{});
      multiply_rows(row, cols_, whole, 1, row);
    }
  }

  /// `steps` of the depth, from k on, whose weights lie at `w`; those at `next` are wanted then.
  void multiply_rows(const In* w, std::int64_t row_stride, std::int64_t k, std::int64_t steps,
                     const In* next) {
    add_to_totals();
    if (added_ == 0) std::fill_n(sums_, vectors_, Vector<Sum>{});
    added_ += steps;
    const std::int64_t rows = most_in_group(), whole = cols_ / numbers, rest = cols_ % numbers;
    const auto& entry = entry_of(rows);
    const auto& add = entry.columns[steps > 1];
    const std::int64_t together = whole / entry.column_units * entry.column_units;
    const auto add_units = [&](const In* from, std::int64_t stride, const In* then,
                               std::int64_t first, std::int64_t units, bool is_whole) {
      add[is_whole]({.units = units,
                     .groups = groups_,
                     .x = packed() + k * rows,
                     .x_stride = ceil_div(depth_, F::depths) * F::depths * rows,
                     .w = from,
                     .row_stride = stride,
                     .next = then,
                     .to = sums_ + first * all_rows() * parts});
    };
    if (together > 0) add_units(w, row_stride, next, 0, together, true);
    if (together < whole) {
      const std::int64_t at = together * numbers;
      add_units(w + at, row_stride, next + at, together, whole - together, false);
    }
    if (rest > 0) {
      In* const edge = scratch_.edge;
      for (std::int64_t d = 0; d < steps * F::depths; ++d) {
        In* const row = edge + d * numbers;
        std::fill(std::copy_n(w + d * row_stride + whole * numbers, rest, row), row + numbers,
                  In{});
      }
      add_units(edge, numbers, edge, whole, 1, false);
    }
  }

  void store_columns() {
    for (std::int64_t j = 0; j < cols_; j += numbers) {
      for (std::int64_t i = 0; i < c_.rows; ++i) {
        Vector<Sum>* const sums = sums_ + (j / numbers * all_rows() + i) * parts;
        Vector<Sum> v[parts];
        for (int p = 0; p < parts; ++p) v[p] = sums[p];
        F::arrange(v);
        for (int p = 0; p < parts && j + p * width < cols_; ++p)
          result_.put(i, j + p * width, std::min(width, cols_ - j - p * width), v[p]);
      }
    }
  }

  const MatrixRef<C> c_;
  const MatrixRef<const In> x_, w_;
  FewRowsResult<C, Sum> result_;
  const std::int64_t groups_;        // of rows
  const std::int64_t rows_bytes_;    // of packed rows that a chunk meets, in the first-level cache
  const std::int64_t cached_bytes_;  // of a chunk, in the second
  Scratch<F>& scratch_;
  Vector<Sum>* sums_ = nullptr;  // of the chunk
  std::int64_t vectors_ = 0;     // of sums
  std::int64_t added_ = 0;       // numbers to each sum
  Totals<Vector<Sum>> totals_;
  std::int64_t block_ = 0;  // of the depth, in units, which dots multiply before the next
  std::int64_t column_ = 0, cols_ = 0, first_k_ = 0, depth_ = 0;  // the chunk, and the piece
};

template <class C, class In>
void few_rows_product(const Caches& caches, const MatrixRef<C>& c, const MatrixRef<const In>& a,
                      const MatrixRef<const In>& b, bool accumulate, const Finish& finish) {
  FewRowsProduct<typename FactorsOf<In>::type, C>(caches, c, a, b, accumulate, finish).run();
}

}  // namespace ein::host::EIN_LEVEL
