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

/// |x| up to 3.94, where erf is 1 in f32, in 32 pieces around the multiples of 1/8: x times a polynomial of degree 4 in the
/// distance from there, by least squares until the errors were level (relative error 3e-9).
VectorCode::Vector VectorCode::erf(const Vector& x) {
  static constexpr float pieces[5][32] = {
      {1.1283792F, 1.1225296F, 1.1053056F, 1.0776451F, 1.0409998F, 9.971854e-01F, 9.482075e-01F, 8.960858e-01F, 8.427008e-01F, 7.8967845e-01F, 7.383201e-01F, 6.8957824e-01F, 6.440701e-01F, 6.021192e-01F, 5.638124e-01F, 5.290614e-01F, 4.9766114e-01F, 4.6933928e-01F, 4.4379434e-01F, 4.2072296e-01F, 3.9983723e-01F, 3.8087416e-01F, 3.6359978e-01F, 3.4780943e-01F, 3.3332598e-01F, 3.1999683e-01F, 3.0769098e-01F, 2.9629576e-01F, 2.8571406e-01F, 2.7586198e-01F, 2.6666665e-01F, 2.580645e-01F},
      {7.0103185e-09F, -9.3154855e-02F, -1.8116556e-01F, -2.5944588e-01F, -3.244341e-01F, -3.7389717e-01F, -4.0703508e-01F, -4.243893e-01F, -4.2759323e-01F, -4.190262e-01F, -4.0143922e-01F, -3.7761348e-01F, -3.5009328e-01F, -3.210136e-01F, -2.9202142e-01F, -2.64275e-01F, -2.3849712e-01F, -2.1505813e-01F, -1.9406758e-01F, -1.7545958e-01F, -1.5906358e-01F, -1.4465763e-01F, -1.320049e-01F, -1.20876245e-01F, -1.11062236e-01F, -1.0237826e-01F, -9.466516e-02F, -8.778755e-02F, -8.163105e-02F, -7.609925e-02F, -7.111087e-02F, -6.65972e-02F},
      {-3.761272e-01F, -3.6564535e-01F, -3.3535096e-01F, -2.8849638e-01F, -2.2991376e-01F, -1.6526367e-01F, -1.00217454e-01F, -3.9728694e-02F, 1.2485635e-02F, 5.4193612e-02F, 8.4630065e-02F, 1.04268044e-01F, 1.14465095e-01F, 1.1707447e-01F, 1.1409434e-01F, 1.0740082e-01F, 9.858157e-02F, 8.8863015e-02F, 7.910996e-02F, 6.987126e-02F, 6.144716e-02F, 5.39598e-02F, 4.7415514e-02F, 4.1753687e-02F, 3.6881495e-02F, 3.2696288e-02F, 2.9098555e-02F, 2.5998376e-02F, 2.3317758e-02F, 2.0990679e-02F, 1.8962016e-02F, 1.7186034e-02F},
      {3.2340053e-05F, 5.5282876e-02F, 1.04546495e-01F, 1.4276074e-01F, 1.6665594e-01F, 1.7511906e-01F, 1.6915698e-01F, 1.5147746e-01F, 1.2582237e-01F, 9.622708e-02F, 6.636653e-02F, 3.9103158e-02F, 1.6274646e-02F, -1.2917975e-03F, -1.3604996e-02F, -2.1252919e-02F, -2.5136022e-02F, -2.624204e-02F, -2.548766e-02F, -2.3630086e-02F, -2.1236718e-02F, -1.8694641e-02F, -1.6241705e-02F, -1.4004644e-02F, -1.2035101e-02F, -1.0338791e-02F, -8.896659e-03F, -7.6787835e-03F, -6.6526416e-03F, -5.787466e-03F, -5.056139e-03F, -4.4356873e-03F},
      {1.1239906e-01F, 1.0645846e-01F, 8.8899255e-02F, 6.283475e-02F, 3.232893e-02F, 1.8050739e-03F, -2.4804767e-02F, -4.4711478e-02F, -5.65944e-02F, -6.0579102e-02F, -5.7908777e-02F, -5.0515965e-02F, -4.0498443e-02F, -2.9743385e-02F, -1.9679243e-02F, -1.118952e-02F, -4.6532396e-03F, -6.1879364e-05F, 2.837489e-03F, 4.41077e-03F, 5.0380933e-03F, 5.0533377e-03F, 4.7171866e-03F, 4.2139436e-03F, 3.6618847e-03F, 3.128999e-03F, 2.6487033e-03F, 2.232857e-03F, 1.8812545e-03F, 1.5878694e-03F, 1.3445775e-03F, 1.1431464e-03F}};
  constexpr float last = 3.9374998F, to_eighths = 1.5F * (1 << 20);  // so large that its last bit is 1/8
  const Vector size = code_.newZmm(), piece = code_.newZmm(), t = code_.newZmm();
  code_.vandps(size, x, constant_bits(~sign_bit));
  code_.vminps(size, constant_vector(last), size);  // NaN stays
  code_.vaddps(piece, size, constant_vector(to_eighths));
  code_.vsubps(t, piece, constant_vector(to_eighths));
  code_.vsubps(t, size, t);
  const auto coefficient = [&](std::size_t i) {
    const std::span<const float, 32> both = pieces[i];
    const Vector result = copy(table(both.first<16>()));
    code_.vpermt2ps(result, piece, table(both.last<16>()));  // by the last five bits of `piece`
    return result;
  };
  const Vector sum = coefficient(4);
  for (std::size_t i = 4; i-- > 0;) code_.vfmadd213ps(sum, t, coefficient(i));
  code_.vmulps(sum, sum, size);
  code_.vpternlogd(sum, x, constant_bits(sign_bit), 0xD8);
  return sum;
}

}  // namespace ein::host
#endif
