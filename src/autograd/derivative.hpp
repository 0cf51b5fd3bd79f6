// Derivatives of scalar expressions.
#pragma once

#include <vector>

#include <ein/scalar_expr.hpp>

namespace ein::autograd {

/// cotangent · ∂ expr / ∂ x for each x of `wanted` inputs, where the cotangent is input number
/// `cotangent`. An empty expression where the derivative is 0 everywhere. `value`, if not negative,
/// is an input that holds expr's own value, to be used where that is part of a derivative, as in
/// exp's. At a kink the result is one of the one-sided ones: at equal arguments the derivative of
/// min and max goes to the second.
std::vector<ScalarExpr> derivatives(const ScalarExpr& expr, const std::vector<int>& wanted,
                                    int cotangent, int value = -1);

}  // namespace ein::autograd
