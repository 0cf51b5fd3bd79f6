// The reference interpreter: runs a graph in plain loops, straight from its accesses. The oracle of
// every backend; nothing in it is shared with one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include <ein/graph.hpp>
#include "graph/build.hpp"
#include "linalg/reference.hpp"
#include "nest/nest.hpp"
#include "nest/random.hpp"

namespace ein {

/// What the interpreter wants of a number beside arithmetic, comparison and the functions of
/// <cmath>; each is one operation. A type that counts has its own.
namespace reference {
inline double minimum(double a, double b) { return a != a || a < b ? a : b; }
inline double maximum(double a, double b) { return a != a || a > b ? a : b; }
inline double select(double condition, double a, double b) { return condition != 0 ? a : b; }
inline double both(double a, double b) { return a != 0 && b != 0; }
inline double either(double a, double b) { return a != 0 || b != 0; }
inline double is_zero(double a) { return a == 0; }
inline double is_nonzero(double a) { return a != 0; }
inline double negated(double a) { return -a; }
// In extended precision: some libraries' are off by more than 2 units in the last place, and the
// tails are as steep as the errors of their arguments are large.
inline double logistic(double a) {
  return static_cast<double>(1 / (1 + std::exp(-static_cast<long double>(a))));
}
inline double normal_probability(double a) {
  return static_cast<double>(
      std::erfc(-static_cast<long double>(a) / std::numbers::sqrt2_v<long double>) / 2);
}
// At -infinity the limit.
inline double gated(double a) {
  if (a < -800) return -0.0;
  return static_cast<double>(a / (1 + std::exp(-static_cast<long double>(a))));
}
inline double gated_normally(double a) {
  if (a < -50) return -0.0;
  const auto x = static_cast<long double>(a);
  return static_cast<double>(x * std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2);
}
inline double slope_of_gated_normally(double a) {
  if (std::abs(a) > 50) return a > 0 ? 1 : -0.0;
  const auto x = static_cast<long double>(a);
  const long double density = std::exp(x * x / -2) * std::numbers::inv_sqrtpi_v<long double> /
                              std::numbers::sqrt2_v<long double>;
  return static_cast<double>(std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2 + x * density);
}
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  inline double name(double a) { return reference; }
#include <ein/detail/scalar_functions.hpp>
inline double pow(double a, double b) { return std::pow(a, b); }
inline double atan2(double a, double b) { return std::atan2(a, b); }
inline double hypot(double a, double b) { return std::hypot(a, b); }
inline double remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/// The quotient of what fmod leaves, which is whole but for its rounding; as NumPy's.
inline double floor_divide(double a, double b) {
  if (b == 0) return a / b;
  const double r = std::fmod(a, b), quotient = (a - r) / b - (r != 0 && (r < 0) != (b < 0));
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}
inline double logaddexp(double a, double b) {
  const long double most = std::max<long double>(a, b), less = std::min<long double>(a, b);
  if (a == b) return static_cast<double>(most + std::numbers::ln2_v<long double>);
  const double sum = static_cast<double>(most + std::log1p(std::exp(less - most)));
  return std::isnan(a) || std::isnan(b) ? a + b : sum;
}
/// f of two whole numbers.
template <class F>
double on_bits(double a, double b, F f) {
  return static_cast<double>(f(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
}
inline std::int64_t shifted_left(std::int64_t x, std::int64_t by) {
  return by >= 0 && by < 64 ? x << by : 0;
}
inline std::int64_t shifted_right(std::int64_t x, std::int64_t by) {
  return x >> (by >= 0 && by < 64 ? by : 63);
}
inline double normal(double uniform) { return random::normal_of_uniform(uniform); }
inline double value_of(double a) { return a; }
/// A function of one matrix, of numbers that are their values alone.
template <class Number>
std::vector<Number> function_of_matrix(MatrixFunction function, const linalg::MatrixSizes& sizes,
                                       const std::vector<Number>& a, const std::vector<Number>& b) {
  const auto values_of = [](const std::vector<Number>& numbers) {
    std::vector<double> values;
    for (const Number& number : numbers) values.push_back(value_of(number));
    return values;
  };
  std::vector<Number> result;
  for (const double value : linalg::reference(function, sizes, values_of(a), values_of(b)))
    result.emplace_back(value);
  return result;
}
}  // namespace reference

/// Runs `graph` with values of type Number (double, or one that counts what is done to it). Each
/// input and result is a row-major array. Arithmetic is exact Number arithmetic except where a
/// value's dtype is an integer or bool: conversion to it truncates. Random streams of the run begin
/// at `origin`. Positions out of range are an Error of kind `value`. A type that knows rounding may
/// have begin(op), which hears what is computed from now on, loaded(), an element as a map takes
/// it, and stored(dtype), as a result holds it.
template <class Number = double>
class Interpreter {
 public:
  using Values = std::vector<Number>;
  using Point = std::vector<std::int64_t>;

  static std::vector<Values> run(const Graph& graph, std::vector<Values> inputs,
                                 RandomOrigin origin = {}) {
    Interpreter interpreter(graph, std::move(inputs), origin);
    for (std::size_t id = 0; id < graph.ops.size(); ++id) interpreter.run(graph.ops[id]);
    std::vector<Values> results;
    for (ValueId output : graph.outputs)
      results.push_back(interpreter.values_[static_cast<std::size_t>(output)]);
    return results;
  }

  /// What the scalar vocabulary means.
  static Number identity(Combine combine) {
    switch (combine) {
      case Combine::prod:
      case Combine::all:
        return Number(1);
      case Combine::max:
        return Number(-INFINITY);
      case Combine::min:
        return Number(INFINITY);
      default:
        return Number(0);
    }
  }
  /// The combination of no elements, as the dtype holds it.
  static Number nothing(Combine combine, DType dtype) {
    if (combine != Combine::max && combine != Combine::min) return identity(combine);
    return visit(dtype, [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        return Number(static_cast<double>(combine == Combine::max ? Limits::min() : Limits::max()));
      } else {
        return Number(convert<double>(convert<T>(combine == Combine::max ? -INFINITY : INFINITY)));
      }
    });
  }
  /// Element `x` as the combination takes it: any and all first ask whether it differs from zero.
  static Number taken(Combine combine, Number x) {
    using namespace reference;
    return combine == Combine::any || combine == Combine::all ? is_nonzero(x) : x;
  }
  static Number combined(Combine combine, Number acc, Number x) {
    using namespace reference;
    switch (combine) {
      case Combine::sum:
        return acc + x;
      case Combine::prod:
        return acc * x;
      case Combine::max:
      case Combine::any:
        return maximum(acc, x);
      case Combine::min:
      case Combine::all:
        return minimum(acc, x);
    }
    throw std::logic_error("interpreter: unknown combination");
  }

  static Number apply(ScalarOp op, Number a, Number b, Number c) {
    using std::abs;
    using namespace reference;
    switch (op) {
      case ScalarOp::neg:
        return negated(a);
      case ScalarOp::abs:
        return abs(a);
      case ScalarOp::logical_not:
        return is_zero(a);
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  case ScalarOp::name:                                     \
    return name(a);
#include <ein/detail/scalar_functions.hpp>
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  case ScalarOp::name:                                                                        \
    return reference;
#include <ein/detail/binary_functions.hpp>
      case ScalarOp::where:
        return select(a, b, c);
      default:
        throw std::logic_error("interpreter: unknown scalar operation");
    }
  }
  /// At a point of the axes; `position` is of the element, which random numbers depend on.
  static Number evaluate(const ScalarExpr& expr, DType compute, const Values& inputs,
                         const Point& at, std::size_t position, RandomOrigin of_run) {
    using namespace reference;
    Values steps;
    for (const ScalarStep& step : expr.steps) {
      const auto arg = [&](int i) {
        return step.args[i] < 0 ? Number(0) : steps[static_cast<std::size_t>(step.args[i])];
      };
      const auto uniform = [&] {
        const RandomOrigin origin = step.of_run ? of_run : RandomOrigin{step.seed, 0};
        const auto at_position =
            step.args[0] < 0 ? position : static_cast<std::uint64_t>(value_of(arg(0)));
        return Number(random::uniform(origin.seed, origin.stream + step.stream, at_position));
      };
      switch (step.op) {
        case ScalarOp::input:
          steps.push_back(loaded(inputs[static_cast<std::size_t>(step.which)]));
          break;
        case ScalarOp::constant:
          steps.push_back(loaded(Number(step.real)));
          break;
        case ScalarOp::index:
          steps.push_back(Number(static_cast<double>(at[static_cast<std::size_t>(step.which)])));
          break;
        case ScalarOp::uniform:
          steps.push_back(uniform());
          break;
        case ScalarOp::normal:
          steps.push_back(normal(uniform()));
          break;
        default: {
          const bool divides = step.op == ScalarOp::remainder || step.op == ScalarOp::floor_divide;
          const bool divides_by_zero = is_integral(compute) && divides && value_of(arg(1)) == 0;
          steps.push_back(divides_by_zero ? Number(0) : apply(step.op, arg(0), arg(1), arg(2)));
        }
      }
    }
    return steps.back();
  }

  static Number loaded(Number x) {
    if constexpr (requires { x.loaded(); })
      return x.loaded();
    else
      return x;
  }
  static Number stored(DType dtype, Number x) {
    using namespace reference;
    if constexpr (requires { x.stored(dtype); }) return x.stored(dtype);
    if (dtype == DType::boolean) return Number(value_of(x) != 0 ? 1.0 : 0.0);
    return is_integral(dtype) ? Number(std::trunc(value_of(x))) : x;
  }

 private:
  Interpreter(const Graph& graph, std::vector<Values> inputs, RandomOrigin origin)
      : graph_(graph), inputs_(std::move(inputs)), origin_(origin) {}

  /// Dimension `dim`, if not -1, lies `position` further on.
  static std::size_t place(const Access& access, const Shape& shape, const Point& at, int dim = -1,
                           std::int64_t position = 0) {
    std::int64_t linear = 0;
    for (std::size_t d = 0; d < access.size(); ++d) {
      std::int64_t index = access[d].offset;
      if (static_cast<int>(d) == dim) index += position;
      for (const DimIndex::Term& term : access[d].terms)
        index += term.coefficient * at[static_cast<std::size_t>(term.axis)];
      linear = linear * shape[d] + index;
    }
    return static_cast<std::size_t>(linear);
  }

  static bool is_inside(const Access& access, const Shape& shape, const Point& at) {
    for (std::size_t d = 0; d < access.size(); ++d) {
      std::int64_t index = access[d].offset;
      for (const DimIndex::Term& term : access[d].terms)
        index += term.coefficient * at[static_cast<std::size_t>(term.axis)];
      if (index < 0 || index >= shape[d]) return false;
    }
    return true;
  }
  /// Whether a contraction or reduction takes this tuple.
  bool takes(const Op& op, const Point& at) const {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!is_inside(op.reads[i], graph_.op(op.inputs[i]).shape, at)) return false;
    }
    return is_inside(op.write, op.shape, at);
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

