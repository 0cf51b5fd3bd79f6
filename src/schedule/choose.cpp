// The schedule of one nest: of the walks over its points that the target has code for, the one with
// the longest rows.
#include "schedule/choose.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "nest/combine.hpp"
#include "schedule/rows_of.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

constexpr std::size_t no_axis = static_cast<std::size_t>(-1);

bool is_empty(const LoopNest& nest) {
  return std::any_of(nest.axes.begin(), nest.axes.end(),
                     [](const auto& axis) { return axis.size == 0; });
}

std::int64_t points_of(const LoopNest& nest) {
  std::int64_t points = 1;
  for (const LoopNest::NestAxis& axis : nest.axes) points *= axis.size;
  return points;
}

/// A reduction over so few points that it is a map of as many inputs as there are points.
std::optional<LoopNest> window_as_map(const LoopNest& nest, const Target& target) {
  if (!nest.combine || draws(nest.body)) return std::nullopt;
  std::int64_t points = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (!nest.axes[a].reduced) continue;
    if (nest.axes[a].size == 0 || nest.axes[a].size > target.most_window_points ||
        asks_index(nest.body, a))
      return std::nullopt;
    points *= nest.axes[a].size;
  }
  const std::size_t inputs = nest.inputs.size();
  if (points > target.most_window_points ||
      points * static_cast<std::int64_t>(inputs) > target.most_window_inputs)
    return std::nullopt;
  // A point's inputs, which begin `at` those of all points.
  const auto renumbered = [](std::size_t count, std::size_t at) {
    std::vector<ScalarExpr> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(Ex::input(static_cast<int>(at + i)));
    return result;
  };
  LoopNest map = nest;
  map.inputs.clear();
  map.combine.reset();
  for (LoopNest::NestAxis& axis : map.axes) {
    if (axis.reduced) axis = {axis.name, 1};
  }
  for (std::int64_t point = 0; point < points; ++point) {
    const ScalarExpr value = substitute(nest.body, renumbered(inputs, map.inputs.size()));
    map.body =
        point == 0
            ? value
            : ScalarExpr(Ex::apply(scalar_op(*nest.combine), Ex::of(map.body), Ex::of(value)));
    for (const Operand& input : nest.inputs) {
      map.inputs.push_back(input);
      std::int64_t left = point;
      for (std::size_t a = nest.axes.size(); a-- > 0;) {
        if (!nest.axes[a].reduced) continue;
        map.inputs.back().offset += left % nest.axes[a].size * input.strides[a];
        left /= nest.axes[a].size;
      }
    }
  }
  if (!nest.epilogue.steps.empty()) {
    // Input 0 is the combined value, also where a constant was combined, which has no input.
    std::vector<ScalarExpr> values = renumbered(std::max<std::size_t>(inputs, 1), 0);
    values[0] = map.body;
    map.body = substitute(nest.epilogue, values);
    map.epilogue = {};
  }
  simplify(map);
  return map;
}

class Chooser {
 public:
  Chooser(const LoopNest& nest, const Target& target) : target_(target) {
    for (const Operand& input : nest.inputs) note(input);
    note(nest.output);
  }

  Schedule run(const LoopNest& nest) {
    // Copies, products and what positions or order matter to have engines of their own.
    const bool is_plain = !nest.is_gather() && !nest.is_scatter() &&
                          nest.along == LoopNest::Along::nothing && !nest.sums_products() &&
                          !(nest.is_copy() && nest.inputs[0].dtype == nest.output.dtype);
    if (!is_plain || is_empty(nest)) {
      append_whole(nest);
    } else if (!append_rows(nest)) {
      const auto turned = turn(nest);
      if (!turned)
        append_whole(nest);
      else if (!append_rows(*turned))
        append_whole(*turned);
    }
    return std::move(schedule_);
  }

 private:
  void note(const Operand& operand) {
    schedule_.buffers = std::max(schedule_.buffers, static_cast<std::size_t>(operand.buffer) + 1);
  }

