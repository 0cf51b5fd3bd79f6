// Combinations of two numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "nest/nest.hpp"

namespace ein {

/// The numbers, vectors or rows that the CPU adds one after the other before it adds their sum to
/// others: a large sum then takes few additions, and the error stays small.
inline constexpr std::int64_t run_length = 32;

/// The combination of no numbers.
template <class C>
C identity(Combine combine) {
  using Limits = std::numeric_limits<C>;
  switch (combine) {
    case Combine::sum:
    case Combine::any:
      return C(0);
    case Combine::prod:
    case Combine::all:
      return C(1);
    case Combine::max:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Combine::min:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  throw std::logic_error("combine: unknown combination");
}

/// The combination of no elements, as dtype_of<T> holds it.
template <class T>
T nothing(Combine combine) {
  if constexpr (is_floating(dtype_of<T>))
    return convert<T>(identity<double>(combine));
  else
    return identity<T>(combine);
}

/// Calls `f` with the combination as a constant: one of those that scans and scatters have.
template <class F>
void visit_combine(Combine combine, F&& f) {
  switch (combine) {
    case Combine::prod:
      return f(std::integral_constant<Combine, Combine::prod>{});
    case Combine::max:
      return f(std::integral_constant<Combine, Combine::max>{});
    case Combine::min:
      return f(std::integral_constant<Combine, Combine::min>{});
    case Combine::sum:
      return f(std::integral_constant<Combine, Combine::sum>{});
    case Combine::any:
    case Combine::all:
      break;
  }
  throw std::logic_error("combine: a combination without a kernel");
}

/// `a` combined with `x`, which comes after it. Integers wrap.
template <Combine combine, class C>
C combined(C a, C x) {
  using Number = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;
  if constexpr (combine == Combine::sum)
    return static_cast<C>(static_cast<Number>(a) + static_cast<Number>(x));
  if constexpr (combine == Combine::prod)
    return static_cast<C>(static_cast<Number>(a) * static_cast<Number>(x));
  if constexpr (combine == Combine::max) return a != a || a > x ? a : x;
  if constexpr (combine == Combine::min) return a != a || a < x ? a : x;
}

/// The operation that combines two.
inline ScalarOp scalar_op(Combine combine) {
  using enum ScalarOp;
  constexpr ScalarOp ops[] = {add, mul, max, min, logical_or, logical_and};  // as Combine has them
  return ops[static_cast<std::size_t>(combine)];
}

/// A value combined with input `with`.
inline ScalarExpr combined(Combine combine, const ScalarExpr& value, std::size_t with) {
  return Ex::apply(scalar_op(combine), Ex::of(value), Ex::input(static_cast<int>(with)));
}

}  // namespace ein
