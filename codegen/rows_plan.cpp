// How the nests of a group depend on each other, and how threads are laid over their rows.
#include <algorithm>

#include "codegen/rows.hpp"

namespace ein::codegen {
namespace {

/// Threads that keep a device busy: a block of 256 for each of about a hundred multiprocessors.
constexpr std::int64_t busy_threads = 132 * 256;
constexpr std::int64_t most_lanes = 1024;

using Operand = LoopNest::Operand;

/// Calls f with the nest and the operand for each operand in memory of nests along the row.
template <class F>
void each_in_memory(const RowsGroup& group, F&& f) {
  for (std::size_t m = 0; m < group.nests.size(); ++m) {
    if (!group.is_many(m)) continue;
    const LoopNest& nest = group.nests[m];
    for (std::size_t i : inputs_of(nest.body)) {
      if (!group.maker.contains(nest.inputs[i].buffer)) f(nest, nest.inputs[i]);
    }
    if (!group.is_local[m] && !group.is_reduction(m)) f(nest, nest.output);
  }
}

/// The step in memory from an element to its next along some axes, of what moves along the most.
std::int64_t step_along(const RowsGroup& group, const AxisList& axes) {
  const Operand* guide = nullptr;
  double most = 0;
  each_in_memory(group, [&](const LoopNest& nest, const Operand& operand) {
    const double elements = points_of(nest, operand);
    if (elements > most) guide = &operand;
    most = std::max(most, elements);
  });
  std::int64_t step = INT64_MAX;
  for (std::size_t a : axes) {
    if (guide && guide->strides[a] != 0) step = std::min(step, std::abs(guide->strides[a]));
  }
  return step;
}

int widest_pack(const RowsGroup& group) {
  int width = 16;
  bool is_any = false;
  const std::size_t axis = group.axes.back();
  each_in_memory(group, [&](const LoopNest& nest, const Operand& operand) {
    // Neighbours along the row share their position, if they have one.
    const Operand* const positions = positions_of(nest, operand);
    const bool is_packed = !positions || positions->strides[axis] == 0;
    if (operand.strides[axis] != 1 || !is_packed) return;
    width = std::min(width, pack_along(nest, axis, {&operand}, false).width);
    is_any = true;
  });
  return is_any ? width : 1;
}

/// Neighbouring threads go along the row.
void lay_along_rows(RowsPlan& plan) {
  const std::int64_t n = plan.elements;
  const std::int64_t most = std::min(power_of_two(ceil_div(n, plan.width)), most_lanes);
  const std::int64_t good = power_of_two(ceil_div(n, 16));
  // A warp needs no barrier.
  plan.lanes = std::min(n <= 1024 ? std::min<std::int64_t>(good, 32) : good, most);
  while (plan.lanes < std::min<std::int64_t>(most, 256) && plan.rows * plan.lanes < busy_threads)
    plan.lanes *= 2;
  plan.threads = std::max<std::int64_t>(plan.lanes, 128);
}

/// Neighbouring threads have neighbouring rows.
void lay_across_rows(RowsPlan& plan) {
  plan.threads = 256;
  plan.lanes = std::clamp<std::int64_t>(power_of_two(plan.elements) / 16, 1, 8);
  while (plan.lanes < plan.threads && plan.rows_per_block() / 2 >= plan.rows) plan.lanes *= 2;
}

/// A block has several short rows, or a part of a long one.
void lay_along_results(RowsPlan& plan) {
  plan.threads = block_threads;
  plan.lanes =
      std::clamp<std::int64_t>(power_of_two(plan.elements / plan.width) / 4, 1, plan.threads);
}

/// Rows laid out by `lay_along`, where neighbouring threads go along them.
RowsPlan plan_with(const RowsGroup& group, void (*lay_along)(RowsPlan&)) {
  RowsPlan plan;
  plan.rows = size_of_axes(*group.whole, group.row_axes);
  plan.elements = size_of_axes(*group.whole, group.axes);
  plan.by_rows =
      plan.rows == 1 || step_along(group, group.axes) < step_along(group, group.row_axes);
  if (plan.by_rows) {
    plan.width = widest_pack(group);
    lay_along(plan);
  } else {
    lay_across_rows(plan);
  }
  plan.packs = ceil_div(plan.elements, plan.lanes * plan.width);
  plan.is_unrolled = plan.packs * plan.width <= (plan.threads > 512 ? 16 : 64);
  return plan;
}

}  // namespace

RowsGroup::RowsGroup(std::span<const LoopNest> nests, std::size_t row_axis_count,
                     const std::vector<bool>& is_local)
    : nests(nests), is_local(is_local) {
  for (std::size_t a = 0; a < row_axis_count; ++a) row_axes.push_back(a);
  whole = &*std::find_if(nests.begin(), nests.end(),
                         [&](const LoopNest& nest) { return nest.axes.size() > row_axis_count; });
  for (std::size_t a = row_axis_count; a < whole->axes.size(); ++a) axes.push_back(a);
  // What one nest alone reads comes from outside, also where it is what it writes.
  for (std::size_t m = 0; m < nests.size() && nests.size() > 1; ++m)
    maker[nests[m].output.buffer] = m;
  for (std::size_t m = 0; m < nests.size(); ++m) {
    std::size_t own = 0;
    for (std::size_t i : reads_of(m)) {
      const auto made = maker.find(nests[m].inputs[i].buffer);
      if (made == maker.end()) continue;
      own = std::max(own, level[made->second] + (is_reduction(made->second) ? 1 : 0));
    }
    level.push_back(own);
    levels = std::max(levels, own);
  }
}

bool RowsGroup::is_reduction(std::size_t m) const {
  const std::vector<LoopNest::NestAxis>& all = nests[m].axes;
  return std::any_of(all.begin(), all.end(), [](const auto& axis) { return axis.reduced; });
}

std::vector<std::size_t> RowsGroup::reads_of(std::size_t m) const {
  std::vector<std::size_t> reads = inputs_of(nests[m].body);
  for (std::size_t i : inputs_of(nests[m].epilogue)) {
    if (i > 0) reads.push_back(i);
  }
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  return reads;
}

const LoopNest::Operand* positions_of(const LoopNest& nest, const LoopNest::Operand& operand) {
  return operand.is_indirect()
             ? &nest.inputs[static_cast<std::size_t>(operand.indirection.positions)]
             : nullptr;
}

RowsPlan plan_rows(const RowsGroup& group) { return plan_with(group, lay_along_rows); }

RowsPlan plan_reduction(const RowsGroup& group) {
  RowsPlan plan = plan_with(group, lay_along_results);
  plan.is_unrolled = plan.packs * plan.width <= 16;  // nothing is held; more would only spill
  // Few results of many elements.
  const std::int64_t blocks = ceil_div(plan.rows, plan.rows_per_block()),
                     of_lane = plan.elements / plan.lanes / plan.width;
  const std::int64_t pieces = std::min(busy_blocks / blocks, of_lane / run_length);
  if (pieces < 2) return plan;
  plan.piece = ceil_div(ceil_div(plan.elements, plan.width), pieces) * plan.width;
  plan.pieces = ceil_div(plan.elements, plan.piece);
  plan.is_unrolled = false;
  return plan;
}

}  // namespace ein::codegen
