// The inner loops of StridedCopy.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu/level/kernels.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ein::host::EIN_LEVEL {
namespace {

using std::int64_t;

// The widest vector in which one instruction moves any `element` anywhere.
constexpr int permute_bytes(int element) {
#if defined(__AVX512VBMI__)
  const int narrowest = 1;
#else
  const int narrowest = vector_bytes == 64 ? 2 : 4;
#endif
  return element >= narrowest ? vector_bytes : 16;
}

// --- vectors ---

// Cells of 16 and 32 bytes move as several of 8.
template <int element>
using UnsignedOf = std::conditional_t<
    element == 1, std::uint8_t,
    std::conditional_t<element == 2, std::uint16_t,
                       std::conditional_t<element == 4, std::uint32_t, std::uint64_t>>>;

template <int element, int width>
struct VectorOf {
  typedef UnsignedOf<element> type __attribute__((vector_size(width)));
};
template <int element, int width>
using Vector = typename VectorOf<element, width>::type;

template <class V>
[[gnu::always_inline]] inline V load(const std::byte* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <bool streaming = false, class V>
[[gnu::always_inline]] inline void store(std::byte* p, const V& v) {
#if defined(__SSE2__)
  if constexpr (streaming) {
#if defined(__AVX512F__)
    if constexpr (sizeof v == 64)
      return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#endif
#if defined(__AVX__)
    if constexpr (sizeof v == 32)
      return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#endif
    if constexpr (sizeof v == 16)
      return _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
  }
#endif
  std::memcpy(p, &v, sizeof v);
}

[[gnu::always_inline]] inline void prefetch(const std::byte* p, int64_t distance) {
  // Not pointer arithmetic: what is prefetched may lie outside of the source.
  const auto at = reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(distance);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 2);
}

[[gnu::always_inline]] inline void prefetch_to_write(const std::byte* p, int64_t distance) {
  const auto at = reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(distance);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 1, 3);
}

// --- runs: cells of any number of bytes ---

template <int bytes>
[[gnu::always_inline]] inline void copy_exactly(std::byte* dst, const std::byte* src) {
  if constexpr (bytes <= 8) {
    std::memcpy(dst, src, bytes);
  } else {
    constexpr int width = std::min(bytes, vector_bytes);
    for (int k = 0; k < bytes; k += width) store(dst + k, load<Vector<1, width>>(src + k));
  }
}

// n in [half, 2 half]: two copies that may overlap.
template <int half>
struct TwoHalves {
  [[gnu::always_inline]] static void copy(std::byte* dst, const std::byte* src, int64_t n) {
    copy_exactly<half>(dst, src);
    copy_exactly<half>(dst + n - half, src + n - half);
  }
};

// n >= line_bytes.
struct Lines {
  [[gnu::always_inline]] static void copy(std::byte* dst, const std::byte* src, int64_t n) {
    for (int64_t k = 0; k < n - line_bytes; k += line_bytes)
      copy_exactly<line_bytes>(dst + k, src + k);
    copy_exactly<line_bytes>(dst + n - line_bytes, src + n - line_bytes);
  }
};

struct LongRun {
  static void copy(std::byte* dst, const std::byte* src, int64_t n) {
    std::memcpy(dst, src, static_cast<std::size_t>(n));
  }
};

[[gnu::always_inline]] inline void copy_part_of_line(std::byte* dst, const std::byte* src,
                                                     int64_t n) {
  if (n >= 32) return TwoHalves<32>::copy(dst, src, n);
  if (n >= 16) return TwoHalves<16>::copy(dst, src, n);
  if (n >= 8) return TwoHalves<8>::copy(dst, src, n);
  if (n >= 4) return TwoHalves<4>::copy(dst, src, n);
  if (n >= 2) return TwoHalves<2>::copy(dst, src, n);
  if (n == 1) *dst = *src;
}

struct AnyRun {
  [[gnu::always_inline]] static void copy(std::byte* dst, const std::byte* src, int64_t n) {
    n >= line_bytes ? Lines::copy(dst, src, n) : copy_part_of_line(dst, src, n);
  }
};

