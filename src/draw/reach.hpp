// Which elements of a graph's inputs its results are made of.
#pragma once

#include <cstdint>
#include <vector>

#include <ein/graph.hpp>

namespace ein::draw {

/// Of each element of a value, in row-major order, the numbers of the elements that it is made of,
/// in order. The elements of all inputs are numbered one input after another.
using Sources = std::vector<std::vector<std::uint32_t>>;

/// Those of each output, by going through every point of every operation: for small graphs of
/// known sizes. A std::logic_error for an operation whose positions only its values say.
std::vector<Sources> reach(const Graph& graph);

}  // namespace ein::draw
