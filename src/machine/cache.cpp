#include "machine/cache.hpp"

#include <algorithm>
#include <charconv>
#include <ein/error.hpp>
#include <string>

#include "machine/environment.hpp"
#include "machine/fork.hpp"

namespace ein::host {
namespace {

// The least that processors for servers and desks have had since 2011, but for the last level:
// there too small is as bad as too large, and 32 MiB are what several dies have.
constexpr Caches common{.l1 = 32 << 10, .l2 = 256 << 10, .l3 = 32 << 20, .l1_way = 4 << 10};

// Some systems report the sum over all dies of a socket, so the last level is bounded by what a die
// of the time has.
constexpr std::int64_t largest_die = 32 << 20;

// Beyond any that is made.
constexpr std::int64_t largest_cache = std::int64_t{1} << 32;

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

std::vector<system::Cache> caches_named(std::string_view text) {
  const auto refuse = [&] {
    throw Error(ErrorKind::value,
                "EIN_CACHES is '" + std::string(text) +
                    "', not the sizes of data caches\n"
                    "  help: write three, of levels 1, 2 and 3, as in '32K,512K,16M'");
  };
  std::vector<system::Cache> caches;
  const char *at = text.data(), *const end = at + text.size();
  for (int level = 1; level <= 3; ++level) {
    if (level > 1 && (at == end || *at++ != ',')) refuse();
    std::int64_t number = 0;
    at = std::from_chars(at, end, number).ptr;
    const int shift = at == end ? 0 : *at == 'K' ? 10 : *at == 'M' ? 20 : 0;
    if (shift == 0 || number < 1 || number > largest_cache >> shift) refuse();
    ++at;
    caches.push_back({level, number << shift, 0});
  }
  if (at != end) refuse();
  return caches;
}

const Caches& caches() {
  return made_once([] {
    const std::string text = environment(Variable::caches);
    return caches_of(text.empty() ? system::data_caches() : caches_named(text));
  });
}

}  // namespace ein::host
