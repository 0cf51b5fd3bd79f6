// Maps of few values over many points, computed by each operation that reads them.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// A map that has far more elements than the values it is computed of, as the differences of all
/// pairs of points, has a copy for each operation that reads it, if all of these can take it in: so
/// it does not come to memory.
Graph copy_maps(const Graph& graph);

}  // namespace ein
