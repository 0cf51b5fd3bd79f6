// Functions of sixteen floats, in the steps of functions.hpp.
#if EIN_ASMJIT
#include <bit>

#include "cpu/functions.hpp"
#include "cpu/vector_code.hpp"

namespace ein::host {

namespace x86 = asmjit::x86;

namespace {

using K = functions::Constants<float>;
constexpr unsigned greater = 0x1E, less_or_equal = 0x12;  // predicates of vcmpps
constexpr unsigned sign_of_second = 0xD8;  // of vpternlog, where the third operand is K::sign

}  // namespace

VectorCode::Vector VectorCode::polynomial(const Vector& x, std::span<const float> coefficients) {
  const Vector sum = code_.newZmm();
  code_.vbroadcastss(sum, code_.newUInt32Const(asmjit::ConstPoolScope::kLocal,
                                               std::bit_cast<std::uint32_t>(coefficients.back())));
  for (std::size_t i = coefficients.size() - 1; i-- > 0;)
    code_.vfmadd213ps(sum, x, constant(coefficients[i]));
  return sum;
}

/// x = k·ln 2 + r, and e^r = 1 + p = 1 + r + r²·q(r). `x` becomes r; half of `half_less`, where
/// given, is taken off it.
VectorCode::ExpParts VectorCode::exp_parts(const Vector& x, const Vector* half_less) {
  const Vector k = code_.newZmm(), square = code_.newZmm();
  code_.vmulps(k, x, constant(K::log2_e));
  code_.vrndscaleps(k, k, 8);
  code_.vfnmadd231ps(x, k, constant(K::ln2_high));
  if (half_less) code_.vfnmadd231ps(x, *half_less, constant(0.5F));
  code_.vfnmadd231ps(x, k, constant(K::ln2_low));
  const Vector p = polynomial(x, K::exp);
  code_.vmulps(square, x, x);
  code_.vfmadd213ps(p, square, x);
  return {p, k};
}

/// Numbers beyond the range give 0 or infinity when scaled.
VectorCode::Vector VectorCode::exp(const Vector& x) {
  const Vector near = code_.newZmm();
  code_.vminps(near, constant_vector(K::exp_most), x);  // NaN stays: the second operand is taken
  code_.vmaxps(near, constant_vector(K::exp_least), near);
  const auto [p, k] = exp_parts(near, nullptr);
  code_.vaddps(p, p, constant(1));
  code_.vscalefps(p, p, k);
  return p;
}

/// x = m·2^e with m in [3/4, 3/2): log x = e·ln 2 + f - f²/2 + f³·p(f) with f = m - 1.
VectorCode::Vector VectorCode::log(const Vector& x) {
  constexpr unsigned from_three_quarters = 3, nan_if_negative = 2 << 2;
  const Vector m = code_.newZmm(), e = code_.newZmm(), of_m = code_.newZmm(),
               square = code_.newZmm(), cube = code_.newZmm();
  code_.vgetmantps(m, x, from_three_quarters | nan_if_negative);
  code_.vgetexpps(e, x);
  code_.vgetexpps(of_m, m);
  code_.vsubps(e, e, of_m);
  code_.vsubps(m, m, constant(1));
  const Vector p = polynomial(m, K::log);
  code_.vmulps(square, m, m);
  code_.vmulps(cube, square, m);
  code_.vmulps(p, p, cube);
  code_.vfmadd231ps(p, e, constant(K::log_ln2_low));
  code_.vfnmadd231ps(p, square, constant(0.5F));
  code_.vaddps(p, p, m);
  code_.vfmadd231ps(p, e, constant(K::log_ln2_high));
  return p;
}

/// Near 0, x + x³·p(x²); elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x.
VectorCode::Vector VectorCode::tanh(const Vector& x) {
  const Vector size = magnitude(x), square = code_.newZmm(), cube = code_.newZmm(),
               twice = code_.newZmm(), far = code_.newZmm();
  code_.vaddps(twice, size, size);
  const Vector power = exp(twice);
  code_.vaddps(power, power, constant(1));
  code_.vdivps(far, constant_vector(-2), power);
  code_.vaddps(far, far, constant(1));
  code_.vmulps(square, x, x);
  code_.vmulps(cube, square, size);
  const Vector near = polynomial(square, K::tanh);
  code_.vfmadd213ps(near, cube, size);
  const x86::KReg is_far = code_.newKw();
  code_.vcmpps(is_far, size, constant(K::tanh_near), greater);
  const Vector result = select(is_far, far, near);
  code_.vpternlogd(result, x, constant_bits(K::sign), sign_of_second);
  return result;
}

VectorCode::Vector VectorCode::magnitude(const Vector& x) {
  const Vector size = code_.newZmm();
  code_.vandps(size, x, constant_bits(~K::sign));
  return size;
}
VectorCode::Vector VectorCode::magnitude_at_most(const Vector& x, float most) {
  const Vector size = magnitude(x);
  code_.vminps(size, constant_vector(most), size);  // NaN stays
  return size;
}
/// Of 32 numbers, those at the last five bits of each lane.
VectorCode::Vector VectorCode::look_up(const float (&numbers)[32], const Vector& places) {
  const Vector result = copy(table(numbers));
  code_.vpermt2ps(result, places, table(numbers + 16));
  return result;
}

VectorCode::Vector VectorCode::erf(const Vector& x) {
  const Vector size = magnitude(x), piece = code_.newZmm(), t = code_.newZmm();
  code_.vaddps(piece, size, constant_vector(K::to_eighths));
  code_.vsubps(t, piece, constant_vector(K::to_eighths));
  code_.vsubps(t, size, t);
  const Vector sum = look_up(K::erf[4], piece);
  for (std::size_t i = 4; i-- > 1;) code_.vfmadd213ps(sum, t, look_up(K::erf[i], piece));
  const Vector first = look_up(K::erf[0], piece), one = constant_vector(1);
  const x86::KReg is_near = code_.newKw(), is_far = code_.newKw();
  code_.vcmpps(is_near, size, constant(K::erf_near), less_or_equal);
  code_.vcmpps(is_far, size, constant(K::erf_last), greater);
  code_.k(is_near).vmovaps(first, size);
  code_.vfmadd213ps(sum, t, first);
  code_.k(is_far).vmovaps(sum, one);
  code_.vpternlogd(sum, x, constant_bits(K::sign), sign_of_second);
  return sum;
}

/// factor / (1 + e^t) for t >= 0 with the factor t or 1, as 2^-k·factor / (2^-k + 1 + p).
VectorCode::Vector VectorCode::logistic_tail(const Vector& t, bool times_t) {
  const Vector negative = code_.newZmm(), power = code_.newZmm(), result = code_.newZmm();
  const auto [p, k] = exp_parts(copy(t), nullptr);
  code_.vxorps(negative, k, constant_bits(K::sign));
  code_.vscalefps(power, constant_vector(1), negative);
  code_.vaddps(power, power, constant(1));
  code_.vaddps(power, power, p);
  code_.vdivps(result, times_t ? t : constant_vector(1), power);
  code_.vscalefps(result, result, negative);
  return result;
}

VectorCode::Vector VectorCode::sigmoid(const Vector& x) {
  return complement_unless_negative(x, logistic_tail(magnitude_at_most(x, K::gate_last), false));
}
VectorCode::Vector VectorCode::silu(const Vector& x) {
  return positive_part_less(x, logistic_tail(magnitude_at_most(x, K::gate_last), true));
}

/// 1 - tail, where x is negative `tail`.
VectorCode::Vector VectorCode::complement_unless_negative(const Vector& x, const Vector& tail) {
  const Vector result = code_.newZmm();
  const x86::KReg is_negative = code_.newKw();
  code_.vsubps(result, constant_vector(1), tail);
  code_.vpmovd2m(is_negative, x);
  code_.k(is_negative).vmovaps(result, tail);
  return result;
}
/// x - tail, where x is negative -tail.
VectorCode::Vector VectorCode::positive_part_less(const Vector& x, const Vector& tail) {
  const Vector result = code_.newZmm();
  code_.vmaxps(result, constant_vector(-0.0F), x);  // of zeros and NaN the second operand
  code_.vsubps(result, result, tail);
  return result;
}

VectorCode::Vector VectorCode::normal_cdf(const Vector& x) {
  return complement_unless_negative(x, normal_tail(magnitude_at_most(x, K::tail_last), false));
}
VectorCode::Vector VectorCode::gelu(const Vector& x) {
  return positive_part_less(x, normal_tail(magnitude_at_most(x, K::tail_last), true));
}

/// Φ(-t) for t >= 0, or t·Φ(-t).
VectorCode::Vector VectorCode::normal_tail(const Vector& t, bool times_t) {
  const Vector x = code_.newZmm(), lost = copy(t), s = code_.newZmm(), distance = code_.newZmm(),
               place = code_.newZmm();
  code_.vmulps(x, t, t);
  code_.vfmsub213ps(lost, t, x);  // of the square
  code_.vmulps(x, x, constant(-0.5F));
  const auto [p, k] = exp_parts(x, &lost);
  code_.vaddps(s, t, constant(1));
  code_.vandps(distance, s, constant_bits(K::tail_begin));
  code_.vsubps(distance, distance, constant(1));
  code_.vsubps(distance, t, distance);
  code_.vpsrld(place, s, K::tail_shift);
  const Vector rest = look_up(K::tail[4], place);
  for (std::size_t i = 4; i-- > 1;) code_.vfmadd213ps(rest, distance, look_up(K::tail[i], place));
  code_.vmulps(rest, rest, distance);
  const Vector first = look_up(K::tail[0], place);
  code_.vfmadd213ps(rest, p, rest);
  code_.vfmadd231ps(rest, first, p);
  if (times_t) {
    code_.vmulps(rest, rest, t);
    code_.vfmadd231ps(rest, first, t);
  } else {
    code_.vaddps(rest, rest, first);
  }
  code_.vscalefps(rest, rest, k);
  return rest;
}

}  // namespace ein::host
#endif
