// Neighbours that a thread of a GPU reads or writes with one access.
#pragma once

#include <cstddef>
#include <vector>

#include "nest/nest.hpp"

namespace ein {

/// Some neighbours along `axis`.
struct Pack {
  std::size_t axis = static_cast<std::size_t>(-1);
  int width = 1;
  bool is_ragged = false;  // the last one may be short
};

/// The widest pack that can be read and written at once: 16 bytes of the largest elements, if all
/// `operands` lie contiguously along `axis`, or do not move, and packs are aligned. A nest of one
/// axis may have a ragged end, if `ragged` allows it.
Pack pack_along(const LoopNest& nest, std::size_t axis,
                const std::vector<const LoopNest::Operand*>& operands, bool ragged);

}  // namespace ein
