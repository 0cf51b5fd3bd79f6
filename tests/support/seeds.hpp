// Ranges of seeds, which the environment can move, widen and cut.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

namespace ein::test {

/// The number that an environment variable holds behind `prefix`, or `otherwise` where it has no
/// such value.
inline unsigned from_environment(const char* name, const std::string& prefix, unsigned otherwise) {
  const char* const text = std::getenv(name);
  if (!text || !std::string(text).starts_with(prefix)) return otherwise;
  const std::string number = std::string(text).substr(prefix.size());
  if (number.empty() || number.find_first_not_of("0123456789/") != std::string::npos)
    throw std::runtime_error(std::string(name) + "=" + text + " is no number");
  return static_cast<unsigned>(std::stoul(number));
}
/// The first seed: $EIN_FIRST_SEED, or 0.
inline unsigned first_seed() { return from_environment("EIN_FIRST_SEED", "", 0); }
/// N where $EIN_SEEDS is 1/N: the N-th part of each range is run.
inline unsigned parts_of_seeds() { return std::max(1u, from_environment("EIN_SEEDS", "1/", 1)); }
/// How many seeds, where `usual` are usual: $EIN_SEEDS, or that part of them.
inline unsigned seeds_or(unsigned usual) {
  const unsigned parts = parts_of_seeds();
  return parts > 1 ? std::max(1u, usual / parts) : from_environment("EIN_SEEDS", "", usual);
}
/// The least that must be found in the seeds that are run, where it is `usual` in the usual ones:
/// in a part of them half as many in proportion, for chance; nothing where $EIN_SEEDS is a number.
inline unsigned at_least(unsigned usual) {
  if (!std::getenv("EIN_SEEDS")) return usual;
  const unsigned parts = parts_of_seeds();
  return parts > 1 ? usual / (2 * parts) : 0;
}

/// Whether it is one of those that are run of a list of cases: where $EIN_SEEDS is 1/N every N-th,
/// which the first seed moves.
inline bool is_wanted(std::size_t index) { return (index + first_seed()) % parts_of_seeds() == 0; }

/// Calls check(seed) for so many seeds, or $EIN_SEEDS, from 0 or $EIN_FIRST_SEED on.
template <class Check>
void for_seeds(unsigned usual, const Check& check) {
  const unsigned first = first_seed(), count = seeds_or(usual);
  std::cout << "seeds " << first << ".." << first + count - 1 << '\n';
  for (unsigned seed = first; seed < first + count && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(seed);
  }
}

}  // namespace ein::test
