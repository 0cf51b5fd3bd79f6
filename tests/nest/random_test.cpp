// Counter-based random numbers: published Philox vectors, exact bits, values and moments.
#include "nest/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using namespace ein::random;
using Words = std::array<std::uint32_t, 4>;

constexpr std::uint64_t all_ones = ~std::uint64_t{0};
constexpr std::size_t sample_size = 1'000'000;

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

double relative_error(double value, double expected) {
  return std::fabs(value - expected) / std::fabs(expected);
}

// Kolmogorov-Smirnov distance between a sample and a distribution function, times sqrt(n). Above
// 1.95 with probability 0.001.
template <class Cdf>
double kolmogorov_smirnov(std::vector<double> sample, Cdf cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(sample[i]);
    const auto rank = static_cast<double>(i);
    distance = std::max({distance, p - rank / n, (rank + 1.0) / n - p});
  }
  return distance * std::sqrt(n);
}

double correlation(const double* a, const double* b, std::size_t n) {
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// Random123 1.14, tests/kat_vectors, lines "philox4x32 10".
TEST(Random, PhiloxGivesThePublishedVectors) {
  static_assert(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  EXPECT_EQ(philox(all_ones, all_ones, all_ones),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The uniforms were computed with another implementation in integers. The normals are this code's
// own bits, checked there to be within 4 units in the last place of the exact quantile. Other bits
// here mean that random.cpp was compiled without -ffp-contract=off, or that every seeded run of
// every user changes.
TEST(Random, BitsAreTheSameOnEveryMachine) {
  struct {
    std::uint64_t seed, stream, index;
    double uniform, normal;
  } const golden[] = {
      {0, 0, 0, 0x1.c2d38b1acc4fdp-1, 0x1.2d769e93cb521p+0},
      {0, 0, 1, 0x1.3601b7b178af5p-1, 0x1.11fbd69d8e303p-2},
      {0, 0, 2, 0x1.72c8036fe3932p-2, -0x1.69580971eeee9p-2},
      {42, 7, 0, 0x1.caa82198cfdcdp-1, 0x1.420fdd4ad2615p+0},
      {42, 7, 1, 0x1.55ce634db1fb2p-2, -0x1.b7c3bc096468cp-2},
      {42, 7, 1000001, 0x1.284621f09eba8p-2, -0x1.1c55eb1645174p-1},
      {0xdeadbeefcafef00d, 0x0123456789abcdef, all_ones, 0x1.dd42eed5b70e0p-3,
       -0x1.752fa30acf7dcp-1},
      {1, 0, std::uint64_t{1} << 40, 0x1.6162db7edc1c5p-1, 0x1.fc5a492168936p-2},
  };
  for (const auto& g : golden) {
    const double u = uniform(g.seed, g.stream, g.index);
    EXPECT_TRUE(same_bits(u, g.uniform)) << std::hexfloat << u << " for " << g.uniform;
    const double x = normal_of_uniform(u);
    EXPECT_TRUE(same_bits(x, g.normal)) << std::hexfloat << x << " for " << g.normal;
  }
}

// One number for the bits of many: 2^20 normals and the distribution function at them.
TEST(Random, BitsOfALongStreamAreTheSameOnEveryMachine) {
  std::vector<double> values(std::size_t{1} << 20);
  fill_normal(7, 3, 11, values.size(), values.data());
  std::uint64_t normals = 0, probabilities = 0;
  const auto mix = [](std::uint64_t hash, double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15;
    return hash ^ hash >> 32;
  };
  for (const double x : values) {
    normals = mix(normals, x);
    probabilities = mix(probabilities, normal_cdf(4.0 * x));
  }
  EXPECT_EQ(normals, std::uint64_t{0x0ac469228da42859});
  EXPECT_EQ(probabilities, std::uint64_t{0x3bb08e1d6ddfcd22});
}

TEST(Random, UniformsAreMultiplesOfTwoToMinus53BelowOne) {
  std::array<int, 53> ones{};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double scaled = uniform(3, 1, i) * 0x1p53;
    ASSERT_GE(scaled, 0.0);
    ASSERT_LT(scaled, 0x1p53);
    ASSERT_EQ(scaled, std::floor(scaled));
    for (std::size_t bit = 0; bit < ones.size(); ++bit) {
      ones[bit] += static_cast<int>(static_cast<std::uint64_t>(scaled) >> bit & 1);
    }
  }
  // Each bit is fair: 5 sigma of a binomial of 100 000 is 791.
  for (const int count : ones) EXPECT_NEAR(count, 50'000, 791);
}

TEST(Random, BulkEqualsScalarAtEveryOffsetAndLength) {
  const std::uint64_t firsts[] = {
      0, 1, 2, 255, 256, 257, (std::uint64_t{1} << 33) - 3, all_ones - 300};
  const std::size_t lengths[] = {0, 1, 2, 3, 15, 254, 255, 256, 257, 511, 512, 513, 1000};
  constexpr std::uint64_t seed = 0x0123456789abcdef, stream = 0xfedcba9876543210;
  constexpr double untouched = -77.0;
  for (const std::uint64_t first : firsts) {
    for (const std::size_t n : lengths) {
      std::vector<double> u(n + 1, untouched), x(n + 1, untouched);
      fill_uniform(seed, stream, first, n, u.data());
      fill_normal(seed, stream, first, n, x.data());
      for (std::size_t i = 0; i < n; ++i) {
        const double expected = uniform(seed, stream, first + i);
        ASSERT_TRUE(same_bits(u[i], expected)) << first << " + " << i << " of " << n;
        ASSERT_TRUE(same_bits(x[i], normal_of_uniform(expected))) << first << " + " << i;
      }
      ASSERT_EQ(u[n], untouched);
      ASSERT_EQ(x[n], untouched);
    }
  }
}

// The far tail (|x| > 6.657) is met once in 4e10 numbers, so these indices were found by running
// Philox backwards from the wanted words. The expected values are from 40-digit arithmetic.
TEST(Random, BulkReachesTheFarTails) {
  struct {
    std::uint64_t stream, index;
    double uniform, normal;
  } const known[] = {
      {0xd4b8a0347ed7bbb4, 0x3cab3c82f2fe7b36, 0.0, -8.2923610758135955382},
      {0xd4b8a0347ed7bbb4, 0x3cab3c82f2fe7b37, 1.0 - 0x1p-53, 8.2923610758135955382},
      {0x0c261f8696d2b1d3, 0xb4bc4ab4aa451220, 0x1.de81p-37, -6.6609846302219993171},
      {0x0c261f8696d2b1d3, 0xb4bc4ab4aa451221, 0x1.ec94p-37, -6.6567234291700371307},
  };
  for (const auto& k : known) {
    std::array<double, 8> u, x;
    fill_uniform(0, k.stream, k.index - 3, u.size(), u.data());
    fill_normal(0, k.stream, k.index - 3, x.size(), x.data());
    EXPECT_EQ(u[3], k.uniform);
    EXPECT_LT(relative_error(x[3], k.normal), 1e-15) << x[3];
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(same_bits(x[i], normal_of_uniform(u[i]))) << x[i];
    }
  }
}

TEST(Random, UniformsPassKolmogorovSmirnovAndMoments) {
  std::vector<double> u(sample_size);
  fill_uniform(2024, 5, 0, u.size(), u.data());
  EXPECT_LT(kolmogorov_smirnov(u, [](double x) { return x; }), 1.95);
  double mean = 0.0, square = 0.0;
  for (double& x : u) {
    x -= 0.5;
    mean += x;
    square += x * x;
  }
  const auto n = static_cast<double>(u.size());
  EXPECT_NEAR(mean / n, 0.0, 5.0 * std::sqrt(1.0 / 12.0 / n));
  EXPECT_NEAR(square / n, 1.0 / 12.0, 5.0 * std::sqrt(1.0 / 180.0 / n));
  for (const std::size_t lag : {1, 2, 3, 256}) {
    EXPECT_NEAR(correlation(u.data(), u.data() + lag, u.size() - lag), 0.0, 5.0 / std::sqrt(n));
  }
}

TEST(Random, NormalsPassKolmogorovSmirnovMomentsAndTailCounts) {
  std::vector<double> x(sample_size);
  fill_normal(2024, 6, 0, x.size(), x.data());
  const auto cdf = [](double v) { return 0.5 * std::erfc(-v / std::sqrt(2.0)); };
  EXPECT_LT(kolmogorov_smirnov(x, cdf), 1.95);
  double moment[5] = {};
  for (const double v : x) {
    double power = 1.0;
    for (double& m : moment) {
      m += power / sample_size;
      power *= v;
    }
  }
  // The variances of v, v^2, v^3 and v^4 are 1, 2, 15 and 96.
  const double sigma = 1.0 / std::sqrt(static_cast<double>(sample_size));
  EXPECT_NEAR(moment[1], 0.0, 5.0 * sigma);
  EXPECT_NEAR(moment[2], 1.0, 5.0 * sigma * std::sqrt(2.0));
  EXPECT_NEAR(moment[3], 0.0, 5.0 * sigma * std::sqrt(15.0));
  EXPECT_NEAR(moment[4], 3.0, 5.0 * sigma * std::sqrt(96.0));
  for (const double limit : {1.0, 2.0, 3.0, 4.0}) {
    const double expected = 2.0 * cdf(-limit) * sample_size;
    const auto count = static_cast<double>(
        std::count_if(x.begin(), x.end(), [&](double v) { return std::fabs(v) > limit; }));
    EXPECT_NEAR(count, expected, 5.0 * std::sqrt(expected)) << "beyond " << limit;
  }
}

TEST(Random, SeedsAndStreamsAreIndependent) {
  constexpr std::size_t n = 100'000;
  const std::uint64_t high = std::uint64_t{1} << 32;
  std::vector<double> base(n), other(n);
  fill_normal(1, 1, 0, n, base.data());
  const std::uint64_t others[][2] = {{1, 2}, {2, 1}, {1, 1 + high}, {1 + high, 1}, {0, 0}};
  for (const auto& [seed, stream] : others) {
    fill_normal(seed, stream, 0, n, other.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_NE(base[i], other[i]) << seed << ' ' << stream;
    EXPECT_NEAR(correlation(base.data(), other.data(), n), 0.0, 5.0 / std::sqrt(double{n}));
  }
}

// Expected values from 40-digit arithmetic: at least one in each of PPND16's three branches, and on
// both sides of their borders (p = 0.075 and p = exp(-25) = 1.389e-11).
TEST(Random, QuantileGivesKnownValues) {
  struct {
    double p, x;
  } const known[] = {
      {0.975, 1.9599639845400538556},   {0.25, -0.6744897501960817432},
      {0.9, 1.2815515655446005935},     {0.06, -1.5547735945968535597},
      {0.01, -2.3263478740408410931},   {1e-3, -3.0902323061678135354},
      {1e-6, -4.7534243088228989573},   {0.999999, 4.7534243088170877657},
      {1e-10, -6.3613409024040561991},  {1.4e-11, -6.6567230915181836356},
      {1e-12, -7.0344838253011319326},  {1e-20, -9.2623400897984075796},
      {1e-100, -21.273453560965324294}, {1e-300, -37.047096299361199237},
      {5e-324, -38.467405617144346251}, {1.0 - 0x1p-53, 8.2095361516013868556},
  };
  for (const auto& [p, x] : known) EXPECT_LT(relative_error(normal_quantile(p), x), 1e-15) << p;
  EXPECT_EQ(normal_quantile(0.5), 0.0);
}

TEST(Random, QuantileIsFiniteAndMonotoneAtTheEnds) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(normal_quantile(0.0), normal_quantile(5e-324));
  EXPECT_EQ(normal_quantile(-infinity), normal_quantile(5e-324));
  EXPECT_EQ(normal_quantile(1.0), normal_quantile(1.0 - 0x1p-53));
  EXPECT_EQ(normal_quantile(infinity), normal_quantile(1.0 - 0x1p-53));
  EXPECT_TRUE(std::isnan(normal_quantile(std::numeric_limits<double>::quiet_NaN())));
  double last = normal_quantile(0.0);
  for (int exponent = -1073; exponent < 0; ++exponent) {
    const double x = normal_quantile(std::ldexp(1.0, exponent));
    ASSERT_LT(last, x) << exponent;
    last = x;
  }
}

TEST(Random, NormalsAreFiniteNonzeroAndAntisymmetric) {
  // u = 0 stands for p = 2^-54.
  EXPECT_LT(relative_error(normal_of_uniform(0.0), -8.2923610758135955382), 1e-15);
  EXPECT_LT(normal_of_uniform(0.5 - 0x1p-53), 0.0);
  EXPECT_GT(normal_of_uniform(0.5), 0.0);
  const auto expect_antisymmetric = [](double u) {
    EXPECT_EQ(normal_of_uniform(u), -normal_of_uniform(1.0 - 0x1p-53 - u)) << u;
  };
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const double u = uniform(9, 9, i);
    expect_antisymmetric(u);
    expect_antisymmetric(std::floor(u * 1e6) * 0x1p-53);
  }
}

TEST(Random, CdfGivesKnownValues) {
  struct {
    double x, p;
  } const known[] = {
      {-37.5, 4.6053530095819548438e-308}, {-30.0, 4.9067139271481870595e-198},
      {-10.0, 7.619853024160526066e-24},   {-5.0, 2.8665157187919391167e-7},
      {-2.0, 0.0227501319481792072},       {-1.0, 0.15865525393145705141},
      {-0.5, 0.30853753872598689636},      {0.5, 0.69146246127401310364},
      {1.0, 0.84134474606854294859},       {2.0, 0.9772498680518207928},
      {5.0, 0.99999971334842812081},
  };
  for (const auto& [x, p] : known) EXPECT_LT(relative_error(normal_cdf(x), p), 1e-15) << x;
  for (double x = -37.0; x < 9.0; x += 0.00390625) {
    // The library's erfc rounds its argument, which costs x^2 units here.
    const double tolerance = 1e-15 + 3e-16 * x * x;
    EXPECT_LT(relative_error(normal_cdf(x), 0.5 * std::erfc(-x / std::sqrt(2.0))), tolerance) << x;
  }
}

TEST(Random, CdfAtTheEnds) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(normal_cdf(0.0), 0.5);
  EXPECT_EQ(normal_cdf(-infinity), 0.0);
  EXPECT_EQ(normal_cdf(-39.0), 0.0);
  EXPECT_EQ(normal_cdf(-38.48), 5e-324);
  EXPECT_EQ(normal_cdf(-std::numeric_limits<double>::max()), 0.0);
  EXPECT_EQ(normal_cdf(infinity), 1.0);
  EXPECT_EQ(normal_cdf(9.0), 1.0);
  EXPECT_TRUE(std::isnan(normal_cdf(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Random, CdfInvertsTheQuantile) {
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    // From 1 down to 2^-1000, so that both tails and the centre are met.
    const double p = std::ldexp(uniform(4, 4, i), -static_cast<int>(i % 1000));
    if (p == 0.0) continue;
    const double x = normal_quantile(p);
    // One unit of x moves ln(cdf) by x^2 units.
    EXPECT_LT(relative_error(normal_cdf(x), p), 2e-15 + 1e-15 * x * x) << p;
  }
}

TEST(Random, TruncatedNormalsStayInsideAndFollowTheirDistribution) {
  constexpr double low = -2.0, high = 1.0;
  const double below = normal_cdf(low), inside = normal_cdf(high) - below;
  std::vector<double> x(100'000);
  fill_uniform(8, 8, 0, x.size(), x.data());
  for (double& v : x) v = normal_quantile(below + v * inside);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), low - 1e-15);
  EXPECT_LE(*std::max_element(x.begin(), x.end()), high + 1e-15);
  const auto cdf = [](double v) { return 0.5 * std::erfc(-v / std::sqrt(2.0)); };
  EXPECT_LT(
      kolmogorov_smirnov(x, [&](double v) { return (cdf(v) - cdf(low)) / (cdf(high) - cdf(low)); }),
      1.95);
}

}  // namespace
