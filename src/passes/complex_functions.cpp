#include "passes/complex_functions.hpp"

#include <cmath>
#include <numbers>

#include "passes/complex_parts.hpp"

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
  static constexpr Range of_f32{0x1p60, 0x1p90, 0x1p-70, 80},
      of_f64{0x1p500, 0x1p600, 0x1p-600, 700};
  return type_ == DType::f64 ? of_f64 : of_f32;
}

// --- quotients ---

/// Both are multiplied by powers of 2, so that no product overflows. Of w = 0 the parts of z are
/// divided by 0.
Complex ComplexFunctions::quotient(const Complex& z, const Complex& w) const {
  if (!w.imag) {
    Complex quotient{z.real / w.real};
    if (z.imag) quotient.imag = *z.imag / w.real;
    return quotient;
  }
  const auto [limit, up, down, exponent] = range();
  const Real size = larger_part(w), size_z = larger_part(z);
  const Real is_zero = size == 0.0, is_infinite = size == infinity;
  const Real by = chosen(size, limit, down, up, 1), by_z = chosen(size_z, limit, down, up, 1);
  const auto scaled = [&](Real part) {
    const Real unit = where(abs(part) == infinity, where(part < 0.0, -1.0, 1.0), 0.0);
    return where(is_infinite, unit, part * by);
  };
  const Real c = where(is_zero, 1.0, scaled(w.real)), d = scaled(*w.imag);
  const Real norm = where(is_zero, 0.0, square(c) + square(d));
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
/// z / w², of a tiny z times a power of 2, so that z / w is no subnormal number where z / w² is
/// none. What is above 1 then is brought back before the second quotient, so that this does not
/// overflow.
Complex ComplexFunctions::quotient_by_square(const Complex& z, const Complex& w) const {
  const Real is_tiny = larger_part(z) < 1 / range().limit;
  const Complex once = quotient(z * Complex{where(is_tiny, range().up, 1.0)}, w);
  const Real back = where(is_tiny, 1 / range().up, 1.0), is_large = larger_part(once) > 1.0;
  return quotient(once * Complex{where(is_large, back, 1.0)}, w) *
         Complex{where(is_large, 1.0, back)};
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
  const auto [limit, up, down, exponent] = range();
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
  const auto [limit, up, down, exponent] = range();
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
/// -1 / (2·z·√z), of z times a power of 4 where the product may overflow.
Complex ComplexFunctions::rsqrt_slope(const Complex& z) const {
  const Real size = larger_part(z), by = chosen(size, 0x1p300, 0x1p-600, 0x1p600, 1);
  const Real back = chosen(size, 0x1p300, 0x1p-900, 0x1p900, 1) * -0.5;
  const Complex scaled = z * Complex{by};
  const ComplexFunctions f{type_, 0};
  const Complex value = f.reciprocal(scaled * f.sqrt(scaled)) * Complex{back};
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
  // The upper half of the bits of b (Veltkamp).
  const Real spread = b * 134217729.0;
  const Real high = where(abs(b) > 0x1p60, b, spread - (spread - b));
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
/// tan b, of which tanh and its like are rational functions; 0 where the result has a limit as a
/// goes to infinity, and b no tangent.
Real ComplexFunctions::tangent(Real a, Real b) const {
  const Real t = apply(ScalarOp::tan, b);
  return where(both(abs(a) == infinity, t != t), 0.0, t);
}
/// (h·(1 + t²) + i·t·(1 - h²)) / (1 + h²·t²) with h = tanh a, t = tan b.
Complex ComplexFunctions::tanh(const Complex& z) const {
  const Real h = apply(ScalarOp::tanh, z.real), t = tangent(z.real, imag_of(z));
  const Real norm = square(h * t) + 1.0;
  const Complex value{h * (square(t) + 1.0) / norm, t * ((1.0 - h) * (h + 1.0)) / norm};
  return with_slope(value, z, [&](const ComplexFunctions& f) { return f.tanh_slope(z); });
}
/// 1 / cosh² z = (1 - h²)·(1 + t²) / (1 + i·h·t)² with 1 - h² = 4·E / (1 + E)², E = e^-2|a|.
Complex ComplexFunctions::tanh_slope(const Complex& z) const {
  const Real h = apply(ScalarOp::tanh, z.real), t = tangent(z.real, imag_of(z)), u = h * t;
  const Real e = ein::exp_of(abs(z.real) * -2.0), norm = square(u) + 1.0;
  const Real size = e * 4.0 / square(e + 1.0) * ((square(t) + 1.0) / norm);
  const Complex value{size * ((1.0 - u) * (u + 1.0) / norm), size * (u * -2.0 / norm)};
  return with_slope(value, z,
                    [&](const ComplexFunctions& f) { return f.tanh(z) * f.tanh_slope(z) * -2.0; });
}
/// factor / (1 + e^-z), without the sum, which loses its digits near iπ: with h = tanh(a / 2), t =
/// tan(b / 2) and E = e^-|a| it is (1 + h·t² + i·t·(1 - h)) / ((1 + E)·(1 + h²·t²)), times E on the
/// left: by half of a twice, so that the factor meets no subnormal number.
Complex ComplexFunctions::gated(const Complex& z, const Complex& factor) const {
  const Real a = z.real, is_left = a < 0.0, is_far = a < -range().exponent;
  const Real h = apply(ScalarOp::tanh, a * 0.5), t = tangent(a, imag_of(z) * 0.5);
  const Real e = ein::exp_of(where(is_far, abs(a) * -0.5, -abs(a)));
  const Real one_more = where(is_far, 1.0, e + 1.0), norm = (square(h * t) + 1.0) * one_more;
  const Complex gate{(square(t) * h + 1.0) / norm,
                     t * (where(is_left, 2.0, e * 2.0) / one_more) / norm};
  const Real first = where(is_left, e, 1.0), rest = where(is_far, e, 1.0);
  const auto damped = [&](Real x) { return where(first == 0.0, 0.0, x * first); };
  Complex scaled{damped(factor.real)};
  if (factor.imag) scaled.imag = damped(*factor.imag);
  const Complex value = scaled * gate;
  return {value.real * rest, imag_of(value) * rest};
}
Complex ComplexFunctions::sigmoid(const Complex& z) const {
  return with_slope(gated(z, one_like(z)), z,
                    [&](const ComplexFunctions& f) { return f.tanh_slope(z * 0.5) * 0.25; });
}
/// gate + z·gate·(1 - gate)
Complex ComplexFunctions::silu(const Complex& z) const {
  return with_slope(gated(z, z), z, [&](const ComplexFunctions& f) {
    return f.sigmoid(z) + f.silu(z) * f.sigmoid(-z);
  });
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