// Streams whole lines only, and touches none of them otherwise: to stream part of a line, or one
// that a cache holds, is slower than not to stream.
struct StreamedRun {
  [[gnu::always_inline]] static void copy(std::byte* dst, const std::byte* src, int64_t n) {
    int64_t k = static_cast<int64_t>(-reinterpret_cast<std::uintptr_t>(dst) % line_bytes);
    if (n < k + line_bytes) return AnyRun::copy(dst, src, n);
    copy_part_of_line(dst, src, k);
    for (; k <= n - line_bytes; k += line_bytes) {
      for (int part = 0; part < line_bytes; part += vector_bytes) {
        store<true>(dst + k + part, load<Vector<1, vector_bytes>>(src + k + part));
      }
    }
    copy_part_of_line(dst + k, src + k, n - k);
  }
};

// The kernels copy their box, since stores of bytes may change whatever a reference names.
template <class Run>
void copy_runs(std::byte* dst, const std::byte* src, const CopyBox& given) {
  const CopyBox box = given;
  for (int64_t j = 0; j < box.count_j; ++j) {
    std::byte* d = dst + j * box.dst_j;
    const std::byte* s = src + j * box.src_j;
    for (int64_t i = 0; i < box.count_i; ++i, d += box.dst_i, s += box.src_i)
      Run::copy(d, s, box.run);
  }
}

// Meanwhile it fetches the box that comes next, which the processor would not foresee.
void stream_short_runs(std::byte* dst, const std::byte* src, const CopyBox& given) {
  const CopyBox box = given;
  for (int64_t j = 0; j < box.count_j; ++j) {
    std::byte* d = dst + j * box.dst_j;
    const std::byte* s = src + j * box.src_j;
    for (int64_t i = 0; i < box.count_i; ++i, d += box.dst_i, s += box.src_i) {
      for (int64_t k = 0; k < box.run; k += line_bytes) prefetch(s + k, box.src_ahead);
      StreamedRun::copy(d, s, box.run);
    }
  }
}

// --- single elements of a power of two bytes ---

template <int element>
void copy_elements(std::byte* dst, const std::byte* src, const CopyBox& given) {
  const CopyBox box = given;
  const bool swap = box.count_j > box.count_i;  // the long loop inside
  const int64_t outer = swap ? box.count_i : box.count_j, inner = swap ? box.count_j : box.count_i;
  const int64_t dst_outer = swap ? box.dst_i : box.dst_j, dst_inner = swap ? box.dst_j : box.dst_i;
  const int64_t src_outer = swap ? box.src_i : box.src_j, src_inner = swap ? box.src_j : box.src_i;
  for (int64_t o = 0; o < outer; ++o) {
    std::byte* d = dst + o * dst_outer;
    const std::byte* s = src + o * src_outer;
    for (int64_t n = 0; n < inner; ++n, d += dst_inner, s += src_inner) std::memcpy(d, s, element);
  }
}

template <int element, int width>
[[gnu::always_inline]] inline Vector<element, width> broadcast(const std::byte* src) {
  if constexpr (element == 16) {
    const auto pair = load<Vector<8, 16>>(src);
    if constexpr (width == 64) return __builtin_shufflevector(pair, pair, 0, 1, 0, 1, 0, 1, 0, 1);
    if constexpr (width == 32) return __builtin_shufflevector(pair, pair, 0, 1, 0, 1);
    if constexpr (width == 16) return pair;
  } else {
    UnsignedOf<element> value;
    std::memcpy(&value, src, element);
    return Vector<element, width>{} + value;
  }
}

template <int element, int width, bool streaming>
[[gnu::always_inline]] inline void fill_vectors(std::byte* dst, const std::byte* src, int64_t n) {
  const auto v = broadcast<element, width>(src);
  int64_t k = 0;
  if constexpr (streaming) {
    store(dst, v);
    k = static_cast<int64_t>(-reinterpret_cast<std::uintptr_t>(dst) % width);
  }
  for (; k <= n - width; k += width) store<streaming>(dst + k, v);
  if (k < n) store(dst + n - width, v);
}

// Source stride 0 along i.
template <int element, bool streaming>
void fill_runs(std::byte* dst, const std::byte* src, const CopyBox& given) {
  const CopyBox box = given;
  const int64_t n = box.count_i * element;
  for (int64_t j = 0; j < box.count_j; ++j, dst += box.dst_j, src += box.src_j) {
    if (n >= vector_bytes) {
      fill_vectors<element, vector_bytes, streaming>(dst, src, n);
    } else if (n >= 16) {
      fill_vectors<element, 16, false>(dst, src, n);
    } else {
      for (int64_t k = 0; k < n; k += element) std::memcpy(dst + k, src, element);
    }
  }
}

