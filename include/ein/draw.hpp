// Pictures of what patterns do.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <ein/axis.hpp>
#include <ein/error.hpp>
#include <ein/reduction.hpp>
#include <ein/shape.hpp>

namespace ein::draw {

// Each gives an SVG document, for light and dark pages, with a text in it that screen readers read:
// what the call does, on small tensors of the same pattern. An axis is a colour, an element a cell
// with its number, and the same number stands where it goes. `shapes` are those of the operands;
// without them the picture's sizes are those that the pattern and `sizes` say, and small ones. A
// mistake in the pattern or the shapes is the Error of the call itself; one of kind `value` is
// thrown for more than 16 axes of a tensor, or 16 operands and results.

/// Split, merged, transposed, joined dimensions: `draw::rearrange("b s (h d) -> b h s d")`.
std::string rearrange(std::string_view pattern, std::initializer_list<Shape> shapes = {},
                      std::initializer_list<AxisSize> sizes = {});
/// Elements that come several times.
std::string repeat(std::string_view pattern, std::initializer_list<Shape> shapes = {},
                   std::initializer_list<AxisSize> sizes = {});
/// What is combined has one colour: `draw::reduce("b c (h 2) (w 2) -> b c h w", Reduction::max)`.
std::string reduce(std::string_view pattern, Reduction reduction,
                   std::initializer_list<Shape> shapes = {},
                   std::initializer_list<AxisSize> sizes = {});
/// The operands as a network whose lines are axes, the loops, and one element of the result with
/// those that it is made of.
std::string einsum(std::string_view pattern, std::initializer_list<Shape> shapes = {},
                   std::initializer_list<AxisSize> sizes = {});

/// The text of an error, its carets as lines under the pattern.
std::string mistake(const Error& error);

}  // namespace ein::draw
