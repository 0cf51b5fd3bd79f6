// Parameters that processes keep in parts are gathered again where the backward pass reads them.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// The graph in which a `reshard` of an input that the forward pass reads, and that is not split
/// any further by it, is computed a second time before the first operation of the backward pass
/// that reads it. So what was gathered need not be kept between.
Graph gather_again(const Graph& graph);

}  // namespace ein
