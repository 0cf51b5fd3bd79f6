// The schedule of one nest: of the walks over its points that the target has code for, the one with
// the longest rows.
#include "schedule/cpu_choose.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "schedule/cpu_choose_tiles.hpp"
#include "schedule/rows_of.hpp"
#include "schedule/steps.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

bool is_empty(const LoopNest& nest) {
  return std::any_of(nest.axes.begin(), nest.axes.end(),
                     [](const auto& axis) { return ask_equal(axis.size, 0); });
}

bool lies_closer(const LoopNest& nest, std::size_t a, std::size_t b) {
  const Size of_a = nest.output.strides[a], of_b = nest.output.strides[b];
  return of_a.is_number() && of_b.is_number() && magnitude(of_a) < magnitude(of_b);
}

class Chooser {
 public:
  Chooser(const LoopNest& nest, const Target& target)
      : target_(target), lanes_(target.lanes(nest.compute)), steps_(nest, target) {}

  Schedule run(const LoopNest& nest) {
    // Copies, products and what positions or order matter to have engines of their own.
    const bool is_plain = !nest.is_gather() && !nest.is_scatter() &&
                          nest.along == LoopNest::Along::nothing && !nest.sums_products() &&
                          !(nest.is_copy() && nest.inputs[0].dtype == nest.output.dtype);
    if (is_plain) return run_plain(nest);
    steps_.add_whole(nest);
    return std::move(steps_).take();
  }

  /// A map or a reduction.
  Schedule run_plain(const LoopNest& nest) {
    if (is_empty(nest)) {
      steps_.add_strips(nest);
    } else if (!append_rows(nest)) {
      const auto turned = turn(nest);
      if (!turned || !append_rows(*turned)) steps_.add_strips(turned ? *turned : nest);
    }
    return std::move(steps_).take();
  }

 private:
  /// By the target's code for rows, if it has what the nest needs and the nest's operands lie so.
  bool append_rows(const LoopNest& nest) {
    if (!is_for_rows(nest, target_)) return false;
    if (const auto map = window_as_map(nest, target_)) {
      // Many inputs take longer in strips than empty lanes.
      if (append_along(*map, target_.least_points, ceil_div(lanes_, 4))) return true;
    }
    if (choose_tiles(nest, target_, steps_)) return true;
    return append_along(nest, target_.least_points) || append_folded(nest) ||
           append_down(nest, target_.least_points);
  }

