// The types of elements, conversions between them, and the arithmetic that C++ lacks.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view elements = R"cuda(using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;

// Elements that are stored but not computed with.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f8e4m3 {
  u8 bits;
};
struct f8e5m2 {
  u8 bits;
};
struct boolean {
  u8 value;
};

// As a type to compute with.
template <class T>
__device__ __forceinline__ T wide(T x) {
  return x;
}
__device__ __forceinline__ float wide(f16 x) { return float_of_f16(x.bits); }
__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float(u32(x.bits) << 16); }
__device__ __forceinline__ int wide(boolean x) { return x.value != 0; }

// A float from which rounding to fewer bits gives what rounding x itself would: what is cut off
// leaves its trace in the last bit.
__device__ __forceinline__ float to_odd(double x) {
  const float cut = __double2float_rz(x);
  return double(cut) == x || x != x ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}
__device__ __forceinline__ float to_odd(float x) { return x; }
template <class T>
__device__ __forceinline__ float to_odd(T x) {
  return to_odd(double(x));
}

// Toward zero; the nearest limit where out of range; 0 for NaN.
template <class To, class From>
__device__ __forceinline__ To truncated(From x, From low, From beyond, To least, To most) {
  return x != x ? To(0) : x < low ? least : x >= beyond ? most : To(x);
}

template <class To>
struct Narrow {
  template <class From>
  static __device__ __forceinline__ To of(From x) {
    return To(x);
  }
};
template <>
struct Narrow<f16> {
  template <class From>
  static __device__ __forceinline__ f16 of(From x) {
    return {f16_bits(to_odd(x))};
  }
};
template <>
struct Narrow<bf16> {
  template <class From>
  static __device__ __forceinline__ bf16 of(From x) {
    return {bf16_bits(to_odd(x))};
  }
};
template <>
struct Narrow<boolean> {
  template <class From>
  static __device__ __forceinline__ boolean of(From x) {
    return {u8(x != From(0))};
  }
};
template <class To>
struct Whole {  // integers, of floats as of integers
  template <class From>
  static __device__ __forceinline__ To of(From x) {
    return To(x);
  }
  static __device__ __forceinline__ To of(float x) { return of(double(x)); }
  static __device__ __forceinline__ To of(double x) {
    constexpr double size = sizeof(To) == 8 ? 0x1p64 : 1ull << (8 * sizeof(To) % 64);
    constexpr bool has_sign = To(-1) < To(0);
    constexpr double low = has_sign ? -size / 2 : 0.0;
    constexpr To least = has_sign ? To(1ull << (8 * sizeof(To) - 1)) : To(0);
    return truncated<To, double>(x, low, low + size, least, To(~least));
  }
};
template <>
struct Narrow<i64> : Whole<i64> {};
template <>
struct Narrow<i32> : Whole<i32> {};
template <>
struct Narrow<i16> : Whole<i16> {};
template <>
struct Narrow<i8> : Whole<i8> {};
template <>
struct Narrow<u64> : Whole<u64> {};
template <>
struct Narrow<u32> : Whole<u32> {};
template <>
struct Narrow<u16> : Whole<u16> {};
template <>
struct Narrow<u8> : Whole<u8> {};

// An element as another type.
template <class To, class From>
__device__ __forceinline__ To as(From x) {
  return Narrow<To>::of(wide(x));
}

// The smaller and the larger; NaN if there is one.
template <class T>
__device__ __forceinline__ T least(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
__device__ __forceinline__ T greatest(T a, T b) {
  return a != a || a > b ? a : b;
}

)cuda";

constexpr std::string_view small_floats = R"cuda(// 8-bit floats of OCP's OFP8 specification.
template <int exponent_bits, int mantissa_bits, bool has_infinity>
struct SmallFloat {
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int shift = 23 - mantissa_bits;
  static constexpr u32 mantissa_mask = (1u << mantissa_bits) - 1;
  static constexpr u32 magnitude_mask = 0x7fu;
  static constexpr u32 first_special =
      has_infinity ? magnitude_mask - mantissa_mask : magnitude_mask;
  static constexpr u32 overflow = first_special - (has_infinity ? 0u : 1u);