  void run(const Op& op) {
    if constexpr (requires { Number::begin(op); }) Number::begin(op);
    const std::size_t count = op.inputs.size();
    switch (op.kind) {
      case OpKind::concat:
        return concat(op);
      case OpKind::gather:
      case OpKind::scatter:
        return gather_or_scatter(op);
      case OpKind::scan:
        return scan(op);
      case OpKind::argsort:
        return argsort(op);
      case OpKind::matrix:
        return matrix(op);
      default:
        break;
    }
    if (op.kind == OpKind::input) {
      values_.push_back(std::move(inputs_.at(next_input_++)));
      return;
    }
    std::vector<const Values*> inputs(count);
    for (std::size_t i = 0; i < count; ++i)
      inputs[i] = &values_[static_cast<std::size_t>(op.inputs[i])];
    if constexpr (requires { Number::read(op, inputs); }) Number::read(op, inputs);
    const bool reduces = op.kind == OpKind::reduce || op.kind == OpKind::contract;
    const Combine combine = op.kind == OpKind::reduce ? op.combine : Combine::sum;
    Values result(static_cast<std::size_t>(numel(op.shape)),
                  reduces ? identity(combine) : Number(0));
    if (op.kind == OpKind::place && count > 1) result = *inputs[1];
    const bool is_moved = op.kind == OpKind::place && is_at_position(op);
    // The first value of a combination is taken as it is, so that K values cost K - 1 combinations.
    std::vector<char> begun(result.size(), 0);
    const auto combine_into = [&](std::size_t position, Number x) {
      x = taken(combine, x);
      result[position] = begun[position] ? combined(combine, result[position], x) : x;
      begun[position] = 1;
    };
    Values at_point(count);
    for_each_point(op.axes, [&](const Point& at) {
      if (reduces && !takes(op, at)) return;
      for (std::size_t i = 0; i < count; ++i) {
        at_point[i] = (*inputs[i])[place(op.reads[i], graph_.op(op.inputs[i]).shape, at)];
      }
      const std::size_t position =
          is_moved ? place(op.write, op.shape, at, op.dim, position_of(op, op.write, op.shape, at))
                   : place(op.write, op.shape, at);
      switch (op.kind) {
        case OpKind::place:
        case OpKind::reindex:
        case OpKind::reshard:
          result[position] = at_point[0];
          break;
        case OpKind::map:
          result[position] = evaluate(op.expr, op.compute, at_point, at, position, origin_);
          break;
        case OpKind::reduce:
          combine_into(position, at_point[0]);
          break;
        case OpKind::contract: {
          Number product = at_point[0];
          for (std::size_t i = 1; i < count; ++i) product = product * at_point[i];
          combine_into(position, product);
          break;
        }
        default:
          throw std::logic_error("interpreter: unknown operation");
      }
    });
    if (reduces || op.kind == OpKind::map) {
      for (Number& x : result) x = stored(op.dtype, x);
    }
    values_.push_back(std::move(result));
  }