// --- reversed runs ---

// Lane k of `count` cells of `words` lanes each, the last cell first.
constexpr int reversed_index(int count, int words, int k) {
  return (count - 1 - k / words) * words + k % words;
}

template <int words, class V, int... k>
[[gnu::always_inline]] inline V reverse_words(const V& v, std::integer_sequence<int, k...>) {
  constexpr int count = int{sizeof...(k)} / words;
  return __builtin_shufflevector(v, v, reversed_index(count, words, k)...);
}

// The lanes of 16 bytes stay where they are.
template <class V, int... k>
[[gnu::always_inline]] inline V reverse_in_lanes(const V& v, std::integer_sequence<int, k...>) {
  constexpr int per_lane = int{sizeof...(k)} * 16 / int{sizeof(V)};
  return __builtin_shufflevector(v, v,
                                 (k - k % per_lane + reversed_index(per_lane, 1, k % per_lane))...);
}

// The elements of a vector, the last one first.
template <int element, class V>
[[gnu::always_inline]] inline V reversed(const V& v) {
  constexpr int width = sizeof(V);
  using Words = Vector<8, width>;
  constexpr auto words = std::make_integer_sequence<int, width / 8>{};
  if constexpr (element >= 8) {
    return (V)reverse_words<element / 8>((Words)v, words);
#if defined(__SSE2__) && !defined(__SSSE3__)  // which moves bytes by shifts, 16 bits by halves
  } else if constexpr (element == 1) {
    const auto pairs = (Vector<2, width>)v;
    return (V)reversed<2>(pairs << 8 | pairs >> 8);
  } else if constexpr (element == 2) {
    const V low = __builtin_shufflevector(v, v, 3, 2, 1, 0, 4, 5, 6, 7);
    return (V)reverse_words<1>((Words)__builtin_shufflevector(low, low, 0, 1, 2, 3, 7, 6, 5, 4),
                               words);
#endif
  } else {
    constexpr auto elements = std::make_integer_sequence<int, width / element>{};
    if constexpr (width <= permute_bytes(element)) return reverse_words<1>(v, elements);
    return (V)reverse_words<2>((Words)reverse_in_lanes(v, elements), words);
  }
}

// Source stride -element along i: what is written lies in order, and is read backwards. The vector
// of `width` bytes that goes to k.
template <int element, int width>
[[gnu::always_inline]] inline Vector<element, width> load_reversed(const std::byte* src,
                                                                   int64_t k) {
  return reversed<element>(load<Vector<element, width>>(src + element - width - k));
}

template <int element, int width>
[[gnu::always_inline]] inline void reverse_vectors(std::byte* dst, const std::byte* src,
                                                   int64_t n) {
  int64_t k = 0;
#pragma GCC unroll 4
  for (; k <= n - width; k += width) store(dst + k, load_reversed<element, width>(src, k));
  if (k < n) store(dst + n - width, load_reversed<element, width>(src, n - width));
}

template <int element>
void reverse_run(std::byte* dst, const std::byte* src, int64_t n) {
  if (n >= vector_bytes) return reverse_vectors<element, vector_bytes>(dst, src, n);
  if (n >= 16) return reverse_vectors<element, 16>(dst, src, n);
  for (int64_t k = 0; k < n; k += element) std::memcpy(dst + k, src - k, element);
}

// As StreamedRun: whole lines, and nothing else of them.
template <int element>
void reverse_streamed_run(std::byte* dst, const std::byte* src, int64_t n) {
  int64_t k = static_cast<int64_t>(-reinterpret_cast<std::uintptr_t>(dst) % line_bytes);
  if (n < k + line_bytes) return reverse_run<element>(dst, src, n);
  reverse_run<element>(dst, src, k);
  for (; k <= n - line_bytes; k += line_bytes) {
    for (int part = 0; part < line_bytes; part += vector_bytes) {
      store<true>(dst + k + part, load_reversed<element, vector_bytes>(src, k + part));
    }
  }
  reverse_run<element>(dst + k, src - k, n - k);
}

template <int element, bool streaming>
void reverse_runs(std::byte* dst, const std::byte* src, const CopyBox& given) {
  const CopyBox box = given;
  for (int64_t j = 0; j < box.count_j; ++j, dst += box.dst_j, src += box.src_j) {
    streaming ? reverse_streamed_run<element>(dst, src, box.count_i * element)
              : reverse_run<element>(dst, src, box.count_i * element);
  }
}

