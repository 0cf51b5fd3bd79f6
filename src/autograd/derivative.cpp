#include "autograd/derivative.hpp"

#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>

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
Ex select(const Ex& condition, const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::where, condition, a, b); }

Ex normal_density(const Ex& a) {
  return Ex(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * f(ScalarOp::exp, a * a * Ex(-0.5));
}

/// Beyond here gates are 0 or 1, and their densities 0, in every type: products with infinity would be NaN.
constexpr double gates_end = 50;

/// s + x·s·(1 - s) with s = sigmoid(x)
Ex slope_of_silu(const Ex& g, const Ex& a, const Ex& value) {
  const Ex gate = f(ScalarOp::sigmoid, a);
  return product(g, gate + f(ScalarOp::min, value, Ex(gates_end)) * (Ex(1.0) - gate));
}
Ex slope_of_gelu(const Ex& g, const Ex& a) {
  const Ex near = f(ScalarOp::max, f(ScalarOp::min, a, Ex(gates_end)), Ex(-gates_end));
  return product(g, f(ScalarOp::normal_cdf, a) + near * normal_density(a));
}

/// The adjoints of the arguments of one step: argument i gets `out[i]`.
void pull_back(const ScalarStep& step, const Ex& g, const Ex& v, const std::vector<Ex>& args, std::optional<Ex> (&out)[3]) {
  const Ex zero(0.0);
  const Ex& a = args[0];
  const auto b = [&]() -> const Ex& { return args[1]; };
  switch (step.op) {
    case ScalarOp::input:
    case ScalarOp::constant:
    case ScalarOp::index:
    case ScalarOp::uniform:
    case ScalarOp::normal: return;
    case ScalarOp::neg: out[0] = negated(g); return;
    case ScalarOp::abs:
      // A product, so that an infinite slope of what follows, as of a root at 0, gives NaN.
      out[0] = g * select(f(ScalarOp::gt, a, zero), Ex(1.0), select(f(ScalarOp::lt, a, zero), Ex(-1.0), zero));
      return;
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  case ScalarOp::name: out[0] = adjoint; return;
#include <ein/scalar_functions.hpp>
    case ScalarOp::add:
      out[0] = g;
      out[1] = g;
      return;
    case ScalarOp::sub:
      out[0] = g;
      out[1] = negated(g);
      return;
    case ScalarOp::mul:
      out[0] = product(g, b());
      out[1] = product(g, a);
      return;
    case ScalarOp::div:
      out[0] = g / b();
      out[1] = negated(product(g, v) / b());
      return;
    case ScalarOp::pow:
      if (const std::optional<double> n = constant_of(b())) {
        if (*n == 0) return;
        const Ex power = *n == 1 ? Ex(1.0) : *n == 2 ? a : f(ScalarOp::pow, a, Ex(*n - 1));
        out[0] = product(product(g, Ex(*n)), power);
        return;
      }
      // x^0 is 1 and 0^y is 0 without slope, where the formulas would give 0 · inf.
      out[0] = select(f(ScalarOp::eq, b(), zero), zero, product(g, b()) * f(ScalarOp::pow, a, b() - Ex(1.0)));
      out[1] = select(f(ScalarOp::logical_and, f(ScalarOp::eq, a, zero), f(ScalarOp::ge, b(), zero)), zero,
                      product(g, v) * f(ScalarOp::log, a));
      return;
    case ScalarOp::atan2: {  // of (y, x): by the hypotenuse twice, whose square may overflow; at (0, 0) no slope
      const Ex radius = f(ScalarOp::hypot, a, b());
      const auto slope = [&](const Ex& side) { return select(f(ScalarOp::eq, radius, zero), zero, product(g, side / radius) / radius); };
      out[0] = slope(b());
      out[1] = negated(slope(a));
      return;
    }
    case ScalarOp::hypot:
      out[0] = product(g, a / v);
      out[1] = product(g, b() / v);
      return;
    case ScalarOp::remainder:
      out[0] = g;
      out[1] = negated(product(g, f(ScalarOp::floor, a / b())));
      return;
    case ScalarOp::min:
    case ScalarOp::max: {
      // Equal arguments share; a NaN among them goes to both.
      const bool is_min = step.op == ScalarOp::min;
      const Ex shared = select(f(ScalarOp::eq, a, b()), product(g, Ex(0.5)), g);
      out[0] = select(f(is_min ? ScalarOp::gt : ScalarOp::lt, a, b()), zero, shared);
      out[1] = select(f(is_min ? ScalarOp::lt : ScalarOp::gt, a, b()), zero, shared);
      return;
    }
    case ScalarOp::where:
      out[1] = select(a, g, zero);
      out[2] = select(a, zero, g);
      return;
    case ScalarOp::logical_not:
    case ScalarOp::lt:
    case ScalarOp::le:
    case ScalarOp::gt:
    case ScalarOp::ge:
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::shift_left:
    case ScalarOp::shift_right: return;
  }
  throw std::logic_error("derivative: unknown scalar operation");
}

/// The value of each step as an expression of its own.
std::vector<Ex> values_of(const ScalarExpr& expr) {
  std::vector<Ex> values;
  for (std::size_t s = 0; s < expr.steps.size(); ++s) {
    ScalarExpr prefix;
    prefix.steps.assign(expr.steps.begin(), expr.steps.begin() + static_cast<std::ptrdiff_t>(s) + 1);
    values.push_back(Ex::of(prefix));
  }
  return values;
}

}  // namespace

std::vector<ScalarExpr> derivatives(const ScalarExpr& expr, const std::vector<int>& wanted, int cotangent, int value) {
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
