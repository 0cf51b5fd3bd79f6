#include "autograd/derivative.hpp"

#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "size/ask.hpp"

namespace ein::autograd {
namespace {

std::optional<double> constant_of(const Ex& e) {
  const auto& steps = e.expr().steps;
  if (steps.size() != 1 || steps[0].op != ScalarOp::constant) return std::nullopt;
  return steps[0].real;
}
bool is_constant(const Ex& e, double value) { return constant_of(e) == value; }

Ex product(const Ex& a, const Ex& b) {
  if (is_constant(a, 1)) return b;
  if (is_constant(b, 1)) return a;
  return a * b;
}
Ex f(ScalarOp op, const Ex& a) { return Ex::apply(op, a); }
Ex f(ScalarOp op, const Ex& a, const Ex& b) { return Ex::apply(op, a, b); }
Ex negated(const Ex& a) { return f(ScalarOp::neg, a); }

Ex normal_density(const Ex& a) {
  return Ex(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * f(ScalarOp::exp, a * a * Ex(-0.5));
}

/// Beyond here gates are 0 or 1, and their densities 0, in every type: products with infinity would
/// be NaN.
constexpr double gates_end = 50;

/// s + x·s·(1 - s) with s = sigmoid(x)
Ex slope_of_silu(const Ex& g, const Ex& a, const Ex& value) {
  const Ex gate = f(ScalarOp::sigmoid, a);
  return product(g, gate + f(ScalarOp::min, value, Ex(gates_end)) * (Ex(1.0) - gate));
}
/// (2 - a²) · the normal density.
Ex slope_of_gelu_slope(const Ex& a) {
  const Ex near = f(ScalarOp::max, f(ScalarOp::min, a, Ex(gates_end)), Ex(-gates_end));
  return (Ex(2.0) - near * near) * normal_density(near);
}

constexpr std::nullopt_t none = std::nullopt;

/// a, or another number where a formula is not taken: its slope is 0 there, and 0 · NaN otherwise.
Ex elsewhere(const Ex& is_not_taken, const Ex& a) { return where(is_not_taken, Ex(1.0), a); }

/// Of a power. x^0 is 1 and 0^y is 0 without slope, where the formulas would give 0 · inf or
/// 0 · NaN.
std::optional<Ex> slope_of_base(const Ex& g, const Ex& a, const Ex& b) {
  if (const std::optional<double> n = constant_of(b)) {
    if (*n == 0) return Ex(0.0);
    const Ex power = *n == 1 ? Ex(1.0) : *n == 2 ? a : f(ScalarOp::pow, a, Ex(*n - 1));
    return product(product(g, Ex(*n)), power);
  }
  // Not wherever b is 0: the slope of this slope along b is not 0 there.
  const Ex zero(0.0);
  const Ex is_none = f(ScalarOp::logical_and, f(ScalarOp::eq, b, zero),
                       f(ScalarOp::logical_not, f(ScalarOp::gt, f(ScalarOp::abs, a), zero)));
  return where(is_none, zero, product(g, b) * f(ScalarOp::pow, elsewhere(is_none, a), b - Ex(1.0)));
}
std::optional<Ex> slope_of_exponent(const Ex& g, const Ex& a, const Ex& b, const Ex& v) {
  if (constant_of(b)) return none;
  const Ex zero(0.0);
  const Ex is_none = f(ScalarOp::logical_and, f(ScalarOp::eq, a, zero), f(ScalarOp::ge, b, zero));
  return where(is_none, zero, product(g, v) * f(ScalarOp::log, elsewhere(is_none, a)));
}

/// Of the angle of a point: by the hypotenuse twice, whose square may overflow; at (0, 0) no slope.
Ex turn(const Ex& g, const Ex& side, const Ex& a, const Ex& b) {
  const Ex zero(0.0);
  const Ex is_origin = f(ScalarOp::logical_and, f(ScalarOp::eq, a, zero), f(ScalarOp::eq, b, zero));
  const Ex radius = f(ScalarOp::hypot, elsewhere(is_origin, a), b);
  return where(is_origin, zero, product(g, side / radius) / radius);
}

/// Of an argument of a minimum or maximum, which `loses` says that it is not. Equal arguments
/// share; a NaN among them goes to both.
Ex chosen(ScalarOp loses, const Ex& g, const Ex& a, const Ex& b) {
  const Ex shared = where(f(ScalarOp::eq, a, b), product(g, Ex(0.5)), g);
  return where(f(loses, a, b), Ex(0.0), shared);
}

/// The adjoints of the arguments of one step: argument i gets `out[i]`.
void pull_back(const ScalarStep& step, const Ex& g, const Ex& v, const std::vector<Ex>& args,
               std::optional<Ex> (&out)[3]) {
  const Ex zero(0.0);
  const Ex& a = args[0];
  switch (step.op) {
    case ScalarOp::input:
    case ScalarOp::constant:
    case ScalarOp::index:
    case ScalarOp::size:
    case ScalarOp::uniform:
    case ScalarOp::normal:
      return;
    case ScalarOp::neg:
      out[0] = negated(g);
      return;
    case ScalarOp::abs:
      // A product, so that an infinite slope of what follows, as of a root at 0, gives NaN.
      out[0] = g * where(f(ScalarOp::gt, a, zero), Ex(1.0),
                         where(f(ScalarOp::lt, a, zero), Ex(-1.0), zero));
      return;
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  case ScalarOp::name:                                     \
    out[0] = adjoint;                                      \
    return;
#include <ein/detail/scalar_functions.hpp>
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  case ScalarOp::name: {                                                                      \
    [[maybe_unused]] const Ex& b = args[1];                                                   \
    out[0] = adjoint_a;                                                                       \
    out[1] = adjoint_b;                                                                       \
    return;                                                                                   \
  }
#include <ein/detail/binary_functions.hpp>
    case ScalarOp::where:
      out[1] = where(a, g, zero);
      out[2] = where(a, zero, g);
      return;
    case ScalarOp::logical_not:
      return;
  }
  throw std::logic_error("derivative: unknown scalar operation");
}

/// The value of each step as an expression of its own.
std::vector<Ex> values_of(const ScalarExpr& expr) {
  std::vector<Ex> values;
  for (std::size_t s = 0; s < expr.steps.size(); ++s) {
    ScalarExpr prefix;
    prefix.steps.assign(expr.steps.begin(),
                        expr.steps.begin() + static_cast<std::ptrdiff_t>(s) + 1);
    values.push_back(Ex::of(prefix));
  }
  return values;
}

}  // namespace

std::vector<ScalarExpr> derivatives(const ScalarExpr& expr, const std::vector<int>& wanted,
                                    int cotangent, int value) {
  std::vector<Ex> values = values_of(expr);
  if (value >= 0) values.back() = Ex::input(value);
  std::vector<std::optional<Ex>> adjoint(expr.steps.size());
  adjoint.back() = Ex::input(cotangent);
  for (std::size_t s = expr.steps.size(); s-- > 0;) {
    const ScalarStep& step = expr.steps[s];
    const int arity = info(step.op).arity;
    if (!adjoint[s] || arity == 0) continue;
    std::vector<Ex> args;
    for (int i = 0; i < arity; ++i) args.push_back(values[static_cast<std::size_t>(step.args[i])]);
    std::optional<Ex> out[3];
    pull_back(step, *adjoint[s], values[s], args, out);
    for (int i = 0; i < arity; ++i) {
      if (!out[i]) continue;
      std::optional<Ex>& sum = adjoint[static_cast<std::size_t>(step.args[i])];
      sum = sum ? *sum + *out[i] : *out[i];
    }
  }
  std::vector<ScalarExpr> result;
  for (int which : wanted) {
    std::optional<Ex> sum;
    for (std::size_t s = 0; s < expr.steps.size(); ++s) {
      const ScalarStep& step = expr.steps[s];
      if (step.op != ScalarOp::input || step.which != which || !adjoint[s]) continue;
      sum = sum ? *sum + *adjoint[s] : *adjoint[s];
    }
    result.push_back(sum ? static_cast<ScalarExpr>(*sum) : ScalarExpr());
  }
  return result;
}

}  // namespace ein::autograd
