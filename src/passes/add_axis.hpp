// A graph over one more axis: what vmap makes of a function that was traced without it.
#pragma once

#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// The same operations for each index along `axis`, which the first dimension of the inputs that
/// `have_it` has, and of each value that depends on one of these. It is the first of every result.
/// Random numbers are drawn for each index, or, unless `draws_for_each`, once for all. An Error of
/// kind `value` that names an operation which can't take the axis.
Graph with_axis(const Graph& graph, const std::vector<bool>& have_it, const Axis& axis,
                bool draws_for_each);

}  // namespace ein
