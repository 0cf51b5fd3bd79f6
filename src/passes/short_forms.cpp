#include "passes/short_forms.hpp"

#include <cstddef>
#include <vector>

#include "size/ask.hpp"

namespace ein {
bool has_short_form(ScalarOp op) {
  switch (op) {
#define EIN_SHORT_FORM(name) \
  case ScalarOp::name:       \
    return true;
#include <ein/detail/scalar_functions.hpp>
    default:
      return false;
  }
}

namespace {

bool has_16_bits(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }
bool rounds(const ScalarStep& step) {
  return step.op == ScalarOp::as_bf16 || step.op == ScalarOp::as_f16;
}

/// Of each step, whether all that read it round it.
std::vector<bool> are_rounded(const Op& op) {
  const std::vector<ScalarStep>& steps = op.expr.steps;
  std::vector<bool> result(steps.size(), true);
  result.back() = has_16_bits(op.dtype);
  for (std::size_t s = steps.size(); s-- > 0;) {
    if (rounds(steps[s]) || (steps[s].op == ScalarOp::mul && result[s])) continue;
    for (int arg : steps[s].args) {
      if (arg >= 0) result[static_cast<std::size_t>(arg)] = false;
    }
  }
  return result;
}

}  // namespace

Graph with_short_forms(Graph graph) {
  for (Op& op : graph.ops) {
    if (op.kind != OpKind::map || op.compute != DType::f32) continue;
    const std::vector<bool> is_rounded = are_rounded(op);
    for (std::size_t s = 0; s < op.expr.steps.size(); ++s) {
      ScalarStep& step = op.expr.steps[s];
      if (!is_rounded[s] || !has_short_form(step.op)) continue;
      const ScalarStep& arg = op.expr.steps[static_cast<std::size_t>(step.args[0])];
      step.short_form =
          rounds(arg) ||
          (arg.op == ScalarOp::input &&
           has_16_bits(graph.op(op.inputs[static_cast<std::size_t>(arg.which)]).dtype));
    }
  }
  return graph;
}

}  // namespace ein
