// Bulk conversion: see tensor/convert.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/level/independent.hpp"
#include "cpu/level/kernels.hpp"
#include "tensor/convert.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

/// What an element is in memory: a byte that is neither 0 nor 1 is no bool, but memory that others
/// wrote may hold one, and it counts as true.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

// Before AVX-512 x86 has no vector code between floats and integers of 64 bits, so these are made
// of halves of 32.
#if defined(__SSE4_1__) && !defined(__AVX512DQ__)
constexpr bool converts_halves = true;
#else
constexpr bool converts_halves = false;
#endif

/// The nearest double: both halves as numbers behind a large power of two, and one sum, which
/// rounds.
[[maybe_unused]] inline double double_of(std::int64_t x) {
  const auto bits = static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63);  // x + 2^63
  const auto low =
      std::bit_cast<double>((bits & 0xffffffffu) | std::bit_cast<std::uint64_t>(0x1p52));
  const auto high = std::bit_cast<double>((bits >> 32) | std::bit_cast<std::uint64_t>(0x1p84));
  return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
}

/// As truncate_to<std::int64_t>.
[[maybe_unused]] inline std::int64_t truncated(double x) {
  const bool is_in_range = x >= -0x1p63 && x < 0x1p63;
  const double whole = std::trunc(is_in_range ? x : 0), high = std::floor(whole * 0x1p-32),
               low = whole - high * 0x1p32;
  // Beside so large a number the last bits are those of a whole number.
  const auto low_bits = std::bit_cast<std::uint64_t>(low + 0x1p52) & 0xffffffffu,
             high_bits = std::bit_cast<std::uint64_t>(high + 0x1.8p52) << 32;
  auto result = static_cast<std::int64_t>(high_bits | low_bits);
  result = x >= 0x1p63 ? std::numeric_limits<std::int64_t>::max() : result;
  return x < -0x1p63 ? std::numeric_limits<std::int64_t>::min() : result;
}

/// convert<To>(x), in steps that there is vector code for.
template <class To, class From>
To converted(From x) {
  constexpr bool is_float = std::is_same_v<From, float> || std::is_same_v<From, double>;
  if constexpr (converts_halves && std::is_same_v<From, std::int64_t> &&
                std::is_same_v<To, double>) {
    return double_of(x);
  } else if constexpr (converts_halves && is_float && std::is_same_v<To, std::int64_t>) {
    return truncated(static_cast<double>(x));
  } else {
    return convert<To>(x);
  }
}

// The index has a sign: GCC 12 makes no vector code of bytes by one without.

template <class To, class From>
void load_loop(const std::byte* src, To* __restrict dst, std::size_t n) {
  EIN_INDEPENDENT
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i) {
    Stored<From> element;
    std::memcpy(&element, src + i * static_cast<std::ptrdiff_t>(sizeof element), sizeof element);
    if constexpr (std::is_same_v<From, bool>) {
      dst[i] = converted<To>(std::min(element, std::uint8_t{1}));
    } else {
      dst[i] = converted<To>(element);
    }
  }
}

/// Each to(element).
template <class From, class F>
void store_loop(const From* __restrict src, std::size_t n, std::byte* dst, F to) {
  EIN_INDEPENDENT
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i) {
    const auto element = to(src[i]);
    std::memcpy(dst + i * static_cast<std::ptrdiff_t>(sizeof element), &element, sizeof element);
  }
}

template <class To, class From>
void store_loop(const From* src, std::size_t n, std::byte* dst) {
  if constexpr (std::is_same_v<From, double> && std::is_integral_v<To> && sizeof(To) < 4 &&
                !std::is_same_v<To, bool>) {
    // There is vector code from f64 to integers of 32 bits, and from those to fewer.
    using Limits = std::numeric_limits<To>;
    std::int32_t wide[256];
    for (std::size_t first = 0; first < n; first += std::size(wide)) {
      const std::size_t count = std::min(n - first, std::size(wide));
      store_loop<std::int32_t>(src + first, count, reinterpret_cast<std::byte*>(wide));
      store_loop(wide, count, dst + first * sizeof(To), [](std::int32_t x) {
        return static_cast<To>(std::clamp<std::int32_t>(x, Limits::min(), Limits::max()));
      });
    }
  } else {
    store_loop(src, n, dst, [](From x) { return converted<To>(x); });
  }
}

/// `n` elements of `size` bytes, those of both a number of bytes from each other.
template <std::size_t size>
void copy_elements(const std::byte* src, std::ptrdiff_t src_step, std::byte* dst,
                   std::ptrdiff_t dst_step, std::size_t n) {
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i)
    std::memcpy(dst + i * dst_step, src + i * src_step, size);
}

/// Elements with others between them are converted side by side, so many at a time.
constexpr std::size_t piece = 256;

}  // namespace

template <class To>
void load_elements(const void* src, DType from, std::ptrdiff_t stride, To* dst, std::size_t n) {
  const auto* bytes = static_cast<const std::byte*>(src);
  visit(from, [&]<class From>(std::type_identity<From>) {
    constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(From));
    const std::size_t step = stride == 1 ? n : piece;
    for (std::size_t first = 0; first < n; first += step) {
      const std::size_t count = std::min(step, n - first);
      const std::byte* at = bytes + static_cast<std::ptrdiff_t>(first) * stride * size;
      std::byte side_by_side[piece * size];
      if (stride != 1) {
        copy_elements<size>(at, stride * size, side_by_side, size, count);
        at = side_by_side;
      }
      if constexpr (std::is_same_v<From, To>) {
        std::memcpy(dst + first, at, count * sizeof(To));
      } else {
        load_loop<To, From>(at, dst + first, count);
      }
    }
  });
}

template <class From>
void store_elements(const From* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride) {
  auto* bytes = static_cast<std::byte*>(dst);
  visit(to, [&]<class To>(std::type_identity<To>) {
    constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(To));
    const std::size_t step = stride == 1 ? n : piece;
    for (std::size_t first = 0; first < n; first += step) {
      const std::size_t count = std::min(step, n - first);
      std::byte* const at = bytes + static_cast<std::ptrdiff_t>(first) * stride * size;
      std::byte side_by_side[piece * size];
      std::byte* const whole = stride == 1 ? at : side_by_side;
      if constexpr (std::is_same_v<From, To>) {
        std::memcpy(whole, src + first, count * sizeof(To));
      } else {
        store_loop<To>(src + first, count, whole);
      }
      if (stride != 1) copy_elements<size>(side_by_side, size, at, stride * size, count);
    }
  });
}

#define EIN_INSTANTIATE(C)                                                             \
  template void load_elements<C>(const void*, DType, std::ptrdiff_t, C*, std::size_t); \
  template void store_elements<C>(const C*, std::size_t, void*, DType, std::ptrdiff_t);
EIN_STRIP_TYPES(EIN_INSTANTIATE)
#undef EIN_INSTANTIATE

}  // namespace ein::host::EIN_LEVEL
