#include "passes/memory_plan.hpp"

#include <algorithm>
#include <numeric>

namespace ein {

Arena plan_arena(const std::vector<Lifetime>& values) {
  constexpr std::size_t alignment = 64;
  Arena arena;
  arena.offsets.assign(values.size(), 0);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a].bytes != values[b].bytes ? values[a].bytes > values[b].bytes : a < b;
  });
  struct Placed {
    std::size_t offset, end;
    Lifetime value;
  };
  std::vector<Placed> placed;  // by offset
  for (std::size_t v : order) {
    const Lifetime& value = values[v];
    std::size_t offset = 0;
    auto at = placed.begin();
    for (; at != placed.end() && offset + value.bytes > at->offset; ++at) {
      const bool lives_beside = at->value.first <= value.last && value.first <= at->value.last;
      if (lives_beside)
        offset = std::max(offset, (at->end + alignment - 1) / alignment * alignment);
    }
    const std::size_t end = offset + value.bytes;
    arena.offsets[v] = offset;
    arena.bytes = std::max(arena.bytes, end);
    at = std::upper_bound(placed.begin(), placed.end(), offset,
                          [](std::size_t o, const Placed& p) { return o < p.offset; });
    placed.insert(at, {offset, end, value});
  }
  return arena;
}

}  // namespace ein