// --- transposes in registers ---

// The compiler would keep the addresses of all rows, which are more than there are registers.
template <class P>
[[gnu::always_inline]] inline void keep_in_register(P& pointer) {
  asm("" : "+r"(pointer));
}

constexpr int unpack_index(bool high, int per_lane, int total, int k) {
  const int at = k % per_lane;
  return k - at + at / 2 + (high ? per_lane / 2 : 0) + (at % 2) * total;
}

// Interleaves the low or high halves of each 16-byte lane.
template <bool high, class V, int... k>
[[gnu::always_inline]] inline V unpack(const V& a, const V& b, std::integer_sequence<int, k...>) {
  constexpr int total = sizeof...(k), per_lane = total * 16 / int{sizeof(V)};
  return __builtin_shufflevector(a, b, unpack_index(high, per_lane, total, k)...);
}

// rows[r] lane l element c -> rows[c] lane l element r. A perfect shuffle of rows, applied log2
// times, is a transpose.
template <int count, class V>
[[gnu::always_inline]] inline void transpose_in_lanes(V* rows) {
  constexpr auto indices = std::make_integer_sequence<int, sizeof(V) / sizeof(rows[0][0])>{};
  for (int step = 1; step < count; step *= 2) {
    V next[count];
    for (int k = 0; k < count / 2; ++k) {
      next[2 * k] = unpack<false>(rows[k], rows[k + count / 2], indices);
      next[2 * k + 1] = unpack<true>(rows[k], rows[k + count / 2], indices);
    }
    for (int k = 0; k < count; ++k) rows[k] = next[k];
  }
}

// rows[r] lane l -> rows[l] lane r, with lanes of 16 bytes, or of 32 if there are just two rows.
template <int count, class V>
[[gnu::always_inline]] inline void transpose_lanes(V* rows) {
  if constexpr (sizeof(V) == 64 && count == 2) {
    using L = Vector<8, 64>;
    const L a = (L)rows[0], b = (L)rows[1];
    rows[0] = (V)__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    rows[1] = (V)__builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  } else if constexpr (sizeof(V) == 32 && count == 2) {
    using L = Vector<8, 32>;
    const L a = (L)rows[0], b = (L)rows[1];
    rows[0] = (V)__builtin_shufflevector(a, b, 0, 1, 4, 5);
    rows[1] = (V)__builtin_shufflevector(a, b, 2, 3, 6, 7);
  } else if constexpr (sizeof(V) == 64 && count == 4) {
    using L = Vector<8, 64>;
    const L a = (L)rows[0], b = (L)rows[1], c = (L)rows[2], d = (L)rows[3];
    const L ab_low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    const L ab_high = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    const L cd_low = __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11);
    const L cd_high = __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15);
    rows[0] = (V)__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5, 8, 9, 12, 13);
    rows[1] = (V)__builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7, 10, 11, 14, 15);
    rows[2] = (V)__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5, 8, 9, 12, 13);
    rows[3] = (V)__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7, 10, 11, 14, 15);
  }
}

// The least vector that holds both a lane of 16 bytes and an element.
constexpr int lane_bytes(int element) { return std::max(16, element); }

// One vector of lanes that lie `stride` apart, put together as they are loaded: compilers do this
// by a shuffle of registers instead, of which there are fewer units.
template <class V, int lane>
[[gnu::always_inline]] inline V load_lanes(const std::byte* p, [[maybe_unused]] int64_t stride) {
#if defined(__AVX2__)
  const auto at = [&](int k) { return (__m128i)load<Vector<8, 16>>(p + k * stride); };
#endif
  if constexpr (sizeof(V) == lane) {
    return load<V>(p);
#if defined(__AVX2__)
  } else if constexpr (sizeof(V) == 32) {
    return (V)_mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
#endif
#if defined(__AVX512F__)
  } else if constexpr (lane == 32) {
    const auto low = (__m256i)load<Vector<8, 32>>(p),
               high = (__m256i)load<Vector<8, 32>>(p + stride);
    return (V)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  } else {
    __m512i v = _mm512_castsi128_si512(at(0));
    v = _mm512_inserti32x4(v, at(1), 1);
    v = _mm512_inserti32x4(v, at(2), 2);
    return (V)_mm512_inserti32x4(v, at(3), 3);
#endif
  }
}

