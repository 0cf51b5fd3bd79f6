// A graph whose sizes are formulas, for the lengths of a call.
#pragma once

#include <ein/graph.hpp>
#include "tensor/size_scope.hpp"

namespace ein {

/// The shape with numbers in place of formulas.
Shape at_sizes(const Shape& shape, const SizeValues& values);

/// The graph with numbers in place of formulas. An Error of kind `overflow` where a value has more
/// than 2^63 - 1 bytes.
Graph at_sizes(Graph graph, const SizeValues& values);

}  // namespace ein
