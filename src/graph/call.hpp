// From one call of a public operation to its graph.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ein/graph.hpp>
#include <ein/named.hpp>
#include <ein/reduction.hpp>
#include "graph/diagnostic.hpp"

namespace ein {

/// What the caller wrote, apart from the tensors.
struct PatternCall {
  Operation op = Operation::einsum;
  grammar::Pattern pattern{};
  std::span<const AxisSize> sizes{};
  Reduction reduction = Reduction::sum;
  std::span<const Shape> packed_shapes{};  // unpack
  bool stacked = false;                    // operands of one input are stacked on a new first axis
  bool is_checked = false;                 // the pattern has passed check_pattern() for this call
  detail::NamedOptions named{};            // operations with axes in brackets
  std::optional<DType> dtype{};            // of the result, where the call says it
  grammar::LoneSums lone_sums = grammar::LoneSums::allowed;
  grammar::Results results = grammar::Results::many;
};

struct OperandType {
  Shape shape;
  DType dtype = DType::f32;
};

/// An Error if the pattern does not suit this number of operands, unless it was checked before.
void require_valid(const PatternCall& call, std::size_t operands);

/// The names of axes among what is given with a call.
std::vector<std::string_view> axis_names(std::span<const AxisSize> given);

/// Puts the numbers that are given with a call into the braces of its pattern; an Error where one
/// is missing, or not of the pattern.
void require_numbers(Operation op, grammar::PatternBuffer& buffer, std::string_view text,
                     std::span<const AxisSize> given);

/// Whether all its elements have at most 2^63 - 1 bytes.
bool fits_memory(const Shape& shape, std::size_t element_bytes);

/// The verified graph of a call: one input per operand, one output per result. Every mistake in the
/// call is an Error. Not for parse_shape, place and reshard, which compute nothing.
Graph build_graph(const PatternCall& call, std::span<const OperandType> operands);

/// The named axes of a parse_shape pattern and their sizes, in the order of the pattern.
std::vector<std::pair<std::string, Size>> solve_shape(const grammar::Pattern& pattern,
                                                      const Shape& shape);

/// The shapes that pack joins: what '*' stands for in each operand.
std::vector<Shape> packed_shapes(const grammar::Pattern& pattern, std::span<const Shape> shapes);

}  // namespace ein
