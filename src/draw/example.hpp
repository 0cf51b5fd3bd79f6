// A call made small: the same pattern on tensors of a few dozen elements, which a picture can show
// one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/call.hpp"

namespace ein::draw {

/// The most elements of a tensor that is drawn, axes that one has, and operands.
inline constexpr std::int64_t most_elements = 36;
inline constexpr std::size_t most_axes = 16, most_operands = 8;

/// An axis of the pattern. Its place in the list says its colour.
struct DrawnAxis {
  std::string name;
  std::optional<std::int64_t> real;  // its size in the call, if that is known
  std::int64_t size = 0;             // as it is drawn
};

/// What a dimension is made of: an axis; axes side by side; or positions that braces compute.
struct Factor {
  enum Kind : std::uint8_t { axis, sum, positions };
  Kind kind = axis;
  std::size_t number = 0;  // of the axis
  std::int64_t size = 0;
  std::string text{};                         // as the pattern has it
  std::vector<std::vector<Factor>> pieces{};  // of a sum
  std::vector<std::size_t> reads{};           // of positions the axes that they are made of
  bool is_piece = false;                      // inside a sum
};
/// Its factors, the outermost first; none of a dimension of one element.
using Dimension = std::vector<Factor>;

/// A tensor as it is drawn.
struct DrawnTensor {
  SourceSpan span;  // of its side of the pattern
  std::vector<Dimension> dims;
  Shape shape;
  std::optional<Shape> real;
};

struct Example {
  std::string text;  // of the pattern
  std::vector<DrawnAxis> axes;
  std::vector<int> axis_of;       // of each term of the pattern; -1 where it is none
  std::vector<SourceSpan> spans;  // of these terms
  std::vector<DrawnTensor> operands, results;
  Graph graph;

  bool has_sums() const;
};

/// The example of a call on operands of these shapes, or of none: then sizes that the pattern and
/// the call leave open are chosen. Errors of the call are those that it has anyway; one of kind
/// `value` where it cannot be made small enough.
Example example_of(const PatternCall& call, std::span<const Shape> shapes);

/// The size of a dimension.
std::int64_t size_of(const Dimension& dim);

}  // namespace ein::draw
