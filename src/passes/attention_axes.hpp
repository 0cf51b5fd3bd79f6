// What the nests of an attention compute, with all operands along the same axes.
#pragma once

#include <optional>

#include "nest/attention.hpp"
#include "passes/attention_match.hpp"

namespace ein::attention {

/// The attention that a match is, as a device is told; none if kernels are not made for one like
/// it.
std::optional<Attention> describe(const Program& program, const Match& match);

}  // namespace ein::attention
