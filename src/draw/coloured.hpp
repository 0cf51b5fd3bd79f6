// The text of a pattern with its axes in their colours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "draw/example.hpp"
#include "draw/svg.hpp"

namespace ein::draw {

/// Characters of a pattern that a picture shows.
inline constexpr std::size_t longest_shown = 90;

/// A part of the example's pattern; of a long one the beginning.
std::vector<Svg::Span> coloured(Svg& svg, const Example& example, SourceSpan part);

}  // namespace ein::draw
