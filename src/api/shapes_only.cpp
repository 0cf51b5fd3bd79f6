#include <ein/shapes_only.hpp>

#include "runtime/trace.hpp"

namespace ein {

ShapesOnly::ShapesOnly() {
  engine::require_no_trace("ShapesOnly", "make it outside, around all that it counts");
  trace_ = std::make_unique<engine::Trace>(engine::Trace::Of::shapes);
}
ShapesOnly::~ShapesOnly() = default;

Graph ShapesOnly::graph(std::span<const Tensor> results) const {
  Graph graph = trace_->graph_of(results);
  verify(graph);
  return graph;
}

}  // namespace ein
