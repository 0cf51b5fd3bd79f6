// Ranges of seeds, which the environment can move and widen.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace ein::test {

inline unsigned from_environment(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}
/// $EIN_SEEDS of them, or else so many.
inline unsigned seeds_or(unsigned usual) { return from_environment("EIN_SEEDS", usual); }

/// Calls check(seed) for so many seeds, or $EIN_SEEDS, from 0 or $EIN_FIRST_SEED on.
template <class Check>
void for_seeds(unsigned usual, const Check& check) {
  const unsigned first = from_environment("EIN_FIRST_SEED", 0), count = seeds_or(usual);
  std::cout << "seeds " << first << ".." << first + count - 1 << '\n';
  for (unsigned seed = first; seed < first + count && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(seed);
  }
}

}  // namespace ein::test
