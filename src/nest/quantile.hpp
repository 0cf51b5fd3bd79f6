// The floating-point half of the random numbers: the normal distribution's quantile. It uses only
// operations that IEEE 754 rounds correctly (+ - * / sqrt, conversions, bits), in one order; who
// includes it is compiled with -ffp-contract=off, so that there are the same bits everywhere,
// vectorised or not.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace ein::random {

static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0,
              "results are defined by IEEE double arithmetic without excess precision");
#ifdef __FAST_MATH__
#error "random numbers are defined bit by bit: compile them without -ffast-math"
#endif

inline constexpr double ln2_high = 0x1.62e42feep-1;  // upper 32 bits of ln 2: exact times 11 bits
inline constexpr double ln2_low = 0x1.a39ef35793c76p-33;  // ln 2 - ln2_high

// Horner's rule; coefficients from the highest power down.
template <std::size_t n>
inline double polynomial(const double (&coefficients)[n], double x) {
  double sum = coefficients[0];
  for (std::size_t i = 1; i < n; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// The coefficients of 2 atanh(s) / s = ln((1 + s) / (1 - s)) / s in s^2.
inline constexpr double atanh_series[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15,
                                          2.0 / 13, 2.0 / 11, 2.0 / 9,  2.0 / 7,
                                          2.0 / 5,  2.0 / 3,  2.0};

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

inline constexpr double centre_limit = 0.425;
inline constexpr double tail_limit = 5.0;

// The quantile at p, given q = p - 1/2 and tail = min(p, 1 - p) times 2^scale, a normal number.
inline double quantile(double q, double tail, double scale) {
  if (std::fabs(q) <= centre_limit) return quantile_centre(q);
  const double r = std::sqrt(minus_log(tail, scale));
  return std::copysign(r <= tail_limit ? quantile_tail(r) : quantile_far_tail(r), q);
}

// u + 2^-54 - 1/2 for a uniform u. Exact: an odd multiple of 2^-54 below 2^53 of them.
inline double centred(double u) { return (u - 0.5) + 0x1p-54; }

}  // namespace ein::random
