// Combinations of two numbers, for kernels that reduce.
#pragma once

#include <limits>
#include <stdexcept>

#include "nest/nest.hpp"

namespace ein::host {

/// The combination of no numbers.
template <class C>
C identity(Combine combine) {
  using Limits = std::numeric_limits<C>;
  switch (combine) {
    case Combine::sum:
    case Combine::any: return C(0);
    case Combine::prod:
    case Combine::all: return C(1);
    case Combine::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Combine::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  throw std::logic_error("combine: unknown combination");
}

/// The operation that combines two.
inline ScalarOp scalar_op(Combine combine) {
  switch (combine) {
    case Combine::sum: return ScalarOp::add;
    case Combine::prod: return ScalarOp::mul;
    case Combine::max: return ScalarOp::max;
    case Combine::min: return ScalarOp::min;
    case Combine::any: return ScalarOp::logical_or;
    case Combine::all: return ScalarOp::logical_and;
  }
  throw std::logic_error("combine: unknown combination");
}

/// A value combined with input `with`.
inline ScalarExpr combined(Combine combine, const ScalarExpr& value, std::size_t with) {
  return Ex::apply(scalar_op(combine), Ex::of(value), Ex::input(static_cast<int>(with)));
}

}  // namespace ein::host
