// Nests that compute for themselves what they would read of another.
#pragma once

#include <optional>

#include "nest/nest.hpp"

namespace ein {

/// Whether each element of the result is computed of elements of the inputs, and of its indices,
/// alone.
bool is_elementwise(const LoopNest& nest);

/// `reader`, which computes the elements that it reads as input `input` where it reads them: `map`
/// writes them. None where that would be another value, or is not known to be the same.
std::optional<LoopNest> with_map(LoopNest reader, std::size_t input, const LoopNest& map);

}  // namespace ein
