// Joins the cases of outputs with sums of axes.
#pragma once

#include <span>
#include <vector>

#include "graph/solve.hpp"

namespace ein {

/// The outputs of a pattern that is computed by cases, from a value for each of `solved.cases`.
std::vector<ValueId> joined_cases(Graph& graph, const grammar::Pattern& pattern,
                                  const Solved& solved, std::span<const ValueId> cases);

}  // namespace ein
