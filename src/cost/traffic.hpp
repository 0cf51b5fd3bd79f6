// Traffic: which operands of a program's nests move between memory and the processor.
#pragma once

#include <vector>

#include "nest/nest.hpp"

namespace ein {

/// Of a nest: whether each of its inputs is read from memory, and whether its result is written
/// there.
struct Traffic {
  std::vector<char> reads;
  bool writes = true;
};

/// Of a nest by itself: an input that it has several times is read once.
Traffic traffic_of(const LoopNest& nest);

/// Of each nest of a program. Local buffers reach no memory. What nests of a group have read or
/// written of the block, or row, at hand is in a cache when others of the group read it.
std::vector<Traffic> traffic_of(const Program& program);

}  // namespace ein
