// Functions of sixteen floats; tests/row_code_test.cpp measures their errors.
#if EIN_ASMJIT
#include <array>
#include <bit>

#include "cpu/vector_code.hpp"

namespace ein::host {

namespace x86 = asmjit::x86;

namespace {

constexpr unsigned greater = 0x1E;  // predicate of vcmpps
constexpr std::uint32_t sign_bit = 0x80000000U;

}  // namespace

VectorCode::Vector VectorCode::polynomial(const Vector& x, std::span<const float> coefficients) {
  const Vector sum = code_.newZmm();
  code_.vbroadcastss(sum, code_.newUInt32Const(asmjit::ConstPoolScope::kLocal, std::bit_cast<std::uint32_t>(coefficients.back())));
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) code_.vfmadd213ps(sum, x, constant(coefficients[i]));
  return sum;
}

/// As for strips: x = k·ln 2 + r, and e^r = 1 + r + r²·q(r) with the same q. Numbers beyond the range give 0 or infinity
/// when scaled.
VectorCode::Vector VectorCode::exp(const Vector& x) {
  const Vector near = code_.newZmm(), k = code_.newZmm(), square = code_.newZmm();
  code_.vminps(near, constant_vector(89), x);  // NaN stays: the second operand is taken
  code_.vmaxps(near, constant_vector(-104), near);
  code_.vmulps(k, near, constant(1.44269504F));
  code_.vrndscaleps(k, k, 8);
  code_.vfnmadd231ps(near, k, constant(0.693359375F));
  code_.vfmadd231ps(near, k, constant(2.12194440e-4F));
  const Vector q = polynomial(near, std::array{0.49999994F, 0.16666521F, 0.04166839F, 0.008368745F, 0.0013814539F});
  code_.vmulps(square, near, near);
  code_.vfmadd213ps(q, square, near);
  code_.vaddps(q, q, constant(1));
  code_.vscalefps(q, q, k);
  return q;
}

/// x = m·2^e with m in [3/4, 3/2): log x = e·ln 2 + f - f²/2 + f³·p(f) with f = m - 1; p of degree 8 by least squares
/// until the errors were level (relative error of log1p(f) 9e-10).
VectorCode::Vector VectorCode::log(const Vector& x) {
  constexpr unsigned from_three_quarters = 3, nan_if_negative = 2 << 2;
  const Vector m = code_.newZmm(), e = code_.newZmm(), of_m = code_.newZmm(), square = code_.newZmm(), cube = code_.newZmm();
  code_.vgetmantps(m, x, from_three_quarters | nan_if_negative);
  code_.vgetexpps(e, x);
  code_.vgetexpps(of_m, m);
  code_.vsubps(e, e, of_m);
  code_.vsubps(m, m, constant(1));
  const Vector p = polynomial(m, std::array{0.33333340F, -0.25000164F, 0.19999605F, -0.16655296F, 0.14276241F, -0.12727785F,
                                            0.11700654F, -0.091161422F, 0.037672464F});
  code_.vmulps(square, m, m);
  code_.vmulps(cube, square, m);
  code_.vmulps(p, p, cube);
  // ln 2 in two parts of one sign, so that an infinite exponent stays what it is.
  code_.vfmadd231ps(p, e, constant(1.42860677e-6F));
  code_.vfnmadd231ps(p, square, constant(0.5F));
  code_.vaddps(p, p, m);
  code_.vfmadd231ps(p, e, constant(0.693145752F));
  return p;
}

/// Near 0, x + x³·p(x²) with p of degree 4 (relative error 4e-9); elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x.
VectorCode::Vector VectorCode::tanh(const Vector& x) {
  const Vector size = code_.newZmm(), square = code_.newZmm(), cube = code_.newZmm(), twice = code_.newZmm(), far = code_.newZmm();
  code_.vandps(size, x, constant_bits(~sign_bit));
  code_.vaddps(twice, size, size);
  const Vector power = exp(twice);
  code_.vaddps(power, power, constant(1));
  code_.vdivps(far, constant_vector(-2), power);
  code_.vaddps(far, far, constant(1));
  code_.vpternlogd(far, x, constant_bits(sign_bit), 0xD8);  // the sign of x
  code_.vmulps(square, x, x);
  code_.vmulps(cube, square, x);
  const Vector near = polynomial(square, std::array{-0.33333284F, 0.13331491F, -0.053743497F, 0.020650579F, -0.0057170368F});
  code_.vfmadd213ps(near, cube, x);
  const x86::KReg is_far = code_.newKw();
  code_.vcmpps(is_far, size, constant(0.625F), greater);
  return select(is_far, far, near);
}

