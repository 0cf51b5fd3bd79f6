// What functions of matrices send back to their inputs.
#pragma once

#include <vector>

#include "graph/build.hpp"

namespace ein::autograd {

/// Appends the cotangents of the inputs of `op`, a function of matrices with this result, at the
/// points of its axes; of inputs that are not wanted there is none (id -1).
std::vector<NamedValue> pull_matrix(Graph& graph, const Op& op, ValueId result, ValueId cotangent,
                                    const std::vector<bool>& wanted);

}  // namespace ein::autograd
