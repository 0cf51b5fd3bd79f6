// Gradients of parameters beside differences of values.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

namespace ein::test {

/// Expects of each parameter, along a random direction, that the gradient of value(), a tensor
/// without axes, is its central difference.
template <class Value>
void expect_gradients_are_slopes(const nn::Module& module, const Value& value, double tolerance) {
  value().backward();
  const NoGrad no_grad;
  for (const auto& [name, parameter] : module.named_parameters()) {
    SCOPED_TRACE(name);
    const Tensor direction = randn(parameter.shape());
    const double slope = reduce(parameter.grad() * direction, "... ->", "sum").item();
    const Tensor before = parameter.clone();
    const double h = 1e-3;
    parameter.copy_from(before + direction * h);
    const double above = value().item();
    parameter.copy_from(before - direction * h);
    const double below = value().item();
    parameter.copy_from(before);
    EXPECT_NEAR((above - below) / (2 * h), slope, tolerance + 0.02 * std::abs(slope));
  }
}

}  // namespace ein::test
