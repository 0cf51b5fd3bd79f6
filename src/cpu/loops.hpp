// Loops: a counter over several axes that keeps the address of every operand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nest/nest.hpp"
#include "size/size_arithmetic.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {

/// Some axes of a nest, walked in row-major order of the list. Operand o's byte offset at the
/// current point is offset(o); operands are the inputs, then the output.
class Loops {
 public:
  Loops() = default;
  Loops(const LoopNest& nest, std::vector<std::size_t> axes) : axes_(std::move(axes)) {
    for (std::size_t a : axes_) {
      sizes_.push_back(nest.axes[a].size);
      count_ *= nest.axes[a].size;
      for (const LoopNest::Operand& input : nest.inputs) strides_.push_back(bytes(input, a));
      strides_.push_back(bytes(nest.output, a));
    }
    operands_ = nest.inputs.size() + 1;
  }

  std::int64_t count() const { return count_; }

  /// A position in the loops; each thread has its own.
  class Cursor {
   public:
    Cursor(const Loops& loops, std::size_t nest_axes)
        : loops_(loops),
          memory_(loops.axes_.size() + loops.operands_ + nest_axes),
          at_(memory_.data(), loops.axes_.size()),
          offsets_(at_.data() + at_.size(), loops.operands_),
          index_(offsets_.data() + offsets_.size(), nest_axes) {
      std::fill(memory_.begin(), memory_.end(), 0);
    }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    /// Moves to point `linear`, 0 <= linear < count().
    void seek(std::int64_t linear) {
      std::fill(offsets_.begin(), offsets_.end(), 0);
      for (std::size_t l = at_.size(); l-- > 0;) {
        at_[l] = linear % loops_.sizes_[l];
        linear /= loops_.sizes_[l];
        index_[loops_.axes_[l]] = at_[l];
        for (std::size_t o = 0; o < offsets_.size(); ++o)
          offsets_[o] += at_[l] * loops_.stride(l, o);
      }
    }
    /// Moves to the next point; after the last comes the first.
    void next() {
      for (std::size_t l = at_.size(); l-- > 0;) {
        const bool wraps = ++at_[l] == loops_.sizes_[l];
        const std::int64_t by = wraps ? 1 - loops_.sizes_[l] : 1;
        for (std::size_t o = 0; o < offsets_.size(); ++o) offsets_[o] += by * loops_.stride(l, o);
        if (wraps) at_[l] = 0;
        index_[loops_.axes_[l]] = at_[l];
        if (!wraps) return;
      }
    }
    std::int64_t offset(std::size_t operand) const { return offsets_[operand]; }
    /// The indices of the nest's axes; those that are not looped over stay as they are set.
    std::span<std::int64_t> index() { return index_; }

   private:
    const Loops& loops_;
    SmallArray<std::int64_t, 32> memory_;  // of the three below
    std::span<std::int64_t> at_, offsets_, index_;
  };

 private:
  static std::int64_t bytes(const LoopNest::Operand& operand, std::size_t axis) {
    return operand.strides[axis] * static_cast<std::int64_t>(size_of(operand.dtype));
  }
  std::int64_t stride(std::size_t loop, std::size_t operand) const {
    return strides_[loop * operands_ + operand];
  }

  std::vector<std::size_t> axes_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  std::size_t operands_ = 0;
  std::int64_t count_ = 1;
};

/// The address at which operand `o` of the nest begins.
inline std::byte* base(const LoopNest::Operand& operand, std::span<std::byte* const> buffers) {
  return buffers[static_cast<std::size_t>(operand.buffer)] +
         operand.offset * static_cast<std::int64_t>(size_of(operand.dtype));
}

/// All axes for which keep(axis) holds, in order.
template <class F>
std::vector<std::size_t> axes_where(const LoopNest& nest, F&& keep) {
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (keep(a)) axes.push_back(a);
  }
  return axes;
}

inline constexpr std::size_t no_axis = static_cast<std::size_t>(-1);

/// An axis cut into pieces of `step`; no_axis counts as one of size 1.
struct Cut {
  std::size_t axis = no_axis;
  std::int64_t size = 1, step = 1;

  std::int64_t pieces() const { return ceil_div(size, step); }
  std::int64_t first(std::int64_t piece) const { return piece * step; }
  std::int64_t count(std::int64_t piece) const { return std::min(step, size - first(piece)); }
  std::int64_t stride(const LoopNest::Operand& operand) const {
    return axis == no_axis ? Size(0) : operand.strides[axis];
  }
};
inline Cut cut(const LoopNest& nest, std::size_t axis, std::int64_t step) {
  return axis == no_axis ? Cut{}
                         : Cut{axis, nest.axes[axis].size,
                               std::min(step, std::max<std::int64_t>(1, nest.axes[axis].size))};
}

/// Pieces of about this many elements go to the thread pool.
inline constexpr std::int64_t elements_per_part = 32768;

}  // namespace ein::host
