// The hyperbolic tangent of complex numbers and its like: rational functions of an exponential and
// a tangent. Where two roundings of f64 would be too many, sums of exact products are rounded once.
#include <numbers>
#include <optional>

#include "passes/complex_parts.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// tan b; 0 where the result has a limit as a goes to infinity, and b no tangent.
Real tangent(Real a, Real b) {
  const Real t = apply(ScalarOp::tan, b);
  return where(both(abs(a) == infinity, t != t), 0.0, t);
}

/// high + low, which is more exact than `whole`. Of high there are 13 bits, so that a product of
/// four is exact, and what low·low loses does not count.
struct Pair {
  Real whole, high, low;

  /// What the whole lacks.
  Real rest() const { return low - (whole - high); }
};
Pair pair(Real whole, std::optional<Real> rest = {}) {
  const Halves halves = ein::halves(whole, 0x1p40);
  return {whole, halves.high, rest ? halves.low + *rest : halves.low};
}
Pair product(const Pair& x, const Pair& y) {
  const Real high = x.high * y.high, low = x.high * y.low + x.low * y.whole;
  return {high + low, high, low};
}

/// Of x >= 0, with e^x = 2^k·e^r: the parts of 2^-k = root·rest, which may be no number of f64
/// itself, and 2^-k·(e^x - 1) and 1 - e^-x.
struct Growth {
  Real root, rest, scale;
  Pair grown, lost;
};
/// 2^-n of whole n: the upper bits of a number that is a little above it.
Real power_of_half(Real n) { return halves(exp_of(n * -std::numbers::ln2 + 0x1p-20), 0x1p40).high; }

/// e^r = 1 + r + r·c / (2 - c) with c = r - r²·p, where p = (r·coth(r / 2) - 2) / r² is the series
/// of Bernoulli numbers, of which the next term would change c by 2^-55 of it.
Growth growth(Real x) {
  constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
  const Real least = apply(ScalarOp::min, x, x.number(1500.0));
  const Real k = apply(ScalarOp::round, least * std::numbers::log2e);
  const Real r = (least - k * ln2_high) - k * ln2_low, square = r * r;
  Real p = r.number(-691.0 / 653837184000);
  for (const double factor : {1.0 / 23950080, -1.0 / 604800, 1.0 / 15120, -1.0 / 360, 1.0 / 6})
    p = p * square + factor;
  const Real c = r - square * p, c_of_minus = r + square * p;
  const Real more = r * c / (2.0 - c), less = r * c_of_minus / (c_of_minus + 2.0);

  const Real half = apply(ScalarOp::floor, k * 0.5), root = power_of_half(half);
  const Real rest = root * (1.0 - (k * 0.5 - half)), scale = root * rest;
  const Real most = 1.0 - scale, grown = most + r, small = scale * r, lost = most + small;
  const Real of_grown = ((most - grown) + r) + more,
             of_lost = ((most - lost) + small) - scale * less;
  const auto pair_of = [](Real high, Real low) {
    const Real whole = high + low;
    return pair(whole, (high - whole) + low);
  };
  return {root, rest, scale, pair_of(grown, of_grown), pair_of(lost, of_lost)};
}

/// a + b + c + rest, of exact products and a small rest, rounded once.
Real sum_of_exact(Real a, Real b, Real c, Real rest) {
  const Real sum = a + b, of_b = sum - a;
  return ein::sum_of_exact(sum, c, ((a - (sum - of_b)) + (b - of_b)) + rest);
}

}  // namespace

