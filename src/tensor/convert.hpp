// Bulk conversion between storage in any dtype and the types that computation happens in.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ein/dtype.hpp>

/// The types in which strips of elements are computed: EIN_STRIP_TYPES(X) is X(type) of each.
#define EIN_STRIP_TYPES(X) \
  X(float)                 \
  X(double)                \
  X(std::int8_t)           \
  X(std::int16_t)          \
  X(std::int32_t)          \
  X(std::int64_t)          \
  X(std::uint64_t)

namespace ein {

/// dst[i] = convert<T>(element i · stride of `src`), for i in [0, n), with the same bits as the
/// scalar `convert`. The stride counts elements; it may be zero or negative. Neither side need be
/// aligned; they must not overlap. A stride of 1 is the fast path.
#define EIN_LOAD_AS(T) \
  void load_as(const void* src, DType from, std::ptrdiff_t stride, T* dst, std::size_t n);
EIN_STRIP_TYPES(EIN_LOAD_AS)
#undef EIN_LOAD_AS

/// Element i · stride of `dst` = convert(src[i]) for i in [0, n), the reverse of `load_as`.
#define EIN_STORE_FROM(T) \
  void store_from(const T* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);
EIN_STRIP_TYPES(EIN_STORE_FROM)
#undef EIN_STORE_FROM

}  // namespace ein
