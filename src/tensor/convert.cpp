#include "tensor/convert.hpp"

#include <algorithm>
#include <cstring>

namespace ein {

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

template <class To>
void load(const void* src, DType from, std::ptrdiff_t stride, To* dst, std::size_t n) {
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
void store(const From* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride) {
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

}  // namespace

void load_as(const void* src, DType from, std::ptrdiff_t stride, float* dst, std::size_t n) {
  load(src, from, stride, dst, n);
}
void load_as(const void* src, DType from, std::ptrdiff_t stride, double* dst, std::size_t n) {
  load(src, from, stride, dst, n);
}
void load_as(const void* src, DType from, std::ptrdiff_t stride, std::int64_t* dst, std::size_t n) {
  load(src, from, stride, dst, n);
}
void load_as(const void* src, DType from, std::ptrdiff_t stride, std::uint64_t* dst,
             std::size_t n) {
  load(src, from, stride, dst, n);
}

void store_from(const float* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride) {
  store(src, n, dst, to, stride);
}
void store_from(const double* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride) {
  store(src, n, dst, to, stride);
}
void store_from(const std::int64_t* src, std::size_t n, void* dst, DType to,
                std::ptrdiff_t stride) {
  store(src, n, dst, to, stride);
}
void store_from(const std::uint64_t* src, std::size_t n, void* dst, DType to,
                std::ptrdiff_t stride) {
  store(src, n, dst, to, stride);
}

}  // namespace ein