  const Values& input(const Op& op, std::size_t i) const {
    return values_[static_cast<std::size_t>(op.inputs[i])];
  }
  const Shape& input_shape(const Op& op, std::size_t i) const {
    return graph_.op(op.inputs[i]).shape;
  }

  /// By how much an access to a value of `shape` is moved along dimension op.dim.
  std::int64_t position_of(const Op& op, const Access& access, const Shape& shape,
                           const Point& at) const {
    using namespace reference;
    const std::size_t last = op.inputs.size() - 1;
    const auto position = static_cast<std::int64_t>(
        value_of(input(op, last)[place(op.reads[last], input_shape(op, last), at)]));
    const auto dim = static_cast<std::size_t>(op.dim);
    const std::int64_t positions = shape[dim] - length_of(access[dim], op.axes) + 1;
    if (position < 0 || position >= positions) {
      throw Error(ErrorKind::value, "interpreter: position " + std::to_string(position) +
                                        " is outside of " + std::to_string(positions) +
                                        " positions");
    }
    return position;
  }

  void gather_or_scatter(const Op& op) {
    using namespace reference;
    const bool gathers = op.kind == OpKind::gather;
    Values result(static_cast<std::size_t>(numel(op.shape)),
                  gathers ? Number(0) : nothing(op.combine, op.dtype));
    for_each_point(op.axes, [&](const Point& at) {
      const std::int64_t position = gathers ? position_of(op, op.reads[0], input_shape(op, 0), at)
                                            : position_of(op, op.write, op.shape, at);
      if (gathers) {
        result[place(op.write, op.shape, at)] =
            input(op, 0)[place(op.reads[0], input_shape(op, 0), at, op.dim, position)];
      } else {
        Number& total = result[place(op.write, op.shape, at, op.dim, position)];
        total =
            combined(op.combine, total, input(op, 0)[place(op.reads[0], input_shape(op, 0), at)]);
      }
    });
    if (!gathers) {
      for (Number& x : result) x = stored(op.dtype, x);
    }
    values_.push_back(std::move(result));
  }

