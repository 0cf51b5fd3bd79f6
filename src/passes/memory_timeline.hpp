// The memory of a program over its steps.
#pragma once

#include <ein/memory_timeline.hpp>
#include "passes/memory_plan.hpp"

namespace ein {

/// Of a grouped program whose sizes are numbers. `block` are the bytes that its intermediate values
/// share, at least those that plan_arena() says; `others` are the bytes beside them.
MemoryTimeline memory_timeline(const Program& program, std::size_t block, std::size_t others);

}  // namespace ein
