// Minima of positions, which kernels need not walk past the first that they find.
#pragma once

#include <cstddef>
#include <optional>

#include "nest/nest.hpp"

namespace ein {

/// The body of a minimum is where(x == value || x != x, index, otherwise), as the reductions of
/// argmax and argmin have it; `x` and `value` are inputs, `index` is that of an axis.
struct FirstFound {
  std::size_t x, value, axis;
  ScalarStep otherwise;  // a constant: whoever looks asks whether it is as great as all indices
};

inline std::optional<FirstFound> first_found(const ScalarExpr& body,
                                             const std::optional<Combine>& combine) {
  const auto step = [&](int s) { return body.steps[static_cast<std::size_t>(s)]; };
  if (combine != Combine::min || body.steps.empty()) return std::nullopt;
  const ScalarStep last = body.steps.back();
  if (last.op != ScalarOp::where) return std::nullopt;
  const ScalarStep is_it = step(last.args[0]), index = step(last.args[1]),
                   otherwise = step(last.args[2]);
  if (is_it.op != ScalarOp::logical_or || index.op != ScalarOp::index ||
      otherwise.op != ScalarOp::constant)
    return std::nullopt;
  const ScalarStep equal = step(is_it.args[0]), nan = step(is_it.args[1]);
  if (equal.op != ScalarOp::eq || nan.op != ScalarOp::ne) return std::nullopt;
  const auto input = [&](int s) { return step(s).op == ScalarOp::input ? step(s).which : -1; };
  const int x = input(equal.args[0]), value = input(equal.args[1]);
  if (x < 0 || value < 0 || input(nan.args[0]) != x || input(nan.args[1]) != x) return std::nullopt;
  return FirstFound{static_cast<std::size_t>(x), static_cast<std::size_t>(value),
                    static_cast<std::size_t>(index.which), otherwise};
}

}  // namespace ein
