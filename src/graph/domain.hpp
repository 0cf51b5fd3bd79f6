// Domain: which numbers an option may be.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace ein {

/// The finite numbers from `least` to `most`; without an end where it is `open`.
struct Domain {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool least_is_open = false, most_is_open = false;
  bool has(double value) const;
  /// As a message ends: "at least 0 is wanted", "0 <= p < 1 is wanted".
  std::string wanted(const std::string& option) const;
};

inline constexpr Domain not_negative{};
inline constexpr Domain below_one{0, 1, false, true};
inline constexpr Domain fraction{0, 1};

/// The value; an Error of kind `value` that names `of`, the option and the domain where that lacks
/// it: "Dropout: p is 1, 0 <= p < 1 is wanted".
double require_in(const Domain& domain, const std::string& of, const char* option, double value);
std::int64_t require_at_least(std::int64_t least, const std::string& of, const char* option,
                              std::int64_t value);

}  // namespace ein