  /// Rows along the axis that the operands lie along: that of the output, or the one that is
  /// reduced.
  bool append_along(const LoopNest& nest, Size least) { return append_along(nest, least, lanes_); }
  bool append_along(const LoopNest& nest, Size least, Size least_length) {
    std::size_t along = no_axis, row = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.axes[a].reduced != nest.combine.has_value()) continue;
      if (nest.combine && along != no_axis) return false;  // two axes are reduced
      if (nest.combine || is_one(nest.output.strides[a])) along = a;
    }
    const Size points = points_of(nest);
    if (along == no_axis || points < least || !lies_along(nest, along, target_)) return false;
    const Size length = nest.axes[along].size, rows = points / length;
    // The rows follow each other on the longest of the axes left; of two as long, on that where
    // they lie closer together.
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (a == along) continue;
      if (row == no_axis || nest.axes[a].size > nest.axes[row].size ||
          (always_equal(nest.axes[a].size, nest.axes[row].size) && lies_closer(nest, a, row)))
        row = a;
    }
    if (least > 0 && length < least_length && rows > 1) {  // would leave lanes empty
      if (!nest.combine || !target_.combines_together(*nest.combine) ||
          !is_one(nest.output.strides[row]) || nest.axes[row].size < lanes_)
        return false;
    }
    if (nest.combine && (length > target_.longest_combined_row ||
                         (rows < target_.least_rows && length > target_.elements_per_unit)))
      return append_pieces(nest, along);
    Walk walk{.along = along, .length = length, .row = row};
    if (row != no_axis)
      walk.rows =
          std::min(nest.axes[row].size, std::max<Size>(1, target_.elements_per_unit / length));
    else if (!nest.combine)
      walk.length = std::min<Size>(length, target_.elements_per_unit);
    steps_.add(nest, nest.output, walk);
    return true;
  }

  bool append_pieces(const LoopNest& nest, std::size_t along) {
    const Size length = std::min<Size>(nest.axes[along].size, target_.elements_per_unit / 2);
    const auto join = steps_.add_partials(nest, along, {.along = along, .length = length});
    if (join && !append_along(*join, 0)) steps_.add_strips(*join);
    return true;
  }

  /// Reductions whose kept axis lies side by side: row after row is combined into one row of
  /// results.
  bool append_down(const LoopNest& nest, Size least) {
    if (!nest.combine) return false;
    std::size_t columns = no_axis, cut = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.axes[a].reduced) {
        if (cut != no_axis) return false;
        cut = a;
      } else if (is_one(nest.output.strides[a])) {
        columns = a;
      }
    }
    if (cut == no_axis || columns == no_axis || points_of(nest) < least ||
        nest.axes[columns].size < lanes_)
      return false;
    bool moves = false;
    for (const Operand& input : nest.inputs) {
      const Size step = input.strides[columns];
      if (!target_.reads(input.dtype, step, nest.compute) ||
          (!ask_equal(step, 0) && !ask_equal(step, 1)))
        return false;
      moves |= ask_equal(step, 1) && !always_equal(input.strides[cut], 0);
    }
    if (!moves) return false;
    const Size columns_in_unit = std::min<Size>(nest.axes[columns].size, target_.most_columns);
    const Size rows_in_unit =
        std::clamp<Size>(4 * target_.elements_per_unit / columns_in_unit,
                         target_.least_rows_in_unit, target_.most_rows_in_unit);
    const auto join = steps_.add_partials(nest, cut,
                                          {.along = columns,
                                           .length = columns_in_unit,
                                           .row = cut,
                                           .rows = std::min(nest.axes[cut].size, rows_in_unit),
                                           .over = Schedule::Over::rows});
    if (join && !(join->combine ? append_down(*join, 0) : append_along(*join, 0)))
      steps_.add_strips(*join);
    return true;
  }

  /// Reductions of rows of at most four registers, next to each other: several rows are walked as
  /// one, and what these give is reduced after. Rows that are left over are put behind them as they
  /// are.
  bool append_folded(const LoopNest& nest) {
    if (!nest.combine || points_of(nest) < target_.least_points) return false;
    std::size_t columns = no_axis, cut = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.axes[a].reduced) {
        if (cut != no_axis) return false;
        cut = a;
      } else if (columns == no_axis || nest.axes[a].size > nest.axes[columns].size) {
        columns = a;
      }
    }
    if (cut == no_axis || columns == no_axis || asks_index(nest.body)) return false;
    const Size width = nest.axes[columns].size, rows = nest.axes[cut].size;
    bool moves = false;
    const auto is_read = [&](std::size_t i) { return reads(nest.body, i); };
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      const Operand& input = nest.inputs[i];
      const Size step = input.strides[columns];
      if (!is_read(i)) continue;
      if (!target_.reads(input.dtype, step, nest.compute) ||
          (!ask_equal(step, 0) && !ask_equal(step, 1)) ||
          !always_equal(input.strides[cut], width * step))
        return false;
      moves |= ask_equal(step, 1);
    }
    if (!moves || width > 4 * lanes_) return false;
    const Size fold = target_.folded_registers * lanes_ / width;
    if (fold < 2) return false;
    const Size folded_rows = rows / fold, left = rows % fold;
    // With fewer, what is left to reduce is nearly as much as there was.
    if (folded_rows < (width < lanes_ ? 2 : 4)) return false;

    // All the rows that are left to reduce, beside each other: `fold` of them, then those left
    // over.
    std::vector<std::pair<std::size_t, Size>> laid{{columns, (fold + left) * width}};
    for (std::size_t a = nest.axes.size(); a-- > 0;) {
      if (a != columns && a != cut) laid.push_back({a, nest.axes[a].size});
    }
    Operand sums = steps_.scratch(nest.compute, nest.axes.size(), laid);

    LoopNest folded = nest;
    folded.epilogue = {};
    folded.axes[columns].size = fold * width;
    folded.axes[cut].size = folded_rows;
    for (std::size_t i = 0; i < folded.inputs.size(); ++i) {
      Operand& input = folded.inputs[i];
      if (is_read(i))
        input.strides[cut] *= fold;
      else
        std::fill(input.strides.begin(), input.strides.end(), 0);
    }
    folded.output = sums;
    if (!append_down(folded, 0)) throw std::logic_error("choose: folded rows");
    if (left > 0) {
      LoopNest rest = folded;
      rest.combine.reset();
      rest.axes[cut] = {nest.axes[cut].name, 1};
      rest.axes[columns].size = left * width;
      for (Operand& input : rest.inputs) input.offset += folded_rows * input.strides[cut];
      rest.output = sums;
      rest.output.offset = fold * width;
      if (!append_along(rest, 0)) steps_.add_strips(rest);
    }
    sums.strides[cut] = width;
    steps_.add_strips(joined(nest, sums, cut, fold + left));
    return true;
  }

  /// Inputs that lie across the others are first turned: walked as they lie, each of their elements
  /// would take a cache line of its own.
  std::optional<LoopNest> turn(const LoopNest& nest) {
    const Operand& guide = guide_of(nest);
    std::vector<std::size_t> order(nest.axes.size());
    for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
    // The axis along which the guide lies comes last: so what is turned is not across it any more.
    const std::size_t along = innermost(nest, guide);
    const auto is_before = [&](std::size_t a, std::size_t b) {
      return a != along &&
             (b == along || magnitude(guide.strides[a]) > magnitude(guide.strides[b]));
    };
    std::stable_sort(order.begin(), order.end(), is_before);
    std::optional<LoopNest> turned;
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      const Operand& input = nest.inputs[i];
      if (!lies_across(nest, input, guide) && !has_gaps(nest, input)) continue;
      if (!turned) turned = nest;
      std::vector<std::pair<std::size_t, Size>> laid;
      for (std::size_t k = order.size(); k-- > 0;) {
        if (!ask_equal(input.strides[order[k]], 0))
          laid.push_back({order[k], nest.axes[order[k]].size});
      }
      const Operand now = steps_.scratch(input.dtype, nest.axes.size(), laid);
      LoopNest turning;
      turning.compute = compute_type(input.dtype);  // a copy, which is not turned in its turn
      turning.body = Ex::input(0);
      turning.output = now;
      turning.output.strides.clear();
      Operand from = input;
      from.strides.clear();
      for (const auto& [a, size] : laid) {
        turning.axes.push_back({nest.axes[a].name, size});
        from.strides.push_back(input.strides[a]);
        turning.output.strides.push_back(now.strides[a]);
      }
      turning.inputs = {from};
      simplify(turning);
      steps_.add_whole(turning);
      turned->inputs[i] = now;
    }
    return turned;
  }

  /// Whether a reduction of pairs reads elements that lie apart, as coordinates of points do.
  bool has_gaps(const LoopNest& nest, const Operand& input) const {
    const std::size_t own = innermost(nest, input);
    return own != no_axis && !input.is_indirect() && magnitude(input.strides[own]) > 1 &&
           reuses(nest, target_);
  }

  /// The axis along which an operand's neighbours lie; none where it has a single element.
  static std::size_t innermost(const LoopNest& nest, const Operand& operand) {
    std::size_t best = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (ask_equal(operand.strides[a], 0) || nest.axes[a].size < 2) continue;
      if (best == no_axis || magnitude(operand.strides[a]) < magnitude(operand.strides[best]))
        best = a;
    }
    return best;
  }

  bool lies_across(const LoopNest& nest, const Operand& input, const Operand& guide) const {
    const std::size_t along = innermost(nest, guide), own = innermost(nest, input);
    if (input.is_indirect() || along == no_axis || own == no_axis || own == along) return false;
    const auto bytes = static_cast<Size>(size_of(input.dtype));
    return elements_of(nest, input) >= target_.least_turned_elements &&
           nest.axes[own].size >= target_.least_turned_size &&
           nest.axes[along].size >= target_.least_turned_size &&
           magnitude(input.strides[own]) * bytes < target_.line_bytes &&
           magnitude(input.strides[along]) * bytes >= target_.line_bytes;
  }

  const Target& target_;
  std::int64_t lanes_;  // of a register
  Steps steps_;
};

}  // namespace

Schedule choose(const LoopNest& nest, const Target& target) {
  return Chooser(nest, target).run(nest);
}

Schedule choose_as_reduction(const LoopNest& nest, const Target& target) {
  return Chooser(nest, target).run_plain(nest);
}

}  // namespace ein
