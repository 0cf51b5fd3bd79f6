// Random numbers, many at a time: see nest/quantile.hpp for how they keep their bits.
#include "nest/random.hpp"

#include <algorithm>

#include "cpu/level/kernels.hpp"
#include "nest/quantile.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

using namespace random;

constexpr std::size_t strip = 256;  // numbers handled together; fits the L1 cache

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

}  // namespace ein::host::EIN_LEVEL
