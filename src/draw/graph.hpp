// A graph as a picture that browsers show.
#pragma once

#include <span>
#include <string>

#include <ein/graph.hpp>

namespace ein {

/// What an input of a compiled function is.
enum class InputRole : std::uint8_t { argument, parameter, optimizer_state, constant };

/// An SVG document: operations in layers from top to bottom, each a box with its formula or
/// pattern, dtype and shape, and an arrow for each value that it reads; arrows to results and to
/// what is assigned. `roles` of the inputs, in their order; arguments beyond its end.
std::string to_svg(const Graph& graph, std::span<const InputRole> roles = {});

}  // namespace ein
