// Which results are numbers of 16 bits made of one of 16 bits: some functions have a shorter form
// for them, which strips and row code both take, so that they agree.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/scalar_expr.hpp>
#include "cpu/functions.hpp"

namespace ein::host {

enum class Precision : bool { full, of_16_bits };

/// Of each step: of_16_bits where its argument is a bf16 or f16, and all that read its result round
/// it to one of these. `inputs` are the dtypes of the inputs; step `value` is stored as `stored`.
inline std::vector<Precision> precisions(std::span<const ScalarStep> steps, int value,
                                         std::span<const DType> inputs, DType stored) {
  const auto is_short = [](DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; };
  const auto rounds = [](const ScalarStep& step) {
    return step.op == ScalarOp::as_bf16 || step.op == ScalarOp::as_f16;
  };
  std::vector<Precision> result(steps.size(), Precision::of_16_bits);
  if (!is_short(stored)) result[static_cast<std::size_t>(value)] = Precision::full;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (int i = 0; i < info(steps[s].op).arity; ++i) {
      const auto arg = static_cast<std::size_t>(steps[s].args[i]);
      if (!rounds(steps[s])) result[arg] = Precision::full;
      const bool is_of_short =
          rounds(steps[arg]) || (steps[arg].op == ScalarOp::input &&
                                 is_short(inputs[static_cast<std::size_t>(steps[arg].which)]));
      if (!is_of_short) result[s] = Precision::full;
    }
  }
  return result;
}

/// Calls run(f) with the shorter form of a function of floats; false for one that has none.
template <class Run>
bool with_short_form(ScalarOp op, const Run& run) {
  switch (op) {
    case ScalarOp::normal_cdf:
      run([](const auto& x) { return functions::normal_cdf_of_16_bits(x); });
      return true;
    case ScalarOp::gelu:
      run([](const auto& x) { return functions::gelu_of_16_bits(x); });
      return true;
    case ScalarOp::gelu_slope:
      run([](const auto& x) { return functions::gelu_slope_of_16_bits(x); });
      return true;
    default:
      return false;
  }
}

}  // namespace ein::host