  // To nearest even; too large a number becomes infinity, or the largest where there is none.
  static __device__ __forceinline__ u8 bits_of(float x) {
    const u32 bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu;
    const u32 rebias = u32(127 - bias) << 23, smallest_normal = rebias + (1u << 23);
    const u32 rebiased = magnitude - rebias;
    u32 result = (rebiased + ((1u << (shift - 1)) - 1) + ((rebiased >> shift) & 1)) >> shift;
    if (magnitude < smallest_normal) {
      // The anchor's last place is the smallest subnormal: the addition rounds.
      const u32 anchor = u32(128 - bias + shift) << 23;
      result =
          __float_as_uint(__fadd_rn(__uint_as_float(magnitude), __uint_as_float(anchor))) - anchor;
    }
    if (result > overflow) result = overflow;
    if (magnitude > 0x7f800000u)
      result = first_special | (1u << (mantissa_bits - 1)) | ((magnitude >> shift) & mantissa_mask);
    return u8(result | bits >> 31 << 7);
  }
  static __device__ __forceinline__ float value_of(u8 bits) {
    const u32 magnitude = bits & magnitude_mask, sign = u32(bits >> 7) << 31;
    if (magnitude > first_special || (!has_infinity && magnitude == first_special))
      return __uint_as_float(0x7fc00000u | sign);
    if (magnitude == first_special) return __uint_as_float(0x7f800000u | sign);
    // A number of the same bits in the format of floats, scaled: exact.
    const float scale = __uint_as_float(u32(254 - bias) << 23);
    return __uint_as_float(__float_as_uint(__uint_as_float(magnitude << shift) * scale) | sign);
  }
};
using E4M3 = SmallFloat<4, 3, false>;
using E5M2 = SmallFloat<5, 2, true>;
__device__ __forceinline__ float wide(f8e4m3 x) { return E4M3::value_of(x.bits); }
__device__ __forceinline__ float wide(f8e5m2 x) { return E5M2::value_of(x.bits); }
template <>
struct Narrow<f8e4m3> {
  template <class From>
  static __device__ __forceinline__ f8e4m3 of(From x) {
    return {E4M3::bits_of(to_odd(x))};
  }
};
template <>
struct Narrow<f8e5m2> {
  template <class From>
  static __device__ __forceinline__ f8e5m2 of(From x) {
    return {E5M2::bits_of(to_odd(x))};
  }
};

)cuda";

constexpr std::string_view gates = R"cuda(// 1 / (1 + e^-x) without overflow.
__device__ __forceinline__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
__device__ __forceinline__ double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
// e^(-x^2 / 2), and the normal distribution function at -|x|: that / (|x| + 2.5) times a polynomial
// in 1 - 5 / (|x| + 2.5), with a relative error of 1.9e-8 before rounding. What the square loses
// when it is rounded is made up for. Beyond 15 all of it is less than floats hold.
struct NormalTail {
  float exponential, probability;
};
__device__ __forceinline__ NormalTail normal_tail(float x) {
  const float density = expf(x * x * -0.5f);  // but for a factor
  const float size = fminf(fabsf(x), 15.0f), lost = fmaf(size, size, -(size * size));
  const float y = size + 2.5f, near = reciprocal(y);
  const float u = fmaf(near, fmaf(-y, near, 1.0f), near), v = fmaf(-5.0f, u, 1.0f);
  float p = -1.581188316e-04f;
  p = fmaf(p, v, -3.132749347e-04f);
  p = fmaf(p, v, 6.835118282e-04f);
  p = fmaf(p, v, 2.525526085e-03f);
  p = fmaf(p, v, -1.599688215e-03f);
  p = fmaf(p, v, -1.638666640e-02f);
  p = fmaf(p, v, 9.235537451e-03f);
  p = fmaf(p, v, 1.319870273e-01f);
  p = fmaf(p, v, -4.336919884e-01f);
  p = fmaf(p, v, 7.066566590e-01f);
  const float exponential = fmaf(lost * -0.5f, density, density);
  return {exponential, p * u * exponential};
}
__device__ __forceinline__ float normal_cdf(float x) {
  const float tail = normal_tail(x).probability;
  return x > 0.0f ? 1.0f - tail : tail;
}
__device__ __forceinline__ double normal_cdf(double x) { return normcdf(x); }
// x times sigmoid or the normal distribution function; at -infinity the limit.
__device__ __forceinline__ float silu(float x) { return x < -200.0f ? -0.0f : x * sigmoid(x); }
__device__ __forceinline__ double silu(double x) { return x < -800.0 ? -0.0 : x * sigmoid(x); }
__device__ __forceinline__ float gelu(float x) { return fmaxf(x, -50.0f) * normal_cdf(x); }
__device__ __forceinline__ double gelu(double x) { return x < -50.0 ? -0.0 : x * normcdf(x); }
// The derivative of gelu: the distribution function and x times its density.
__device__ __forceinline__ float gelu_slope(float x) {
  const NormalTail tail = normal_tail(x);
  const float size = fminf(fabsf(x), 15.0f);
  const float below = fmaf(size * -0.3989422804f, tail.exponential, tail.probability);
  return x > 0.0f ? 1.0f - below : below;
}
__device__ __forceinline__ double gelu_slope(double x) {
  const double size = fmin(fabs(x), 50.0), square = size * size;
  const double density = exp(square * -0.5), lost = fma(size, size, -square);
  const double exponential = fma(lost * -0.5, density, density);
  const double below = fma(size * -0.3989422804014327, exponential, normcdf(-size));
  return x > 0.0 ? 1.0 - below : x == x ? below : x;
}

)cuda";

