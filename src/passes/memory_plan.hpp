// Where the intermediate values of a program lie: in one block, which those share that are not
// alive together.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "nest/nest.hpp"
#include "size/size_scope.hpp"

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

/// The buffers of a grouped program that it allocates.
struct ProgramMemory {
  std::vector<int> results;  // buffers that hold results: each has memory of its own
  /// Buffers of intermediate values that share an arena. Local ones have no place in it.
  struct Intermediate {
    std::size_t buffer;
    Lifetime life;  // in groups
  };
  std::vector<Intermediate> intermediate;
  Size result_bytes = 0;
  Size unshared_bytes = 0;  // of all intermediate values, the local ones too
};
ProgramMemory plan_memory(const Program& program);

/// Where they lie in the arena, for sizes that are numbers.
Arena arena_at(const ProgramMemory& memory, SizesAt& sizes);

}  // namespace ein
