#include "schedule/gpu_pack.hpp"

#include <algorithm>

#include "schedule/steps.hpp"
#include "size/ask.hpp"

namespace ein {

Pack pack_along(const LoopNest& nest, std::size_t axis,
                const std::vector<const LoopNest::Operand*>& operands, bool ragged) {
  if (axis == no_axis) return {};
  std::size_t largest = 1;
  for (const LoopNest::Operand* operand : operands) {
    largest = std::max(largest, size_of(operand->dtype));
  }
  const bool is_alone = nest.axes.size() == 1 && ragged;
  const auto is_open = [](Size size) { return !size.is_number(); };
  bool asks_length = is_open(nest.axes[axis].size);
  for (const LoopNest::Operand* operand : operands)
    asks_length |= is_open(operand->offset) || is_open(operand->indirection.stride) ||
                   std::any_of(operand->strides.begin(), operand->strides.end(), is_open);
  // Of open sizes the widest or none: that makes two plans, and more would not be worth theirs.
  for (int width = static_cast<int>(16 / largest); width > 1; width = asks_length ? 1 : width / 2) {
    const bool is_whole = ask_equal(nest.axes[axis].size % width, 0);
    if (!is_whole && !(is_alone && nest.axes[axis].size > width)) continue;
    const bool fits = std::all_of(operands.begin(), operands.end(), [&](const auto* operand) {
      if (ask_equal(operand->strides[axis], 0)) return true;
      if (!ask_equal(operand->strides[axis], 1) || !ask_equal(operand->offset % width, 0))
        return false;
      if (operand->is_indirect() && !ask_equal(operand->indirection.stride % width, 0))
        return false;
      for (std::size_t a = 0; a < nest.axes.size(); ++a) {
        if (a != axis && nest.axes[a].size > 1 && !ask_equal(operand->strides[a] % width, 0))
          return false;
      }
      return true;
    });
    if (fits) return {axis, width, !is_whole};
  }
  return {};
}

}  // namespace ein