/// |x| up to 3.94, where erf is 1 in f32, in 32 pieces around the multiples of 1/8: polynomials of degree 4 in the distance
/// from there, by least squares until the errors were level (relative error 5e-8).
VectorCode::Vector VectorCode::erf(const Vector& x) {
  static constexpr float pieces[5][32] = {
      {0, 1.403162e-01F, 2.763264e-01F, 4.041169e-01F, 5.204999e-01F, 6.232409e-01F, 7.1115565e-01F, 7.840751e-01F, 8.427008e-01F, 8.883882e-01F, 9.2290014e-01F, 9.4817007e-01F, 9.6610516e-01F, 9.7844374e-01F, 9.866717e-01F, 9.9199003e-01F, 9.953223e-01F, 9.97346e-01F, 9.985373e-01F, 9.9921703e-01F, 9.99593e-01F, 9.997946e-01F, 9.998994e-01F, 9.9995214e-01F, 9.999779e-01F, 9.999901e-01F, 9.999957e-01F, 9.999982e-01F, 9.999993e-01F, 9.999997e-01F, 9.999999e-01F, 9.9999994e-01F},
      {1.1283791F, 1.1108848F, 1.0600138F, 9.803526e-01F, 8.787826e-01F, 7.634997e-01F, 6.4293134e-01F, 5.2474535e-01F, 4.1510782e-01F, 3.1827426e-01F, 2.3652135e-01F, 1.7035992e-01F, 1.1893036e-01F, 8.047227e-02F, 5.2774966e-02F, 3.3545773e-02F, 2.0666923e-02F, 1.2340761e-02F, 7.142268e-03F, 4.006438e-03F, 2.178255e-03F, 1.147855e-03F, 5.8626407e-04F, 2.902201e-04F, 1.392482e-04F, 6.475593e-05F, 2.9187524e-05F, 1.27509575e-05F, 5.399034e-06F, 2.2157308e-06F, 8.813442e-07F, 3.3978304e-07F},
      {6.8669233e-06F, -1.3885362e-01F, -2.6500064e-01F, -3.6763084e-01F, -4.3939057e-01F, -4.7718695e-01F, -4.8219833e-01F, -4.5915213e-01F, -4.1510782e-01F, -3.5805857e-01F, -2.9565176e-01F, -2.34245e-01F, -1.7839569e-01F, -1.307676e-01F, -9.2356354e-02F, -6.289848e-02F, -4.1333973e-02F, -2.622422e-02F, -1.6070182e-02F, -9.515346e-03F, -5.445676e-03F, -3.0131442e-03F, -1.6122418e-03F, -8.3439215e-04F, -4.1775e-04F, -2.0236526e-04F, -9.486106e-05F, -4.3035307e-05F, -1.8897026e-05F, -8.03222e-06F, -3.3051308e-06F, -1.3166992e-06F},
      {-3.7667602e-01F, -3.582225e-01F, -3.0878156e-01F, -2.3465472e-01F, -1.4642835e-01F, -5.580544e-02F, 2.6529146e-02F, 9.259573e-02F, 1.3803162e-01F, 1.6215308e-01F, 1.6730548e-01F, 1.5778825e-01F, 1.3867934e-01F, 1.1483015e-01F, 9.0189494e-02F, 6.7496955e-02F, 4.8286807e-02F, 3.309838e-02F, 2.177658e-02F, 1.3771343e-02F, 8.37997e-03F, 4.9110344e-03F, 2.7738574e-03F, 1.510912e-03F, 7.9407194e-04F, 4.0284224e-04F, 1.9734529e-04F, 9.338465e-05F, 4.269762e-05F, 1.8867691e-05F, 8.059641e-06F, 3.3287297e-06F},
      {1.408213e-02F, 6.6823006e-02F, 1.2609339e-01F, 1.6602345e-01F, 1.8271497e-01F, 1.7624293e-01F, 1.5059732e-01F, 1.1241352e-01F, 6.928258e-02F, 2.812228e-02F, -5.9903124e-03F, -3.033849e-02F, -4.446325e-02F, -4.9620476e-02F, -4.8041638e-02F, -4.2232536e-02F, -3.4442317e-02F, -2.6373535e-02F, -1.9103352e-02F, -1.3154545e-02F, -8.641521e-03F, -5.4296604e-03F, -3.2694486e-03F, -1.8895587e-03F, -1.0494478e-03F, -5.6066975e-04F, -2.883736e-04F, -1.428907e-04F, -6.825045e-05F, -3.14395e-05F, -1.39733775e-05F, -5.9944286e-06F}};
  constexpr float last = 3.9374998F, to_eighths = 1.5F * (1 << 20);  // so large that its last bit is 1/8
  const Vector size = code_.newZmm(), piece = code_.newZmm(), t = code_.newZmm();
  code_.vandps(size, x, constant_bits(~sign_bit));
  code_.vminps(size, constant_vector(last), size);  // NaN stays
  code_.vaddps(piece, size, constant_vector(to_eighths));
  code_.vsubps(t, piece, constant_vector(to_eighths));
  code_.vsubps(t, size, t);
  const auto coefficient = [&](std::size_t i) {
    const Vector result = copy(table(pieces[i]));
    code_.vpermt2ps(result, piece, table(pieces[i] + 16));  // by the last five bits of `piece`
    return result;
  };
  const Vector sum = coefficient(4);
  for (std::size_t i = 4; i-- > 0;) code_.vfmadd213ps(sum, t, coefficient(i));
  code_.vpternlogd(sum, x, constant_bits(sign_bit), 0xD8);
  return sum;
}

}  // namespace ein::host
#endif
