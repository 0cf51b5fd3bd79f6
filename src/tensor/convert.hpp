// Bulk conversion between storage in any dtype and the types that computation happens in.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ein/dtype.hpp>

namespace ein {

/// dst[i] = convert<T>(element i · stride of `src`), for i in [0, n), with the same bits as the
/// scalar `convert`. The stride counts elements; it may be zero or negative. Neither side need be
/// aligned; they must not overlap. A stride of 1 is the fast path.
void load_as(const void* src, DType from, std::ptrdiff_t stride, float* dst, std::size_t n);
void load_as(const void* src, DType from, std::ptrdiff_t stride, double* dst, std::size_t n);
void load_as(const void* src, DType from, std::ptrdiff_t stride, std::int64_t* dst, std::size_t n);
void load_as(const void* src, DType from, std::ptrdiff_t stride, std::uint64_t* dst, std::size_t n);

/// Element i · stride of `dst` = convert(src[i]) for i in [0, n), the reverse of `load_as`.
void store_from(const float* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);
void store_from(const double* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);
void store_from(const std::int64_t* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);
void store_from(const std::uint64_t* src, std::size_t n, void* dst, DType to,
                std::ptrdiff_t stride);

}  // namespace ein
