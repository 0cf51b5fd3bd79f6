// What a call of a pattern does, as a picture.
#pragma once

#include <span>
#include <string>

#include "graph/call.hpp"

namespace ein::draw {

/// An SVG document of a call of rearrange, repeat, reduce or einsum on operands of these shapes; or
/// of none, then the picture's sizes are those that the pattern and the call say, and small ones.
/// It shows small tensors of the same pattern, their axes as colours, and where each element goes;
/// of einsum also the network of its operands and its loops. Errors are those of the call, and of
/// kind `value` where the pattern is too large to be drawn.
std::string to_svg(const PatternCall& call, std::span<const Shape> shapes);

}  // namespace ein::draw
