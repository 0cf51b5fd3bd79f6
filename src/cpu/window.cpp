// Reductions over a few points, such as a pooling window: maps of as many inputs as there are points.
#include <algorithm>

#include "cpu/combine.hpp"
#include "cpu/loops.hpp"
#include "cpu/rows.hpp"

namespace ein::host {
namespace {

constexpr std::int64_t most_points = 16;
constexpr std::size_t most_inputs = 32;

/// A point's inputs, which begin `at` those of all points.
std::vector<ScalarExpr> renumbered(std::size_t inputs, std::size_t at) {
  std::vector<ScalarExpr> result;
  for (std::size_t i = 0; i < inputs; ++i) result.push_back(Ex::input(static_cast<int>(at + i)));
  return result;
}

/// None where the window is large, or its points are told apart by their indices.
std::optional<LoopNest> as_map(const LoopNest& nest) {
  const std::vector<std::size_t> window = axes_where(nest, [&](std::size_t a) { return nest.axes[a].reduced; });
  std::int64_t points = 1;
  for (std::size_t a : window) {
    if (nest.axes[a].size == 0 || nest.axes[a].size > most_points) return std::nullopt;
    points *= nest.axes[a].size;
    for (const ScalarStep& step : nest.body.steps) {
      if (step.op == ScalarOp::index && static_cast<std::size_t>(step.which) == a) return std::nullopt;
    }
  }
  const std::size_t inputs = nest.inputs.size();
  if (points > most_points || static_cast<std::size_t>(points) * inputs > most_inputs) return std::nullopt;
  const Loops loops(nest, window);
  LoopNest map = nest;
  map.inputs.clear();
  map.combine.reset();
  map.body = {};
  for (std::size_t a : window) map.axes[a] = {nest.axes[a].name, 1};
  Loops::Cursor cursor(loops, nest.axes.size());
  for (std::int64_t point = 0; point < points; ++point) {
    cursor.seek(point);
    const ScalarExpr value = substitute(nest.body, renumbered(inputs, map.inputs.size()));
    map.body = point == 0 ? value : ScalarExpr(Ex::apply(scalar_op(*nest.combine), Ex::of(map.body), Ex::of(value)));
    for (std::size_t i = 0; i < inputs; ++i) {
      map.inputs.push_back(nest.inputs[i]);
      map.inputs.back().offset += cursor.offset(i) / static_cast<std::int64_t>(size_of(nest.inputs[i].dtype));
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

}  // namespace

std::unique_ptr<Kernel> make_window_kernel(const LoopNest& nest) {
  if (!is_f32_reduction(nest) || draws(nest.body)) return nullptr;
  const auto map = as_map(nest);
  return map ? make_rows_kernel(*map) : nullptr;
}

}  // namespace ein::host
