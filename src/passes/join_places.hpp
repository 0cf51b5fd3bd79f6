// Sums of placed pieces as concatenations.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// Turns a sum of values that are each zero but in a slice of one dimension, where the slices do
/// not overlap and cover it, into the concatenation of the slices. The gradients of the parts of a
/// split meet in such sums.
Graph join_places(const Graph& graph);

}  // namespace ein
