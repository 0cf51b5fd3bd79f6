// Places for the boxes of a picture of a graph.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace ein {

struct LayeredLayout {
  /// Of the middle of each node, and for each edge the points between its ends, from above to
  /// below.
  std::vector<double> x;
  std::vector<std::size_t> layer;
  std::vector<std::vector<std::pair<double, std::size_t>>> bends;  // x, layer
  double width = 0;
  std::size_t layers = 0;
};

/// Nodes in layers such that edges, each from a node to a later one, lead down; each layer in an
/// order with few crossings (barycentre heuristic: Sugiyama, Tagawa and Toda, IEEE Trans. SMC
/// 11(2), 1981), and near what it is connected to. `widths` of the nodes; `gap` between neighbours.
/// Edges over more than a few layers go straight.
LayeredLayout layered_layout(const std::vector<double>& widths,
                             const std::vector<std::pair<std::size_t, std::size_t>>& edges,
                             double gap);

}  // namespace ein
