#include "schedule/gpu_choose.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include "schedule/gpu_pack.hpp"
#include "schedule/steps.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;
using Threads = Schedule::Threads;

/// Nests that have their first `rows` axes in common, those of the rows. Some have others, which
/// are those within a row.
struct Rows {
  std::span<const LoopNest> nests;
  std::size_t axes;
  std::vector<char> is_local{};  // whether memory is wanted for a nest's result

  bool is_within(const LoopNest& nest) const { return nest.axes.size() > axes; }
  const LoopNest& whole() const {
    return *std::find_if(nests.begin(), nests.end(),
                         [&](const LoopNest& nest) { return is_within(nest); });
  }
  Size count() const { return size(0, axes); }
  Size elements() const { return size(axes, whole().axes.size()); }

  /// Calls f with the nest and the operand for each operand in memory of nests within the row.
  template <class F>
  void each_in_memory(const F& f) const {
    for (std::size_t m = 0; m < nests.size(); ++m) {
      const LoopNest& nest = nests[m];
      if (!is_within(nest)) continue;
      for (std::size_t i : inputs_of(nest.body)) {
        if (!is_made_here(nest.inputs[i].buffer)) f(nest, nest.inputs[i]);
      }
      if (!is_local[m] && !nest.axes.back().reduced) f(nest, nest.output);
    }
  }

 private:
  Size size(std::size_t first, std::size_t end) const {
    Size size = 1;
    for (std::size_t a = first; a < end; ++a) size *= whole().axes[a].size;
    return size;
  }
  bool is_made_here(int buffer) const {
    return nests.size() > 1 && std::any_of(nests.begin(), nests.end(), [&](const LoopNest& nest) {
             return nest.output.buffer == buffer;
           });
  }
};

/// How threads are laid over rows.
class Layout {
 public:
  Layout(const Rows& rows, const GpuTarget& target) : rows_(rows), target_(target) {}

  /// Of a group: neighbouring threads go along a row of many elements.
  Threads of_group() {
    Threads threads = begin();
    if (threads.by_rows) {
      const Size n = elements_;
      const std::int64_t most =
          power_of_two_above(ceil_div(n, threads.width), target_.most_threads);
      // A warp needs no barrier.
      threads.lanes =
          power_of_two_above(ceil_div(n, 16), n <= 1024 ? std::min(target_.warp, most) : most);
      while (threads.lanes < std::min(most, target_.threads) &&
             count_ * threads.lanes < target_.busy_threads)
        threads.lanes *= 2;
      threads.threads = std::max<std::int64_t>(threads.lanes, 128);
    }
    const std::int64_t most =
        threads.threads > 512 ? target_.most_unrolled_of_large : target_.most_unrolled;
    threads.is_unrolled = of_lane(threads) <= most;
    return threads;
  }

  /// Of a reduction by itself: a block has several short rows, or a part of a long one.
  Threads of_reduction() {
    Threads threads = begin();
    if (threads.by_rows)
      threads.lanes = std::max<std::int64_t>(
          power_of_two_above(elements_ / threads.width, 4 * threads.threads) / 4, 1);
    threads.is_unrolled = of_lane(threads) <= target_.most_unrolled_alone;
    return threads;
  }

 private:
  Threads begin() {
    Threads threads{.threads = target_.threads, .run = target_.run_length};
    threads.by_rows = ask_equal(count_, 1) ||
                      step_along(rows_.axes, rows_.whole().axes.size()) < step_along(0, rows_.axes);
    if (threads.by_rows) {
      threads.width = widest_pack();
      return threads;
    }
    threads.lanes = std::max<std::int64_t>(power_of_two_above(elements_, 128) / 16, 1);
    while (threads.lanes < threads.threads && threads.threads / threads.lanes / 2 >= count_)
      threads.lanes *= 2;
    return threads;
  }

  /// The elements of a lane.
  Size of_lane(const Threads& threads) const {
    return ceil_div(elements_, threads.lanes * threads.width) * threads.width;
  }

  /// The step in memory from an element to its next along some axes, of what moves along the most.
  Size step_along(std::size_t first, std::size_t end) const {
    const Operand* guide = nullptr;
    Size most = 0;
    rows_.each_in_memory([&](const LoopNest& nest, const Operand& operand) {
      const Size elements = ein::elements_of(nest, operand);
      if (elements > most) guide = &operand;
      most = std::max(most, elements);
    });
    Size step = INT64_MAX;
    for (std::size_t a = first; a < end; ++a) {
      if (guide && !always_equal(guide->strides[a], 0))
        step = std::min(step, magnitude(guide->strides[a]));
    }
    return step;
  }

