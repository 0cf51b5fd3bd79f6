#include "cpu/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <unistd.h>
#endif

namespace ein::cpu {
namespace {

using std::int64_t;
using Box = StridedCopy::Box;

constexpr int64_t line_bytes = 64;
constexpr int64_t longest_short_run = 1024;  // beyond, calling memcpy costs nothing

#if defined(__AVX512F__) && defined(__AVX512BW__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

// The widest vector in which one instruction moves any `element` anywhere.
constexpr int permute_bytes(int element) {
#if defined(__AVX512VBMI__)
  const int narrowest = 1;
#else
  const int narrowest = vector_bytes == 64 ? 2 : 4;
#endif
  return element >= narrowest ? vector_bytes : 16;
}

// ---- vectors ------------------------------------------------------------------------------------

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

// Streaming stores are weakly ordered; this makes them visible before what the caller stores next.
inline void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

[[gnu::always_inline]] inline void prefetch(const std::byte* p, int64_t distance) {
  // Not pointer arithmetic: what is prefetched may lie outside of the source.
  const auto at = reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(distance);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 2);
}

// ---- runs: cells of any number of bytes ---------------------------------------------------------

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
void copy_runs(std::byte* dst, const std::byte* src, const Box& given) {
  const Box box = given;
  for (int64_t j = 0; j < box.count_j; ++j) {
    std::byte* d = dst + j * box.dst_j;
    const std::byte* s = src + j * box.src_j;
    for (int64_t i = 0; i < box.count_i; ++i, d += box.dst_i, s += box.src_i)
      Run::copy(d, s, box.run);
  }
}

// Meanwhile it fetches the box that comes next, which the processor would not foresee.
void stream_short_runs(std::byte* dst, const std::byte* src, const Box& given) {
  const Box box = given;
  for (int64_t j = 0; j < box.count_j; ++j) {
    std::byte* d = dst + j * box.dst_j;
    const std::byte* s = src + j * box.src_j;
    for (int64_t i = 0; i < box.count_i; ++i, d += box.dst_i, s += box.src_i) {
      for (int64_t k = 0; k < box.run; k += line_bytes) prefetch(s + k, box.ahead);
      StreamedRun::copy(d, s, box.run);
    }
  }
}

StridedCopy::Kernel runs_kernel(int64_t run) {
  if (run <= 4) return copy_runs<TwoHalves<2>>;
  if (run <= 8) return copy_runs<TwoHalves<4>>;
  if (run <= 16) return copy_runs<TwoHalves<8>>;
  if (run <= 32) return copy_runs<TwoHalves<16>>;
  if (run <= 64) return copy_runs<TwoHalves<32>>;
  if (run <= longest_short_run) return copy_runs<Lines>;
  return copy_runs<LongRun>;
}

// ---- single elements of a power of two bytes ----------------------------------------------------

template <int element>
void copy_elements(std::byte* dst, const std::byte* src, const Box& given) {
  const Box box = given;
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
void fill_runs(std::byte* dst, const std::byte* src, const Box& given) {
  const Box box = given;
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

// ---- transposes in registers --------------------------------------------------------------------

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

// A square of width / element elements a side. Streaming, it also fetches the one `ahead`.
template <int element, int width, bool streaming>
[[gnu::always_inline]] inline void transpose_square(std::byte* dst, const std::byte* src,
                                                    const Box& box) {
  using V = Vector<element, width>;
  constexpr int lane_bytes = std::max(16, element), per_lane = lane_bytes / element;
  constexpr int lanes = width / lane_bytes;
  V rows[lanes][per_lane];
  for (int lane = 0; lane < lanes; ++lane) {
    for (int k = 0; k < per_lane; ++k) {
      const std::byte* row = src + (lane * per_lane + k) * box.src_i;
      if constexpr (streaming) prefetch(row, box.ahead);
      rows[lane][k] = load<V>(row);
    }
    transpose_in_lanes<per_lane>(rows[lane]);
  }
  for (int k = 0; k < per_lane; ++k) {
    V column[lanes];
    for (int lane = 0; lane < lanes; ++lane) column[lane] = rows[lane][k];
    transpose_lanes<lanes>(column);
    for (int lane = 0; lane < lanes; ++lane) {
      store<streaming>(dst + (lane * per_lane + k) * box.dst_j, column[lane]);
    }
  }
}

// What goes along rows: writing, or reading, with streamed stores or without.
enum class Order { writing, reading, streaming };

// Any last square of a row or column overlaps the one before. Streaming needs rows of whole lines.
template <int element, Order order, int width = vector_bytes>
void transpose(std::byte* dst, const std::byte* src, const Box& given) {
  const Box box = given;
  constexpr int64_t side = width / element;
  constexpr bool streaming = order == Order::streaming && width == line_bytes;
  if (std::min(box.count_i, box.count_j) >= side) {
    const auto square = [&](int64_t i, int64_t j) {
      i = std::min(i, box.count_i - side);
      j = std::min(j, box.count_j - side);
      transpose_square<element, width, streaming>(dst + j * box.dst_j + i * element,
                                                  src + i * box.src_i + j * element, box);
    };
    if constexpr (order == Order::writing) {
      for (int64_t j = 0; j < box.count_j; j += side) {
        for (int64_t i = 0; i < box.count_i; i += side) square(i, j);
      }
    } else {
      for (int64_t i = 0; i < box.count_i; i += side) {
        for (int64_t j = 0; j < box.count_j; j += side) square(i, j);
      }
    }
  } else if constexpr (width > std::max(16, element)) {
    transpose<element, order, width / 2>(dst, src, box);
  } else {
    copy_elements<element>(dst, src, box);
  }
}

// ---- two to four elements side by side ----------------------------------------------------------

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

enum class Pack { zip, unzip, repeat };

// zip: i is the short axis, and j packed in both; repeat: the same, with source stride 0 along i;
// unzip: j is the short axis, and i packed in both.
template <Pack pack, int element, int count, bool streaming>
void copy_packed(std::byte* dst, const std::byte* src, const Box& given) {
  const Box box = given;
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

// ---- choice of kernels --------------------------------------------------------------------------

struct Kernels {
  StridedCopy::Kernel elements, fill, fill_streaming;
  StridedCopy::Kernel transpose_writing, transpose_reading, transpose_streaming;
  StridedCopy::Kernel packed[3][3][2];  // [pack][count - 2][streaming]
};

template <Pack pack, int element, int count>
constexpr void set_packed(Kernels& kernels) {
  auto& entry = kernels.packed[static_cast<int>(pack)][count - 2];
  entry[0] = copy_packed<pack, element, count, false>;
  entry[1] = copy_packed<pack, element, count, true>;
}

template <int element>
constexpr Kernels kernels_of() {
  Kernels kernels{};
  kernels.elements = copy_elements<element>;
  kernels.transpose_writing = transpose<element, Order::writing>;
  kernels.transpose_reading = transpose<element, Order::reading>;
  kernels.transpose_streaming = transpose<element, Order::streaming>;
  if constexpr (element <= 16) {
    kernels.fill = fill_runs<element, false>;
    kernels.fill_streaming = fill_runs<element, true>;
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

// Larger cells are runs.
constexpr int widest_element = std::max(16, vector_bytes / 2);

constexpr auto kernels_by_log2 = []<std::size_t... log2>(std::index_sequence<log2...>) {
  return std::array{kernels_of<1 << log2>()...};
}
(std::make_index_sequence<std::bit_width(unsigned{widest_element})>{});

// What one core can use of the last-level cache. Some systems report the sum over all dies of a
// socket, so it is bounded by what a die of the time has.
int64_t last_level_cache_bytes() {
  constexpr int64_t bound = int64_t{32} << 20;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  static const auto reported = static_cast<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE));
  if (reported > 0) return std::min(reported, bound);
#endif
  return bound;
}

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// About `target`, such that the blocks of an axis are alike.
int64_t balanced_block(int64_t size, int64_t target, int64_t granule) {
  if (target >= size) return size;
  const int64_t even = ceil_div(size, ceil_div(size, std::max<int64_t>(target, 1)));
  return std::min(size, ceil_div(even, granule) * granule);
}

}  // namespace

// ---- planning -----------------------------------------------------------------------------------

// Sizes in bytes, measured on Zen 5. A tile covers at least `dst` bytes in a row of the destination
// and `src` of the source, where there are as many.
struct StridedCopy::Reach {
  int64_t dst, src;
};
constexpr StridedCopy::Reach cached_reach{1024, 64}, staged_reach{512, 128},
    streaming_reach{1024, 128}, streaming_staged_reach{2048, 128}, runs_reach{256, 256},
    streaming_runs_reach{512, 4 << 10}, streaming_long_runs_reach{1024, 16 << 10};
constexpr int64_t tile_bytes = 16 << 10;
constexpr int64_t longest_run = 128 << 10;
constexpr int64_t shortest_streamed_run = 256;
constexpr int64_t shortest_staged_row = 128;
constexpr int64_t stage_bytes = 96 << 10;
constexpr int64_t part_bytes = 512 << 10;
// Addresses this far apart share the same few places in the level-1 cache.
constexpr int64_t way_bytes = 4096, most_lines_in_a_place = 8;
constexpr std::size_t max_axes = 66;  // 63 of size 2 span all of memory

// Not cleared: that would cost more than many a small copy.
struct StridedCopy::Position {
  int64_t block[max_axes];  // by axis: which of its blocks
};

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, std::size_t element_size,
                         std::int64_t stream_from) {
  assert(std::has_single_bit(element_size) && element_size <= 8);
  const auto element = static_cast<int64_t>(element_size);
  int64_t total_bytes = element;
  for (const CopyAxis& axis : axes) {
    assert(axis.size >= 0 && axis.dst_stride >= 0 && axis.src_stride >= 0);
    if (axis.size == 0) return;
  }
  for (const CopyAxis& axis : axes) total_bytes *= axis.size;
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.size == 1; });
  std::sort(axes.begin(), axes.end(),
            [](const CopyAxis& a, const CopyAxis& b) { return a.dst_stride < b.dst_stride; });

