// Programs grouped for a target of small tiles, and their buffers in double precision.
#pragma once

#include <cstdint>
#include <span>

#include "oracle/execute.hpp"
#include "passes/find_attention.hpp"
#include "schedule/cpu_group_nests.hpp"
#include "support/attention_cases.hpp"
#include "support/random_nests.hpp"

namespace ein::test {

/// The small target, of rows that lie side by side or repeat one element.
inline Target unit_steps_target() {
  Target target = small_target();
  target.reads = [](DType, Size step, DType) { return step == 0 || step == 1; };
  return target;
}

/// The target with tiles of so many queries and keys, for attention of any size.
inline Target with_tiles(Target target, std::int64_t queries, std::int64_t keys) {
  target.queries_in_tile = queries, target.keys_in_tile = keys;
  target.least_score_bytes = 1;
  return target;
}

/// Finds the attention that is for the target's tiles, and groups all nests.
inline void group_for(const Target& target, Program& program, std::span<const int> kept) {
  find_attention(program, kept, {},
                 [&](const Attention& attention) { return is_for_tiles(attention, target); });
  group_nests(program, target, kept);
}

/// A program's buffers before it runs: inputs, and zeros.
inline DoubleBuffers buffers_of(const CompiledProgram& step) {
  DoubleBuffers buffers;
  for (const Program::Buffer& buffer : step.program.buffers) {
    const std::size_t b = buffers.size();
    buffers.push_back(b < step.inputs.size()
                          ? get_values(step.inputs[b])
                          : std::vector<double>(static_cast<std::size_t>(buffer.elements)));
  }
  return buffers;
}

}  // namespace ein::test
