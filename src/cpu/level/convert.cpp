// Bulk conversion: see tensor/convert.hpp.

#include <algorithm>
#include <cstring>

#include "cpu/level/kernels.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

/// What an element is in memory: a byte that is neither 0 nor 1 is no bool, but memory that others
/// wrote may hold one, and it counts as true.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

template <class From, class To>
void load_loop(const std::byte* src, std::ptrdiff_t step, To* __restrict dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    Stored<From> element;
    std::memcpy(&element, src + static_cast<std::ptrdiff_t>(i) * step, sizeof element);
    if constexpr (std::is_same_v<From, bool>) {
      dst[i] = convert<To>(std::min(element, std::uint8_t{1}));
    } else {
      dst[i] = convert<To>(element);
    }
  }
}

template <class From, class To>
void store_loop(const From* __restrict src, std::size_t n, std::byte* dst, std::ptrdiff_t step) {
  for (std::size_t i = 0; i < n; ++i) {
    const To element = convert<To>(src[i]);
    std::memcpy(dst + static_cast<std::ptrdiff_t>(i) * step, &element, sizeof element);
  }
}

}  // namespace

template <class To>
void load_elements(const void* src, DType from, std::ptrdiff_t stride, To* dst, std::size_t n) {
  if (n == 0) return;
  const auto* bytes = static_cast<const std::byte*>(src);
  visit(from, [&]<class From>(std::type_identity<From>) {
    constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(From));
    if (stride != 1) {
      load_loop<From>(bytes, stride * size, dst, n);
    } else if constexpr (std::is_same_v<From, To>) {
      std::memcpy(dst, src, n * sizeof(To));
    } else {
      load_loop<From>(bytes, size, dst, n);
    }
  });
}

template <class From>
void store_elements(const From* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride) {
  if (n == 0) return;
  auto* bytes = static_cast<std::byte*>(dst);
  visit(to, [&]<class To>(std::type_identity<To>) {
    constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(To));
    if (stride != 1) {
      store_loop<From, To>(src, n, bytes, stride * size);
    } else if constexpr (std::is_same_v<From, To>) {
      std::memcpy(dst, src, n * sizeof(To));
    } else {
      store_loop<From, To>(src, n, bytes, size);
    }
  });
}

#define EIN_INSTANTIATE(C)                                                             \
  template void load_elements<C>(const void*, DType, std::ptrdiff_t, C*, std::size_t); \
  template void store_elements<C>(const C*, std::size_t, void*, DType, std::ptrdiff_t);
EIN_INSTANTIATE(float)
EIN_INSTANTIATE(double)
EIN_INSTANTIATE(std::int64_t)
EIN_INSTANTIATE(std::uint64_t)
#undef EIN_INSTANTIATE

}  // namespace ein::host::EIN_LEVEL
