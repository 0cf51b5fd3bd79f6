// What one thread does at a point: a few neighbours along an axis, read at once.
#pragma once

#include <string>

#include "codegen/expression.hpp"
#include "schedule/gpu_pack.hpp"
#include "schedule/steps.hpp"

namespace ein::codegen {

/// Threads of a block, where a thread has an element or a pack.
inline constexpr unsigned block_threads = 256;

/// Declares the inputs that `nest` evaluates or is indexed by; positions come first. Moved elements
/// keep their bits.
void declare_inputs(Writer& writer, const LoopNest& nest, bool moves);

/// Whether a position, a variable, lies in its axis.
std::string inside_axis(const std::string& position, const LoopNest::Indirection& axis);

/// Reads the position of an indirect operand as `position`, which must be inside its axis, and
/// returns the operand's place; a position that is outside ends with the statement `otherwise`.
std::string moved_place(Writer& writer, const LoopNest& nest, const LoopNest::Operand& operand,
                        const std::string& position, const std::string& otherwise);

/// Reads the inputs at the indices at hand and returns, per input, the name of its value: an
/// element of an array, `[j]`, where it moves along a pack. `remaining`: elements of a ragged pack.
/// Positions that are outside end with the statement `otherwise`.
std::vector<std::string> write_loads(Writer& writer, const LoopNest& nest, const Pack& pack,
                                     bool moves, const std::string& remaining,
                                     const std::string& otherwise);

/// The inputs that the epilogue reads beside the combined value.
std::vector<std::size_t> epilogue_inputs(const LoopNest& nest);
/// The epilogue of `value` at the indices at hand, after reading what else it wants.
std::string write_finished(Writer& writer, const LoopNest& nest, const std::string& value);

/// Whether elements are moved as they are.
inline bool only_moves(const LoopNest& nest) {
  return nest.is_copy() && nest.inputs[0].dtype == nest.output.dtype;
}

}  // namespace ein::codegen