// As many rows as a vector has elements, as many columns as a lane has. The source is prefetched
// from `ahead` on.
template <int element, int width, bool streaming, bool fetch_src, bool fetch_dst>
[[gnu::always_inline]] inline void transpose_columns(std::byte* dst, const std::byte* src,
                                                     const CopyBox& box, int64_t ahead) {
  using V = Vector<element, width>;
  constexpr int lane = lane_bytes(element), per_lane = lane / element, lanes = width / lane;
  const int64_t lane_step = per_lane * box.src_i;
  V rows[per_lane];
  for (int k = 0; k < per_lane; ++k) {
    for (int l = 0; fetch_src && l < lanes; ++l) prefetch(src + l * lane_step, ahead);
    rows[k] = load_lanes<V, lane>(src, lane_step);
    src += box.src_i;
    keep_in_register(src);
  }
  transpose_in_lanes<per_lane>(rows);
#pragma GCC unroll 16  // else the rows are put into memory for it
  for (int k = 0; k < per_lane; ++k) {
    store<streaming>(dst, rows[k]);
    if constexpr (fetch_dst && !streaming) prefetch_to_write(dst, box.dst_ahead);
    dst += box.dst_j;
    keep_in_register(dst);
  }
}

// A square of width / element elements a side.
template <int element, int width, bool streaming, bool fetch>
[[gnu::always_inline]] inline void transpose_square(std::byte* dst, const std::byte* src,
                                                    const CopyBox& box) {
  using V = Vector<element, width>;
  constexpr int lane = lane_bytes(element), per_lane = lane / element, lanes = width / lane;
  const int64_t src_ahead = box.src_ahead + width - 1;
  if constexpr (lanes * per_lane > vector_registers) {
    transpose_columns<element, width, streaming, fetch, fetch>(dst, src, box, src_ahead);
    for (int l = 1; l < lanes; ++l) {
      transpose_columns<element, width, streaming, false, fetch>(dst + l * per_lane * box.dst_j,
                                                                 src + l * lane, box, src_ahead);
    }
    return;
  }
  V rows[lanes][per_lane];
  for (int l = 0; l < lanes; ++l) {
    for (int k = 0; k < per_lane; ++k) {
      const std::byte* row = src + k * box.src_i;
      if constexpr (fetch) prefetch(row, src_ahead);
      rows[l][k] = load<V>(row);
    }
    transpose_in_lanes<per_lane>(rows[l]);
    src += per_lane * box.src_i;
    keep_in_register(src);
  }
  for (int k = 0; k < per_lane; ++k) {
    V column[lanes];
    for (int l = 0; l < lanes; ++l) column[l] = rows[l][k];
    transpose_lanes<lanes>(column);
    for (int l = 0; l < lanes; ++l) {
      std::byte* to = dst + l * per_lane * box.dst_j;
      store<streaming>(to, column[l]);
      if constexpr (fetch && !streaming) prefetch_to_write(to, box.dst_ahead);
    }
    dst += box.dst_j;
    keep_in_register(dst);
  }
}

// A square of `width` bytes a side: of one vector, or of several, so that each line is read and
// written at one time.
template <int element, int width, bool streaming, bool fetch>
[[gnu::always_inline]] inline void transpose_vectors(std::byte* dst, const std::byte* src,
                                                     const CopyBox& box) {
  constexpr int part = std::min(width, vector_bytes);
  constexpr int64_t side = part / element;
#pragma GCC unroll 1  // written out, it is slower for small matrices
  for (int64_t j = 0; j < width / part; ++j) {
#pragma GCC unroll 1
    for (int64_t i = 0; i < width / part; ++i) {
      transpose_square<element, part, streaming, fetch>(dst + j * side * box.dst_j + i * part,
                                                        src + i * side * box.src_i + j * part, box);
    }
  }
}

template <int lane, class V>
[[gnu::always_inline]] inline void store_lane(std::byte* p, const V& v) {
  using L = Vector<8, sizeof(V)>;
  store(p, __builtin_shufflevector((L)v, (L)v, 2 * lane, 2 * lane + 1));
}

