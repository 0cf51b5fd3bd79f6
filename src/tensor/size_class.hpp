// Size classes: blocks are rounded up to one of four sizes to each doubling, so that they can be
// used again.
#pragma once

#include <bit>
#include <cstddef>

namespace ein::size_class {

inline constexpr std::size_t alignment = 64;
inline constexpr std::size_t count = 4 * 64;

/// Class 4·e + q holds blocks of (4 + q)/4 · 64 · 2^e bytes.
constexpr std::size_t of(std::size_t bytes) {
  const std::size_t lines = (bytes + alignment - 1) / alignment;
  if (lines <= 4) return lines <= 1 ? 0 : lines == 2 ? 4 : lines == 3 ? 6 : 8;
  const auto exponent = static_cast<std::size_t>(std::bit_width(lines - 1) - 1);
  const std::size_t quarter = (lines - 1 - (std::size_t{1} << exponent)) * 4 >> exponent;
  return 4 * exponent + quarter + 1;
}
constexpr std::size_t bytes(std::size_t index) {
  const std::size_t quarters = (4 + index % 4) << (index / 4);
  return (quarters + 3) / 4 * alignment;
}

}  // namespace ein::size_class
