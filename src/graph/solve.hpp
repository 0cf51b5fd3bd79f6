// From a pattern and shapes to axes with sizes, and an Access for each operand and the result.
#pragma once

#include <span>
#include <vector>

#include <ein/graph.hpp>
#include "graph/diagnostic.hpp"

namespace ein {

/// A pattern with every size known.
struct Solved {
  std::vector<Axis> axes;
  std::vector<Access> reads;  // one per operand
  Access write;               // empty for patterns without an output
  Shape shape;                // of the result
  std::vector<char> marked;   // whether each axis is in brackets
  bool has_braces = false;    // reads may leave their operands, and writes meet or leave the result
};

/// Solves the sizes of a pattern of any operation but pack and unpack. Every size known from
/// several places must agree. Errors: rank, size, divisibility, inference, axis_argument, overflow.
/// Precondition: check_pattern() found no mistake.
Solved solve(Operation op, const grammar::Pattern& pattern, std::span<const Shape> shapes,
             std::span<const AxisSize> given);

}  // namespace ein
