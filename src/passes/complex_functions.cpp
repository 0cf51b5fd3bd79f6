#include "passes/complex_functions.hpp"

#include <cmath>
#include <numbers>

#include "passes/complex_parts.hpp"
#include "size/ask.hpp"

namespace ein {

DType type_of_function(ScalarOp op, DType type) {
  switch (op) {
    case ScalarOp::rsqrt:
    case ScalarOp::exp2:
    case ScalarOp::expm1:
    case ScalarOp::log1p:
    case ScalarOp::tan:
    case ScalarOp::asin:
    case ScalarOp::acos:
    case ScalarOp::atan:
    case ScalarOp::tanh:
    case ScalarOp::sigmoid:
    case ScalarOp::silu:
    case ScalarOp::pow:
      return type == DType::f32 ? DType::f64 : type;
    default:
      return type;
  }
}

const ComplexFunctions::Range& ComplexFunctions::range() const {
  static constexpr Range of_f32{0x1p60, 0x1p90, 0x1p-70, 80, 0x1p12},
      of_f64{0x1p500, 0x1p600, 0x1p-600, 700, 0x1p27};
  return type_ == DType::f64 ? of_f64 : of_f32;
}

// --- quotients ---

/// |w|² rounded once, by halves; a root of it is at most 1 unit off.
Real ComplexFunctions::square_of_size(const Complex& w) const {
  const Halves c = halves(w.real, range().half), d = halves(*w.imag, range().half);
  return sum_of_exact(square(c.high), square(d.high),
                      c.low * (w.real + c.high) + d.low * (*w.imag + d.high));
}
/// w², each part rounded once.
Complex ComplexFunctions::square_of(const Complex& w) const {
  const Halves c = halves(w.real, range().half), d = halves(*w.imag, range().half);
  const Real real = sum_of_exact(square(c.high), -square(d.high),
                                 c.low * (w.real + c.high) - d.low * (*w.imag + d.high));
  return with_slope({real, w.real * *w.imag * 2.0}, w,
                    [&](const ComplexFunctions&) { return w * 2.0; });
}

/// Both are multiplied by powers of 2, so that no product overflows. Of w = 0 the parts of z are
/// divided by 0.
Complex ComplexFunctions::quotient(const Complex& z, const Complex& w, Norm norm_of) const {
  if (!w.imag) {
    Complex quotient{z.real / w.real};
    if (z.imag) quotient.imag = *z.imag / w.real;
    return quotient;
  }
  const auto [limit, up, down, exponent, half] = range();
  const Real size = larger_part(w), size_z = larger_part(z);
  const Real is_zero = size == 0.0, is_infinite = size == infinity;
  const Real by = chosen(size, limit, down, up, 1), by_z = chosen(size_z, limit, down, up, 1);
  const auto scaled = [&](Real part) {
    const Real unit = where(abs(part) == infinity, where(part < 0.0, -1.0, 1.0), 0.0);
    return where(is_infinite, unit, part * by);
  };
  const Real c = where(is_zero, 1.0, scaled(w.real)), d = scaled(*w.imag);
  const Real sum = norm_of == Norm::exact ? square_of_size({c, d}) : square(c) + square(d);
  const Real norm = where(is_zero, 0.0, sum);
  Complex scaled_z{z.real * by_z};
  if (z.imag) scaled_z.imag = *z.imag * by_z;
  const Complex above = scaled_z * Complex{c, -d};
  // Twice by the root of what the scales have changed.
  const Real root =
      where(is_infinite, 0.0, chosen(size, limit, std::sqrt(down), std::sqrt(up), 1)) *
      chosen(size_z, limit, 1 / std::sqrt(down), 1 / std::sqrt(up), 1);
  const auto part = [&](Real x) { return x / norm * root * root; };
  const Complex value{part(above.real), part(imag_of(above))};
  if (order_ == 0) return value;
  const ComplexFunctions f = next();
  return sloped(value, {{z, f.reciprocal(w)}, {w, -f.quotient_by_square(z, w)}});
}
/// z / w² by one quotient. Of w that is brought near 1 the result is multiplied by the same power
/// of 2 twice: z first, so that neither w² nor the quotient leaves the range where the result does
/// not.
Complex ComplexFunctions::quotient_by_square(const Complex& z, const Complex& w) const {
  const auto [limit, up, down, exponent, half] = range();
  const Real size = larger_part(w), is_infinite = size == infinity;
  const Real by = chosen(size, limit, down, up, 1), back = where(is_infinite, 0.0, by);
  const auto scaled = [&](Real part) { return where(is_infinite, 1.0, part * by); };
  Complex square{ein::square(scaled(w.real))};
  if (w.imag) square = square_of({scaled(w.real), scaled(*w.imag)});
  return quotient(z * Complex{by}, square, Norm::exact) * Complex{back};
}
Complex ComplexFunctions::reciprocal(const Complex& z) const { return quotient(one_like(z), z); }

// --- size and angle ---

/// z / |z|, or 0 of 0: the derivative of |z|.
Complex ComplexFunctions::direction(const Complex& z) const {
  const Real size = larger_part(z), is_zero = size == 0.0, is_infinite = size == infinity;
  const auto scaled = [&](Real part) {
    const Real unit = where(abs(part) == infinity, where(part < 0.0, -1.0, 1.0), 0.0);
    return where(is_infinite, unit, part / where(is_zero, 1.0, size));
  };
  const Real a = scaled(z.real), b = scaled(*z.imag);
  const Real length = where(is_zero, 1.0, hypot(a, b));
  const Complex value{a / length, b / length};
  if (order_ == 0) return value;
  // d(cos φ) = -sin φ·dφ and d(sin φ) = cos φ·dφ with |z|·dφ = cos φ·db - sin φ·da.
  const Real radius = next().modulus(z).real;
  const auto turned = [&](Real side) { return where(is_zero, 0.0, side / radius); };
  const Real across = turned(-value.imag.value()), beside = turned(value.real);
  std::optional<Real> real, imag;
  add(real, z.real, across * -*value.imag);
  add(real, *z.imag, across * value.real);
  add(imag, z.real, beside * -*value.imag);
  add(imag, *z.imag, beside * value.real);
  return {sloped(value.real, real), sloped(*value.imag, imag)};
}

Complex ComplexFunctions::modulus(const Complex& z) const {
  if (!z.imag) return {abs(z.real)};
  const Real value = hypot(z.real, *z.imag);
  if (order_ == 0) return {value};
  const Complex slope = next().direction(z);
  std::optional<Real> slopes;
  add(slopes, z.real, slope.real);
  add(slopes, *z.imag, *slope.imag);
  return {sloped(value, slopes)};
}

/// log |z|, by |z|² - 1 where that is small beside the angle.
Real ComplexFunctions::log_modulus(const Complex& z) const {
  const auto [limit, up, down, exponent, half] = range();
  const Real a = abs(z.real), b = abs(imag_of(z)), size = larger(a, b);
  const Real smaller = apply(ScalarOp::min, a, b);
  const Real near = log1p_of((size - 1.0) * (size + 1.0) + square(smaller)) * 0.5;
  const Real by = chosen(size, limit, down, up, 1);
  const Real far =
      log_of(hypot(a * by, b * by)) + chosen(size, limit, -std::log(down), -std::log(up), 0);
  return where(both(size > 0.7, size < 1.5), near, far);
}
Complex ComplexFunctions::log(const Complex& z) const {
  return with_slope({log_modulus(z), atan2(imag_of(z), z.real)}, z,
                    [&](const ComplexFunctions& f) { return f.reciprocal(z); });
}
/// Of small z, |1 + z|² = 1 + a·(2 + a) + b².
Complex ComplexFunctions::log1p(const Complex& z) const {
  const Complex w{z.real + 1.0, imag_of(z)};
  const Real small = log1p_of(z.real * (z.real + 2.0) + square(*w.imag)) * 0.5;
  return with_slope({where(larger_part(z) < 0.5, small, log_modulus(w)), atan2(*w.imag, w.real)}, z,
                    [&](const ComplexFunctions& f) { return f.reciprocal(w); });
}

/// With t = √((|z| + |a|) / 2): t + i·b / 2t on the right, |b| / 2t ± i·t on the left.
Complex ComplexFunctions::sqrt(const Complex& z) const {
  const auto [limit, up, down, exponent, half] = range();
  const Real a = z.real, b = imag_of(z), size = larger_part(z);
  const Real by = chosen(size, limit, down, up, 1);
  const Real t = where(abs(b) == infinity, infinity,
                       sqrt_of((hypot(a * by, b * by) + abs(a * by)) * 0.5) *
                           chosen(size, limit, 1 / std::sqrt(down), 1 / std::sqrt(up), 1));
  const Real is_whole = either(t == 0.0, abs(b) == infinity);
  const Real other = where(is_whole, b, b / (t + t)), is_right = a >= 0.0;
  const Complex value{where(is_right, t, abs(other)), where(is_right, other, with_sign(t, b))};
  return with_slope(value, z,
                    [&](const ComplexFunctions& f) { return f.reciprocal(f.sqrt(z)) * 0.5; });
}
Complex ComplexFunctions::rsqrt(const Complex& z) const {
  const ComplexFunctions f{type_, 0};
  return with_slope(f.reciprocal(f.sqrt(z)), z,
                    [&](const ComplexFunctions& g) { return g.rsqrt_slope(z); });
}
/// -1 / (2·z·√z), of z times a power of 4 where the product may overflow. With g = |z| + |a|, t =
/// √(g / 2) and k = |b| / g the root is t·(1 ± i·k) on the right, t·(k ± i) on the left.
Complex ComplexFunctions::rsqrt_slope(const Complex& z) const {
  const Real size = larger_part(z), by = chosen(size, 0x1p300, 0x1p-600, 0x1p600, 1);
  const Real back = chosen(size, 0x1p300, 0x1p-900, 0x1p900, 1) * -0.5;
  const Real a = abs(z.real * by), b = abs(imag_of(z) * by), is_right = z.real >= 0.0;
  const Real g = hypot(a, b) + a, t = sqrt_of(g * 0.5), k = b / g;
  const Halves of_a = halves(a, range().half), of_b = halves(b, range().half),
               of_k = halves(k, range().half);
  // a - b·k and b + a·k.
  const Real less =
      sum_of_exact(a, -(of_b.high * of_k.high), -(of_b.high * of_k.low + of_b.low * k));
  const Real more = sum_of_exact(b, of_a.high * of_k.high, of_a.high * of_k.low + of_a.low * k);
  const Complex cube{t * where(is_right, less, -more),
                     t * with_sign(where(is_right, more, -less), imag_of(z))};
  const ComplexFunctions f{type_, 0};
  const Complex value = f.quotient(one_like(z), cube, Norm::exact) * Complex{back};
  return with_slope(
      value, z, [&](const ComplexFunctions& g) { return g.quotient(g.rsqrt_slope(z), z) * -1.5; });
}

// --- exponentials ---

namespace {

/// e^a·(c + i·s)·factor, by half of a twice where a whole e^a may overflow. Of a = -∞ it is 0, also
/// where no angle is known.
Complex on_circle(Real a, Real c, Real s, Real e, Real rest, double factor) {
  const auto part = [&](Real x) {
    return where(both(a == -infinity, x != x), 0.0, e * x * factor * rest);
  };
  return {part(c), part(s)};
}

}  // namespace

/// Of b = 0 the imaginary part is 0, also where e^a is infinite.
Complex ComplexFunctions::exp_of(const Complex& z, double factor) const {
  const Real b = imag_of(z), is_large = abs(z.real) > range().exponent;
  const Real e = ein::exp_of(where(is_large, z.real * 0.5, z.real));
  Complex value = on_circle(z.real, cos_of(b), sin_of(b), e, where(is_large, e, 1.0), factor);
  value.imag = where(b == 0.0, b, *value.imag);
  return value;
}
Complex ComplexFunctions::exp(const Complex& z) const {
  return with_slope(exp_of(z, 1), z, [&](const ComplexFunctions& f) { return f.exp(z); });
}
/// 2^a at the angle b·ln 2, which is h + l: both are products of few enough bits.
Complex ComplexFunctions::exp2(const Complex& z) const {
  constexpr double ln2_high = 0x1.62e42ep-1, ln2_low = 0x1.efa39ef35793cp-25;
  const Real b = imag_of(z), is_large = abs(z.real) > 1000.0;
  const Real e = apply(ScalarOp::exp2, where(is_large, z.real * 0.5, z.real));
  const Real high = where(abs(b) > 0x1p60, b, halves(b, range().half).high);
  const Real h = high * ln2_high, l = (b - high) * ln2_high + b * ln2_low;
  const Real c = cos_of(h) * cos_of(l) - sin_of(h) * sin_of(l);
  const Real s = sin_of(h) * cos_of(l) + cos_of(h) * sin_of(l);
  Complex value = on_circle(z.real, c, s, e, where(is_large, e, 1.0), 1);
  value.imag = where(b == 0.0, b, *value.imag);
  return with_slope(value, z,
                    [&](const ComplexFunctions& f) { return f.exp2(z) * std::numbers::ln2; });
}
/// Near 0, e^a·cos b - 1 = expm1(a)·cos b - 2·sin²(b / 2).
Complex ComplexFunctions::expm1(const Complex& z) const {
  const Real b = imag_of(z);
  const Real near = expm1_of(z.real) * cos_of(b) - square(sin_of(b * 0.5)) * 2.0;
  const Complex e = exp_of(z, 1);
  return with_slope({where(abs(z.real) > 1.0, e.real - 1.0, near), *e.imag}, z,
                    [&](const ComplexFunctions& f) { return f.exp(z); });
}

/// Beyond 40 sinh |a| and cosh a are e^|a| / 2.
Complex ComplexFunctions::sinh(const Complex& z) const {
  const Real a = z.real, b = imag_of(z), is_far = abs(a) > 40.0;
  const Complex far = exp_of({abs(a), b}, 0.5);
  const Complex near{apply(ScalarOp::sinh, a) * cos_of(b), apply(ScalarOp::cosh, a) * sin_of(b)};
  return with_slope(where(is_far, Complex{where(a < 0.0, -far.real, far.real), far.imag}, near), z,
                    [&](const ComplexFunctions& f) { return f.cosh(z); });
}
Complex ComplexFunctions::cosh(const Complex& z) const {
  const Real a = z.real, b = imag_of(z), is_far = abs(a) > 40.0;
  const Complex far = exp_of({abs(a), b}, 0.5);
  const Complex near{apply(ScalarOp::cosh, a) * cos_of(b), apply(ScalarOp::sinh, a) * sin_of(b)};
  return with_slope(where(is_far, Complex{far.real, where(a < 0.0, -*far.imag, *far.imag)}, near),
                    z, [&](const ComplexFunctions& f) { return f.sinh(z); });
}

// --- by name ---

std::optional<Complex> ComplexFunctions::of(ScalarOp op, const Complex& z) const {
  switch (op) {
    case ScalarOp::neg:
      return -z;
    case ScalarOp::abs:
      return modulus(z);
    case ScalarOp::logical_not:
      return Complex{apply(ScalarOp::logical_not, is_true(z))};
    case ScalarOp::sqrt:
      return sqrt(z);
    case ScalarOp::rsqrt:
      return rsqrt(z);
    case ScalarOp::exp:
      return exp(z);
    case ScalarOp::exp2:
      return exp2(z);
    case ScalarOp::expm1:
      return expm1(z);
    case ScalarOp::log:
      return log(z);
    case ScalarOp::log2:
      return log(z) * std::numbers::log2e;
    case ScalarOp::log1p:
      return log1p(z);
    // -i·f(i·z) for the functions of an angle.
    case ScalarOp::sin:
      return minus_times_i(sinh(times_i(z)));
    case ScalarOp::cos:
      return cosh(times_i(z));
    case ScalarOp::tan:
      return minus_times_i(tanh(times_i(z)));
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
      return silu(z);
    default:
      return std::nullopt;
  }
}

std::optional<Complex> ComplexFunctions::of(ScalarOp op, const Complex& z, const Complex& w) const {
  switch (op) {
    case ScalarOp::add:
      return z + w;
    case ScalarOp::sub:
      return z - w;
    case ScalarOp::mul:
      return z * w;
    case ScalarOp::div:
      return quotient(z, w);
    case ScalarOp::pow:
      return power(z, w);
    case ScalarOp::eq:
      return Complex{both(z.real == w.real, imag_of(z) == imag_of(w))};
    case ScalarOp::ne:
      return Complex{either(z.real != w.real, imag_of(z) != imag_of(w))};
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
      return Complex{apply(op, is_true(z), is_true(w))};
    default:
      return std::nullopt;
  }
}

}  // namespace ein
