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
  const auto end = [&](std::size_t v) { return arena.offsets[v] + values[v].bytes; };
  std::vector<std::size_t> placed;
  for (std::size_t v : order) {
    std::vector<std::size_t> others;
    for (std::size_t p : placed) {
      if (values[p].first <= values[v].last && values[v].first <= values[p].last) others.push_back(p);
    }
    std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) { return arena.offsets[a] < arena.offsets[b]; });
    std::size_t offset = 0;
    for (std::size_t other : others) {
      if (offset + values[v].bytes <= arena.offsets[other]) break;
      offset = std::max(offset, (end(other) + alignment - 1) / alignment * alignment);
    }
    arena.offsets[v] = offset;
    arena.bytes = std::max(arena.bytes, end(v));
    placed.push_back(v);
  }
  return arena;
}

}  // namespace ein
