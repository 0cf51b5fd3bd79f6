// Reductions: rows of one nest. Few results of many elements are cut into pieces, which a second
// kernel combines.
#include <algorithm>

#include "codegen/forms.hpp"
#include "codegen/rows.hpp"

namespace ein::codegen {
namespace {

/// The input whose layout decides: the one with the most elements.
const LoopNest::Operand& guide(const LoopNest& nest) {
  const LoopNest::Operand* best = &nest.output;
  double most = 0;
  for (std::size_t i : inputs_of(nest.body)) {
    const double elements = points_of(nest, nest.inputs[i]);
    if (elements > most) best = &nest.inputs[i];
    most = std::max(most, elements);
  }
  return *best;
}

/// The nest with the axes in another order.
LoopNest in_order(const LoopNest& nest, const AxisList& order) {
  LoopNest result = nest;
  for (std::size_t a = 0; a < order.size(); ++a) {
    result.axes[a] = nest.axes[order[a]];
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o)
      result.operand(o).strides[a] = nest.operand(o).strides[order[a]];
  }
  for (ScalarExpr* expr : {&result.body, &result.epilogue}) {
    for (ScalarStep& step : expr->steps) {
      if (step.op != ScalarOp::index) continue;
      const auto at = std::find(order.begin(), order.end(), static_cast<std::size_t>(step.which));
      step.which = static_cast<int>(at - order.begin());
    }
  }
  return result;
}

/// The nest with the axes of its results first, the others behind them; in both, those further in
/// keep memory in order, and along the first ones the guide does not move.
LoopNest with_rows(const LoopNest& nest) {
  const LoopNest::Operand& by = guide(nest);
  AxisList order;
  for (const bool reduced : {false, true}) {
    AxisList axes;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.axes[a].reduced == reduced) axes.push_back(a);
    }
    axes = by_stride(std::move(axes), by);
    const auto first_still =
        std::find_if(axes.begin(), axes.end(), [&](std::size_t a) { return by.strides[a] == 0; });
    std::rotate(axes.begin(), first_still, axes.end());
    order.insert(order.end(), axes.begin(), axes.end());
  }
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

/// What combines the pieces of a plan.
LoopNest of_pieces(const LoopNest& nest, const RowsPlan& plan) {
  const std::size_t rank = row_axes_of(nest);
  LoopNest result = nest;
  result.body = Ex::input(0);
  result.axes.resize(rank);
  result.axes.push_back({"piece", plan.pieces, true});
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
    result.operand(o).strides.resize(rank);
    result.operand(o).strides.push_back(0);
  }
  LoopNest::Operand partial{.buffer = workspace_buffer,
                            .dtype = nest.compute,
                            .strides = std::vector<std::int64_t>(rank + 1, plan.rows)};
  std::int64_t stride = 1;
  for (std::size_t a = rank; a-- > 0;) {
    partial.strides[a] = stride;
    stride *= nest.axes[a].size;
  }
  result.inputs.resize(std::max<std::size_t>(1, result.inputs.size()));
  result.inputs[0] = std::move(partial);
  return result;
}

}  // namespace

Kernels emit_reduce(const LoopNest& nest, const Context& context) {
  LoopNest rows = with_rows(nest);
  const std::vector<bool> is_local{false};
  const auto group_of = [&](const LoopNest& one) {
    return RowsGroup(std::span(&one, 1), row_axes_of(one), is_local);
  };
  const std::string name_of_type = std::string(name(nest.output.dtype)) + context.suffix;
  const RowsPlan plan = plan_reduction(group_of(rows));
  const std::string kind = plan.by_rows ? "rows_" : "columns_";
  if (plan.pieces == 1) return {write_rows(group_of(rows), plan, "reduce_" + kind + name_of_type)};
  const LoopNest finish = of_pieces(rows, plan);
  rows.epilogue = {};
  rows.output = finish.inputs[0];
  return {
      write_rows(group_of(rows), plan, "reduce_parts_" + name_of_type),
      write_rows(group_of(finish), plan_rows(group_of(finish)), "reduce_finish_" + name_of_type)};
}

}  // namespace ein::codegen
