// Where the intermediate values of a program lie: in one block, which those share that are not
// alive together.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "nest/nest.hpp"

namespace ein {

/// Alive from step `first` to step `last`, both included.
struct Lifetime {
  Size bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct Arena {
  std::vector<Size> offsets;  // of each value, multiples of 64
  Size bytes = 0;
};

/// Places the largest values first, each at the lowest offset where it overlaps none that is alive
/// with it.
Arena plan_arena(const std::vector<Lifetime>& values);

/// Where the buffers of a grouped program that it allocates lie in a run.
struct ProgramMemory {
  std::vector<int> results;  // buffers that hold results: each has memory of its own
  /// Buffers of intermediate values, and where they begin in the arena. Local ones have no place.
  std::vector<std::pair<std::size_t, Size>> intermediate;
  Size result_bytes = 0, arena_bytes = 0;
  Size unshared_bytes = 0;  // of all intermediate values, the local ones too
};
ProgramMemory plan_memory(const Program& program);

}  // namespace ein