  /// Calls f(point) for the first point of each line along op.axis.
  template <class F>
  static void for_each_line(const Op& op, F&& f) {
    std::vector<Axis> axes = op.axes;
    Axis& along = axes[static_cast<std::size_t>(op.axis)];
    along.size = std::min<std::int64_t>(along.size, 1);
    for_each_point(axes, f);
  }

  void scan(const Op& op) {
    Values result(static_cast<std::size_t>(numel(op.shape)), Number(0));
    const auto axis = static_cast<std::size_t>(op.axis);
    const std::int64_t size = op.axes[axis].size;
    for_each_line(op, [&](Point at) {
      Number sum(0);
      for (std::int64_t i = 0; i < size; ++i) {
        at[axis] = op.reverse ? size - 1 - i : i;
        const Number x = input(op, 0)[place(op.reads[0], input_shape(op, 0), at)];
        const auto carried = [&] {
          return op.inputs.size() == 1
                     ? sum
                     : sum * input(op, 1)[place(op.reads[1], input_shape(op, 1), at)];
        };
        sum = i == 0 ? x : combined(op.combine, carried(), x);
        result[place(op.write, op.shape, at)] = stored(op.dtype, sum);
      }
    });
    values_.push_back(std::move(result));
  }

  void argsort(const Op& op) {
    using namespace reference;
    Values result(static_cast<std::size_t>(numel(op.shape)), Number(0));
    const auto axis = static_cast<std::size_t>(op.axis);
    const std::int64_t size = op.axes[axis].size;
    for_each_line(op, [&](Point at) {
      std::vector<std::pair<double, std::int64_t>> line;
      for (at[axis] = 0; at[axis] < size; ++at[axis]) {
        line.emplace_back(value_of(input(op, 0)[place(op.reads[0], input_shape(op, 0), at)]),
                          at[axis]);
      }
      const auto is_less = [](double a, double b) {
        return !std::isnan(a) && (std::isnan(b) || a < b);
      };
      std::sort(line.begin(), line.end(), [&](const auto& a, const auto& b) {
        if (is_less(a.first, b.first)) return !op.reverse;
        if (is_less(b.first, a.first)) return op.reverse;
        return a.second < b.second;
      });
      for (at[axis] = 0; at[axis] < size; ++at[axis]) {
        const auto place_of = static_cast<double>(line[static_cast<std::size_t>(at[axis])].second);
        result[place(op.write, op.shape, at)] = Number(place_of);
      }
    });
    values_.push_back(std::move(result));
  }

