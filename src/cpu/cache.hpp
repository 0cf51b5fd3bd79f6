// What is known of the processor's caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/system.hpp"

namespace ein::host {

inline constexpr std::int64_t line_bytes = 64;

/// What one core can use of the last-level cache. Some systems report the sum over all dies of a
/// socket, so it is bounded by what a die of the time has.
inline std::int64_t last_level_cache_bytes() {
  constexpr std::int64_t bound = std::int64_t{32} << 20;
  const std::int64_t reported = system::cache_bytes(3);
  return reported > 0 ? std::min(reported, bound) : bound;
}

}  // namespace ein::host
