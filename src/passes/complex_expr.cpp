#include "passes/complex_expr.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include <ein/dtype.hpp>
#include "passes/complex_functions.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// Derivatives beyond the second are those of the formulas.
constexpr int orders = 2;

class Walk {
 public:
  Walk(const ScalarExpr& expr, DType type)
      : expr_(expr),
        functions_(complex_compute_type(expr, type), orders),
        rounds_constants_(type == DType::f32) {}

  ComplexEx run(const std::function<ComplexEx(int)>& input,
                const std::function<void(ScalarOp)>& refuse) {
    for (const ScalarStep& step : expr_.steps) {
      std::optional<Complex> value =
          step.op == ScalarOp::input ? taken(input(step.which)) : applied(step);
      if (!value) {
        refuse(step.op);
        throw std::logic_error("complex_value: nobody refused");
      }
      values_.push_back(*value);
    }
    const Complex& value = values_.back();
    ComplexEx result{formula_.value(value.real.at)};
    if (value.imag) result.imag = formula_.value(value.imag->at);
    return result;
  }

 private:
  Complex taken(const ComplexEx& z) {
    Complex value{real(z.real)};
    if (z.imag) value.imag = real(*z.imag);
    return value;
  }
  Real real(const Ex& x) { return {&formula_, formula_.add(x.expr(), rounds_constants_)}; }

  std::optional<Complex> applied(const ScalarStep& step) {
    const int arity = info(step.op).arity;
    std::vector<Complex> args;
    bool has_complex = false;
    for (int i = 0; i < arity; ++i) {
      args.push_back(values_[static_cast<std::size_t>(step.args[i])]);
      has_complex |= args.back().imag.has_value();
    }
    if (step.op == ScalarOp::where)
      return where(args[0].imag ? is_true(args[0]) : args[0].real, args[1], args[2]);
    if (arity == 0) return Complex{real(Ex::of({{step}}))};
    if (const auto norm = square_of_modulus(step)) return norm;
    if (arity == 1)
      return has_complex ? functions_.of(step.op, args[0]) : Complex{apply(step.op, args[0].real)};
    return has_complex ? functions_.of(step.op, args[0], args[1])
                       : Complex{apply(step.op, args[0].real, args[1].real)};
  }

  /// |z|·|z| as a² + b², which is smooth at 0.
  std::optional<Complex> square_of_modulus(const ScalarStep& step) const {
    if (step.op != ScalarOp::mul || step.args[0] != step.args[1]) return std::nullopt;
    const ScalarStep& root = expr_.steps[static_cast<std::size_t>(step.args[0])];
    if (root.op != ScalarOp::abs) return std::nullopt;
    const Complex& z = values_[static_cast<std::size_t>(root.args[0])];
    if (!z.imag) return std::nullopt;
    return Complex{square(z.real) + square(*z.imag)};
  }

  const ScalarExpr& expr_;
  const ComplexFunctions functions_;
  const bool rounds_constants_;
  Formula formula_;
  std::vector<Complex> values_;
};

}  // namespace

Ex is_true(const ComplexEx& z) {
  const Ex real = Ex::apply(ScalarOp::ne, z.real, Ex(0.0));
  return z.imag ? Ex::apply(ScalarOp::logical_or, real, Ex::apply(ScalarOp::ne, *z.imag, Ex(0.0)))
                : real;
}

DType complex_compute_type(const ScalarExpr& expr, DType type) {
  const auto is_square = [&](const ScalarStep& step) {
    if (step.op != ScalarOp::pow) return false;
    const ScalarStep& exponent = expr.steps[static_cast<std::size_t>(step.args[1])];
    return exponent.op == ScalarOp::constant && exponent.real == 2;
  };
  for (const ScalarStep& step : expr.steps) {
    if (!is_square(step) && type_of_function(step.op, type) != type) return DType::f64;
  }
  return type;
}

ComplexEx complex_value(const ScalarExpr& expr, DType type,
                        const std::function<ComplexEx(int)>& input,
                        const std::function<void(ScalarOp)>& refuse) {
  return Walk(expr, type).run(input, refuse);
}

}  // namespace ein
