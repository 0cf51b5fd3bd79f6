// Steps of expressions in double precision, for tests of what computes them.
#pragma once

#include <cmath>
#include <stdexcept>

#include <ein/scalar_expr.hpp>
#include "nest/interpret.hpp"

namespace ein::test {

/// One step of an expression in double precision.
inline double apply_exactly(ScalarOp op, double a, double b, double c) {
  switch (op) {
    case ScalarOp::neg: return -a;
    case ScalarOp::abs: return std::abs(a);
#define EIN_FUNCTION(name, exact, host, adjoint, cuda) \
  case ScalarOp::name: return reference::name(a);
#include <ein/scalar_functions.hpp>
    case ScalarOp::logical_not: return a == 0;
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    case ScalarOp::min: return std::isnan(a) || a < b ? a : b;
    case ScalarOp::max: return std::isnan(a) || a > b ? a : b;
    case ScalarOp::lt: return a < b;
    case ScalarOp::le: return a <= b;
    case ScalarOp::gt: return a > b;
    case ScalarOp::ge: return a >= b;
    case ScalarOp::eq: return a == b;
    case ScalarOp::ne: return a != b;
    case ScalarOp::logical_and: return a != 0 && b != 0;
    case ScalarOp::logical_or: return a != 0 || b != 0;
    case ScalarOp::where: return a != 0 ? b : c;
    default: throw std::logic_error("no such step here");
  }
}

}  // namespace ein::test
