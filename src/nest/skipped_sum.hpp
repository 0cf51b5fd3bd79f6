// Sums that are 0 for most rows, and that kernels need not walk there.
#pragma once

#include <cstddef>
#include <optional>

#include "nest/nest.hpp"

namespace ein {

/// The body of a sum is 0 wherever `input` is `value`: where(input != value, ..., 0).
struct SkippedSum {
  std::size_t input;
  double value;
};

inline std::optional<SkippedSum> skipped_sum(const ScalarExpr& body,
                                             const std::optional<Combine>& combine) {
  const auto step = [&](int s) { return body.steps[static_cast<std::size_t>(s)]; };
  if (combine != Combine::sum || body.steps.empty()) return std::nullopt;
  const ScalarStep last = body.steps.back();
  if (last.op != ScalarOp::where) return std::nullopt;
  const ScalarStep condition = step(last.args[0]), otherwise = step(last.args[2]);
  if (otherwise.op != ScalarOp::constant || otherwise.real != 0 || condition.op != ScalarOp::ne)
    return std::nullopt;
  const ScalarStep a = step(condition.args[0]), b = step(condition.args[1]);
  if (a.op != ScalarOp::input || b.op != ScalarOp::constant) return std::nullopt;
  return SkippedSum{static_cast<std::size_t>(a.which), b.real};
}

}  // namespace ein