constexpr std::string_view integers = R"cuda(// Integer arithmetic wraps.
__device__ __forceinline__ i64 plus(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
__device__ __forceinline__ i64 minus(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
__device__ __forceinline__ i64 times(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
__device__ __forceinline__ i64 absolute(i64 a) { return a < 0 ? minus(0, a) : a; }
__device__ inline i64 power(i64 base, i64 exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  u64 result = 1;
  for (u64 factor = u64(base); exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return i64(result);
}
__device__ inline u64 power(u64 base, u64 exponent) {
  u64 result = 1;
  for (u64 factor = base; exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return result;
}
// By less than 0, or by all bits and more: nothing of a is left but its sign.
__device__ __forceinline__ i64 shifted_left(i64 a, i64 b) {
  return b >= 0 && b < 64 ? i64(u64(a) << b) : 0;
}
__device__ __forceinline__ i64 shifted_right(i64 a, i64 b) {
  return a >> (b >= 0 && b < 64 ? b : 63);
}
__device__ __forceinline__ u64 shifted_left(u64 a, u64 b) { return b < 64 ? a << b : 0; }
__device__ __forceinline__ u64 shifted_right(u64 a, u64 b) { return b < 64 ? a >> b : 0; }

)cuda";

constexpr std::string_view remainders =
    R"cuda(// What is left of a after whole b, with the sign of b.
__device__ inline float remainder_of(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
__device__ inline double remainder_of(double a, double b) {
  const double r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
__device__ inline i64 remainder_of(i64 a, i64 b) {
  if (b == 0 || b == -1) return 0;
  const i64 r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
__device__ inline u64 remainder_of(u64 a, u64 b) { return b == 0 ? 0 : a % b; }
// a / b rounded down: of floats by what fmod leaves, which is whole but for its rounding.
__device__ inline float floor_quotient(float a, float b) {
  if (b == 0.0f) return a / b;
  const float r = fmodf(a, b);
  const float quotient = (a - r) / b - (r != 0.0f && (r < 0.0f) != (b < 0.0f) ? 1.0f : 0.0f);
  if (quotient == 0.0f) return copysignf(0.0f, a / b);
  const float whole = floorf(quotient);
  return quotient - whole > 0.5f ? whole + 1.0f : whole;
}
__device__ inline double floor_quotient(double a, double b) {
  if (b == 0.0) return a / b;
  const double r = fmod(a, b);
  const double quotient = (a - r) / b - (r != 0.0 && (r < 0.0) != (b < 0.0) ? 1.0 : 0.0);
  if (quotient == 0.0) return copysign(0.0, a / b);
  const double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}
__device__ inline i64 floor_quotient(i64 a, i64 b) {
  if (b == 0) return 0;
  if (b == -1) return i64(0ull - u64(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
__device__ inline u64 floor_quotient(u64 a, u64 b) { return b == 0 ? 0 : a / b; }

)cuda";

constexpr std::string_view logarithms =
    R"cuda(// log(exp(a) + exp(b)); of equal infinities themselves.
__device__ inline float log_add_exp(float a, float b) {
  const float most = a > b ? a : b, difference = a == b ? 0.0f : -fabsf(a - b);
  return most + log1pf(expf(difference));
}
__device__ inline double log_add_exp(double a, double b) {
  const double most = a > b ? a : b, difference = a == b ? 0.0 : -fabs(a - b);
  return most + log1p(exp(difference));
}

)cuda";

}  // namespace ein::codegen::text
