// Random numbers, the same as on every other machine.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view randoms =
    R"cuda(// Philox4x32-10 (Salmon et al., SC'11). Number `index` of the stream (seed, stream), a
// multiple of 2^-53 in [0, 1).
__device__ inline double uniform(u64 seed, u64 stream, u64 index) {
  const u64 block = index / 2;
  u32 c0 = u32(block), c1 = u32(block >> 32), c2 = u32(stream), c3 = u32(stream >> 32);
  u32 k0 = u32(seed), k1 = u32(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 product0 = u64(0xD2511F53u) * c0, product1 = u64(0xCD9E8D57u) * c2;
    c0 = u32(product1 >> 32) ^ c1 ^ k0;
    c2 = u32(product0 >> 32) ^ c3 ^ k1;
    c1 = u32(product1);
    c3 = u32(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const u64 bits = index % 2 ? u64(c3) << 32 | c2 : u64(c1) << 32 | c0;
  return double(bits >> 11) * 0x1p-53;
}

// The quantile of the normal distribution: Wichura's PPND16 (AS 241). Each operation rounds by
// itself, as on every other machine; none is fused.
__device__ inline double horner(const double* coefficients, int n, double x) {
  double sum = coefficients[0];
  for (int i = 1; i < n; ++i) sum = __dadd_rn(__dmul_rn(sum, x), coefficients[i]);
  return sum;
}
__device__ inline double ratio(const double* above, const double* below, double factor, double x) {
  return __ddiv_rn(__dmul_rn(factor, horner(above, 8, x)), horner(below, 8, x));
}
// -ln(x 2^-scale), x not near 1.
__device__ inline double minus_log(double x, double scale) {
  constexpr double series[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                               2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3,  2.0};
  const u64 bits = u64(__double_as_longlong(x)) - 0x3FE6A09E667F3BCDull + 0x3FF0000000000000ull;
  const double m =
      __longlong_as_double(i64((bits & 0x000FFFFFFFFFFFFFull) + 0x3FE6A09E667F3BCDull));
  const double e = double(i64(bits >> 52)) - 1023.0 - scale;
  const double s = __ddiv_rn(m - 1.0, m + 1.0);
  const double low = __dadd_rn(__dmul_rn(e, 0x1.a39ef35793c76p-33),
                               __dmul_rn(s, horner(series, 11, __dmul_rn(s, s))));
  return -__dadd_rn(__dmul_rn(e, 0x1.62e42feep-1), low);
}
// At p, given q = p - 1/2 and tail = min(p, 1 - p) times 2^scale.
__device__ inline double quantile(double q, double tail, double scale) {
  if (fabs(q) <= 0.425) {
    constexpr double above[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                1.3314166789178437745e+2, 3.3871328727963666080e+0};
    constexpr double below[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                4.2313330701600911252e+1, 1.0};
    return ratio(above, below, q, __dadd_rn(0.180625, -__dmul_rn(q, q)));
  }
  const double r = __dsqrt_rn(minus_log(tail, scale));
  double result;
  if (r <= 5.0) {
    constexpr double above[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                4.63033784615654529590e+0, 1.42343711074968357734e+0};
    constexpr double below[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                2.05319162663775882187e+0, 1.0};
    result = ratio(above, below, 1.0, r - 1.6);
  } else {
    constexpr double above[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                5.46378491116411436990e+0, 6.65790464350110377720e+0};
    constexpr double below[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                5.99832206555887937690e-1,  1.0};
    result = ratio(above, below, 1.0, r - 5.0);
  }
  return copysign(result, q);
}
// The normal deviate of the same number of the uniform stream.
__device__ inline double normal(u64 seed, u64 stream, u64 index) {
  const double q = (uniform(seed, stream, index) - 0.5) + 0x1p-54;
  return quantile(q, 0.5 - fabs(q), 0.0);
}
__device__ inline double normal_quantile(double p) {
  if (p != p) return p;
  p = p < 0x1p-1074 ? 0x1p-1074 : p > 1.0 - 0x1p-53 ? 1.0 - 0x1p-53 : p;
  const double q = p - 0.5, tail = q < 0.0 ? p : 1.0 - p;
  return tail < 0x1p-1000 ? quantile(q, tail * 0x1p60, 60.0) : quantile(q, tail, 0.0);
}

)cuda";

}  // namespace ein::codegen::text
