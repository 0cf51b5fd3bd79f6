// Steps of expressions in double precision, for tests of what computes them.
#pragma once

#include <cmath>
#include <stdexcept>

#include <ein/scalar_expr.hpp>
#include "oracle/interpret.hpp"

namespace ein::test {

/// One step of an expression in double precision.
inline double apply_exactly(ScalarOp op, double a, double b, double c) {
  using namespace reference;
  using Number = double;
  switch (op) {
    case ScalarOp::neg:
      return -a;
    case ScalarOp::abs:
      return std::abs(a);
#define EIN_FUNCTION(name, exact, host, adjoint, cuda) \
  case ScalarOp::name:                                 \
    return reference::name(a);
#include <ein/detail/scalar_functions.hpp>
    case ScalarOp::logical_not:
      return a == 0;
#define EIN_BINARY(name, text, cost, function, result, exact, host, adjoint_a, adjoint_b, cuda) \
  case ScalarOp::name:                                                                          \
    return exact;
#include <ein/detail/binary_functions.hpp>
    case ScalarOp::where:
      return a != 0 ? b : c;
    default:
      throw std::logic_error("no such step here");
  }
}

}  // namespace ein::test
