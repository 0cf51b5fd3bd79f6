// Gradients, gradients of gradients and those of these, against jets.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/ops.hpp>
#include "runtime/trace.hpp"
#include "support/differences.hpp"
#include "support/jet.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {

/// The graph of a function of such tensors; and its inputs behind the arguments.
struct Traced {
  Graph graph;
  Tensors captured;
};
inline Traced traced(const OfTensors& f, const Tensors& inputs) {
  engine::Trace trace;
  Tensors arguments;
  for (const Tensor& x : inputs)
    arguments.push_back(trace.argument(x.detach(), x.shape(), x.strides()));
  const Tensor result = f(arguments);
  Graph graph = trace.finish({&result, 1});
  return {std::move(graph), trace.captured()};
}

inline std::size_t numel_of(const Tensor& x) { return static_cast<std::size_t>(x.numel()); }

/// The gradients of Σ f · weights of one order after the other, each of its sum along a direction
/// of the one before.
inline std::vector<Tensors> orders_of(const OfTensors& f, const Tensors& leaves,
                                      const Tensor& weights, const Tensors& first,
                                      const Tensors& second) {
  std::vector<Tensors> orders{gradients(f(leaves), weights, leaves, true)};
  for (const Tensors* direction : {&first, &second}) {
    std::optional<Tensor> along;
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      const Tensor part = reduce(orders.back()[k] * (*direction)[k], "... ->", "sum");
      along = along ? *along + part : part;
    }
    Tensors next;
    for (const Tensor& leaf : leaves) next.push_back(zeros(leaf.shape(), leaf.dtype()));
    if (along->requires_grad()) next = gradients(*along, leaves, true);
    orders.push_back(std::move(next));
  }
  return orders;
}

struct OrdersCompared {
  int elements = 0;
  std::string wrong;  // the first; empty where nothing is
};
/// Every element of the gradients of the first three orders, along random directions, within
/// `relative` of the terms of the true one. Where that is infinite or NaN, as at the end of a
/// domain, ein's may be anything; and, with `poles`, NaN where a slope on the way is so, though
/// nothing goes there: 0 · NaN (docs/derivatives.md).
inline OrdersCompared compare_orders(const OfTensors& f, const Tensors& inputs,
                                     std::mt19937_64& random, double relative = 1e-6,
                                     bool poles = false) {
  OrdersCompared found;
  Tensors leaves, first, second;
  std::vector<std::vector<Jet>> values;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.clone().requires_grad(true));
    first.push_back(normal_values(random, input.shape()));
    second.push_back(normal_values(random, input.shape()));
    const std::vector<double> x = get_values(input), u = get_values(first.back()),
                              v = get_values(second.back());
    std::vector<Jet>& jets = values.emplace_back();
    for (std::size_t i = 0; i < x.size(); ++i) {
      jets.emplace_back(x[i]);
      jets.back()[1] = u[i];
      jets.back()[2] = v[i];
    }
  }
  const Tensor result = f(leaves);
  if (!result.requires_grad()) return {0, "the history is lost"};
  const Tensor weights = normal_values(random, result.shape());
  const std::vector<Tensors> orders = orders_of(f, leaves, weights, first, second);
  const std::vector<double> by = get_values(weights);
  const Traced forward = traced(f, inputs);
  for (const Tensor& x : forward.captured) {
    std::vector<Jet>& jets = values.emplace_back();
    for (const double value : get_values(x)) jets.emplace_back(value);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    for (std::size_t i = 0; i < numel_of(inputs[k]); ++i) {
      values[k][i][4] = 1;
      Jet::met_pole() = false;
      // Functions that draw begin with manual_seed(3).
      const std::vector<Jet> y = Interpreter<Jet>::run(forward.graph, values, {3, 0}).front();
      values[k][i][4] = 0;
      for (const std::size_t order : {1, 2, 3}) {
        const std::size_t m = order == 1 ? 4 : order == 2 ? 5 : 7;
        Jet::Real want = 0, size = 0;
        for (std::size_t e = 0; e < y.size(); ++e) {
          want += y[e][m] * by[e];
          size += std::abs(y[e][m] * by[e]);
          // A value that is none, or has no slope, has no other either.
          if (!std::isfinite(y[e][4] * y[e][0])) size = NAN;
        }
        if (!std::isfinite(size)) continue;
        const double got = get_values(orders[order - 1][k])[i];
        if (poles && Jet::met_pole() && std::isnan(got)) continue;
        ++found.elements;
        const double most = relative * static_cast<double>(size) + relative * 0.1;
        if (std::abs(static_cast<Jet::Real>(got) - want) <= most || !found.wrong.empty()) continue;
        found.wrong = "order " + std::to_string(order) + ", element " + std::to_string(i) +
                      " of input " + std::to_string(k) + ": " + std::to_string(got) +
                      ", ought to be " + std::to_string(static_cast<double>(want));
      }
    }
  }
  return found;
}

/// Values where functions and their slopes are special, from `low` to `high`: several zeros, equal
/// ones, -1 and 1.
inline Tensor special_values(std::mt19937_64& random, const Shape& shape, double low, double high) {
  std::vector<double> some;
  for (const double value : {0.0, 0.0, 0.0, -1.0, 1.0, 2.0, 0.5}) {
    if (value >= low && value <= high) some.push_back(value);
  }
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = some[random() % some.size()];
  return from_vector(values, shape);
}

}  // namespace ein::test
