// What the nests of an attention compute, with all operands along the same axes.
#pragma once

#include <optional>

#include "nest/attention.hpp"
#include "passes/attention_match.hpp"

namespace ein::attention {

/// The attention that a match is, as a device is told; none if its operands do not lie as one has
/// them.
std::optional<Attention> describe(const Program& program, const Match& match);

}  // namespace ein::attention