// As many rows as a lane has elements, as many columns as a vector has.
template <int element, bool fetch>
[[gnu::always_inline]] inline void transpose_rows(std::byte* dst, const std::byte* src,
                                                  const CopyBox& box) {
  using V = Vector<element, vector_bytes>;
  constexpr int per_lane = 16 / element, lanes = vector_bytes / 16;
  V rows[per_lane];
  for (int k = 0; k < per_lane; ++k) {
    const std::byte* row = src + k * box.src_i;
    if constexpr (fetch) prefetch(row, box.src_ahead + vector_bytes - 1);
    rows[k] = load<V>(row);
  }
  transpose_in_lanes<per_lane>(rows);
  for (int k = 0; k < per_lane; ++k) {
    std::byte* to = dst + k * box.dst_j;
    [&]<int... lane>(std::integer_sequence<int, lane...>) {
      (store_lane<lane>(to + lane * per_lane * box.dst_j, rows[k]), ...);
    }
    (std::make_integer_sequence<int, lanes>{});
  }
}

// What goes along rows: writing, or reading, with streamed stores or without. Or neither: the next
// square is one further down and to the right, so that where rows are a power of two apart its
// lines do not take the places of the last one's.
enum class Order { writing, reading, streaming, diagonal };

// Calls tile(i, j) for tiles of height × width that cover the box; any last one of a row or column
// overlaps the one before.
template <Order order, int64_t height, int64_t width, class Tile>
[[gnu::always_inline]] inline void for_tiles(const CopyBox& box, const Tile& tile) {
  const int64_t last_i = box.count_i - height, last_j = box.count_j - width;
  if constexpr (order == Order::writing) {
    for (int64_t j = 0; j < box.count_j; j += width) {
      for (int64_t i = 0; i < box.count_i; i += height)
        tile(std::min(i, last_i), std::min(j, last_j));
    }
  } else if constexpr (order == Order::diagonal) {
    const int64_t rows = (box.count_i + height - 1) / height,
                  columns = (box.count_j + width - 1) / width;
    const auto [few, many] = std::minmax(rows, columns);
    for (int64_t start = 0; start < many; ++start) {
      for (int64_t k = 0; k < few; ++k) {
        const int64_t other = start + k < many ? start + k : start + k - many;
        const int64_t row = rows < columns ? k : other, column = rows < columns ? other : k;
        tile(std::min(row * height, last_i), std::min(column * width, last_j));
      }
    }
  } else {
    for (int64_t i = 0; i < box.count_i; i += height) {
      for (int64_t j = 0; j < box.count_j; j += width)
        tile(std::min(i, last_i), std::min(j, last_j));
    }
  }
}

// Squares; the last one of a row or column overlaps the one before. Where squares are large and no
// more than half of one is left, it is half squares, or as many rows or columns as a lane has
// elements.
template <int element, Order order, bool fetch, int width>
void transpose_box(std::byte* dst, const std::byte* src, const CopyBox box) {
  constexpr int64_t side = width / element, per_lane = lane_bytes(element) / element;
  constexpr bool streaming = order == Order::streaming && width == line_bytes;
  // Smaller ones take no longer than another call.
  constexpr bool has_ends = side > 16 || width > vector_bytes;
  const auto [narrow, wide] = std::minmax(box.count_i, box.count_j);
  const auto at = [&](auto&& tile) {
    return [&, tile](int64_t i, int64_t j) {
      tile(dst + j * box.dst_j + i * element, src + i * box.src_i + j * element);
    };
  };
  if (narrow >= side) {
    const auto rest_of = [](int64_t count) {
      return has_ends && count % side <= side / 2 ? count % side : 0;
    };
    const int64_t rest_i = rest_of(box.count_i), rest_j = rest_of(box.count_j);
    CopyBox whole = box;
    whole.count_i -= rest_i;
    whole.count_j -= rest_j;
    for_tiles<order, side, side>(whole, at([&](std::byte* d, const std::byte* s) {
                                   transpose_vectors<element, width, streaming, fetch>(d, s, box);
                                 }));
    if constexpr (has_ends) {
      const auto finish = [&](int64_t i, int64_t j, int64_t count_i, int64_t count_j) {
        CopyBox end = box;
        end.count_i = count_i;
        end.count_j = count_j;
        transpose_box<element, order, fetch, width>(dst + j * box.dst_j + i * element,
                                                    src + i * box.src_i + j * element, end);
      };
      const auto wide_enough = [](int64_t rest) { return rest > per_lane ? side / 2 : per_lane; };
      if (rest_j != 0) {
        const int64_t count = wide_enough(rest_j);
        finish(0, box.count_j - count, box.count_i, count);
      }
      if (rest_i != 0) {
        const int64_t count = wide_enough(rest_i);
        finish(box.count_i - count, 0, count, whole.count_j);
      }
    }
    return;
  }
  if constexpr (width == vector_bytes && width > 16 && element <= 8) {
    const bool half_squares =
        has_ends && side / 2 > per_lane && narrow >= side / 2 && box.count_i < side;
    if (narrow >= per_lane && wide >= side && !half_squares) {
      if (box.count_i >= side) {
        for_tiles<order, side, per_lane>(
            box, at([&](std::byte* d, const std::byte* s) {
              transpose_columns<element, width, streaming, fetch, false>(d, s, box,
                                                                         box.src_ahead + 15);
            }));
      } else {
        for_tiles<order, per_lane, side>(box, at([&](std::byte* d, const std::byte* s) {
                                           transpose_rows<element, fetch>(d, s, box);
                                         }));
      }
      return;
    }
  }
  if constexpr (width > lane_bytes(element)) {
    transpose_box<element, order, fetch, width / 2>(dst, src, box);
  } else {
    copy_elements<element>(dst, src, box);
  }
}

