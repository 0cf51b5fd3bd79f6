// What is known of the processor's caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/fork.hpp"

#if defined(__linux__)
#include <unistd.h>
#endif

namespace ein::host {

inline constexpr std::int64_t line_bytes = 64;

/// What one core can use of the last-level cache. Some systems report the sum over all dies of a
/// socket, so it is bounded by what a die of the time has.
inline std::int64_t last_level_cache_bytes() {
  constexpr std::int64_t bound = std::int64_t{32} << 20;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const std::int64_t reported =
      made_once([] { return static_cast<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE)); });
  if (reported > 0) return std::min(reported, bound);
#endif
  return bound;
}

}  // namespace ein::host