  int add_scratch(std::int64_t elements, DType dtype) {
    schedule_.scratch.push_back({elements, dtype});
    return static_cast<int>(schedule_.buffers + schedule_.scratch.size() - 1);
  }

  void append_whole(const LoopNest& nest) {
    Schedule::Part part;
    part.whole = nest;
    for (const Operand& input : nest.inputs)
      part.places.push_back({.buffer = input.buffer, .dtype = input.dtype, .offset = input.offset});
    part.places.push_back(
        {.buffer = nest.output.buffer, .dtype = nest.output.dtype, .offset = nest.output.offset});
    schedule_.steps.push_back({{}, {std::move(part)}});
  }

  /// By the target's code for rows, if it has what the nest needs and the nest's operands lie so.
  bool append_rows(const LoopNest& nest) {
    if (!is_for_rows(nest, target_)) return false;
    if (const auto map = window_as_map(nest, target_)) {
      if (append_along(*map, target_.least_points)) return true;
    }
    return append_along(nest, target_.least_points) || append_folded(nest) ||
           append_down(nest, target_.least_points);
  }

  /// Rows along the axis that the operands lie along: that of the output, or the one that is
  /// reduced.
  bool append_along(const LoopNest& nest, std::int64_t least) {
    std::size_t along = no_axis, row = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.axes[a].reduced != nest.combine.has_value()) continue;
      if (nest.combine && along != no_axis) return false;  // two axes are reduced
      if (nest.combine || nest.output.strides[a] == 1) along = a;
    }
    const std::int64_t points = points_of(nest);
    if (along == no_axis || points < least || !lies_along(nest, along, target_)) return false;
    const std::int64_t length = nest.axes[along].size, rows = points / length;
    // The rows follow each other on the longest of the axes left.
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (a != along && (row == no_axis || nest.axes[a].size > nest.axes[row].size)) row = a;
    }
    if (least > 0 && length < target_.lanes && rows > 1) {  // would leave lanes empty
      if (!nest.combine || !target_.combines_together(*nest.combine) ||
          nest.output.strides[row] != 1 || nest.axes[row].size < target_.lanes)
        return false;
    }
    if (nest.combine && (length > target_.longest_combined_row ||
                         (rows < target_.least_rows && length > target_.elements_per_unit)))
      return append_pieces(nest, along);
    Schedule::Step step;
    std::vector<std::size_t> looped;  // axes
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (a == along || a == row) continue;
      looped.push_back(a);
      step.loops.push_back({nest.axes[a].name, nest.axes[a].size});
    }
    Schedule::Rows rows_of;
    rows_of.length = {length};
    if (row != no_axis) {
      looped.push_back(row);
      step.loops.push_back(
          {nest.axes[row].name, nest.axes[row].size,
           std::min(nest.axes[row].size,
                    std::max<std::int64_t>(1, target_.elements_per_unit / length))});
      rows_of.rows = {step.loops.back().block, static_cast<int>(looped.size()) - 1};
    } else if (!nest.combine) {
      looped.push_back(along);
      step.loops.push_back(
          {nest.axes[along].name, length, std::min(length, target_.elements_per_unit)});
      rows_of.length = {step.loops.back().block, static_cast<int>(looped.size()) - 1};
    }
    Schedule::RowNest row_nest{.output = nest.inputs.size(),
                               .body = nest.body,
                               .combine = nest.combine,
                               .epilogue = nest.epilogue};
    Schedule::Part part;
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      const Operand& operand = nest.operand(o);
      const bool is_result = o == nest.inputs.size() && nest.combine;
      part.places.push_back(place(operand, step, looped));
      part.places.back().row_step = row == no_axis ? 0 : operand.strides[row];
      part.places.back().step = is_result ? 0 : operand.strides[along];
      if (o < nest.inputs.size()) row_nest.inputs.push_back(o);
    }
    rows_of.axes = axes_of(nest, looped, row, along);
    rows_of.nests = {std::move(row_nest)};
    part.rows = std::move(rows_of);
    step.parts = {std::move(part)};
    schedule_.steps.push_back(std::move(step));
    return true;
  }

  /// Where an operand's pieces of the loops begin.
  static Schedule::Place place(const Operand& operand, const Schedule::Step& step,
                               const std::vector<std::size_t>& looped) {
    Schedule::Place place{
        .buffer = operand.buffer, .dtype = operand.dtype, .offset = operand.offset};
    for (std::size_t l = 0; l < looped.size(); ++l)
      place.strides.push_back(operand.strides[looped[l]] * step.loops[l].block);
    return place;
  }

  static std::vector<Schedule::Rows::Axis> axes_of(const LoopNest& nest,
                                                   const std::vector<std::size_t>& looped,
                                                   std::size_t row, std::size_t along) {
    std::vector<Schedule::Rows::Axis> axes(nest.axes.size());
    for (std::size_t l = 0; l < looped.size(); ++l) axes[looped[l]].loop = static_cast<int>(l);
    if (row != no_axis) axes[row].is_row = true;
    if (along != no_axis) axes[along].is_along = true;
    return axes;
  }

  /// One step combines pieces of an axis, and those behind it what the pieces give. The axis is
  /// walked as the row (`columns` none), or as rows of the axis `columns`.
  void append_partials(const LoopNest& nest, std::size_t cut, std::int64_t length,
                       std::size_t columns, std::int64_t columns_in_unit) {
    Schedule::Step step;
    std::vector<std::size_t> looped;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (a == cut || a == columns) continue;
      looped.push_back(a);
      step.loops.push_back({nest.axes[a].name, nest.axes[a].size});
    }
    Schedule::Rows rows;
    if (columns != no_axis) {
      looped.push_back(columns);
      step.loops.push_back({nest.axes[columns].name, nest.axes[columns].size, columns_in_unit});
      rows.length = {columns_in_unit, static_cast<int>(looped.size()) - 1};
    }
    looped.push_back(cut);
    step.loops.push_back({nest.axes[cut].name, nest.axes[cut].size, length});
    (columns == no_axis ? rows.length : rows.rows) = {length, static_cast<int>(looped.size()) - 1};
    const std::int64_t pieces = step.loops.back().pieces();
    const bool is_done = pieces == 1 && nest.epilogue.steps.empty() &&
                         nest.output.dtype == DType::f32 &&
                         (columns == no_axis || nest.output.strides[columns] == 1);

    // What the pieces give, with the columns innermost and the pieces next to them.
    Operand partial{.buffer = is_done ? nest.output.buffer : -1,
                    .dtype = DType::f32,
                    .strides = std::vector<std::int64_t>(nest.axes.size(), 0)};
    if (is_done) {
      partial = nest.output;
    } else {
      std::int64_t stride = 1;
      const auto lay = [&](std::size_t axis, std::int64_t size) {
        partial.strides[axis] = stride;
        stride *= size;
      };
      if (columns != no_axis) lay(columns, nest.axes[columns].size);
      lay(cut, pieces);
      for (std::size_t a = nest.axes.size(); a-- > 0;) {
        if (a != cut && a != columns) lay(a, nest.axes[a].size);
      }
      partial.buffer = add_scratch(stride, DType::f32);
    }

    Schedule::Part part;
    Schedule::RowNest row_nest{
        .output = nest.inputs.size(),
        .body = nest.body,
        .combine = nest.combine,
        .over = columns == no_axis ? Schedule::Over::row : Schedule::Over::rows};
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      const Operand& input = nest.inputs[i];
      part.places.push_back(place(input, step, looped));
      part.places.back().row_step = columns == no_axis ? 0 : input.strides[cut];
      part.places.back().step = input.strides[columns == no_axis ? cut : columns];
      row_nest.inputs.push_back(i);
    }
    part.places.push_back(place(partial, step, looped));
    part.places.back().strides.back() =
        is_done ? 0 : partial.strides[cut];  // a piece is one result
    part.places.back().step = columns == no_axis ? 0 : 1;
    rows.axes = axes_of(nest, looped, columns == no_axis ? no_axis : cut,
                        columns == no_axis ? cut : columns);
    rows.nests = {std::move(row_nest)};
    part.rows = std::move(rows);
    step.parts = {std::move(part)};
    schedule_.steps.push_back(std::move(step));
    if (is_done) return;

    LoopNest join = nest;
    join.joins = true;
    join.axes[cut].size = pieces;
    join.body = Ex::input(0);
    if (join.inputs.empty()) join.inputs.emplace_back();
    for (Operand& input : join.inputs) input.strides.resize(nest.axes.size());
    for (Operand& input : join.inputs) input.strides[cut] = 0;
    join.inputs[0] = partial;
    if (pieces == 1) {
      if (!nest.epilogue.steps.empty()) join.body = nest.epilogue;
      join.epilogue = {};
      join.combine.reset();
      join.axes[cut].reduced = false;
      join.output.strides[cut] = 0;
    }
    if (!(columns == no_axis || pieces == 1 ? append_along(join, 0) : append_down(join, 0)))
      append_whole(join);
  }

  bool append_pieces(const LoopNest& nest, std::size_t along) {
    append_partials(nest, along, std::min(nest.axes[along].size, target_.elements_per_unit / 2),
                    no_axis, 1);
    return true;
  }

  /// Reductions whose kept axis lies side by side: row after row is combined into one row of
  /// results.
  bool append_down(const LoopNest& nest, std::int64_t least) {
    if (!nest.combine) return false;
    std::size_t columns = no_axis, cut = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.axes[a].reduced) {
        if (cut != no_axis) return false;
        cut = a;
      } else if (nest.output.strides[a] == 1) {
        columns = a;
      }
    }
    if (cut == no_axis || columns == no_axis || points_of(nest) < least ||
        nest.axes[columns].size < target_.lanes)
      return false;
    bool moves = false;
    for (const Operand& input : nest.inputs) {
      const std::int64_t step = input.strides[columns];
      if ((step != 0 && step != 1) || !target_.reads(input.dtype, step)) return false;
      moves |= step == 1 && input.strides[cut] != 0;
    }
    if (!moves) return false;
    const std::int64_t columns_in_unit = std::min(nest.axes[columns].size, target_.most_columns);
    const std::int64_t rows_in_unit =
        std::clamp(4 * target_.elements_per_unit / columns_in_unit, target_.least_rows_in_unit,
                   target_.most_rows_in_unit);
    append_partials(nest, cut, std::min(nest.axes[cut].size, rows_in_unit), columns,
                    columns_in_unit);
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
    const std::int64_t width = nest.axes[columns].size, rows = nest.axes[cut].size;
    bool moves = false;
    const auto is_read = [&](std::size_t i) {
      return std::any_of(nest.body.steps.begin(), nest.body.steps.end(), [&](const ScalarStep& s) {
        return s.op == ScalarOp::input && static_cast<std::size_t>(s.which) == i;
      });
    };
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      const Operand& input = nest.inputs[i];
      const std::int64_t step = input.strides[columns];
      if (!is_read(i)) continue;
      if ((step != 0 && step != 1) || input.strides[cut] != width * step ||
          !target_.reads(input.dtype, step))
        return false;
      moves |= step == 1;
    }
    if (!moves || width > 4 * target_.lanes) return false;
    const std::int64_t fold = target_.folded_registers * target_.lanes / width;
    if (fold < 2) return false;
    const std::int64_t folded_rows = rows / fold, left = rows % fold;
    // With fewer, what is left to reduce is nearly as much as there was.
    if (folded_rows < (width < target_.lanes ? 2 : 4)) return false;

    // All the rows that are left to reduce, beside each other: `fold` of them, then those left
    // over.
    Operand sums{.dtype = DType::f32, .strides = std::vector<std::int64_t>(nest.axes.size(), 0)};
    sums.strides[columns] = 1;
    std::int64_t stride = (fold + left) * width;
    for (std::size_t a = nest.axes.size(); a-- > 0;) {
      if (a == columns || a == cut) continue;
      sums.strides[a] = stride;
      stride *= nest.axes[a].size;
    }
    sums.buffer = add_scratch(stride, DType::f32);

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
      if (!append_along(rest, 0)) append_whole(rest);
    }
    LoopNest join = nest;
    join.joins = true;
    join.axes[cut].size = fold + left;
    join.body = Ex::input(0);
    if (join.inputs.empty()) join.inputs.emplace_back();
    for (Operand& input : join.inputs) {
      input.strides.resize(nest.axes.size());
      input.strides[cut] = 0;
    }
    join.inputs[0] = sums;
    join.inputs[0].strides[cut] = width;
    append_whole(join);
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
      return a != along && (b == along || std::abs(guide.strides[a]) > std::abs(guide.strides[b]));
    };
    std::stable_sort(order.begin(), order.end(), is_before);
    std::optional<LoopNest> turned;
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      const Operand& input = nest.inputs[i];
      if (!lies_across(nest, input, guide)) continue;
      if (!turned) turned = nest;
      LoopNest turning;
      turning.compute = nest.compute;
      turning.body = Ex::input(0);
      Operand from = input, to{.dtype = input.dtype};
      from.strides.clear();
      Operand now{.dtype = input.dtype, .strides = std::vector<std::int64_t>(nest.axes.size(), 0)};
      std::int64_t stride = 1;
      for (std::size_t k = order.size(); k-- > 0;) {
        const std::size_t a = order[k];
        if (input.strides[a] == 0) continue;
        now.strides[a] = stride;
        turning.axes.push_back({nest.axes[a].name, nest.axes[a].size});
        from.strides.push_back(input.strides[a]);
        to.strides.push_back(stride);
        stride *= nest.axes[a].size;
      }
      now.buffer = to.buffer = add_scratch(stride, input.dtype);
      turning.inputs = {from};
      turning.output = to;
      simplify(turning);
      append_whole(turning);
      turned->inputs[i] = now;
    }
    return turned;
  }

  static std::int64_t elements_of(const LoopNest& nest, const Operand& operand) {
    std::int64_t elements = 1;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (operand.strides[a] != 0) elements *= nest.axes[a].size;
    }
    return elements;
  }

  /// The operand whose order the others are to have: the result, or of a reduction the first of the
  /// largest inputs. A small one stands still along axes that the large ones lie along.
  static const Operand& guide_of(const LoopNest& nest) {
    if (!nest.combine || nest.inputs.empty()) return nest.output;
    return *std::max_element(
        nest.inputs.begin(), nest.inputs.end(),
        [&](const auto& a, const auto& b) { return elements_of(nest, a) < elements_of(nest, b); });
  }

  /// The axis along which an operand's neighbours lie; none where it has a single element.
  static std::size_t innermost(const LoopNest& nest, const Operand& operand) {
    std::size_t best = no_axis;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (operand.strides[a] == 0 || nest.axes[a].size < 2) continue;
      if (best == no_axis || std::abs(operand.strides[a]) < std::abs(operand.strides[best]))
        best = a;
    }
    return best;
  }

  bool lies_across(const LoopNest& nest, const Operand& input, const Operand& guide) const {
    const std::size_t along = innermost(nest, guide), own = innermost(nest, input);
    if (input.is_indirect() || along == no_axis || own == no_axis || own == along) return false;
    const auto bytes = static_cast<std::int64_t>(size_of(input.dtype));
    return elements_of(nest, input) >= target_.least_turned_elements &&
           nest.axes[own].size >= target_.least_turned_size &&
           nest.axes[along].size >= target_.least_turned_size &&
           std::abs(input.strides[own]) * bytes < target_.line_bytes &&
           std::abs(input.strides[along]) * bytes >= target_.line_bytes;
  }

  const Target& target_;
  Schedule schedule_;
};

}  // namespace

Schedule choose(const LoopNest& nest, const Target& target) {
  return Chooser(nest, target).run(nest);
}

}  // namespace ein
