// The floating-point half of the random numbers. It uses only operations that IEEE 754 rounds
// correctly (+ - * / sqrt, conversions, bits), in one order; compiled with -ffp-contract=off it
// gives the same bits everywhere, vectorised or not.
#include "nest/random.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <iterator>
#include <limits>

namespace ein::random {
namespace {

static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0,
              "results are defined by IEEE double arithmetic without excess precision");
#ifdef __FAST_MATH__
#error "random.cpp defines its results bit by bit: compile it without -ffast-math"
#endif

constexpr double ln2_high = 0x1.62e42feep-1;       // upper 32 bits of ln 2: exact times 11 bits
constexpr double ln2_low = 0x1.a39ef35793c76p-33;  // ln 2 - ln2_high
constexpr std::size_t strip = 256;                 // numbers handled together; fits the L1 cache

// Horner's rule; coefficients from the highest power down.
template <std::size_t n>
inline double polynomial(const double (&coefficients)[n], double x) {
  double sum = coefficients[0];
  for (std::size_t i = 1; i < n; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// The coefficients of 2 atanh(s) / s = ln((1 + s) / (1 - s)) / s in s^2.
constexpr double atanh_series[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                                   2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3,  2.0};

// -ln(x 2^-scale) for a normal x > 0 and an integer scale. x = m 2^e with m in [sqrt(1/2),
// sqrt(2)), so |s| < 0.172 and the series above is cut below 2^-56. Not for x near 1, where e ln 2
// and ln m could cancel.
inline double minus_log(double x, double scale) {
  constexpr std::uint64_t sqrt_half = 0x3FE6A09E667F3BCD;
  constexpr std::uint64_t mantissa = 0x000FFFFFFFFFFFFF;
  // Shifted so that the exponent field steps at sqrt(1/2) and not at 1.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) - sqrt_half + 0x3FF0000000000000;
  const double m = std::bit_cast<double>((bits & mantissa) + sqrt_half);
  // The biased exponent as a double, by way of 2^52 + exponent: vectors of AVX2 cannot convert it.
  const double e =
      std::bit_cast<double>((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0) - scale;
  const double s = (m - 1.0) / (m + 1.0);
  return -(e * ln2_high + (e * ln2_low + s * polynomial(atanh_series, s * s)));
}

// exp(high + low) for high in [-750, 0] and |low| < 2^-10. The Taylor series on |r| <= ln(2) / 2 is
// cut below 2^-57.
double exp_of_sum(double high, double low) {
  // clang-format off
  constexpr double taylor[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                               1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                               1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0, 1.0};
  // clang-format on
  constexpr double inverse_ln2 = 0x1.71547652b82fep0;
  const int k = static_cast<int>(high * inverse_ln2 - 0.5);  // the nearest integer, as high <= 0
  const double r = (high - k * ln2_high) - (k * ln2_low - low);
  const auto power = [](int n) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
  };
  // In two factors, as 2^k alone may be subnormal; only the last product rounds.
  const int half = k / 2;
  return polynomial(taylor, r) * power(half) * power(k - half);
}

// AS 241, PPND16: q = p - 1/2, |q| <= 0.425.
inline double quantile_centre(double q) {
  constexpr double numerator[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                  6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                  1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                  1.3314166789178437745e+2, 3.3871328727963666080e+0};
  constexpr double denominator[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                    3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                    5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                    4.2313330701600911252e+1, 1.0};
  const double r = 0.180625 - q * q;
  return q * polynomial(numerator, r) / polynomial(denominator, r);
}

// AS 241, PPND16: r = sqrt(-ln(tail)) <= 5, where tail is the smaller of p and 1 - p. The result is
// positive.
inline double quantile_tail(double r) {
  constexpr double numerator[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                  2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                  3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                  4.63033784615654529590e+0, 1.42343711074968357734e+0};
  constexpr double denominator[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                    1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                    6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                    2.05319162663775882187e+0, 1.0};
  return polynomial(numerator, r - 1.6) / polynomial(denominator, r - 1.6);
}

// AS 241, PPND16: the same for r > 5.
inline double quantile_far_tail(double r) {
  constexpr double numerator[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                  1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                  2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                  5.46378491116411436990e+0, 6.65790464350110377720e+0};
  constexpr double denominator[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                    1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                    1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                    5.99832206555887937690e-1,  1.0};
  return polynomial(numerator, r - 5.0) / polynomial(denominator, r - 5.0);
}

constexpr double centre_limit = 0.425;
constexpr double tail_limit = 5.0;

// The quantile at p, given q = p - 1/2 and tail = min(p, 1 - p) times 2^scale, a normal number.
inline double quantile(double q, double tail, double scale) {
  if (std::fabs(q) <= centre_limit) return quantile_centre(q);
  const double r = std::sqrt(minus_log(tail, scale));
  return std::copysign(r <= tail_limit ? quantile_tail(r) : quantile_far_tail(r), q);
}

// u + 2^-54 - 1/2 for a uniform u. Exact: an odd multiple of 2^-54 below 2^53 of them.
inline double centred(double u) { return (u - 0.5) + 0x1p-54; }

// The uniforms of whole blocks; blocks <= strip / 2.
void uniform_blocks(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_block,
                    std::size_t blocks, double* out) {
  std::uint32_t c0[strip / 2], c1[strip / 2], c2[strip / 2], c3[strip / 2];
  for (std::size_t i = 0; i < blocks; ++i) {
    // The counter's low half is an index divided by 2: it wraps at 2^63.
    const std::uint64_t block = (first_block + i) & (~std::uint64_t{0} >> 1);
    c0[i] = static_cast<std::uint32_t>(block);
    c1[i] = static_cast<std::uint32_t>(block >> 32);
    c2[i] = static_cast<std::uint32_t>(stream);
    c3[i] = static_cast<std::uint32_t>(stream >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < philox_rounds; ++round) {
    for (std::size_t i = 0; i < blocks; ++i) philox_round(c0[i], c1[i], c2[i], c3[i], k0, k1);
    k0 += philox_step0;
    k1 += philox_step1;
  }
  // Exact, as uniform() is: 32 + 21 bits through signed 32-bit conversions, which every vector unit
  // has.
  const auto joined = [](std::uint32_t low, std::uint32_t high) {
    const double upper = static_cast<std::int32_t>(high ^ 0x80000000) + 0x1p31;
    const double lower = static_cast<std::int32_t>(low >> 11);
    return upper * 0x1p-32 + lower * 0x1p-53;
  };
  for (std::size_t i = 0; i < blocks; ++i) {
    out[2 * i] = joined(c0[i], c1[i]);
    out[2 * i + 1] = joined(c2[i], c3[i]);
  }
}

// values[i] = normal_of_uniform(values[i]); n <= strip. Every lane takes the central branch; the
// 15 % that lie in a tail are gathered and done again.
void normal_strip(double* values, std::size_t n) {
  double q[strip], tail[strip];
  std::uint32_t where[strip];
  for (std::size_t i = 0; i < n; ++i) q[i] = centred(values[i]);
  for (std::size_t i = 0; i < n; ++i) values[i] = quantile_centre(q[i]);
  std::size_t tails = 0;
  for (std::size_t i = 0; i < n; ++i) {
    where[tails] = static_cast<std::uint32_t>(i);
    tail[tails] = 0.5 - std::fabs(q[i]);
    tails += std::fabs(q[i]) > centre_limit;
  }
  for (std::size_t i = 0; i < tails; ++i) tail[i] = minus_log(tail[i], 0.0);
  for (std::size_t i = 0; i < tails; ++i) tail[i] = std::sqrt(tail[i]);
  double result[strip];
  for (std::size_t i = 0; i < tails; ++i) result[i] = quantile_tail(tail[i]);
  for (std::size_t i = 0; i < tails; ++i) {
    if (tail[i] > tail_limit) result[i] = quantile_far_tail(tail[i]);
    values[where[i]] = std::copysign(result[i], q[where[i]]);
  }
}

}  // namespace

double normal_quantile(double p) {
  if (std::isnan(p)) return p;
  p = std::clamp(p, std::numeric_limits<double>::denorm_min(), 1.0 - 0x1p-53);
  const double q = p - 0.5;
  const double tail = q < 0.0 ? p : 1.0 - p;
  return tail < 0x1p-1000 ? quantile(q, tail * 0x1p60, 60.0) : quantile(q, tail, 0.0);
}

double normal_of_uniform(double u) {
  const double q = centred(u);
  return quantile(q, 0.5 - std::fabs(q), 0.0);
}

double erf_inverse(double x) {
  const double size = std::fabs(x);
  if (!(size < 1.0)) return size == 1.0 ? std::copysign(INFINITY, x) : NAN;
  if (size < 0x1p-500) return x * 0.88622692545275801365;  // √π / 2
  const double v = std::fabs(quantile(0.5 * x, 0.5 * (1.0 - size), 0.0)) * 0.70710678118654752440;
  // 1 - size is exact where size is large, and erfc(v) has the digits that erf(v) has lost there.
  const double error = size < 0.5 ? std::erf(v) - size : (1.0 - size) - std::erfc(v);
  return std::copysign(v - error * 0.88622692545275801365 * std::exp(v * v), x);
}

double normal_cdf(double x) {
  // (1 + x) exp(x^2 / 2) cdf(-x), x >= 0, is smooth in t = (x - 5) / (x + 5), from -1 to 1: a
  // Chebyshev series, after Shepherd and Laframboise, Math. Comp. 36 (1981), who do so for erfc.
  // The coefficients are the discrete cosine transform of that function at 60 nodes, computed with
  // 40 digits; the first one dropped is below 2^-58.
  constexpr double chebyshev[] = {
      0x1.d90fc491c8188p-2,   -0x1.0aeaaad1f9538p-4,  -0x1.65bf2805fcf9ap-8,
      0x1.92ebfe6205c7ap-7,   -0x1.a8133b8cad4f7p-8,  0x1.25b29b935608bp-9,
      -0x1.27a053c3e840ap-11, 0x1.a2c2b7ab5cce3p-14,  -0x1.4a7eb0322f295p-17,
      -0x1.b0fc5b82205ecp-22, 0x1.411314af96457p-22,  -0x1.0473f0ddb61c8p-25,
      -0x1.3d52d596acac5p-28, 0x1.6d8a61f7ba580p-30,  0x1.088516006bf20p-35,
      -0x1.85a9b092a9932p-35, 0x1.8a0f9a2f9aaa1p-40,  0x1.9e4d43559d105p-40,
      -0x1.a400eb44ebefdp-44, -0x1.dce7091ce4421p-45, 0x1.1d37b04d15cfap-48,
      0x1.2f5634abbbd94p-49,  -0x1.364a698813ab4p-53, -0x1.a38dadeae8ad6p-54};
  if (std::isnan(x)) return x;
  const double a = std::fabs(x);
  if (a > 38.6) return x < 0.0 ? 0.0 : 1.0;  // cdf(-38.6) < 2^-1081
  // Clenshaw's recurrence.
  const double t = (a - 5.0) / (a + 5.0);
  double b1 = 0.0, b2 = 0.0;
  for (std::size_t i = std::size(chebyshev) - 1; i > 0; --i) {
    const double b = 2.0 * t * b1 - b2 + chebyshev[i];
    b2 = b1;
    b1 = b;
  }
  const double smooth = t * b1 - b2 + chebyshev[0];
  // The square in two parts, the upper 26 bits of `a` squared exactly: rounding x^2 would cost some
  // 700 units in the last place in the far tail.
  const auto bits = std::bit_cast<std::uint64_t>(a);
  const double upper = std::bit_cast<double>(bits & ~std::uint64_t{0x7FFFFFF});
  const double density = exp_of_sum(-0.5 * (upper * upper), -0.5 * ((a - upper) * (a + upper)));
  const double probability = density * (smooth / (1.0 + a));
  return x < 0.0 ? probability : 1.0 - probability;
}

void fill_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index,
                  std::size_t n, double* out) {
  if (n > 0 && first_index % 2 == 1) {
    *out++ = uniform(seed, stream, first_index++);
    --n;
  }
  while (n >= 2) {
    const std::size_t count = std::min(n, strip) & ~std::size_t{1};
    uniform_blocks(seed, stream, first_index / 2, count / 2, out);
    out += count;
    first_index += count;
    n -= count;
  }
  if (n > 0) *out = uniform(seed, stream, first_index);
}

void fill_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index, std::size_t n,
                 double* out) {
  while (n > 0) {
    const std::size_t count = std::min(n, strip);
    fill_uniform(seed, stream, first_index, count, out);
    normal_strip(out, count);
    out += count;
    first_index += count;
    n -= count;
  }
}

}  // namespace ein::random
