// Where the intermediate values of a program lie: in one block, which those share that are not
// alive together.
#pragma once

#include <cstddef>
#include <vector>

namespace ein {

/// Alive from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct Arena {
  std::vector<std::size_t> offsets;  // of each value, multiples of 64
  std::size_t bytes = 0;
};

/// Places the largest values first, each at the lowest offset where it overlaps none that is alive
/// with it.
Arena plan_arena(const std::vector<Lifetime>& values);

}  // namespace ein
