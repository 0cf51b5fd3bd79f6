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

/// |x| up to 4, where erf is 1 in f32, in sixteen pieces: x times a polynomial of degree 5 in the distance from the middle
/// of the piece, by least squares until the errors were level (relative error 3e-9).
VectorCode::Vector VectorCode::erf(const Vector& x) {
  static constexpr float pieces[6][16] = {
      {1.1225296F, 1.0776451F, 9.971854e-01F, 8.960858e-01F, 7.8967845e-01F, 6.8957824e-01F, 6.021192e-01F, 5.290614e-01F, 4.6933928e-01F, 4.2072296e-01F, 3.8087416e-01F, 3.4780943e-01F, 3.1999683e-01F, 2.9629576e-01F, 2.7586198e-01F, 2.580645e-01F},
      {-9.3154944e-02F, -2.5944608e-01F, -3.738974e-01F, -4.2438942e-01F, -4.190262e-01F, -3.7761343e-01F, -3.210135e-01F, -2.6427495e-01F, -2.150581e-01F, -1.7545958e-01F, -1.4465763e-01F, -1.20876245e-01F, -1.02378264e-01F, -8.778756e-02F, -7.609925e-02F, -6.65972e-02F},
      {-3.656423e-01F, -2.8849527e-01F, -1.6526486e-01F, -3.9730947e-02F, 5.419181e-02F, 1.0426741e-01F, 1.1707473e-01F, 1.0740139e-01F, 8.8863485e-02F, 6.9871515e-02F, 5.3959895e-02F, 4.17537e-02F, 3.269627e-02F, 2.5998358e-02F, 2.0990666e-02F, 1.7186025e-02F},
      {5.5377237e-02F, 1.429849e-01F, 1.7534402e-01F, 1.5160084e-01F, 9.622989e-02F, 3.9033387e-02F, -1.3737676e-03F, -2.1311423e-02F, -2.627085e-02F, -2.3638323e-02F, -1.8693205e-02F, -1.4000457e-02F, -1.0334825e-02F, -7.675794e-03F, -5.7853796e-03F, -4.4342554e-03F},
      {1.0605443e-01F, 6.269836e-02F, 1.9803417e-03F, -4.4400144e-02F, -6.03375e-02F, -5.0438963e-02F, -2.9786702e-02F, -1.1271397e-02F, -1.273611e-04F, 4.3760245e-03F, 5.041308e-03F, 4.2129303e-03F, 3.131422e-03F, 2.2355006e-03F, 1.5898738e-03F, 1.1445109e-03F},
      {-1.9444203e-02F, -4.6202123e-02F, -4.6420332e-02F, -2.5504317e-02F, -6.501463e-04F, 1.4384649e-02F, 1.689945e-02F, 1.2043946e-02F, 5.9129437e-03F, 1.6779536e-03F, -3.0561577e-04F, -8.6371525e-04F, -8.1475865e-04F, -6.128946e-04F, -4.2739025e-04F, -2.931738e-04F}};
  const Vector size = code_.newZmm(), piece = code_.newZmm(), t = code_.newZmm(), sum = code_.newZmm(), coefficient = code_.newZmm();
  code_.vandps(size, x, constant_bits(~sign_bit));
  code_.vminps(size, constant_vector(3.9999998F), size);  // NaN stays
  code_.vmulps(t, size, constant(4));
  code_.vrndscaleps(t, t, 9);  // down
  code_.vcvttps2dq(piece, t);
  code_.vfnmadd132ps(t, size, constant(0.25F));
  code_.vsubps(t, t, constant(0.125F));
  code_.vpermps(sum, piece, table(pieces[5]));
  for (std::size_t i = 5; i-- > 0;) {
    code_.vpermps(coefficient, piece, table(pieces[i]));
    code_.vfmadd213ps(sum, t, coefficient);
  }
  code_.vmulps(sum, sum, size);
  code_.vpternlogd(sum, x, constant_bits(sign_bit), 0xD8);
  return sum;
}

}  // namespace ein::host
#endif
