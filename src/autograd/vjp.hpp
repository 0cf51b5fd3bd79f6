// The vector-Jacobian product of a graph, as a graph: one rule for each kind of operation.
#pragma once

#include <vector>

#include <ein/graph.hpp>

namespace ein::autograd {

struct Vjp {
  /// Its inputs are those inputs of the forward graph that `needs` names, then the cotangents of
  /// the outputs; its outputs are the cotangents of the wanted inputs, in their order.
  Graph graph;
  std::vector<std::size_t> needs;
  /// Wanted inputs that no cotangent reaches have no output: false for them.
  std::vector<bool> reached;
};

/// `wanted`: whether the cotangent of each input is asked for; `given`: whether there is a
/// cotangent of each output (of its dtype and shape). Intermediate values of the forward graph that
/// the rules need are computed again.
Vjp vjp(const Graph& forward, const std::vector<bool>& wanted, const std::vector<bool>& given);

}  // namespace ein::autograd
