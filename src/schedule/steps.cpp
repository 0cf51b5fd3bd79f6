#include "schedule/steps.hpp"

#include <algorithm>

#include "nest/combine.hpp"
#include "size/ask.hpp"

namespace ein {

Steps::Steps(const LoopNest& nest, const Target& target) : target_(target) {
  int last = nest.output.buffer;
  for (const Operand& input : nest.inputs) last = std::max(last, input.buffer);
  schedule_.buffers = static_cast<std::size_t>(last) + 1;
}

Steps::Operand Steps::scratch(DType dtype, std::size_t rank,
                              const std::vector<std::pair<std::size_t, Size>>& axes) {
  Operand operand{.buffer = static_cast<int>(schedule_.buffers + schedule_.scratch.size()),
                  .dtype = dtype,
                  .strides = std::vector<Size>(rank, 0)};
  Size stride = 1;
  for (const auto& [axis, size] : axes) {
    operand.strides[axis] = stride;
    stride *= size;
  }
  schedule_.scratch.push_back({stride, dtype});
  return operand;
}

void Steps::add_whole(const LoopNest& nest) {
  Schedule::Part part;
  part.whole = nest;
  for (const Operand& input : nest.inputs)
    part.places.push_back({.buffer = input.buffer, .dtype = input.dtype, .offset = input.offset});
  part.places.push_back(
      {.buffer = nest.output.buffer, .dtype = nest.output.dtype, .offset = nest.output.offset});
  schedule_.steps.push_back({{}, {std::move(part)}});
}

void Steps::add(const LoopNest& nest, const Operand& output, const Walk& walk) {
  Schedule::Step step;
  Schedule::Part part;
  Schedule::Rows& rows = part.rows;
  rows.in_strips = walk.in_strips;
  rows.compute = nest.compute;
  rows.axes.resize(nest.axes.size());
  std::vector<std::size_t> looped;
  const auto add_loop = [&](std::size_t axis, Size block) {
    rows.axes[axis].loop = static_cast<int>(looped.size());
    looped.push_back(axis);
    step.loops.push_back({nest.axes[axis].name, nest.axes[axis].size, block});
  };
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a != walk.along && a != walk.row) add_loop(a, 1);
  }
  const auto extent_of = [&](std::size_t axis, Size block) {
    if (axis == no_axis || ask_equal(block, nest.axes[axis].size)) return Schedule::Extent{block};
    add_loop(axis, block);
    return Schedule::Extent{block, rows.axes[axis].loop};
  };
  rows.rows = extent_of(walk.row, walk.rows);
  rows.length = extent_of(walk.along, walk.length);
  if (walk.row != no_axis) rows.axes[walk.row].is_row = true;
  if (walk.along != no_axis) rows.axes[walk.along].is_along = true;
  if (walk.in_strips) make_serial(step, rows.rows.size * rows.length.size);
  part.inside = static_cast<std::size_t>(
      std::count_if(step.loops.begin(), step.loops.end(),
                    [](const Schedule::Loop& loop) { return loop.is_serial; }));

  Schedule::RowNest row_nest{
      .output = nest.inputs.size(), .body = nest.body, .combine = nest.combine, .over = walk.over};
  if (&output == &nest.output) row_nest.epilogue = nest.epilogue;
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
    const bool is_result = o == nest.inputs.size();
    const Operand& operand = is_result ? output : nest.inputs[o];
    const auto stride = [&](std::size_t a) { return a == no_axis ? Size(0) : operand.strides[a]; };
    Schedule::Place place{.buffer = operand.buffer,
                          .dtype = operand.dtype,
                          .offset = operand.offset,
                          .row_step = stride(walk.row),
                          .step = stride(walk.along)};
    for (std::size_t l = 0; l < looped.size(); ++l)
      place.strides.push_back(stride(looped[l]) * (is_result && nest.axes[looped[l]].reduced
                                                       ? Size(1)
                                                       : step.loops[l].block));
    if (is_result && nest.combine)
      (walk.over == Schedule::Over::row ? place.step : place.row_step) = 0;
    part.places.push_back(std::move(place));
    if (!is_result) row_nest.inputs.push_back(o);
  }
  rows.nests = {std::move(row_nest)};
  step.parts = {std::move(part)};
  schedule_.steps.push_back(std::move(step));
}

/// A unit does the inner loops itself, as long as it has not more elements than it should.
void Steps::make_serial(Schedule::Step& step, Size elements) const {
  for (std::size_t l = step.loops.size(); l-- > 0;) {
    Schedule::Loop& loop = step.loops[l];
    if (multiply_overflows(elements, loop.pieces(), elements) ||
        elements > target_.elements_per_unit)
      return;
    loop.is_serial = true;
  }
}