  int widest_pack() const {
    int width = 16;
    bool is_any = false;
    rows_.each_in_memory([&](const LoopNest& nest, const Operand& operand) {
      const std::size_t axis = nest.axes.size() - 1;
      // Neighbours along the row share their position, if they have one.
      const int positions = operand.indirection.positions;
      const bool is_packed =
          positions < 0 ||
          ask_equal(nest.inputs[static_cast<std::size_t>(positions)].strides[axis], 0);
      if (!ask_equal(operand.strides[axis], 1) || !is_packed) return;
      width = std::min(width, pack_along(nest, axis, {&operand}, false).width);
      is_any = true;
    });
    return is_any ? width : 1;
  }

  const Rows& rows_;
  const GpuTarget& target_;
  Size count_ = rows_.count(), elements_ = rows_.elements();
};

/// A step whose units are rows, with the nests as its parts.
Schedule::Step step_of(const Rows& rows, const Threads& threads) {
  Schedule::Step step;
  step.threads = threads;
  for (std::size_t a = 0; a < rows.axes; ++a)
    step.loops.push_back({rows.whole().axes[a].name, rows.whole().axes[a].size});
  for (const LoopNest& nest : rows.nests) {
    Schedule::Part part;
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      const Operand& of = nest.operand(o);
      part.places.push_back({.buffer = of.buffer, .dtype = of.dtype, .offset = of.offset});
      part.places.back().strides.assign(
          of.strides.begin(), of.strides.begin() + static_cast<std::ptrdiff_t>(rows.axes));
    }
    part.whole = nest;
    part.loops.assign(nest.axes.size(), -1);
    for (std::size_t a = 0; a < rows.axes; ++a) {
      part.whole->axes[a].size = 1;
      part.loops[a] = static_cast<int>(a);
    }
    step.parts.push_back(std::move(part));
  }
  return step;
}

// --- reductions ---

/// The reduction with the axes of its results first, the others behind them; in both, those further
/// in keep memory in order, and along the first ones the largest input does not move.
LoopNest with_rows(const LoopNest& nest) {
  const Operand& by = guide_of(nest);
  std::vector<std::size_t> order(nest.axes.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (nest.axes[a].reduced != nest.axes[b].reduced) return nest.axes[b].reduced;
    const Size x = magnitude(by.strides[a]), y = magnitude(by.strides[b]);
    if (ask_equal(x, 0) != ask_equal(y, 0)) return ask_equal(x, 0);
    return !ask_equal(x, y) ? x > y : a < b;
  });
  LoopNest result = in_order(nest, order);
  if (!result.axes.empty() && result.axes.back().reduced) return result;
  result.axes.push_back({"", 1, true});
  for (std::size_t o = 0; o <= result.inputs.size(); ++o) result.operand(o).strides.push_back(0);
  return result;
}

std::size_t row_axes_of(const LoopNest& nest) {
  return static_cast<std::size_t>(std::count_if(nest.axes.begin(), nest.axes.end(),
                                                [](const auto& axis) { return !axis.reduced; }));
}

/// Puts an axis of `pieces` points or some more in front of the reduced ones, where the first of
/// these has fewer: a part of the longest.
LoopNest with_long_axis(const LoopNest& nest, std::int64_t pieces) {
  const std::size_t first = row_axes_of(nest);
  if (nest.axes[first].size >= pieces) return nest;
  std::size_t longest = first;
  for (std::size_t a = first; a < nest.axes.size(); ++a) {
    if (nest.axes[a].size > nest.axes[longest].size) longest = a;
  }
  if (!nest.axes[longest].size.is_number()) return nest;
  const std::int64_t size = nest.axes[longest].size;
  std::int64_t inner = size / pieces;
  while (inner > 0 && (size % inner != 0 || inner % 16 != 0)) --inner;
  if (inner == 0 || size / inner > 4 * pieces || asks_index(nest, longest)) return nest;
  LoopNest result = nest;
  split(result, longest, inner);
  std::vector<std::size_t> order(result.axes.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(first),
              order.begin() + static_cast<std::ptrdiff_t>(longest),
              order.begin() + static_cast<std::ptrdiff_t>(longest) + 1);
  return in_order(result, order);
}

/// A step that combines pieces of `block` points of the first reduced axis: element
/// p * rows + r of `sums` is the result of piece p of row r.
Schedule::Step step_of_pieces(const LoopNest& nest, const Rows& rows, Threads threads,
                              std::int64_t block, const Operand& sums) {
  threads.is_unrolled = false;
  Schedule::Step step = step_of(rows, threads);
  const LoopNest::NestAxis& axis = nest.axes[rows.axes];
  Schedule::Part& part = step.parts.front();
  part.loops[rows.axes] = static_cast<int>(rows.axes);
  part.whole->axes[rows.axes].size = block;
  part.whole->epilogue = {};
  part.whole->output = sums;
  part.whole->output.strides[rows.axes] = 0;
  step.loops.push_back({axis.name, axis.size, block});
  for (std::size_t i = 0; i < nest.inputs.size(); ++i)
    part.places[i].strides.push_back(nest.inputs[i].strides[rows.axes] * block);
  part.places.back() = {.buffer = sums.buffer, .dtype = sums.dtype};
  part.places.back().strides.assign(
      sums.strides.begin(), sums.strides.begin() + static_cast<std::ptrdiff_t>(rows.axes) + 1);
  return step;
}

}  // namespace

