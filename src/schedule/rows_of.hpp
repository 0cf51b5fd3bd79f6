// Which nests a target's code for rows can compute.
#pragma once

#include <cstddef>

#include "nest/nest.hpp"
#include "schedule/target.hpp"

namespace ein {

/// Whether a nest is a map or a reduction in f32, of functions and dtypes that the target's code
/// has, without positions to look up.
bool is_for_rows(const LoopNest& nest, const Target& target);

/// Whether all its operands can be rows along an axis: read there as the target reads, and written
/// side by side.
bool lies_along(const LoopNest& nest, std::size_t along, const Target& target);

}  // namespace ein
