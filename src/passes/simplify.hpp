// The same values by fewer operations.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// Computes equal operations once, folds constants into the expressions that read them, drops what
/// changes nothing (a conversion to the same dtype, a rearrangement into the same order, x · 1, x +
/// 0), turns a scatter in which no two values meet into a map, computes a chain of maps as one, and
/// drops what no output or assignment needs.
///
/// A map does not say that a position lies outside: a scatter becomes one if a gather of `graph`
/// does, or in a derivative, whose call did. A derivative may be differentiated again: what is a
/// constant to that stays apart from what reads it.
Graph simplify(const Graph& graph, bool is_derivative = false);

}  // namespace ein
