// Combinations of two numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "nest/nest.hpp"
#include "tensor/identity.hpp"

namespace ein {

/// The numbers, vectors or rows that the CPU adds one after the other before it adds their sum to
/// others: a large sum then takes few additions, and the error stays small.
inline constexpr std::int64_t run_length = 32;

/// Calls `f` with the combination as a constant: one of those that scans and scatters have, which
/// ask nothing of elements.
template <class F>
void visit_combine(Combine combine, F&& f) {
  switch (combine) {
#define EIN_CASE(name, ...)                                       \
  case Combine::name:                                             \
    if constexpr (!info(Combine::name).asks)                      \
      return f(std::integral_constant<Combine, Combine::name>{}); \
    break;
    EIN_FOR_EACH_COMBINE(EIN_CASE)
#undef EIN_CASE
  }
  throw std::logic_error("combine: a combination without a kernel");
}

/// `a` combined with `x`, which comes after it. Integers wrap.
template <Combine combine, class C>
C combined(C a, C x) {
  constexpr ScalarOp op = info(combine).operation;
  static_assert(op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::max ||
                op == ScalarOp::min);
  using Number = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;
  if constexpr (op == ScalarOp::add)
    return static_cast<C>(static_cast<Number>(a) + static_cast<Number>(x));
  if constexpr (op == ScalarOp::mul)
    return static_cast<C>(static_cast<Number>(a) * static_cast<Number>(x));
  if constexpr (op == ScalarOp::max) return a != a || a > x ? a : x;
  if constexpr (op == ScalarOp::min) return a != a || a < x ? a : x;
}

/// A value combined with input `with`.
inline ScalarExpr combined(Combine combine, const ScalarExpr& value, std::size_t with) {
  return Ex::apply(info(combine).operation, Ex::of(value), Ex::input(static_cast<int>(with)));
}

}  // namespace ein
