// What one thread does at a point: a few neighbours along an axis, read at once.
#pragma once

#include <string>

#include "codegen/expression.hpp"

namespace ein::codegen {

inline constexpr std::size_t no_axis = static_cast<std::size_t>(-1);

/// Threads of a block.
inline constexpr unsigned block_threads = 256;
/// Blocks that keep a device busy: some for each of about a hundred multiprocessors.
inline constexpr std::int64_t busy_blocks = 264;
/// A thread adds so many values in a row before it adds their sum to its total, so that errors stay
/// small.
inline constexpr std::int64_t run_length = 32;

/// Some neighbours along `axis`.
struct Pack {
  std::size_t axis = no_axis;
  int width = 1;
  bool is_ragged = false;  // the last one may be short
};

/// The widest pack that can be read and written at once: 16 bytes of the largest elements, if all
/// `operands` lie contiguously along `axis`, or do not move, and packs are aligned. A nest of one
/// axis may have a ragged end, if `ragged` allows it.
Pack pack_along(const LoopNest& nest, std::size_t axis,
                const std::vector<const LoopNest::Operand*>& operands, bool ragged);

/// Declares the inputs that `nest` evaluates or is indexed by; positions come first. Moved elements
/// keep their bits.
void declare_inputs(Writer& writer, const LoopNest& nest, bool moves);

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
