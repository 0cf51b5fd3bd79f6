// How many index tuples of a sum are inside of its operands and its result, exactly.
#pragma once

#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// Axes that decide together what is inside; those of different groups do so independently.
struct AxesTogether {
  std::vector<int> axes;
  bool is_cut = false;  // some of their tuples are outside
  Size inside = 0;  // how many are not; where none is cut, it is not set. All, where the size of
                    // more than one axis is open
};
/// All axes of a contraction or reduction in such groups. The tuples inside are as many as the
/// product of the groups' numbers says.
std::vector<AxesTogether> axes_together(const Graph& graph, const Op& op);

/// How many positions from 0 to `length` a dimension moves to.
Size positions_inside(const DimIndex& dim, Size length, const std::vector<Axis>& axes);

}  // namespace ein
