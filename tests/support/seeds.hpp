// Ranges of seeds, which the environment can move, widen and cut.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

namespace ein::test {

/// A number that the environment gives, or `otherwise` where it has no such variable.
inline unsigned from_environment(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  if (!text || !*text) return otherwise;
  if (std::string(text).find_first_not_of("0123456789") != std::string::npos)
    throw std::runtime_error(std::string(name) + "=" + text + " is no number");
  return static_cast<unsigned>(std::stoul(text));
}
/// The first seed: $EIN_FIRST_SEED, or 0.
inline unsigned first_seed() { return from_environment("EIN_FIRST_SEED", 0); }

/// Part `number`, from 1 on, `of` so many equal ones of each range of seeds.
struct PartOfSeeds {
  unsigned number = 1, of = 1;
};
/// That of $EIN_SEEDS=K/N; of a number none.
inline std::optional<PartOfSeeds> asked_part() {
  const char* const text = std::getenv("EIN_SEEDS");
  if (!text || !*text) return PartOfSeeds();
  const char* const slash = std::strchr(text, '/');
  if (!slash) return std::nullopt;
  const PartOfSeeds part{static_cast<unsigned>(std::atoi(text)),
                         static_cast<unsigned>(std::atoi(slash + 1))};
  if (part.number < 1 || part.number > part.of)
    throw std::runtime_error(std::string("EIN_SEEDS=") + text + " is no part");
  return part;
}
inline PartOfSeeds part_of_seeds() { return asked_part().value_or(PartOfSeeds()); }
/// How many seeds, where `usual` are usual: that part of them, or $EIN_SEEDS.
inline unsigned seeds_or(unsigned usual) {
  const std::optional<PartOfSeeds> part = asked_part();
  return part ? std::max(1u, usual / part->of) : from_environment("EIN_SEEDS", usual);
}
/// Where those begin, beside the first seed.
inline unsigned seeds_before(unsigned usual) {
  const PartOfSeeds part = part_of_seeds();
  return usual < part.of ? (part.number - 1) % std::max(1u, usual)
                         : (part.number - 1) * (usual / part.of);
}
/// The least that must be found in the seeds that are run, where it is `usual` in the usual ones:
/// in a part of them half as many in proportion, for chance; nothing where $EIN_SEEDS is a number.
inline unsigned at_least(unsigned usual) {
  const std::optional<PartOfSeeds> part = asked_part();
  return !part ? 0 : part->of == 1 ? usual : usual / (2 * part->of);
}

/// Whether it is one of those that are run of a list of cases: in a part of N every N-th.
inline bool is_wanted(std::size_t index) {
  const PartOfSeeds part = part_of_seeds();
  return (index + part.number - 1 + first_seed()) % part.of == 0;
}

/// Calls check(seed) for each seed of a range that is run: that part of `usual` ones, or
/// $EIN_SEEDS, from 0 or $EIN_FIRST_SEED on.
template <class Check>
void for_seeds(unsigned usual, const Check& check) {
  const unsigned first = first_seed() + seeds_before(usual), count = seeds_or(usual);
  std::cout << "seeds " << first << ".." << first + count - 1 << '\n';
  for (unsigned seed = first; seed < first + count && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(seed);
  }
}

}  // namespace ein::test
