// Rows: maps, and reductions along rows, as compiled code.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cpu/kernel.hpp"

namespace ein::host {

/// For a map or a reduction whose operands lie along one axis of it; none for others, for small ones, and where there is
/// no compiled code.
std::unique_ptr<Kernel> make_rows_kernel(const LoopNest& nest);

/// The same for reductions along long rows, by pieces of each.
std::unique_ptr<Kernel> make_long_rows_kernel(const LoopNest& nest);

/// The same for reductions whose kept axis lies side by side.
std::unique_ptr<Kernel> make_columns_kernel(const LoopNest& nest);

/// The same for reductions over so few points that they are maps of them.
std::unique_ptr<Kernel> make_window_kernel(const LoopNest& nest);

/// Whether a nest computes in f32 and has no positions to look up.
bool is_direct_f32(const LoopNest& nest);
/// Whether it is also a sum, a product, or a largest or smallest value.
bool is_f32_reduction(const LoopNest& nest);

/// A nest of a group, of which a block is one or several rows.
struct RowMember {
  const LoopNest* nest;
  std::size_t axis;               // that was cut into blocks
  std::int64_t blocks;
  std::span<const int> memory;    // of each operand: equal where it is the same
  std::span<const bool> is_kept;  // of each operand: whether it is needed but by the members
};

/// The most operands of one kernel.
inline constexpr std::size_t most_operands = 96;

/// How many of the first members could be one kernel.
std::size_t count_rows_together(std::span<const RowMember> members);

/// One kernel for all members; operand k of the first has buffer k, and so on. None where there is no compiled code.
std::unique_ptr<Kernel> make_rows_kernel(std::span<const RowMember> members);

}  // namespace ein::host
