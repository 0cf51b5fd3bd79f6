// Inverses of functions of complex numbers, and powers.
#include <cmath>
#include <numbers>

#include "passes/complex_parts.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

std::optional<double> constant_of(const Complex& z) {
  const ScalarStep& step = z.real.formula->step(z.real.at);
  if (z.imag || step.op != ScalarOp::constant) return std::nullopt;
  return step.real;
}
std::optional<int> small_whole_number(const Complex& z) {
  const std::optional<double> n = constant_of(z);
  if (!n || std::trunc(*n) != *n || std::abs(*n) > 64) return std::nullopt;
  return static_cast<int>(*n);
}

}  // namespace

// --- inverses ---

/// Of z = x + i·y: √(A² - x²) and log(A + √(A² - 1)) with A = (|z + 1| + |z - 1|) / 2, by sums of
/// positive terms. T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing the complex arcsine
/// and arccosine functions using exception handling", ACM TOMS 23 (1997).
struct ComplexFunctions::Arcs {
  Real root, imag;
};
ComplexFunctions::Arcs ComplexFunctions::arcs(const Complex& z) const {
  const Real x = abs(z.real), y = abs(imag_of(z)), size = larger(x, y);
  const Real r = hypot(x + 1.0, y), s = hypot(x - 1.0, y), a = (r + s) * 0.5;
  const Real beside = s + abs(x - 1.0);  // |z - 1| + |x - 1|, and |z + 1| + |x + 1|:
  const auto share = [&](Real of) { return y * (y / where(of == 0.0, 1.0, of)); };
  const Real p = share(r + (x + 1.0)), q = share(beside);
  const Real is_inside = x <= 1.0;
  const Real above_one = (p + where(is_inside, q, beside)) * 0.5;  // A - 1
  const Real above_x = (p + where(is_inside, beside, q)) * 0.5;    // A - |x|
  const Real near = log1p_of(above_one + sqrt_of(above_one * (a + 1.0)));
  const Real imag = where(size > huge, log_modulus(z) + std::numbers::ln2, near);
  return {where(size > huge, y, sqrt_of((a + x) * above_x)), where(size < tiny, y, imag)};
}
Complex ComplexFunctions::asin(const Complex& z) const {
  const Arcs arc = arcs(z);
  return with_slope({atan2(z.real, arc.root), with_sign(arc.imag, imag_of(z))}, z,
                    [&](const ComplexFunctions& f) { return f.asin_slope(z); });
}
Complex ComplexFunctions::acos(const Complex& z) const {
  const Arcs arc = arcs(z);
  return with_slope({atan2(arc.root, z.real), with_sign(-arc.imag, imag_of(z))}, z,
                    [&](const ComplexFunctions& f) { return -f.asin_slope(z); });
}
/// 1 / √(1 - z²), on the side of the cuts that z is on; of huge z √(1 - z²) is ∓i·z.
Complex ComplexFunctions::asin_slope(const Complex& z) const {
  const Real x = z.real, y = imag_of(z);
  const ComplexFunctions f{type_, 0};
  const Complex root = f.sqrt({(1.0 - x) * (x + 1.0) + square(y), x * y * -2.0});
  const Complex far = where(is_below_zero(y), times_i(z), minus_times_i(z));
  const Complex value = f.reciprocal(where(larger_part(z) > huge, far, root));
  // z / (1 - z²)^(3/2)
  return with_slope(value, z, [&](const ComplexFunctions& g) {
    const Complex s = g.asin_slope(z);
    return z * s * s * s;
  });
}