  axes_.push_back({element, 1, 1});
  for (const CopyAxis& axis : axes) {
    const int64_t dst = axis.dst_stride * element, src = axis.src_stride * element;
    Axis& last = axes_.back();
    if (dst == last.dst * last.size && src == last.src * last.size) {
      last.size *= axis.size;
    } else {
      axes_.push_back({axis.size, dst, src});
    }
  }
  while (axes_.size() < 3) axes_.push_back({1, 0, 0});
  assert(axes_.size() <= max_axes);

  const bool stream = total_bytes >= (stream_from < 0 ? last_level_cache_bytes() / 2 : stream_from);
  choose_blocks(choose_kernels(stream));
  if (staged_ && !plan_stage()) staged_ = false;
  plan_loops(total_bytes);
}

auto StridedCopy::choose_kernels(bool stream) -> Reach {
  const Axis& i = axes_[1];
  for (std::size_t a = 3; a < axes_.size(); ++a) {
    if (axes_[a].src != 0 && (axes_[j_].src == 0 || axes_[a].src < axes_[j_].src)) j_ = a;
  }
  const Axis& j = axes_[j_];
  const int64_t run = axes_[0].size;
  const bool permuted = j.src != 0 && j.src < i.src;
  const auto stream_with = [&](Kernel kernel, int64_t alignment) {
    streaming_ = kernel;
    stream_alignment_ = static_cast<std::uintptr_t>(alignment);
  };
  streams_ = stream;

  if (run > widest_element || !std::has_single_bit(static_cast<std::uint64_t>(run))) {
    kernel_ = runs_kernel(run);
    const bool lines = run % line_bytes == 0 && whole_lines_but_for({});
    if (stream && (lines || run >= shortest_streamed_run)) {
      stream_with(run <= longest_short_run ? stream_short_runs : copy_runs<StreamedRun>,
                  run >= shortest_streamed_run ? 1 : line_bytes);
    } else {
      staged_ = permuted && (stream || run < line_bytes);
    }
    // Neither streamed writes nor those to the stage wait for anything, so reading is in order.
    if (streaming_ != nullptr || staged_) std::swap(i_, j_);
    if (streaming_ != nullptr) {
      return run < shortest_streamed_run ? streaming_runs_reach : streaming_long_runs_reach;
    }
    if (staged_) return stream ? streaming_staged_reach : staged_reach;
    return runs_reach;
  }

  const Kernels& kernels =
      kernels_by_log2[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(run)))];
  const int64_t step = line_bytes / run;
  const auto packs = [&](const Axis& few, const Axis& many) {
    return run <= 8 && few.size >= 2 && few.size <= 4 && many.size >= step && j.src == run;
  };
  const auto pack = [&](Pack pack, int64_t count, std::size_t many) {
    const auto& pair = kernels.packed[static_cast<int>(pack)][count - 2];
    kernel_ = pair[0];
    granule_ = step;
    if (stream && whole_lines_but_for({1, many})) {
      stream_with(pair[1], line_bytes);
    } else {
      staged_ = stream;
    }
    return staged_ ? streaming_staged_reach : stream ? streaming_reach : cached_reach;
  };

  kernel_ = kernels.elements;
  if (i.size == 1 || i.dst != run) return cached_reach;
  if (packs(i, j) && j.dst == i.size * run) {
    return pack(i.src == 0 ? Pack::repeat : Pack::zip, i.size, j_);
  }
  if (packs(j, i) && i.src == j.size * run) return pack(Pack::unzip, j.size, 1);
  if (i.src == 0 && kernels.fill != nullptr) {
    kernel_ = kernels.fill;
    if (stream && i.size * run >= shortest_streamed_run) stream_with(kernels.fill_streaming, run);
    return stream ? streaming_reach : cached_reach;
  }
  if (j.src != run) {
    staged_ = permuted;
    if (!staged_) return cached_reach;
    return stream ? streaming_staged_reach : staged_reach;
  }

  granule_ = step;
  if (stream && vector_bytes == line_bytes && i.size % step == 0 && whole_lines_but_for({1})) {
    kernel_ = kernels.transpose_writing;
    stream_with(kernels.transpose_streaming, line_bytes);
    return streaming_reach;
  }
  // Narrow elements are bound by their shuffles; the stage would be one more pass.
  const bool crowded = run >= 4 && j.size >= step &&
                       step * std::gcd(j.dst, way_bytes) / way_bytes >= most_lines_in_a_place;
  staged_ = i.size * run < (stream ? shortest_streamed_run : line_bytes) || (!stream && crowded);
  const bool read_rows = staged_ || (!stream && i.src % way_bytes == 0);
  kernel_ = read_rows ? kernels.transpose_reading : kernels.transpose_writing;
  if (stream) return staged_ ? streaming_staged_reach : streaming_reach;
  return read_rows ? staged_reach : cached_reach;
}