// Streaming needs rows of whole lines.
template <int element, Order order, int width = vector_bytes>
void transpose(std::byte* dst, const std::byte* src, const CopyBox& box) {
  const bool fetch = box.src_ahead != 0 || box.dst_ahead != 0;
  fetch ? transpose_box<element, order, true, width>(dst, src, box)
        : transpose_box<element, order, false, width>(dst, src, box);
}

// --- two to four elements side by side ---

// Lane k of the step that adds `added` to a result whose lane k is to be sources[which][at].
constexpr int gather_index(int added, int which, int at, int total, int k) {
  if (which == added) return total + at;
  return added == 1 && which == 0 ? at : k;
}

template <int count, int output, bool zip, int added, class V, int... k>
[[gnu::always_inline]] inline V gather_step(const V& sum, const V& next,
                                            std::integer_sequence<int, k...>) {
  constexpr int total = sizeof...(k);
  if constexpr (zip) {
    return __builtin_shufflevector(sum, next,
                                   gather_index(added, (output * total + k) % count,
                                                (output * total + k) / count, total, k)...);
  } else {
    return __builtin_shufflevector(sum, next,
                                   gather_index(added, (k * count + output) / total,
                                                (k * count + output) % total, total, k)...);
  }
}

// Output `output` of zipping `count` vectors into as many (in[0][0], in[1][0], ...), or of the
// inverse.
template <int count, int output, bool zip, class V>
[[gnu::always_inline]] inline V gather(const V* in) {
  constexpr auto indices = std::make_integer_sequence<int, sizeof(V) / sizeof(in[0][0])>{};
  V sum = gather_step<count, output, zip, 1>(in[0], in[1], indices);
  if constexpr (count > 2) sum = gather_step<count, output, zip, 2>(sum, in[2], indices);
  if constexpr (count > 3) sum = gather_step<count, output, zip, 3>(sum, in[3], indices);
  return sum;
}

template <int count, int output, class V, int... k>
[[gnu::always_inline]] inline V repeat_each(const V& in, std::integer_sequence<int, k...>) {
  return __builtin_shufflevector(in, in, ((output * int{sizeof...(k)} + k) / count)...);
}

template <Pack pack, int element, int count, bool streaming>
void copy_packed(std::byte* dst, const std::byte* src, const CopyBox& given) {
  const CopyBox box = given;
  constexpr int width = permute_bytes(element), step = width / element;
  using V = Vector<element, width>;
  constexpr auto indices = std::make_integer_sequence<int, step>{};
  const int64_t length = pack == Pack::unzip ? box.count_i : box.count_j;
  if (length < step) return copy_elements<element>(dst, src, box);
  const int64_t dst_row = pack == Pack::unzip ? box.dst_j : width;
  const int64_t src_row = pack == Pack::unzip ? width : box.src_i;
  const auto advance = [&]<bool stream>(int64_t at) {
    std::byte* d = dst + at * (pack == Pack::unzip ? element : element * count);
    const std::byte* s = src + at * (pack == Pack::unzip ? element * count : element);
    V in[count];
    for (int k = 0; k < (pack == Pack::repeat ? 1 : count); ++k) in[k] = load<V>(s + k * src_row);
    [&]<int... k>(std::integer_sequence<int, k...>) {
      if constexpr (pack == Pack::repeat) {
        (store<stream>(d + k * dst_row, repeat_each<count, k>(in[0], indices)), ...);
      } else {
        (store<stream>(d + k * dst_row, gather<count, k, pack == Pack::zip>(in)), ...);
      }
    }
    (std::make_integer_sequence<int, count>{});
  };
  int64_t at = 0;
  for (; at <= length - step; at += step) advance.template operator()<streaming>(at);
  if (at < length) advance.template operator()<false>(length - step);
}

