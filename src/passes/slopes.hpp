// Derivatives that values were given (with_slope), once none are asked for any more.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// The graph with expressions that compute values alone.
Graph without_slopes(Graph graph);

}  // namespace ein