// Whether steps along all other axes keep the destination's alignment to lines.
bool StridedCopy::whole_lines_but_for(std::initializer_list<std::size_t> exempt) const {
  for (std::size_t a = 1; a < axes_.size(); ++a) {
    const bool checked = std::find(exempt.begin(), exempt.end(), a) == exempt.end();
    if (checked && axes_[a].dst % line_bytes != 0) return false;
  }
  return true;
}

std::vector<std::size_t> StridedCopy::sorted_axes(int64_t Axis::*stride) const {
  std::vector<std::size_t> sorted(axes_.size() - 1);
  std::iota(sorted.begin(), sorted.end(), std::size_t{1});
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(axes_[a].*stride, a) < std::pair(axes_[b].*stride, b);
  });
  return sorted;
}

void StridedCopy::choose_blocks(Reach reach) {
  const auto widen = [&](std::size_t a, int64_t target) {
    const int64_t granule = a == i_ || a == j_ ? granule_ : 1;
    axes_[a].block = std::max(axes_[a].block, balanced_block(axes_[a].size, target, granule));
    return axes_[a].block;
  };
  axes_[0].block = balanced_block(axes_[0].size, longest_run, line_bytes);
  int64_t reached = axes_[0].block;
  for (std::size_t a = 1; a < axes_.size() && reached < reach.dst; ++a) {
    reached *= widen(a, ceil_div(reach.dst, reached));
  }
  reached = axes_[0].block;
  for (std::size_t a : sorted_axes(&Axis::src)) {
    if (reached >= reach.src) break;
    if (axes_[a].src != 0) reached *= widen(a, ceil_div(reach.src, reached));
  }
  int64_t tile = 1;
  for (const Axis& axis : axes_) tile *= axis.block;
  for (std::size_t a = 1; a < axes_.size() && tile < tile_bytes; ++a) {
    const int64_t others = tile / axes_[a].block;
    tile = others * widen(a, ceil_div(tile_bytes, others));
  }
}

