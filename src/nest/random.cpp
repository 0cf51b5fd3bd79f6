// Random numbers, one at a time: see quantile.hpp for how they keep their bits.
#include "nest/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "cpu/level.hpp"
#include "nest/quantile.hpp"
#include "size/ask.hpp"

namespace ein::random {
namespace {

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

// erf(v) - x, where the two are near each other and v is from 0 to 0.64, by the series
// 2/√π (v - v^3 / 3 + v^5 / 10 - ...). Its first term has two parts, so that x is taken away from
// it without an error. The first term left out is below 2^-60 of the sum.
double erf_minus(double v, double x) {
  constexpr double factor = 0x1.20dd750429b6dp0, rest_of_factor = 0x1.1ae3a914fed80p-56;  // 2/√π
  // clang-format off
  constexpr double series[] = {1.0 / 2528170444800, -1.0 / 168129561600, 1.0 / 11975040000,
                               -1.0 / 918086400, 1.0 / 76204800, -1.0 / 6894720, 1.0 / 685440,
                               -1.0 / 75600, 1.0 / 9360, -1.0 / 1320, 1.0 / 216, -1.0 / 42,
                               1.0 / 10, -1.0 / 3};
  // clang-format on
  const double first = factor * v, rest = std::fma(factor, v, -first) + rest_of_factor * v;
  const double t = v * v;
  return (first - x) + (rest + first * (t * polynomial(series, t)));
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
  constexpr double half_sqrt_pi = 0.88622692545275801365;
  const double size = std::fabs(x);
  if (!(size < 1.0)) return size == 1.0 ? std::copysign(INFINITY, x) : NAN;
  if (size < 0x1p-500) return x * half_sqrt_pi;
  const double v = std::fabs(quantile(0.5 * x, 0.5 * (1.0 - size), 0.0)) * 0.70710678118654752440;
  // 1 - size is exact where size is large, and erfc(v) has the digits that erf(v) has lost there.
  const double error = size < 0.625 ? erf_minus(v, size) : (1.0 - size) - std::erfc(v);
  return std::copysign(v - error * half_sqrt_pi * std::exp(v * v), x);
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
  host::level().fill_uniform(seed, stream, first_index, n, out);
}

void fill_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index, std::size_t n,
                 double* out) {
  host::level().fill_normal(seed, stream, first_index, n, out);
}

}  // namespace ein::random
