// What the runtime tells the cost scopes of its thread.
#pragma once

#include <string>
#include <vector>

#include <ein/cost.hpp>
#include "nest/nest.hpp"

namespace ein {

/// The cost of the nests that a program runs, with the bytes that reach memory: see traffic_of().
Cost cost(const Program& program);
/// The same as formulas, while a SizeScope answers for some lengths.
CostOfLengths cost_of_lengths(const Program& program);
/// Of each nest of a program.
std::vector<Cost> costs_of_nests(const Program& program);

struct CostRecorder {
  /// Whether any scope lives on this thread.
  static bool is_active();
  static void record(const std::string& call, const Cost& cost, std::size_t peak_bytes);
};

}  // namespace ein