// Lays a tile out on the stage: rows that are contiguous in the destination too, and between them a
// line that keeps them from competing for the same places in the cache.
bool StridedCopy::plan_stage() {
  int64_t row = axes_[0].block, contiguous = axes_[0].size;
  bool whole = row == contiguous;
  axes_[0].staged = 1;
  std::size_t a = 1;
  for (; a < axes_.size() && whole && (axes_[a].size == 1 || axes_[a].dst == contiguous); ++a) {
    axes_[a].staged = row;
    row *= axes_[a].block;
    contiguous *= axes_[a].size;
    whole = axes_[a].block == axes_[a].size;
  }
  row_axes_ = a;
  int64_t next = ceil_div(row, line_bytes) * line_bytes + line_bytes;
  for (; a < axes_.size(); ++a) {
    axes_[a].staged = next;
    next *= axes_[a].block;
    if (axes_[a].block > 1) rows_.insert(rows_.begin(), a);
  }
  return row >= shortest_staged_row && next <= stage_bytes;
}

void StridedCopy::plan_loops(int64_t total_bytes) {
  const Axis &i = axes_[i_], &j = axes_[j_];
  box_ = {1, 1, i.dst, i.src, j.dst, j.src, axes_[0].size, 0};
  const bool reads_in_order = staged_ || streaming_ != nullptr;
  std::vector<std::size_t> order = sorted_axes(reads_in_order ? &Axis::src : &Axis::dst);
  std::reverse(order.begin(), order.end());
  order.push_back(0);
  tiles_ = 1;
  for (std::size_t a : order) {
    tiles_ *= axes_[a].blocks();
    if (axes_[a].blocks() > 1) grid_.push_back(a);
    if (axes_[a].block > 1 && a != 0 && a != i_ && a != j_) inner_.push_back(a);
  }
  parts_ = std::clamp<int64_t>(total_bytes / part_bytes, 1, tiles_);
}

