// The reference interpreter: runs a graph in plain loops, straight from its accesses. The oracle of
// every backend; nothing in it is shared with one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <ein/graph.hpp>
#include "nest/random.hpp"

namespace ein {

/// Runs `graph` with values of type Number (double, or one that counts what is done to it). Each input and
/// result is a row-major array. Arithmetic is exact Number arithmetic except where a value's dtype is an
/// integer or bool: conversion to it truncates.
template <class Number = double>
class Interpreter {
 public:
  using Values = std::vector<Number>;

  static std::vector<Values> run(const Graph& graph, std::vector<Values> inputs) {
    Interpreter interpreter(graph, std::move(inputs));
    for (std::size_t id = 0; id < graph.ops.size(); ++id) interpreter.run(graph.ops[id]);
    std::vector<Values> results;
    for (ValueId output : graph.outputs) results.push_back(interpreter.values_[static_cast<std::size_t>(output)]);
    return results;
  }

 private:
  Interpreter(const Graph& graph, std::vector<Values> inputs) : graph_(graph), inputs_(std::move(inputs)) {}

  using Point = std::vector<std::int64_t>;

  static std::size_t place(const Access& access, const Shape& shape, const Point& at) {
    std::int64_t linear = 0;
    for (std::size_t d = 0; d < access.size(); ++d) {
      std::int64_t index = access[d].offset;
      for (const DimIndex::Term& term : access[d].terms) index += term.coefficient * at[static_cast<std::size_t>(term.axis)];
      linear = linear * shape[d] + index;
    }
    return static_cast<std::size_t>(linear);
  }

  template <class F>
  static void for_each_point(const std::vector<Axis>& axes, F&& f) {
    Point at(axes.size(), 0);
    for (const Axis& axis : axes) {
      if (axis.size == 0) return;
    }
    for (;;) {
      f(at);
      std::size_t a = axes.size();
      while (a > 0 && ++at[a - 1] == axes[a - 1].size) at[--a] = 0;
      if (a == 0) return;
    }
  }

  static Number identity(Combine combine) {
    switch (combine) {
      case Combine::prod:
      case Combine::all: return Number(1);
      case Combine::max: return Number(-INFINITY);
      case Combine::min: return Number(INFINITY);
      default: return Number(0);
    }
  }
  static Number combined(Combine combine, Number acc, Number x) {
    switch (combine) {
      case Combine::sum: return acc + x;
      case Combine::prod: return acc * x;
      case Combine::max: return apply(ScalarOp::max, acc, x, x);
      case Combine::min: return apply(ScalarOp::min, acc, x, x);
      case Combine::any: return Number(acc != Number(0) || x != Number(0));
      case Combine::all: return Number(acc != Number(0) && x != Number(0));
    }
    throw std::logic_error("interpreter: unknown combination");
  }

  static Number apply(ScalarOp op, Number a, Number b, Number c) {
    using std::abs, std::sqrt, std::exp, std::log, std::tanh, std::erf, std::pow;
    switch (op) {
      case ScalarOp::neg: return -a;
      case ScalarOp::abs: return abs(a);
      case ScalarOp::sqrt: return sqrt(a);
      case ScalarOp::rsqrt: return Number(1) / sqrt(a);
      case ScalarOp::exp: return exp(a);
      case ScalarOp::log: return log(a);
      case ScalarOp::tanh: return tanh(a);
      case ScalarOp::erf: return erf(a);
      case ScalarOp::logical_not: return Number(a == Number(0));
      case ScalarOp::normal_quantile: return Number(random::normal_quantile(static_cast<double>(a)));
      case ScalarOp::add: return a + b;
      case ScalarOp::sub: return a - b;
      case ScalarOp::mul: return a * b;
      case ScalarOp::div: return a / b;
      case ScalarOp::pow: return pow(a, b);
      case ScalarOp::min: return a != a ? a : b != b ? b : a < b ? a : b;
      case ScalarOp::max: return a != a ? a : b != b ? b : a > b ? a : b;
      case ScalarOp::lt: return Number(a < b);
      case ScalarOp::le: return Number(a <= b);
      case ScalarOp::gt: return Number(a > b);
      case ScalarOp::ge: return Number(a >= b);
      case ScalarOp::eq: return Number(a == b);
      case ScalarOp::ne: return Number(a != b);
      case ScalarOp::logical_and: return Number(a != Number(0) && b != Number(0));
      case ScalarOp::logical_or: return Number(a != Number(0) || b != Number(0));
      case ScalarOp::where: return a != Number(0) ? b : c;
      default: throw std::logic_error("interpreter: unknown scalar operation");
    }
  }

