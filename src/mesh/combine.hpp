// Values of several processes as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ein/dtype.hpp>
#include <ein/graph.hpp>

namespace ein::mesh {

/// to[i] = from[0][i] ∘ from[1][i] ∘ ..., from left to right, for i in [0, count). Floats narrower
/// than f32 are combined in f32 and rounded once at the end, other dtypes in their own type; none
/// is complex. There are at least two of `from`, and `to` may be one of them.
void combine_elements(std::span<const std::byte* const> from, std::byte* to, std::int64_t count,
                      DType dtype, Combine combine);

}  // namespace ein::mesh