/// The real part is half the angle of (1 - |z|²) + 2·i·x, the imaginary one
/// log1p(4·|y| / |z - i|²) / 4, which has a pole at y = 1.
Complex ComplexFunctions::atan(const Complex& z) const {
  const Real x = z.real, y = abs(imag_of(z)), size = larger(abs(x), y);
  const Real is_far = size > huge;
  const Real angle = atan2(x * 2.0, (1.0 - y) * (y + 1.0) - square(x)) * 0.5;
  const Real distance = hypot(x, 1.0 - y);
  const Real near = log1p_of(y * 4.0 / square(distance)) * 0.25;
  const Real pole = (std::numbers::ln2 - log_of(distance)) * 0.5;
  const Real radius = hypot(x, y), far = y / radius / radius;
  const Real imag =
      where(is_far, where(size == infinity, 0.0, far), where(distance < 0x1p-100, pole, near));
  const Complex value{where(is_far, with_sign(x.number(std::numbers::pi / 2), x), angle),
                      with_sign(imag, imag_of(z))};
  return with_slope(value, z, [&](const ComplexFunctions& f) { return f.atan_slope(z); });
}
/// 1 / (1 + z²), of huge z 1 / z².
Complex ComplexFunctions::atan_slope(const Complex& z) const {
  const Real is_far = larger_part(z) > range().limit;
  const Complex w = where(is_far, z * range().down, z);
  const Real x = w.real, y = imag_of(w), one = where(is_far, 0.0, x.number(1.0));
  const ComplexFunctions f{type_, 0};
  const Complex near = f.reciprocal({(one - y) * (y + one) + square(x), x * y * 2.0});
  const Real back = where(is_far, range().down, x.number(1.0));
  const Complex value{near.real * back * back, *near.imag * back * back};
  return with_slope(value, z, [&](const ComplexFunctions& g) {
    const Complex s = g.atan_slope(z);
    return z * s * s * -2.0;
  });
}

// --- powers ---

Complex ComplexFunctions::whole_power(const Complex& z, int n) const {
  if (n == 0) return {z.real.number(1.0), z.real.number(0.0)};
  std::optional<Complex> power;
  Complex square = z;
  for (int rest = std::abs(n); rest > 0; rest /= 2) {
    if (rest % 2 == 1) power = power ? *power * square : square;
    if (rest > 1) square = square * square;
  }
  if (n > 0) return *power;
  const Complex nan{z.real.number(not_a_number), z.real.number(not_a_number)};
  return where(is_true(z), reciprocal(*power), nan);
}

/// |z|^c·e^(-d·φ) at the angle c·φ + d·log |z|, with w = c + i·d and the angle φ of z. Of z = 0 it
/// is 0 where c is positive, 1 for w = 0, else NaN, as in NumPy.
Complex ComplexFunctions::power(const Complex& z, const Complex& w) const {
  if (const std::optional<int> n = small_whole_number(w)) return whole_power(z, *n);
  const Real is_zero = apply(ScalarOp::logical_not, is_true(z));
  const Complex base{where(is_zero, 1.0, z.real), imag_of(z)};
  const Real phi = atan2(*base.imag, base.real), log_size = log_modulus(base);
  const Real exponent = w.imag ? w.real * log_size - *w.imag * phi : w.real * log_size;
  const Real angle = w.imag ? w.real * phi + *w.imag * log_size : w.real * phi;
  const Real plain = apply(ScalarOp::pow, hypot(base.real, *base.imag), w.real);
  const Real size = w.imag ? plain * ein::exp_of(-(*w.imag * phi)) : plain;
  const auto [limit, up, down, most, half] = range();
  const Real base_size = larger_part(base);
  const Real is_far = either(either(base_size > limit, base_size < 1 / limit),
                             either(abs(exponent) > most, abs(w.real * log_size) > most));
  const Complex far = exp_of({exponent, angle}, 1);
  const Complex value{where(is_far, far.real, size * cos_of(angle)),
                      where(is_far, *far.imag, size * sin_of(angle))};

  const Real is_defined = either(w.real > 0.0, apply(ScalarOp::logical_not, is_true(w)));
  const Real nothing = where(is_defined, 0.0, not_a_number);
  const Complex of_zero{where(is_true(w), nothing, 1.0), nothing};
  const Complex result = where(is_zero, of_zero, value);
  if (order_ == 0) return result;
  const ComplexFunctions f = next();
  const Complex zero{z.real.number(0.0), z.real.number(0.0)};
  const Complex of_base = where(is_true(w), w * f.power(z, w - one_like(z)), zero);
  if (constant_of(w)) return sloped(result, {{z, of_base}});
  const Complex of_exponent = where(is_zero, zero, f.power(z, w) * f.log(base));
  return sloped(result, {{z, of_base}, {w, of_exponent}});
}

}  // namespace ein
