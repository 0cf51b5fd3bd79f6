// Gradients against central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/create.hpp>

namespace ein::test {

using Tensors = std::vector<Tensor>;
using OfTensors = std::function<Tensor(const Tensors&)>;

/// Values between low and high that differ from each other, and whose differences are not equal.
inline Tensor spread_values(std::mt19937_64& random, const Shape& shape, double low, double high) {
  const auto count = static_cast<std::size_t>(numel(shape));
  std::vector<double> values(count);
  const double gap = (high - low) / static_cast<double>(count + 1);
  std::uniform_real_distribution<double> jitter(0.8, 1.2);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = low + gap * (static_cast<double>(i) + jitter(random));
  std::shuffle(values.begin(), values.end(), random);
  return from_vector(values, shape);
}

inline Tensor normal_values(std::mt19937_64& random, const Shape& shape) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = normal(random);
  return from_vector(values, shape);
}

inline double inner_product(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

/// d f(t) / dt at 0 from four points; the error is of order h⁴.
template <class F>
double central_difference(F&& f, double h) {
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

inline constexpr double relative_error = 1e-6;

/// Every element of the gradients of Σ f(inputs) · cotangent, for a random cotangent.
inline void expect_gradients(const OfTensors& f, const Tensors& inputs, std::mt19937_64& random) {
  Tensors leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad(true));
  const Tensor result = f(leaves);
  ASSERT_EQ(result.dtype(), DType::f64);
  const Tensor cotangent = normal_values(random, result.shape());
  const Tensors found = gradients(result, cotangent, leaves);
  const NoGrad no_grad;
  const double size = std::abs(inner_product(result.detach(), cotangent)) + 1e-3;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    ASSERT_EQ(found[k].shape(), inputs[k].shape());
    const std::vector<double> gradient = found[k].to_vector<double>();
    const Tensor changed = inputs[k].clone();
    double* elements = changed.data<double>();
    Tensors arguments = inputs;
    arguments[k] = changed;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double middle = elements[i];
      const double difference = central_difference(
          [&](double t) {
            elements[i] = middle + t;
            return inner_product(f(arguments), cotangent);
          },
          5e-4);
      elements[i] = middle;
      EXPECT_NEAR(gradient[i], difference, relative_error * std::abs(difference) + 1e-10 * size)
          << "element " << i << " of input " << k;
    }
  }
}

}  // namespace ein::test