std::optional<LoopNest> Steps::add_partials(const LoopNest& nest, std::size_t cut,
                                            const Walk& walk) {
  const Size length = walk.along == cut ? walk.length : walk.rows,
             pieces = ceil_div(nest.axes[cut].size, length);
  const std::size_t columns = walk.over == Schedule::Over::rows ? walk.along : no_axis;
  const bool is_done = ask_equal(pieces, 1) && nest.epilogue.steps.empty() &&
                       nest.output.dtype == nest.compute &&
                       (columns == no_axis || ask_equal(nest.output.strides[columns], 1));
  if (is_done) {
    add(nest, nest.output, walk);
    return std::nullopt;
  }
  // What the pieces give, with the columns innermost and the pieces next to them.
  std::vector<std::pair<std::size_t, Size>> laid;
  if (columns != no_axis) laid.push_back({columns, nest.axes[columns].size});
  laid.push_back({cut, pieces});
  for (std::size_t a = nest.axes.size(); a-- > 0;) {
    if (a != cut && a != columns) laid.push_back({a, nest.axes[a].size});
  }
  const Operand partial = scratch(nest.compute, nest.axes.size(), laid);
  add(nest, partial, walk);

  LoopNest join = joined(nest, partial, cut, pieces);
  if (ask_equal(pieces, 1)) {
    if (!nest.epilogue.steps.empty()) join.body = nest.epilogue;
    join.epilogue = {};
    join.combine.reset();
    join.axes[cut].reduced = false;
  }
  return join;
}

Size points_of(const LoopNest& nest) {
  Size points = 1;
  for (const LoopNest::NestAxis& axis : nest.axes) points *= axis.size;
  return points;
}

Size elements_of(const LoopNest& nest, const LoopNest::Operand& operand) {
  Size elements = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (!ask_equal(operand.strides[a], 0)) elements *= nest.axes[a].size;
  }
  return elements;
}

bool reuses(const LoopNest& nest, const Target& target) {
  if (!nest.combine || nest.along != LoopNest::Along::nothing || nest.sums_products() ||
      nest.is_scatter())
    return false;
  Size elements = 0;
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (!axis.size.is_number()) return false;
  }
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o)
    elements += elements_of(nest, nest.operand(o));
  return target.least_uses * elements <= points_of(nest);
}

const LoopNest::Operand& guide_of(const LoopNest& nest) {
  if (!nest.combine || nest.inputs.empty()) return nest.output;
  return *std::max_element(
      nest.inputs.begin(), nest.inputs.end(),
      [&](const auto& a, const auto& b) { return elements_of(nest, a) < elements_of(nest, b); });
}

bool reads(const ScalarExpr& expr, std::size_t input) {
  return std::any_of(expr.steps.begin(), expr.steps.end(), [&](const ScalarStep& step) {
    return step.op == ScalarOp::input && static_cast<std::size_t>(step.which) == input;
  });
}

LoopNest joined(const LoopNest& nest, const LoopNest::Operand& results, std::size_t cut,
                Size size) {
  LoopNest join = nest;
  join.joins = true;
  join.axes[cut].size = size;
  join.body = Ex::input(0);
  join.inputs.resize(std::max<std::size_t>(1, join.inputs.size()));
  for (LoopNest::Operand& input : join.inputs) {
    input.strides.resize(nest.axes.size());
    input.strides[cut] = 0;
  }
  join.inputs[0] = results;
  return join;
}

std::optional<LoopNest> window_as_map(const LoopNest& nest, const Target& target) {
  if (!nest.combine || draws(nest.body)) return std::nullopt;
  std::int64_t points = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (!nest.axes[a].reduced) continue;
    if (!nest.axes[a].size.is_number() || ask_equal(nest.axes[a].size, 0) ||
        nest.axes[a].size > target.most_window_points || asks_index(nest.body, a))
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
    // `any` and `all` make 0 or 1 of a single value too.
    const bool is_taken = !info(*nest.combine).asks;
    map.body = point == 0 && is_taken
                   ? value
                   : ScalarExpr(Ex::apply(info(*nest.combine).operation,
                                          Ex::of(point == 0 ? value : map.body), Ex::of(value)));
    for (const LoopNest::Operand& input : nest.inputs) {
      map.inputs.push_back(input);
      Size left = point;
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

}  // namespace ein
