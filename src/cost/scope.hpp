// What the runtime tells the cost scopes of its thread.
#pragma once

#include <string>

#include <ein/cost.hpp>
#include "nest/nest.hpp"

namespace ein {

/// The cost of the nests that a program runs. Bytes of its local buffers are not counted: they do
/// not reach memory.
Cost cost(const Program& program);
/// The same as formulas, while a SizeScope answers for some lengths.
CostOfLengths cost_of_lengths(const Program& program);
/// Of a nest, of a program or by itself.
Cost cost(const LoopNest& nest, const Program* of = nullptr);

struct CostRecorder {
  /// Whether any scope lives on this thread.
  static bool is_active();
  static void record(const std::string& call, const Cost& cost, std::size_t peak_bytes);
};

}  // namespace ein