Schedule choose(const LoopNest& reduction, const GpuTarget& target) {
  Schedule schedule;
  for (std::size_t o = 0; o <= reduction.inputs.size(); ++o)
    schedule.buffers =
        std::max(schedule.buffers, static_cast<std::size_t>(reduction.operand(o).buffer) + 1);
  LoopNest nest = with_rows(reduction);
  const auto rows_of = [](const LoopNest& one) {
    return Rows{std::span(&one, 1), row_axes_of(one), {0}};
  };
  Rows rows = rows_of(nest);
  Threads threads = Layout(rows, target).of_reduction();
  // Few results of many elements.
  const Size blocks = ceil_div(rows.count(), threads.threads / threads.lanes),
             of_lane = rows.elements() / threads.lanes / threads.width;
  const std::int64_t busy = threads.by_rows ? target.busy_blocks : target.busy_blocks_of_columns;
  const std::int64_t wanted =
      of_lane < 2 * target.run_length || blocks > busy / 2
          ? 0
          : std::min(busy / at_most(blocks), at_least(of_lane) / target.run_length);
  if (wanted < 2) {
    schedule.steps = {step_of(rows, threads)};
    return schedule;
  }
  nest = with_long_axis(nest, wanted);
  rows = rows_of(nest);
  const Size size = nest.axes[rows.axes].size;
  // Pieces of columns are whole runs of all lanes.
  const std::int64_t unit = rows.axes + 1 != nest.axes.size() ? 1
                            : threads.by_rows                 ? threads.width
                                                              : threads.lanes * target.run_length;
  const std::int64_t block =
      (size / unit < 2 * wanted ? 1 : ceil_div(at_least(size / unit), wanted)) * unit;
  const Size pieces = ceil_div(size, block);

  Operand sums{.buffer = static_cast<int>(schedule.buffers),
               .dtype = nest.compute,
               .strides = std::vector<Size>(nest.axes.size(), 0)};
  sums.strides[rows.axes] = rows.count();
  Size stride = 1;
  for (std::size_t a = rows.axes; a-- > 0; stride *= nest.axes[a].size) sums.strides[a] = stride;
  schedule.scratch = {{rows.count() * pieces, nest.compute}};
  schedule.steps = {step_of_pieces(nest, rows, threads, block, sums)};

  LoopNest finish = joined(nest, sums, rows.axes, pieces);
  finish.axes.resize(rows.axes + 1);
  for (std::size_t o = 0; o <= finish.inputs.size(); ++o)
    finish.operand(o).strides.resize(rows.axes + 1);
  const Rows of_pieces = rows_of(finish);
  schedule.steps.push_back(step_of(of_pieces, Layout(of_pieces, target).of_group()));
  return schedule;
}

Schedule choose(const Program& program, const Program::Group& group, const GpuTarget& target) {
  Schedule schedule;
  schedule.buffers = program.buffers.size();
  Rows rows{std::span(program.nests).subspan(group.first, group.count), group.rows()->axes};
  for (const LoopNest& nest : rows.nests)
    rows.is_local.push_back(program.buffers[static_cast<std::size_t>(nest.output.buffer)].is_local);
  Schedule::Step step = step_of(rows, Layout(rows, target).of_group());
  // Local values are a row's own: they stay where they are made.
  std::map<int, int> scratch_of;
  for (Schedule::Part& part : step.parts) {
    const LoopNest& nest = *part.whole;
    for (std::size_t o = 0; o < part.places.size(); ++o) {
      Schedule::Place& place = part.places[o];
      const Program::Buffer& buffer = program.buffers[static_cast<std::size_t>(place.buffer)];
      if (!buffer.is_local) continue;
      const auto [found, is_new] = scratch_of.try_emplace(
          place.buffer, static_cast<int>(schedule.buffers + schedule.scratch.size()));
      if (is_new) {
        Size reach = 1;
        for (std::size_t a = rows.axes; a < nest.axes.size(); ++a)
          reach += (nest.axes[a].size - 1) * magnitude(nest.output.strides[a]);
        schedule.scratch.push_back({reach, buffer.dtype, true});
      }
      place = {.buffer = found->second,
               .dtype = place.dtype,
               .strides = std::vector<Size>(rows.axes, 0),
               .is_kept = false};
    }
  }
  schedule.steps = {std::move(step)};
  return schedule;
}

}  // namespace ein
