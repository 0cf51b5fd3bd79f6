// Random numbers by counting: an element is a pure function of (seed, stream, index), so it has the
// same bits on every machine, however a tensor is cut into pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ein::random {

/// One round of Philox4x32 on the counter words c0..c3 with the round key (k0, k1), in place.
/// Multipliers: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11, table 2.
constexpr void philox_round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2,
                            std::uint32_t& c3, std::uint32_t k0, std::uint32_t k1) {
  const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c0;
  const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c2;
  c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
  c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
  c1 = static_cast<std::uint32_t>(product1);
  c3 = static_cast<std::uint32_t>(product0);
}

/// Philox's number of rounds, and what each adds to the two key words: the golden ratio and
/// sqrt(3) - 1, as fractions of 2^32 (same paper, section 4.3).
inline constexpr int philox_rounds = 10;
inline constexpr std::uint32_t philox_step0 = 0x9E3779B9;
inline constexpr std::uint32_t philox_step1 = 0xBB67AE85;

/// Philox4x32-10 of a 128-bit counter under a 64-bit key. Words, in and out, are low word first.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t counter_low, std::uint64_t counter_high,
                                              std::uint64_t key) {
  auto c0 = static_cast<std::uint32_t>(counter_low);
  auto c1 = static_cast<std::uint32_t>(counter_low >> 32);
  auto c2 = static_cast<std::uint32_t>(counter_high);
  auto c3 = static_cast<std::uint32_t>(counter_high >> 32);
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < philox_rounds; ++round) {
    philox_round(c0, c1, c2, c3, k0, k1);
    k0 += philox_step0;
    k1 += philox_step1;
  }
  return {c0, c1, c2, c3};
}

/// Element `index` of the uniform stream (seed, stream): a multiple of 2^-53 in [0, 1), made of the
/// upper 53 bits of one half (the low two words for an even index) of
/// philox(index / 2, stream, seed).
inline double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto words = philox(index / 2, stream, seed);
  const std::size_t half = 2 * (index % 2);
  const std::uint64_t bits = std::uint64_t{words[half + 1]} << 32 | words[half];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// The x at which normal_cdf(x) = p: Wichura's PPND16 (algorithm AS 241, Applied Statistics 37,
/// 1988), with a relative error of about 1e-15. Always finite, so that a p that was rounded to an
/// end may be given: p <= 0 counts as the smallest positive double (x = -38.467...), p >= 1 as the
/// largest below 1 (x = 8.209...). NaN gives NaN.
double normal_quantile(double p);

/// The normal deviate of a uniform u from uniform(): the quantile of u + 2^-54, the middle of the
/// interval that u stands for, taken without rounding u + 2^-54. So deviates are finite (|x|
/// < 8.3), never zero, and exactly antisymmetric: u and 1 - 2^-53 - u give x and -x. Precondition:
/// u is a multiple of 2^-53 in [0, 1).
double normal_of_uniform(double u);

/// The v at which erf(v) = x: the quantile of (1 + x) / 2 by √2, and one step of Newton's method.
/// Infinite at -1 and 1, NaN beyond.
double erf_inverse(double x);

/// The probability that a standard normal variable is below x. The relative error is below 1e-15,
/// in the lower tail too, down to the smallest normal double (x = -37.5); below that the result is
/// subnormal, and 0 from about x = -38.5. NaN gives NaN.
double normal_cdf(double x);

/// out[i] = uniform(seed, stream, first_index + i) for i < n, bit for bit. Indices wrap at 2^64.
void fill_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index,
                  std::size_t n, double* out);

/// out[i] = normal_of_uniform(uniform(seed, stream, first_index + i)) for i < n, bit for bit.
void fill_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index, std::size_t n,
                 double* out);

}  // namespace ein::random
