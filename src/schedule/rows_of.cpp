#include "schedule/rows_of.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein {
namespace {

bool has_code(const ScalarExpr& expr, DType compute, const Target& target) {
  return std::all_of(expr.steps.begin(), expr.steps.end(),
                     [&](const ScalarStep& step) { return target.has(step.op, compute); });
}

}  // namespace

bool is_for_rows(const LoopNest& nest, const Target& target) {
  if (!target.has_rows() || !is_floating(nest.compute) || nest.along != LoopNest::Along::nothing ||
      nest.is_scatter())
    return false;
  if (std::any_of(nest.inputs.begin(), nest.inputs.end(),
                  [](const auto& input) { return input.is_indirect(); }))
    return false;
  if (nest.combine && !target.combines(*nest.combine)) return false;
  return target.writes(nest.output.dtype, nest.compute) &&
         has_code(nest.body, nest.compute, target) && has_code(nest.epilogue, nest.compute, target);
}

bool lies_along(const LoopNest& nest, std::size_t along, const Target& target) {
  for (const LoopNest::Operand& input : nest.inputs) {
    if (!target.reads(input.dtype, input.strides[along], nest.compute)) return false;
  }
  return nest.axes[along].reduced || is_one(nest.output.strides[along]);
}

}  // namespace ein
