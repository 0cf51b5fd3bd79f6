#include "passes/complex_expr.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

namespace ein {
namespace {

using Complex = ComplexEx;

Ex f(ScalarOp op, const Ex& a) { return Ex::apply(op, a); }
Ex f(ScalarOp op, const Ex& a, const Ex& b) { return Ex::apply(op, a, b); }
Ex negated(const Ex& a) { return f(ScalarOp::neg, a); }
Ex square(const Ex& a) { return a * a; }
Ex is_zero(const Ex& a) { return f(ScalarOp::eq, a, Ex(0.0)); }

Ex imag_of(const Complex& z) { return z.imag.value_or(Ex(0.0)); }

Complex operator-(const Complex& z) {
  Complex value{negated(z.real)};
  if (z.imag) value.imag = negated(*z.imag);
  return value;
}
Complex operator+(const Complex& z, const Complex& w) {
  Complex sum{z.real + w.real};
  if (z.imag && w.imag)
    sum.imag = *z.imag + *w.imag;
  else if (z.imag || w.imag)
    sum.imag = z.imag ? z.imag : w.imag;
  return sum;
}
Complex operator-(const Complex& z, const Complex& w) {
  Complex difference{z.real - w.real};
  if (z.imag && w.imag)
    difference.imag = *z.imag - *w.imag;
  else if (z.imag || w.imag)
    difference.imag = z.imag ? *z.imag : negated(*w.imag);
  return difference;
}
Complex operator*(const Complex& z, const Complex& w) {
  if (!z.imag) {
    Complex product{z.real * w.real};
    if (w.imag) product.imag = z.real * *w.imag;
    return product;
  }
  if (!w.imag) return w * z;
  return {z.real * w.real - *z.imag * *w.imag, z.real * *w.imag + *z.imag * w.real};
}
Complex operator/(const Complex& z, const Complex& w) {
  if (!w.imag) {
    Complex quotient{z.real / w.real};
    if (z.imag) quotient.imag = *z.imag / w.real;
    return quotient;
  }
  // By the larger part of w first, so that squares do not overflow. Of w = 0 that is 1, so that
  // the parts of z are divided by 0.
  const Ex size = f(ScalarOp::max, f(ScalarOp::abs, w.real), f(ScalarOp::abs, *w.imag));
  const Ex by = where(is_zero(size), Ex(1.0), size);
  const Ex c = where(is_zero(size), Ex(1.0), w.real / by), d = *w.imag / by;
  const Ex norm = (square(c) + square(d)) * size;
  const Complex above = z * Complex{c, negated(d)};
  return {above.real / norm, imag_of(above) / norm};
}

Complex times_i(const Complex& z) { return {negated(imag_of(z)), z.real}; }

Ex modulus(const Complex& z) {
  if (!z.imag) return f(ScalarOp::abs, z.real);
  // The slope of 0 is 0, where that of the hypotenuse would be 0 / 0.
  const Ex none = f(ScalarOp::logical_and, is_zero(z.real), is_zero(*z.imag));
  return where(none, Ex(0.0), f(ScalarOp::hypot, where(none, Ex(1.0), z.real), *z.imag));
}
Ex angle(const Complex& z) { return f(ScalarOp::atan2, imag_of(z), z.real); }

/// r·(cos b + i·sin b); of b = 0 the imaginary part is 0, also where r is infinite.
Complex on_circle(const Ex& r, const Ex& b) {
  return {r * f(ScalarOp::cos, b), where(is_zero(b), b, r * f(ScalarOp::sin, b))};
}

Complex exp(const Complex& z) {
  const Ex r = f(ScalarOp::exp, z.real);
  return z.imag ? on_circle(r, *z.imag) : Complex{r};
}
/// exp(a)·cos b - 1 = expm1(a)·cos b - 2·sin²(b / 2)
Complex expm1(const Complex& z) {
  const Ex b = imag_of(z);
  const Ex real = f(ScalarOp::expm1, z.real) * f(ScalarOp::cos, b) -
                  Ex(2.0) * square(f(ScalarOp::sin, b * Ex(0.5)));
  return {real, f(ScalarOp::exp, z.real) * f(ScalarOp::sin, b)};
}
Complex log(const Complex& z) { return {f(ScalarOp::log, modulus(z)), angle(z)}; }
/// |1 + z|² = 1 + a·(2 + a) + b²
Complex log1p(const Complex& z) {
  const Ex b = imag_of(z);
  const Ex more = z.real * (Ex(2.0) + z.real) + square(b);
  return {Ex(0.5) * f(ScalarOp::log1p, more), f(ScalarOp::atan2, b, Ex(1.0) + z.real)};
}

/// With t = √((|z| + |a|) / 2): t + i·b / 2t on the right, |b| / 2t ± i·t on the left.
Complex sqrt(const Complex& z) {
  const Ex b = imag_of(z);
  const Ex t = f(ScalarOp::sqrt, (modulus(z) + f(ScalarOp::abs, z.real)) * Ex(0.5));
  const Ex other = where(is_zero(t), b, b / (t + t));
  // -0 is below the cut as well.
  const Ex is_below =
      f(ScalarOp::logical_or, f(ScalarOp::lt, b, Ex(0.0)), f(ScalarOp::lt, Ex(1.0) / b, Ex(0.0)));
  const Ex is_right = f(ScalarOp::ge, z.real, Ex(0.0));
  return {where(is_right, t, f(ScalarOp::abs, other)),
          where(is_right, other, where(is_below, negated(t), t))};
}

Complex sinh(const Complex& z) {
  const Ex b = imag_of(z);
  return {f(ScalarOp::sinh, z.real) * f(ScalarOp::cos, b),
          f(ScalarOp::cosh, z.real) * f(ScalarOp::sin, b)};
}
Complex cosh(const Complex& z) {
  const Ex b = imag_of(z);
  return {f(ScalarOp::cosh, z.real) * f(ScalarOp::cos, b),
          f(ScalarOp::sinh, z.real) * f(ScalarOp::sin, b)};
}
/// (h + i·t) / (1 + i·h·t) with h = tanh a, t = tan b.
Complex tanh(const Complex& z) {
  const Ex h = f(ScalarOp::tanh, z.real), t = f(ScalarOp::tan, imag_of(z));
  const Ex one(1.0), norm = one + square(h * t);
  return {h * (one + square(t)) / norm, t * (one - square(h)) / norm};
}

// -i·f(i·z) for the functions of an angle.
Complex minus_times_i(const Complex& z) { return {imag_of(z), negated(z.real)}; }
Complex sin(const Complex& z) { return minus_times_i(sinh(times_i(z))); }
Complex cos(const Complex& z) { return cosh(times_i(z)); }
Complex tan(const Complex& z) { return minus_times_i(tanh(times_i(z))); }

/// -i·log(i·z + √(1 - z)·√(1 + z))
Complex asin(const Complex& z) {
  const Complex one{Ex(1.0), Ex(0.0)};
  return minus_times_i(log(times_i(z) + sqrt(one - z) * sqrt(one + z)));
}
Complex acos(const Complex& z) { return Complex{Ex(std::numbers::pi / 2)} - asin(z); }
/// (log1p(i·z) - log1p(-i·z)) / 2i
Complex atan(const Complex& z) {
  const Complex right = log1p(times_i(z)), left = log1p(-times_i(z));
  return minus_times_i(Complex{Ex(0.5)} * (right - left));
}

Complex sigmoid(const Complex& z) { return Complex{Ex(1.0)} / (Complex{Ex(1.0)} + exp(-z)); }

std::optional<double> constant_of(const Complex& z) {
  const auto& steps = z.real.expr().steps;
  if (z.imag || steps.size() != 1 || steps[0].op != ScalarOp::constant) return std::nullopt;
  return steps[0].real;
}

/// By multiplications for small whole exponents, else exp(w·log z). Of z = 0 it is 0 where the real
/// part of w is positive, 1 for w = 0, else NaN, as in NumPy.
Complex pow(const Complex& z, const Complex& w) {
  const Ex vanishes = f(ScalarOp::logical_not, is_true(z));
  const Ex nan(std::numeric_limits<double>::quiet_NaN());
  const std::optional<double> n = constant_of(w);
  if (n && std::trunc(*n) == *n && std::abs(*n) <= 64) {
    std::optional<Complex> power;
    Complex square = z;
    for (auto rest = static_cast<int>(std::abs(*n)); rest > 0; rest /= 2) {
      if (rest % 2 == 1) power = power ? *power * square : square;
      if (rest > 1) square = square * square;
    }
    if (!power) return {Ex(1.0), Ex(0.0)};
    if (*n > 0) return *power;
    const Complex inverse = Complex{Ex(1.0)} / *power;
    return {where(vanishes, nan, inverse.real), where(vanishes, nan, imag_of(inverse))};
  }
  const Complex base{where(vanishes, Ex(1.0), z.real), imag_of(z)};
  const Complex power = exp(w * log(base));
  const Ex is_defined = f(ScalarOp::logical_or, f(ScalarOp::gt, w.real, Ex(0.0)),
                          f(ScalarOp::logical_not, is_true(w)));
  const Ex nothing = where(is_defined, Ex(0.0), nan);
  const Ex at_zero = where(is_true(w), nothing, Ex(1.0));
  return {where(vanishes, at_zero, power.real), where(vanishes, nothing, imag_of(power))};
}

Complex times(const Complex& z, double factor) { return z * Complex{Ex(factor)}; }

/// A function of one complex number; none where there is no such function.
std::optional<Complex> function(ScalarOp op, const Complex& z) {
  switch (op) {
    case ScalarOp::neg:
      return -z;
    case ScalarOp::abs:
      return Complex{modulus(z)};
    case ScalarOp::logical_not:
      return Complex{f(ScalarOp::logical_not, is_true(z))};
    case ScalarOp::sqrt:
      return sqrt(z);
    case ScalarOp::rsqrt:
      return Complex{Ex(1.0)} / sqrt(z);
    case ScalarOp::exp:
      return exp(z);
    case ScalarOp::exp2:
      return exp(times(z, std::numbers::ln2));
    case ScalarOp::expm1:
      return expm1(z);
    case ScalarOp::log:
      return log(z);
    case ScalarOp::log2:
      return times(log(z), std::numbers::log2e);
    case ScalarOp::log1p:
      return log1p(z);
    case ScalarOp::sin:
      return sin(z);
    case ScalarOp::cos:
      return cos(z);
    case ScalarOp::tan:
      return tan(z);
    case ScalarOp::asin:
      return asin(z);
    case ScalarOp::acos:
      return acos(z);
    case ScalarOp::atan:
      return atan(z);
    case ScalarOp::sinh:
      return sinh(z);
    case ScalarOp::cosh:
      return cosh(z);
    case ScalarOp::tanh:
      return tanh(z);
    case ScalarOp::sigmoid:
      return sigmoid(z);
    case ScalarOp::silu:
      return z * sigmoid(z);
    default:
      return std::nullopt;
  }
}

/// The same of two.
std::optional<Complex> function(ScalarOp op, const Complex& z, const Complex& w) {
  switch (op) {
    case ScalarOp::add:
      return z + w;
    case ScalarOp::sub:
      return z - w;
    case ScalarOp::mul:
      return z * w;
    case ScalarOp::div:
      return z / w;
    case ScalarOp::pow:
      return pow(z, w);
    case ScalarOp::eq:
      return Complex{f(ScalarOp::logical_and, f(ScalarOp::eq, z.real, w.real),
                       f(ScalarOp::eq, imag_of(z), imag_of(w)))};
    case ScalarOp::ne:
      return Complex{f(ScalarOp::logical_or, f(ScalarOp::ne, z.real, w.real),
                       f(ScalarOp::ne, imag_of(z), imag_of(w)))};
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
      return Complex{f(op, is_true(z), is_true(w))};
    default:
      return std::nullopt;
  }
}

Complex chosen(const Complex& condition, const Complex& z, const Complex& w) {
  const Ex test = condition.imag ? is_true(condition) : condition.real;
  Complex value{where(test, z.real, w.real)};
  if (z.imag || w.imag) value.imag = where(test, imag_of(z), imag_of(w));
  return value;
}

/// The same step on real numbers.
Complex real_step(const ScalarStep& step, const std::vector<Complex>& args) {
  switch (info(step.op).arity) {
    case 0:
      return {Ex::of({{step}})};
    case 1:
      return {f(step.op, args[0].real)};
    default:
      return {f(step.op, args[0].real, args[1].real)};
  }
}

}  // namespace

Ex is_true(const ComplexEx& z) {
  const Ex real = f(ScalarOp::ne, z.real, Ex(0.0));
  return z.imag ? f(ScalarOp::logical_or, real, f(ScalarOp::ne, *z.imag, Ex(0.0))) : real;
}

ComplexEx complex_value(const ScalarExpr& expr, const std::function<ComplexEx(int)>& input,
                        const std::function<void(ScalarOp)>& refuse) {
  std::vector<Complex> values;
  for (const ScalarStep& step : expr.steps) {
    std::vector<Complex> args;
    bool has_complex = false;
    for (int i = 0; i < info(step.op).arity; ++i) {
      args.push_back(values[static_cast<std::size_t>(step.args[i])]);
      has_complex |= args.back().imag.has_value();
    }
    std::optional<Complex> value;
    if (step.op == ScalarOp::input)
      value = input(step.which);
    else if (step.op == ScalarOp::where)
      value = chosen(args[0], args[1], args[2]);
    else if (!has_complex)
      value = real_step(step, args);
    else
      value = args.size() == 1 ? function(step.op, args[0]) : function(step.op, args[0], args[1]);
    if (!value) {
      refuse(step.op);
      throw std::logic_error("complex_value: nobody refused");
    }
    values.push_back(std::move(*value));
  }
  return values.back();
}

}  // namespace ein