// --- choice of kernels ---

template <Pack pack, int element, int count>
constexpr void set_packed(CopyKernels& kernels) {
  auto& entry = kernels.packed[static_cast<int>(pack)][count - 2];
  entry[0] = copy_packed<pack, element, count, false>;
  entry[1] = copy_packed<pack, element, count, true>;
}

template <int element>
constexpr CopyKernels kernels_of() {
  CopyKernels kernels{};
  kernels.elements = copy_elements<element>;
  kernels.transpose_writing = transpose<element, Order::writing>;
  kernels.transpose_reading = transpose<element, Order::reading>;
  kernels.transpose_streaming = transpose<element, Order::streaming>;
  // Where a line is two vectors. Of four the program would grow by a percent.
  constexpr int square = 2 * vector_bytes == line_bytes ? line_bytes : vector_bytes;
  kernels.transpose_lines_writing = transpose<element, Order::writing, square>;
  kernels.transpose_lines_diagonal = transpose<element, Order::diagonal, square>;
  if constexpr (element <= 16) {
    kernels.fill = fill_runs<element, false>;
    kernels.fill_streaming = fill_runs<element, true>;
    kernels.reverse = reverse_runs<element, false>;
    kernels.reverse_streaming = reverse_runs<element, true>;
  }
  if constexpr (element <= 8) {
    [&]<int... count>(std::integer_sequence<int, count...>) {
      (set_packed<Pack::zip, element, count + 2>(kernels), ...);
      (set_packed<Pack::unzip, element, count + 2>(kernels), ...);
      (set_packed<Pack::repeat, element, count + 2>(kernels), ...);
    }
    (std::make_integer_sequence<int, 3>{});
  }
  return kernels;
}

constexpr auto kernels_by_log2 = []<std::size_t... log2>(std::index_sequence<log2...>) {
  return std::array{kernels_of<1 << log2>()...};
}
(std::make_index_sequence<std::bit_width(unsigned{widest_copied_element})>{});

}  // namespace

const CopyKernels& copy_kernels(int64_t element_bytes) {
  return kernels_by_log2[static_cast<std::size_t>(
      std::countr_zero(static_cast<std::uint64_t>(element_bytes)))];
}

BoxKernel copy_runs_kernel(int64_t run) {
  if (run <= 4) return copy_runs<TwoHalves<2>>;
  if (run <= 8) return copy_runs<TwoHalves<4>>;
  if (run <= 16) return copy_runs<TwoHalves<8>>;
  if (run <= 32) return copy_runs<TwoHalves<16>>;
  if (run <= 64) return copy_runs<TwoHalves<32>>;
  if (run <= longest_short_run) return copy_runs<Lines>;
  return copy_runs<LongRun>;
}

BoxKernel streaming_runs_kernel(int64_t run) {
  return run <= longest_short_run ? stream_short_runs : copy_runs<StreamedRun>;
}

BoxKernel copy_rows_kernel(bool streaming) {
  return streaming ? copy_runs<StreamedRun> : copy_runs<AnyRun>;
}

void fetch_row_ends(std::byte* dst, const std::byte*, const CopyBox& box) {
  const auto in_line = [](const std::byte* p) {
    return reinterpret_cast<std::uintptr_t>(p) % line_bytes;
  };
  if (in_line(dst) != 0) prefetch_to_write(dst, 0);
  if (in_line(dst + box.run) != 0) prefetch_to_write(dst, box.run - 1);
}

// A line that a row begins within comes with the box before.
void fetch_rows(const std::byte* src, int64_t distance, int64_t rows, int64_t stride,
                int64_t bytes) {
  for (; rows > 0; --rows, src += stride) {
    for (int64_t k = line_bytes; k < bytes; k += line_bytes) prefetch(src + k - 1, distance);
    prefetch(src + bytes - 1, distance);
  }
}

void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace ein::host::EIN_LEVEL
