// Bulk conversion between storage in any dtype and the types that computation happens in.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ein/dtype.hpp>

namespace ein {

/// dst[i] = convert<To>(element i · stride of `src`), for i in [0, n), with the same bits as the
/// scalar `convert`. To is float, double, std::int64_t or std::uint64_t. The stride counts
/// elements; it may be zero or negative. Neither side need be aligned; they must not overlap. A
/// stride of 1 is the fast path.
template <class To>
void load_as(const void* src, DType from, std::ptrdiff_t stride, To* dst, std::size_t n);

/// Element i · stride of `dst` = convert(src[i]) for i in [0, n), the reverse of `load_as`.
template <class From>
void store_from(const From* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);

}  // namespace ein
