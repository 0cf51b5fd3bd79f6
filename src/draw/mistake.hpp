// A mistake in a pattern, as a picture.
#pragma once

#include <string>

#include <ein/error.hpp>

namespace ein::draw {

/// The error's text as an SVG document: the pattern with its axes in their colours, and a line
/// under each place that the error is about.
std::string to_svg(const Error& error);

}  // namespace ein::draw
