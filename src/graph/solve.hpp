// From a pattern and shapes to axes with sizes, and an Access for each operand and the result.
#pragma once

#include <span>
#include <vector>

#include <ein/graph.hpp>
#include "ein/grammar/cases.hpp"
#include "graph/diagnostic.hpp"

namespace ein {

/// A case of a pattern with sums of axes (grammar/cases.hpp), with every size known.
struct SolvedCase {
  /// The first operand that it reads, and the reads of that and of those that follow.
  std::size_t operand = 0;
  std::vector<Access> reads;
  /// A dimension for each factor and term of the output, so that a piece is one where its sum is.
  Access write;
  Shape shape;
};

/// A pattern with every size known.
struct Solved {
  std::vector<Axis> axes;
  std::vector<Access> reads;       // one per operand
  Access write;                    // empty for patterns without an output
  Shape shape;                     // of the result
  std::vector<char> marked;        // whether each axis is in brackets
  grammar::Cases pieces;           // of a pattern that is computed by cases, else empty
  std::vector<SolvedCase> cases;   // one for each of them
  std::size_t under_ellipsis = 0;  // how many axes
  bool has_braces = false;  // reads may leave their operands, and writes meet or leave the result
};

/// Solves the sizes of a pattern of any operation but pack and unpack. Every size known from
/// several places must agree. Errors: rank, size, divisibility, inference, axis_argument, overflow.
/// Precondition: check_pattern() found no mistake.
Solved solve(Operation op, const grammar::Pattern& pattern, std::span<const Shape> shapes,
             std::span<const AxisSize> given);

}  // namespace ein
