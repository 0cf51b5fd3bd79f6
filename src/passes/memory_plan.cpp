#include "passes/memory_plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "nest/attention.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"

namespace ein {

Arena plan_arena(const std::vector<Lifetime>& values) {
  constexpr std::int64_t alignment = 64;
  Arena arena;
  arena.offsets.assign(values.size(), 0);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return !ask_equal(values[a].bytes, values[b].bytes) ? values[a].bytes > values[b].bytes : a < b;
  });
  // What lies at the same bytes at different times: of each first step, the last.
  struct Place {
    Size offset, end;
    std::map<std::size_t, std::size_t> lives;
    bool is_taken(const Lifetime& value) const {
      auto after = lives.upper_bound(value.last);
      return after != lives.begin() && std::prev(after)->second >= value.first;
    }
  };
  std::vector<Place> places;  // by offset
  for (std::size_t v : order) {
    const Lifetime& value = values[v];
    Size offset = 0;
    for (const Place& place : places) {
      if (offset + value.bytes <= place.offset) break;
      if (place.is_taken(value)) offset = std::max(offset, round_up(place.end, alignment));
    }
    const Size end = offset + value.bytes;
    arena.offsets[v] = offset;
    arena.bytes = std::max(arena.bytes, end);
    auto at = std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return always_equal(place.offset, offset) && always_equal(place.end, end);
    });
    if (at == places.end()) {
      const auto after =
          std::upper_bound(places.begin(), places.end(), offset,
                           [](Size o, const Place& place) { return o < place.offset; });
      at = places.insert(after, {offset, end, {}});
    }
    at->lives.emplace(value.first, value.last);
  }
  return arena;
}

ProgramMemory plan_memory(const Program& program) {
  const std::size_t count = program.buffers.size();
  constexpr std::size_t never = static_cast<std::size_t>(-1);
  std::vector<Lifetime> lifetimes(count, {0, never, 0});
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const auto touch = [&](const LoopNest::Operand& operand) {
      Lifetime& life = lifetimes[static_cast<std::size_t>(operand.buffer)];
      life.first = std::min(life.first, g);
      life.last = std::max(life.last, g);
    };
    const Program::Group& group = program.groups[g];
    for (std::size_t n = group.first; n < group.first + group.count; ++n) {
      for (const LoopNest::Operand& input : program.nests[n].inputs) touch(input);
      touch(program.nests[n].output);
    }
    if (const Attention* attention = group.attention()) {
      for (const LoopNest::Operand* operand : read_by(*attention)) touch(*operand);
      touch(attention->out);
    }
  }
  ProgramMemory memory;
  std::vector<bool> holds_result(count, false);
  for (const Program::Result& result : program.results) {
    const auto b = static_cast<std::size_t>(result.buffer);
    if (b < program.input_count || holds_result[b]) continue;
    holds_result[b] = true;
    memory.results.push_back(result.buffer);
    memory.result_bytes += program.buffers[b].bytes();
  }
  for (std::size_t b = program.input_count; b < count; ++b) {
    if (lifetimes[b].first == never || holds_result[b]) continue;
    lifetimes[b].bytes = program.buffers[b].bytes();
    memory.unshared_bytes += lifetimes[b].bytes;
    if (program.buffers[b].is_local) continue;
    memory.intermediate.push_back({b, lifetimes[b]});
  }
  return memory;
}

Arena arena_at(const ProgramMemory& memory, SizesAt& sizes) {
  std::vector<Lifetime> lives;
  lives.reserve(memory.intermediate.size());
  for (const ProgramMemory::Intermediate& value : memory.intermediate) {
    lives.push_back(value.life);
    sizes.put(lives.back().bytes);
  }
  return plan_arena(lives);
}

}  // namespace ein
