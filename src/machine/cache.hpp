// What is known of the processor's caches. Sizes of blocks and tiles are computed from it, by a
// rule that is written where they are used.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "machine/system.hpp"

namespace ein::host {

inline constexpr std::int64_t line_bytes = 64;

/// Bytes of the data caches that one core reads through. All are positive, and what the system
/// tells: they are not measured, so that results never depend on the noise of a measurement.
struct Caches {
  std::int64_t l1, l2;
  /// What one core can use of the last level; that of level 2 where it is the last.
  std::int64_t l3;
  /// Of level 1, divided by its ways: addresses that far apart compete for the same places, of
  /// which there are l1 / l1_way.
  std::int64_t l1_way;

  friend bool operator==(const Caches&, const Caches&) = default;
};

/// From what the system tells of each; what it does not tell is as in common processors.
Caches caches_of(std::span<const system::Cache> told);

/// What a text as "32K,512K,16M" says of levels 1, 2 and 3. An Error of kind `value` for others.
std::vector<system::Cache> caches_named(std::string_view text);

/// Of this machine, asked for once; or what EIN_CACHES says in the environment, to see what is
/// chosen for another processor.
const Caches& caches();

}  // namespace ein::host
