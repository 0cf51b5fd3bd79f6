// From nests to schedules.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "nest/attention.hpp"
#include "nest/nest.hpp"
#include "schedule/schedule.hpp"
#include "schedule/target.hpp"

namespace ein {

/// The schedule of one nest, over the program's buffers.
Schedule choose(const LoopNest& nest, const Target& target);

/// The same, of sums of products as of other reductions.
Schedule choose_as_reduction(const LoopNest& nest, const Target& target);

/// Of the nests of a group, in blocks, or as the attention that it is.
Schedule choose(const Program& program, const Program::Group& group, const Target& target);

/// Of attention, or of its gradients, in tiles of scores; only if it is_for_tiles().
Schedule choose(const Program& program, const Attention& attention, const Target& target);

/// Whether the target has the code, and there are scores enough for tiles to pay.
bool is_for_tiles(const Attention& attention, const Target& target);

/// The most places of a part.
inline constexpr std::size_t most_places = 96;

}  // namespace ein