// ---- running ------------------------------------------------------------------------------------

void StridedCopy::run(std::byte* dst, const std::byte* src, int64_t part) const {
  if (parts_ == 0) return;
  assert(part >= 0 && part < parts_);
  const int64_t each = tiles_ / parts_, more = tiles_ % parts_;
  const int64_t first = part * each + std::min(part, more);
  const int64_t count = each + (part < more ? 1 : 0);

  Position at;
  std::fill_n(at.block, axes_.size(), 0);
  int64_t rest = first;
  for (std::size_t g = grid_.size(); g-- > 0;) {
    at.block[grid_[g]] = rest % axes_[grid_[g]].blocks();
    rest /= axes_[grid_[g]].blocks();
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(dst) % stream_alignment_ == 0;
  const Kernel kernel = streaming_ != nullptr && aligned ? streaming_ : kernel_;
  for (int64_t tile = 0; tile < count; ++tile) {
    std::byte* d = dst;
    const std::byte* s = src;
    for (std::size_t a : grid_) {
      const int64_t start = at.block[a] * axes_[a].block;
      d += start * axes_[a].dst;
      s += start * axes_[a].src;
    }
    if (staged_) {
      run_staged_tile(d, s, at);
    } else {
      run_tile(d, s, at, kernel);
    }
    for (std::size_t g = grid_.size(); g-- > 0;) {
      if (++at.block[grid_[g]] < axes_[grid_[g]].blocks()) break;
      at.block[grid_[g]] = 0;
    }
  }
  if (streams_) finish_streaming();
}

int64_t StridedCopy::extent(std::size_t a, const Position& at) const {
  return std::min(axes_[a].block, axes_[a].size - at.block[a] * axes_[a].block);
}

// From a tile to the next in the source, in bytes.
int64_t StridedCopy::distance_to_next(const Position& at) const {
  int64_t distance = 0;
  for (std::size_t g = grid_.size(); g-- > 0;) {
    const Axis& axis = axes_[grid_[g]];
    if (at.block[grid_[g]] + 1 < axis.blocks()) return distance + axis.block * axis.src;
    distance -= at.block[grid_[g]] * axis.block * axis.src;
  }
  return distance;
}

void StridedCopy::run_tile(std::byte* dst, const std::byte* src, const Position& at,
                           Kernel kernel) const {
  Box box = box_;
  box.run = extent(0, at);
  box.count_i = extent(i_, at);
  box.count_j = extent(j_, at);
  if (streams_) box.ahead = distance_to_next(at);
  run_loops(dst, src, box, kernel, {inner_, &Axis::dst, &Axis::src}, at);
}

void StridedCopy::run_staged_tile(std::byte* dst, const std::byte* src, const Position& at) const {
  alignas(line_bytes) std::byte stage[stage_bytes];
  Box box = box_;
  box.run = extent(0, at);
  box.count_i = extent(i_, at);
  box.count_j = extent(j_, at);
  box.dst_i = axes_[i_].staged;
  box.dst_j = axes_[j_].staged;
  run_loops(stage, src, box, kernel_, {inner_, &Axis::staged, &Axis::src}, at);

  Box row{1, 1, 0, 0, 0, 0, 1, 0};
  for (std::size_t a = 0; a < row_axes_; ++a) row.run *= extent(a, at);
  run_loops(dst, stage, row, streams_ ? copy_runs<StreamedRun> : copy_runs<AnyRun>,
            {rows_, &Axis::dst, &Axis::staged}, at);
}

void StridedCopy::run_loops(std::byte* dst, const std::byte* src, const Box& box, Kernel kernel,
                            const Loops& loops, const Position& at) const {
  const std::size_t depth = loops.axes.size();
  if (depth == 0) return kernel(dst, src, box);
  struct Loop {
    int64_t count, dst, src, index;
  };
  Loop stack[max_axes];
  for (std::size_t n = 0; n < depth; ++n) {
    const Axis& axis = axes_[loops.axes[n]];
    stack[n] = {extent(loops.axes[n], at), axis.*loops.dst, axis.*loops.src, 0};
  }
  const Loop& fastest = stack[depth - 1];
  for (;;) {
    for (int64_t n = 0; n < fastest.count; ++n) {
      kernel(dst + n * fastest.dst, src + n * fastest.src, box);
    }
    for (std::size_t n = depth - 1;;) {
      if (n == 0) return;
      Loop& loop = stack[--n];
      dst += loop.dst;
      src += loop.src;
      if (++loop.index < loop.count) break;
      dst -= loop.count * loop.dst;
      src -= loop.count * loop.src;
      loop.index = 0;
    }
  }
}

}  // namespace ein::cpu
