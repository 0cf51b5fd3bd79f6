// Runs a program in every way that it must agree with itself.
#pragma once

#include <string>
#include <vector>

#include "interval.hpp"
#include "program.hpp"

namespace ein::attack {

struct Verdict {
  /// What is wrong; empty if nothing is.
  std::string wrong;
  /// The function that ein::compile refused, which it may, or a value that depends on rounding: not
  /// compared.
  bool refused = false, uncertain = false;
  /// Of the first run: what the outputs may be, and how far from a single number they are.
  std::vector<std::vector<Interval>> expected;
  /// What the eager call gave then.
  std::vector<Tensor> results;
  std::int64_t elements = 0, points = 0;
  /// Results of a program for any length that are right, and not those for these lengths alone.
  std::int64_t reordered = 0;
};
/// Eager, compiled and interpreted; `threads` for the runs on another number of threads.
Verdict check(const Program& program);

/// A program with the same kind of fault, with fewer steps and simpler inputs.
Program shrunk(Program program);

}  // namespace ein::attack