  static Number evaluate(const ScalarExpr& expr, const Values& inputs, const Point& at, std::size_t position) {
    Values steps;
    for (const ScalarStep& step : expr.steps) {
      const auto arg = [&](int i) { return step.args[i] < 0 ? Number(0) : steps[static_cast<std::size_t>(step.args[i])]; };
      switch (step.op) {
        case ScalarOp::input: steps.push_back(inputs[static_cast<std::size_t>(step.which)]); break;
        case ScalarOp::constant: steps.push_back(Number(step.real)); break;
        case ScalarOp::index: steps.push_back(Number(static_cast<double>(at[static_cast<std::size_t>(step.which)]))); break;
        case ScalarOp::uniform: steps.push_back(Number(random::uniform(step.seed, step.stream, position))); break;
        case ScalarOp::normal:
          steps.push_back(Number(random::normal_of_uniform(random::uniform(step.seed, step.stream, position))));
          break;
        default: steps.push_back(apply(step.op, arg(0), arg(1), arg(2)));
      }
    }
    return steps.back();
  }

  static Number stored(DType dtype, Number x) {
    if (dtype == DType::boolean) return Number(x != Number(0));
    if (is_integral(dtype)) return Number(std::trunc(static_cast<double>(x)));
    return x;
  }

  void run(const Op& op) {
    const std::size_t count = op.inputs.size();
    if (op.kind == OpKind::concat) return concat(op);
    if (op.kind == OpKind::input) {
      values_.push_back(std::move(inputs_.at(next_input_++)));
      return;
    }
    std::vector<const Values*> inputs(count);
    for (std::size_t i = 0; i < count; ++i) inputs[i] = &values_[static_cast<std::size_t>(op.inputs[i])];
    const bool reduces = op.kind == OpKind::reduce || op.kind == OpKind::contract;
    Values result(static_cast<std::size_t>(numel(op.shape)),
                  op.kind == OpKind::reduce ? identity(op.combine) : Number(0));
    Values at_point(count);
    for_each_point(op.axes, [&](const Point& at) {
      for (std::size_t i = 0; i < count; ++i) {
        at_point[i] = (*inputs[i])[place(op.reads[i], graph_.op(op.inputs[i]).shape, at)];
      }
      const std::size_t position = place(op.write, op.shape, at);
      Number& to = result[position];
      switch (op.kind) {
        case OpKind::reindex: to = at_point[0]; break;
        case OpKind::map: to = evaluate(op.expr, at_point, at, position); break;
        case OpKind::reduce: to = combined(op.combine, to, at_point[0]); break;
        case OpKind::contract: {
          Number product = at_point[0];
          for (std::size_t i = 1; i < count; ++i) product = product * at_point[i];
          to = to + product;
          break;
        }
        default: throw std::logic_error("interpreter: unknown operation");
      }
    });
    if (reduces || op.kind == OpKind::map) {
      for (Number& x : result) x = stored(op.dtype, x);
    }
    values_.push_back(std::move(result));
  }

  void concat(const Op& op) {
    const auto dim = static_cast<std::size_t>(op.concat_dim);
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < dim; ++d) outer *= op.shape[d];
    Values result;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (ValueId input : op.inputs) {
        const Values& part = values_[static_cast<std::size_t>(input)];
        const auto run = static_cast<std::ptrdiff_t>(part.size()) / std::max<std::int64_t>(outer, 1);
        result.insert(result.end(), part.begin() + o * run, part.begin() + (o + 1) * run);
      }
    }
    values_.push_back(std::move(result));
  }

  const Graph& graph_;
  std::vector<Values> inputs_;
  std::size_t next_input_ = 0;
  std::vector<Values> values_;
};

}  // namespace ein