/// (h + h·t² + i·(t - t·h²)) / (1 + h²·t²) with h = tanh a, t = tan b.
Complex ComplexFunctions::tanh(const Complex& z) const {
  const Real h = apply(ScalarOp::tanh, z.real), t = tangent(z.real, imag_of(z)), u = h * t;
  const Real norm = square(u) + 1.0;
  const Complex value{(h + u * t) / norm, where(t == 0.0, t, (t - u * h) / norm)};
  return with_slope(value, z, [&](const ComplexFunctions& f) { return f.tanh_slope(z); });
}
/// value·factor·root·rest: of a large factor the root comes first, so that nothing overflows, else
/// last, so that there is no subnormal number before.
Complex ComplexFunctions::damped(const Complex& value, const Complex& factor, Real root,
                                 Real rest) const {
  const Real is_large = larger_part(factor) > range().limit;
  const Complex product = factor * Complex{where(is_large, root, 1.0)} * value;
  const Real last = where(is_large, 1.0, root);
  return {product.real * last * rest, imag_of(product) * last * rest};
}
/// factor / 4·cosh²(a / 2 + i·b): 1 / cosh² is 4·(1 + t²) / (s - i·d)² with t = tan b, s and d
/// twice cosh(a / 2) and twice i·t·sinh(a / 2). Of x = |a|, s² = (e^x - 1)·(1 - e^-x) + 4, and s·d
/// = ± i·t·(e^x - e^-x).
Complex ComplexFunctions::over_square_of_cosh(Real a, Real b, const Complex& factor) const {
  const Growth x = growth(abs(a));
  const Pair t = pair(tangent(a, b)), square = product(t, t), both = product(x.grown, x.lost),
             turned = product(both, square);
  const Real real = sum_of_exact(x.scale * 4.0, both.high, -turned.high, both.low - turned.low);
  const Real small = x.scale * x.lost.whole, twice = x.grown.whole + small;
  const Pair sinh =
      pair(twice, ((x.grown.whole - twice) + small) + (x.grown.rest() + x.scale * x.lost.rest()));
  const Real imag = product(sinh, t).whole * -2.0;
  const Real by =
      ein::sum_of_exact(a.number(1.0), square.high, square.low) / square_of_size({real, imag});
  return damped({real * by, where(a < 0.0, -imag, imag) * by}, factor, x.root, x.rest);
}
Complex ComplexFunctions::tanh_slope(const Complex& z) const {
  return with_slope(over_square_of_cosh(z.real * 2.0, imag_of(z), {z.real.number(4.0)}), z,
                    [&](const ComplexFunctions& f) { return f.tanh(z) * f.tanh_slope(z) * -2.0; });
}
/// factor / (1 + e^-z), without the sum, which loses its digits near iπ: with t = tan(b / 2), n =
/// (e^x - 1)·(1 - e^-x)·(1 + t²) + 4 and x = |a| it is ((e^x - 1)·(1 + t²) + 2 + 2·i·t) / n on the
/// right, (2 - (1 - e^-x)·(1 + t²) + 2·i·t) / n on the left.
Complex ComplexFunctions::gated(const Complex& z, const Complex& factor) const {
  const Real a = z.real, is_left = a < 0.0;
  const Growth x = growth(abs(a));
  const Pair t = pair(tangent(a, imag_of(z) * 0.5)), square = product(t, t),
             both = product(x.grown, x.lost), turned = product(both, square);
  const Real norm = sum_of_exact(x.scale * 4.0, both.high, turned.high, both.low + turned.low);
  const Pair of{where(is_left, -x.lost.whole, x.grown.whole),
                where(is_left, -x.lost.high, x.grown.high),
                where(is_left, -x.lost.low, x.grown.low)};
  const Pair beside = product(of, square);
  const Real two = where(is_left, a.number(2.0), x.scale * 2.0);
  const Complex gate{sum_of_exact(two, of.high, beside.high, of.low + beside.low) / norm,
                     two * t.whole / norm};
  return damped(gate, factor, where(is_left, x.root, 1.0), where(is_left, x.rest, 1.0));
}
Complex ComplexFunctions::sigmoid(const Complex& z) const {
  return with_slope(gated(z, one_like(z)), z,
                    [&](const ComplexFunctions& f) { return f.sigmoid_slope(z); });
}
Complex ComplexFunctions::sigmoid_slope(const Complex& z) const {
  return with_slope(
      over_square_of_cosh(z.real, imag_of(z) * 0.5, one_like(z)), z,
      [&](const ComplexFunctions& f) { return -(f.sigmoid_slope(z) * f.tanh(z * 0.5)); });
}
/// The derivative is gate + z·gate', and that of z·gate' is gate'·(1 - z·tanh(z / 2)).
Complex ComplexFunctions::silu(const Complex& z) const {
  return with_slope(gated(z, z), z, [&](const ComplexFunctions& f) {
    const Complex rest = f.with_slope(
        f.over_square_of_cosh(z.real, imag_of(z) * 0.5, z), z, [&](const ComplexFunctions& g) {
          return g.sigmoid_slope(z) * (one_like(z) - z * g.tanh(z * 0.5));
        });
    return f.sigmoid(z) + rest;
  });
}

}  // namespace ein
