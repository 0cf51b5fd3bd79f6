#include "passes/place_results.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/fields.hpp"
#include "nest/attention.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

bool is_input(const Program& program, int buffer) {
  return static_cast<std::size_t>(buffer) < program.input_count;
}

/// A copy of a result, as a part of the update.
LoopNest update(const Program::Result& from, const Program::Result& to) {
  LoopNest nest = copy_nest(from, to);
  nest.phase = Phase::update;
  return nest;
}

/// The nest that copies a result to a buffer of its own, where the result then lies.
LoopNest copy_out(Program& program, Program::Result& result) {
  const int own = static_cast<int>(program.buffers.size());
  program.buffers.push_back({numel(result.shape), result.dtype});
  const Program::Result from =
      std::exchange(result, {own, result.dtype, result.shape, contiguous_strides(result.shape), 0});
  return update(from, result);
}

/// Whether every element of `input` is read where and when `output` is written.
bool in_step(const LoopNest::Operand& input, const LoopNest::Operand& output) {
  return always_equal(input.offset, output.offset) && always_equal(input.strides, output.strides) &&
         input.dtype == output.dtype && !input.is_indirect() && !output.is_indirect();
}

/// Whether the nest copies a value to where it is already.
bool copies_to_itself(const LoopNest& nest) {
  return nest.is_copy() && nest.inputs[0].buffer == nest.output.buffer &&
         in_step(nest.inputs[0], nest.output);
}

void rename(Program& program, int from, int to) {
  const auto move = [&](auto& of) {
    if (of.buffer == from) of.buffer = to;
  };
  for_each_of<LoopNest::Operand>(program, move);
  for_each_of<Program::Result>(program, move);
  std::erase_if(program.nests, copies_to_itself);
}

/// Values that are copied whole, to be written to in parts, are written to where they are, if
/// nothing else needs what they were.
void write_parts_in_place(Program& program) {
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    const LoopNest& copy = program.nests[n];
    if (!copy.is_copy() || !in_step(copy.inputs[0], copy.output)) continue;
    const int from = copy.inputs[0].buffer, to = copy.output.buffer;
    const auto touches = [](const LoopNest& nest, int buffer) {
      for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
        if (nest.operand(o).buffer == buffer) return true;
      }
      return false;
    };
    const auto elements = [&](int b) {
      return program.buffers[static_cast<std::size_t>(b)].elements;
    };
    const bool is_result =
        std::any_of(program.results.begin(), program.results.end(),
                    [&](const Program::Result& result) { return result.buffer == from; });
    const auto at = program.nests.begin() + static_cast<std::ptrdiff_t>(n);
    if (from == to || is_input(program, from) || is_input(program, to) || is_result ||
        !always_equal(elements(from), elements(to)) ||
        std::any_of(program.nests.begin(), at,
                    [&](const auto& nest) { return touches(nest, to); }) ||
        std::any_of(at + 1, program.nests.end(),
                    [&](const auto& nest) { return touches(nest, from); }))
      continue;
    rename(program, to, from);
    --n;
  }
}

/// Whether the nest that computes result `r` now writes to the input.
bool write_in_place(Program& program, const AssignedInput& to, std::size_t r,
                    std::span<const ResultPlace> places, std::span<const int> memory) {
  const Program::Result& value = program.results[r];
  const int buffer = value.buffer;
  if (is_input(program, buffer) || !always_equal(value.offset, 0) ||
      !always_equal(to.layout.offset, 0) || !always_equal(value.strides, to.layout.strides) ||
      !always_equal(program.buffers[static_cast<std::size_t>(buffer)].elements, numel(value.shape)))
    return false;
  const auto overwritten = [&](int b) {
    return is_input(program, b) &&
           memory[static_cast<std::size_t>(b)] == memory[static_cast<std::size_t>(to.input)];
  };
  for (std::size_t other = 0; other < program.results.size(); ++other) {
    if (other == r) continue;
    const int b = program.results[other].buffer;
    // A view of the input sees what is written, as it should.
    const bool is_view = other < places.size() && places[other].input;
    if (b == buffer || (!is_view && overwritten(b))) return false;
  }
  bool is_written = false;
  for (const LoopNest& nest : program.nests) {
    if (overwritten(nest.output.buffer)) return false;
    const bool writes = nest.output.buffer == buffer;
    // An error on the way would leave half of what the input was. A slice that is written at one
    // position is checked before.
    const bool may_stop =
        nest.is_gather() || nest.is_matrix() || (nest.is_scatter() && !nest.writes_at_position());
    if (writes && may_stop) return false;
    for (const LoopNest::Operand& input : nest.inputs) {
      if (!overwritten(input.buffer)) continue;
      // Another input in the same memory begins at a place of its own.
      const bool is_read_in_step = input.buffer == to.input && in_step(input, nest.output);
      const bool follows = is_written || (writes && (nest.combine || nest.is_matrix() ||
                                                     nest.is_collective() || !is_read_in_step));
      if (follows) return false;
    }
    is_written |= writes;
  }
  rename(program, buffer, to.input);
  return true;
}

}  // namespace

void place_results(Program& program, std::span<const ResultPlace> places) {
  std::vector<LoopNest> of_inputs;
  std::unordered_map<int, ValueId> owner_of;  // of buffers
  for (std::size_t r = 0; r < places.size(); ++r) {
    Program::Result& result = program.results[r];
    if (places[r].input) {
      const InputLayout& layout = places[r].layout;
      result = {static_cast<int>(*places[r].input), result.dtype, result.shape, layout.strides,
                layout.offset};
    } else if (is_input(program, result.buffer)) {
      of_inputs.push_back(copy_out(program, result));
    } else if (const auto [owner, is_new] = owner_of.try_emplace(result.buffer, places[r].owner);
               !is_new && owner->second != places[r].owner) {
      program.nests.push_back(copy_out(program, result));
    }
  }
  program.nests.insert(program.nests.begin(), of_inputs.begin(), of_inputs.end());
}

void assign_inputs(Program& program, std::span<const AssignedInput> assigned,
                   std::span<const ResultPlace> places, std::span<const int> memory) {
  write_parts_in_place(program);
  std::vector<std::pair<const AssignedInput*, std::size_t>> copies;  // target, result
  for (std::size_t a = 0; a < assigned.size(); ++a) {
    const std::size_t r = places.size() + a;
    if (!write_in_place(program, assigned[a], r, places, memory))
      copies.emplace_back(&assigned[a], r);
  }
  // Values that are themselves inputs may be overwritten by one of these copies.
  for (const auto& [to, r] : copies) {
    Program::Result& value = program.results[r];
    const bool is_overwritten = is_input(program, value.buffer) &&
                                std::any_of(copies.begin(), copies.end(), [&](const auto& copy) {
                                  return memory[static_cast<std::size_t>(copy.first->input)] ==
                                         memory[static_cast<std::size_t>(value.buffer)];
                                });
    if (is_overwritten) program.nests.push_back(copy_out(program, value));
  }
  for (const auto& [to, r] : copies) {
    const Program::Result& value = program.results[r];
    const auto& [strides, offset] = to->layout;
    program.nests.push_back(update(value, {to->input, value.dtype, value.shape, strides, offset}));
  }
  program.results.resize(places.size());
}

}  // namespace ein