  void matrix(const Op& op) {
    using namespace reference;
    Values result(static_cast<std::size_t>(numel(op.shape)), Number(0));
    const auto axes_of = [&](MatrixAxis role) {  // those of others have one index
      std::vector<Axis> axes = op.axes;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        if (op.roles[a] != role) axes[a].size = 1;
      }
      return axes;
    };
    const auto axis_of = [&](MatrixAxis role) {
      return static_cast<std::size_t>(std::find(op.roles.begin(), op.roles.end(), role) -
                                      op.roles.begin());
    };
    const std::size_t rows = axis_of(MatrixAxis::rows), columns = axis_of(MatrixAxis::columns);
    linalg::MatrixSizes sizes{op.axes[rows].size, op.axes[columns].size, 0};
    std::vector<Point> right;
    if (op.inputs.size() > 1)
      for_each_point(axes_of(MatrixAxis::right), [&](const Point& at) { right.push_back(at); });
    sizes.right = static_cast<std::int64_t>(right.size());
    const auto [outer, inner] = linalg::result_axes(op.function);
    for_each_point(axes_of(MatrixAxis::batch), [&](Point at) {
      const auto element = [&](std::size_t i) {
        return input(op, i)[place(op.reads[i], input_shape(op, i), at)];
      };
      Values a, b;
      for (at[rows] = 0; at[rows] < sizes.rows; ++at[rows]) {
        for (at[columns] = 0; at[columns] < sizes.columns; ++at[columns]) a.push_back(element(0));
        at[columns] = 0;
        for (const Point& point : right) {
          Point all = at;
          for (std::size_t axis = 0; axis < all.size(); ++axis) all[axis] += point[axis];
          std::swap(all, at);
          b.push_back(element(1));
          std::swap(all, at);
        }
      }
      at[rows] = 0;
      const Values values = function_of_matrix(op.function, sizes, a, b);
      const std::int64_t inner_size = linalg::size_along(op.function, sizes, inner);
      for (std::int64_t e = 0; e < static_cast<std::int64_t>(values.size()); ++e) {
        Point all = at;
        const auto put = [&](MatrixAxis role, std::int64_t index) {
          if (role == MatrixAxis::right) {
            for (std::size_t axis = 0; axis < all.size(); ++axis)
              all[axis] += right[static_cast<std::size_t>(index)][axis];
          } else if (role != MatrixAxis::batch) {
            all[axis_of(role)] = index;
          }
        };
        put(outer, e / inner_size);
        put(inner, e % inner_size);
        result[place(op.write, op.shape, all)] =
            stored(op.dtype, values[static_cast<std::size_t>(e)]);
      }
    });
    values_.push_back(std::move(result));
  }

  void concat(const Op& op) {
    const auto dim = static_cast<std::size_t>(op.dim);
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < dim; ++d) outer *= op.shape[d];
    Values result;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (ValueId input : op.inputs) {
        const Values& part = values_[static_cast<std::size_t>(input)];
        const auto run =
            static_cast<std::ptrdiff_t>(part.size()) / std::max<std::int64_t>(outer, 1);
        result.insert(result.end(), part.begin() + o * run, part.begin() + (o + 1) * run);
      }
    }
    values_.push_back(std::move(result));
  }

  const Graph& graph_;
  std::vector<Values> inputs_;
  RandomOrigin origin_;
  std::size_t next_input_ = 0;
  std::vector<Values> values_;
};

extern template class Interpreter<double>;  // in interpret.cpp

}  // namespace ein
