#include "cpu/cache.hpp"

#include <algorithm>

#include "tensor/fork.hpp"

namespace ein::host {
namespace {

// The least that processors for servers and desks have had since 2011, but for the last level:
// there too small is as bad as too large, and 32 MiB are what several dies have.
constexpr Caches common{.l1 = 32 << 10, .l2 = 256 << 10, .l3 = 32 << 20, .l1_way = 4 << 10};

// Some systems report the sum over all dies of a socket, so the last level is bounded by what a die
// of the time has.
constexpr std::int64_t largest_die = 32 << 20;

}  // namespace

Caches caches_of(std::span<const system::Cache> told) {
  const auto find = [&](int level) {
    for (const system::Cache& cache : told) {
      if (cache.level == level && cache.bytes > 0) return cache;
    }
    return system::Cache{level, 0, 0};
  };
  const system::Cache l1 = find(1), l2 = find(2), l3 = find(3);
  Caches caches = common;
  if (l1.bytes > 0) {
    caches.l1 = l1.bytes;
    caches.l1_way =
        l1.ways > 0 ? std::max(l1.bytes / l1.ways, line_bytes) : std::min(common.l1_way, l1.bytes);
  }
  if (l2.bytes > 0) caches.l2 = caches.l3 = l2.bytes;
  if (l3.bytes > 0) caches.l3 = l3.bytes;
  caches.l2 = std::max(caches.l2, caches.l1);
  caches.l3 = std::max(std::min(caches.l3, largest_die), caches.l2);
  return caches;
}

const Caches& caches() {
  return made_once([] { return caches_of(system::data_caches()); });
}

}  // namespace ein::host
