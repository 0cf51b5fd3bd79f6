// An einsum as a network of its operands, and as loops.
#pragma once

#include <string>

#include "draw/example.hpp"
#include "draw/svg.hpp"

namespace ein::draw {

/// Draws the operands as boxes and each axis as a line: between the operands that have it where it
/// is summed, down to the result where it is kept; beside it the loops. The space that it took,
/// from (x, y).
Rectangle draw_network(Svg& svg, const Example& example, double x, double y);

/// The same in words: "d joins operand 1 and operand 2 and is summed; ...".
std::string network_in_words(const Example& example);

}  // namespace ein::draw
