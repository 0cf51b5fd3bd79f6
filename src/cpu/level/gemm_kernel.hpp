// The micro-kernel of a matrix product: keeps a tile of the result in vector registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "cpu/level/kernels.hpp"

namespace ein::host::EIN_LEVEL {

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

/// Elements of a vector.
template <class T>
inline constexpr int vector_width = vector_bytes / static_cast<int>(sizeof(T));

/// The largest tile, in vectors along a row and in rows: enough independent sums to hide the
/// latency of a multiply-add, few enough to leave registers for a row of b and an element of a.
inline constexpr int tile_vectors = 2, tile_rows = vector_registers == 32 ? 12 : 6;
template <class T>
inline constexpr int tile_columns = tile_vectors* vector_width<T>;

/// From and to any address.
template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* from) {
  Vector<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store(T* to, const Vector<T>& v) {
  std::memcpy(to, &v, sizeof v);
}

/// Which lanes a tile's last vector has, on processors that can leave the others alone. Where it
/// has all, plain loads and stores are faster as soon as memory is far: seen by measurement.
#if defined(__AVX512F__)
inline constexpr bool has_lanes = true;
using Lanes = __mmask16;
inline Lanes first_lanes(std::int64_t count) { return static_cast<Lanes>((1U << count) - 1); }
[[gnu::always_inline]] inline Vector<float> load(const float* from, Lanes lanes) {
  return (Vector<float>)_mm512_maskz_loadu_ps(lanes, from);
}
[[gnu::always_inline]] inline Vector<double> load(const double* from, Lanes lanes) {
  return (Vector<double>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(lanes), from);
}
[[gnu::always_inline]] inline void store(float* to, const Vector<float>& v, Lanes lanes) {
  _mm512_mask_storeu_ps(to, lanes, (__m512)v);
}
[[gnu::always_inline]] inline void store(double* to, const Vector<double>& v, Lanes lanes) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>(lanes), (__m512d)v);
}
#else
inline constexpr bool has_lanes = false;
struct Lanes {};
inline Lanes first_lanes(std::int64_t) { return {}; }
template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* from, Lanes) {
  return load(from);
}
template <class T>
[[gnu::always_inline]] inline void store(T* to, const Vector<T>& v, Lanes) {
  store<T>(to, v);
}
#endif

/// f(0), …, f(n - 1) with constants, so that arrays indexed by them can live in registers.
template <int n, class F>
[[gnu::always_inline]] constexpr void repeat(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

/// What a micro-kernel works on. a may have any strides; rows of b and c are contiguous, whole
/// vectors but for the last.
template <class T>
struct Tile {
  std::int64_t depth = 0;
  const T* a = nullptr;
  std::int64_t a_row_stride = 0, a_col_stride = 0;
  const T* b = nullptr;
  std::int64_t b_row_stride = 0;
  T* c = nullptr;
  std::int64_t c_row_stride = 0;
  Lanes last = {};
  bool accumulate = false;
};

/// c = a · b, or c += a · b, for `rows` rows and `vectors` vectors of columns, the last of which is
/// whole or not.
template <class T, int rows, int vectors, bool is_whole>
void multiply_tile(const Tile<T>& tile) {
  constexpr int width = vector_width<T>;
  // Three rows to a pointer: x86 addresses reach them all with one register for the stride.
  constexpr int pointers = (rows + 2) / 3;
  const T* a[pointers];
  const std::int64_t a_row = tile.a_row_stride;
  repeat<pointers>([&](auto p) { a[p] = tile.a + 3 * p * a_row; });
  const T* b = tile.b;
  Vector<T> sum[rows][vectors] = {};
  for (std::int64_t k = tile.depth; k > 0; --k) {
    Vector<T> row[vectors];
    repeat<vectors>([&](auto j) {
      row[j] = is_whole || j + 1 < vectors ? load(b + j * width) : load(b + j * width, tile.last);
    });
    repeat<rows>([&](auto i) {
      const T factor = a[i / 3][i % 3 * a_row];
      repeat<vectors>([&](auto j) { sum[i][j] += factor * row[j]; });
    });
    repeat<pointers>([&](auto p) { a[p] += tile.a_col_stride; });
    b += tile.b_row_stride;
  }
  T* c = tile.c;
  if (tile.accumulate) {
    repeat<rows>([&](auto i) {
      repeat<vectors>([&](auto j) {
        sum[i][j] +=
            is_whole || j + 1 < vectors ? load(c + j * width) : load(c + j * width, tile.last);
      });
      c += tile.c_row_stride;
    });
    c = tile.c;
  }
  repeat<rows>([&](auto i) {
    repeat<vectors>([&](auto j) {
      if constexpr (is_whole || j + 1 < vectors) {
        store<T>(c + j * width, sum[i][j]);
      } else {
        store(c + j * width, sum[i][j], tile.last);
      }
    });
    c += tile.c_row_stride;
  });
}

/// The code for SSE is to be small: vectors of 4 numbers multiply more slowly than memory is read.
inline constexpr bool is_small = vector_bytes == 16 && vector_registers == 16;

/// How many columns ahead packing prefetches.
inline constexpr std::int64_t columns_ahead = 16;

/// `depth` columns of `rows` contiguous elements, side by side.
template <class T, int rows>
void pack_columns(const T* from, std::int64_t col_stride, std::int64_t depth, T* to) {
  for (std::int64_t k = 0; k < depth; ++k) {
    __builtin_prefetch(from + (k + columns_ahead) * col_stride);
    std::memcpy(to + k * rows, from + k * col_stride, rows * sizeof(T));
  }
}

/// What is compiled for each number of rows less 1 (and of vectors less 1, and for whether they are
/// whole).
template <class T>
struct TileTable {
  void (*multiply[tile_rows][tile_vectors][2])(const Tile<T>&);
  void (*pack_columns[tile_rows])(const T*, std::int64_t, std::int64_t, T*);
};

template <class T>
constexpr TileTable<T> make_tile_table() {
  TileTable<T> table{};
  repeat<tile_rows>([&](auto i) {
    repeat<tile_vectors>([&](auto j) {
      table.multiply[i][j][0] = multiply_tile<T, i + 1, j + 1, false>;
      table.multiply[i][j][1] = multiply_tile<T, i + 1, j + 1, true>;
    });
    table.pack_columns[i] = pack_columns<T, i + 1>;
  });
  return table;
}

template <class T>
inline constexpr TileTable<T> tile_table = make_tile_table<T>();

}  // namespace ein::host::EIN_LEVEL
