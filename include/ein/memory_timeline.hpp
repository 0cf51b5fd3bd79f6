// Who holds what memory, and when, in one run of a compiled function: known before it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ein/graph.hpp>
#include <ein/step_bill.hpp>

namespace ein {

/// The intermediate values of a program in the block that they share. A step runs one nest, or
/// those that run together.
struct MemoryTimeline {
  enum class Role : std::uint8_t {
    passing,     ///< read soon after, in the same pass
    activation,  ///< of the forward pass, waits for the backward pass
    gradient,    ///< of the backward pass, waits for the update
  };
  struct Value {
    KeptValue what;
    Role role = Role::passing;
    std::size_t offset = 0;           ///< in the block, bytes
    std::size_t first = 0, last = 0;  ///< steps, both included
  };
  std::vector<Value> values;  ///< the largest first
  std::vector<Phase> phases;  ///< of each step
  std::size_t arena = 0;      ///< bytes of the block
  std::size_t others = 0;  ///< bytes of arguments, state and results, which are there all the time

  /// Bytes of the values that are alive at a step.
  std::size_t alive_at(std::size_t step) const;
  /// The first step at which the most are; 0 where there are none.
  std::size_t fullest_step() const;
  /// The values that are alive at a step, the largest first.
  std::vector<Value> held_at(std::size_t step) const;

  /// An SVG document: steps from left to right, the block from bottom to top, a rectangle for each
  /// value from when it is written until it is read last; what is held at the fullest step, as a
  /// list. Of many values the 400 largest.
  std::string svg() const;
};

}  // namespace ein
