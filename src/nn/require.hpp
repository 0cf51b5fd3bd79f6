// Checks of what layers are built with.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <ein/error.hpp>
#include "graph/domain.hpp"

namespace ein::nn {

inline constexpr Domain positive{.least_is_open = true};
inline constexpr Domain above_one{.least = 1, .least_is_open = true};
inline constexpr Domain at_least_one{.least = 1};

/// An Error of kind `value` for a size below 1.
inline std::int64_t require_size(const char* layer, const char* what, std::int64_t size) {
  return require_at_least(1, layer, what, size);
}

/// `factor` times a size of at least 1; an Error of kind `value` where that is no size.
inline std::int64_t require_product(const char* layer, const char* what, std::int64_t factor,
                                    std::int64_t size) {
  if (require_size(layer, what, size) <= std::numeric_limits<std::int64_t>::max() / factor)
    return factor * size;
  throw Error(ErrorKind::value, std::string(layer) + ": " + what + " is " + std::to_string(size) +
                                    ", and " + std::to_string(factor) +
                                    " times that exceeds 2^63 - 1");
}

}  // namespace ein::nn
