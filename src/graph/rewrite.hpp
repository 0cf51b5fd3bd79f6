// What passes share that take a graph to a graph.
#pragma once

#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// Whether each value is an input of an output or an assignment, through any number of operations.
std::vector<char> live_values(const Graph& graph);

/// Gives `to` the outputs and assignments of `from`, whose values are `moved` there.
void move_results(const Graph& from, Graph& to, const std::vector<ValueId>& moved);

/// The graph without the operations that `live` lacks; what is live must need none of them.
Graph keep_values(const Graph& graph, const std::vector<char>& live);

/// The graph without the operations that no output or assignment needs, but with all inputs:
/// callers count them.
Graph without_dead_values(const Graph& graph);

/// Where each axis of `op` lies for a reader of its value; `op` writes one axis per dimension.
std::vector<DimIndex> axis_values(const Op& op, const Access& read);

/// An access in terms of other axes, given where each of its own axes lies.
Access composed(const Access& access, const std::vector<DimIndex>& axis_value);

}  // namespace ein
