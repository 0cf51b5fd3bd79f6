// From nests to schedules.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"
#include "schedule/target.hpp"

namespace ein {

/// The schedule of one nest, over the program's buffers.
Schedule choose(const LoopNest& nest, const Target& target);

/// Of the nests of a group, in blocks.
Schedule choose(const Program& program, const Program::Group& group, const Target& target);

/// The most places of a part.
inline constexpr std::size_t most_places = 96;

}  // namespace ein
