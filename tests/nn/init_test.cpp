// Initialisations: moments and bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include <ein/nn.hpp>

namespace {

using ein::Error;
using ein::ErrorKind;
using ein::Tensor;
namespace init = ein::nn::init;
using Values = std::vector<double>;

struct Moments {
  explicit Moments(const Tensor& x) {
    const Values values = x.to_vector<double>();
    const auto n = static_cast<double>(values.size());
    for (double v : values) mean += v / n;
    for (double v : values) variance += (v - mean) * (v - mean) / n;
    std::tie(low, high) = std::pair(*std::min_element(values.begin(), values.end()),
                                    *std::max_element(values.begin(), values.end()));
  }
  double mean = 0, variance = 0, low = 0, high = 0;
};

/// Mean 0 and this variance, within five standard errors; `kurtosis` is 3 for normal numbers
/// and 1.8 for uniform ones.
void expect_moments(const Tensor& x, double variance, double kurtosis) {
  const Moments found(x);
  const auto n = static_cast<double>(x.numel());
  EXPECT_NEAR(found.mean, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(found.variance / variance, 1, 5 * std::sqrt((kurtosis - 1) / n));
}

constexpr std::int64_t in = 300, out = 200;

TEST(Init, NormalOnesHaveTheirVariances) {
  SCOPED_TRACE("seed 21");
  ein::manual_seed(21);
  const Tensor w = ein::empty({in, out});
  init::fan_in_normal(w);
  expect_moments(w, 1.0 / in, 3);
  init::xavier_normal(w);
  expect_moments(w, 2.0 / (in + out), 3);
  init::kaiming_normal(w);
  expect_moments(w, 2.0 / in, 3);
  init::normal(w, 10, 2);
  expect_moments(w - 10, 4, 3);
}

TEST(Init, UniformOnesHaveTheirVariancesAndBounds) {
  SCOPED_TRACE("seed 22");
  ein::manual_seed(22);
  const Tensor w = ein::empty({in, out});
  const auto expect_bound = [&](double bound) {
    expect_moments(w, bound * bound / 3, 1.8);
    const Moments found(w);
    EXPECT_GE(found.low, -bound * (1 + 1e-6));
    EXPECT_LE(found.high, bound * (1 + 1e-6));
    EXPECT_LT(found.low, -bound * 0.999);
    EXPECT_GT(found.high, bound * 0.999);
  };
  init::xavier_uniform(w);
  expect_bound(std::sqrt(6.0 / (in + out)));
  init::kaiming_uniform(w);
  expect_bound(std::sqrt(6.0 / in));
  init::uniform(w, 4, 6);
  const Moments found(w);
  EXPECT_NEAR(found.mean, 5, 0.02);
  EXPECT_GE(found.low, 4);
  EXPECT_LE(found.high, 6);
}

TEST(Init, TruncatedNormalIsCutAtValues) {
  ein::manual_seed(23);
  const Tensor w = ein::empty({in, out});
  init::trunc_normal(w, 1, -0.5, 1.5);
  const Moments found(w);
  EXPECT_GE(found.low, -0.5);
  EXPECT_LE(found.high, 1.5);
  // The mean of a normal number between a and b is (φ(a) - φ(b)) / (Φ(b) - Φ(a)).
  const auto density = [](double x) {
    return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
  };
  const auto below = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  EXPECT_NEAR(found.mean, (density(-0.5) - density(1.5)) / (below(1.5) - below(-0.5)), 0.01)
      << "seed 23";
  // As in the lecture, where the bounds ±3 are values and far outside.
  init::trunc_normal(w, 1 / std::sqrt(in), -3, 3);
  expect_moments(w, 1.0 / in, 3);
}

TEST(Init, BoundsHoldInEveryDtype) {
  using ein::DType;
  ein::manual_seed(29);
  for (const DType dtype :
       {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    for (const auto& [low, high] :
         {std::pair{0.1, 0.7}, {100.0, 131.0}, {-0.3, 0.1}, {-97.3, -80.1}}) {
      const Tensor x = ein::empty({10000}, dtype);
      init::uniform(x, low, high);
      const Moments uniform(x), cut(ein::trunc_normal({10000}, 50, low, high, dtype));
      const std::string what = std::string(name(dtype)) + " " + std::to_string(low);
      EXPECT_GE(uniform.low, low) << what;
      EXPECT_LT(uniform.high, high) << what;
      EXPECT_GE(cut.low, low) << what;
      EXPECT_LE(cut.high, high) << what;
    }
  }
  const Tensor x = ein::empty({100000});
  init::uniform(x, 1e6, 1e6 + 1);
  EXPECT_LT(Moments(x).high, 1e6 + 1);
  // No number of bf16 lies between these.
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message([] {
              init::uniform(ein::empty({2}, DType::bf16), 100.1, 100.2);
            }).find("uniform: bf16 has no number"),
            std::string::npos);
  EXPECT_NE(message([] {
              ein::trunc_normal({2}, 1, 100.1, 100.2, DType::bf16);
            }).find("trunc_normal: bf16 has no number"),
            std::string::npos);
}

TEST(Init, KeepsTheDtypeAndRefusesOtherRanks) {
  const Tensor w = ein::empty({in, out}, ein::DType::bf16);
  ein::manual_seed(24);
  init::fan_in_normal(w);
  expect_moments(w, 1.0 / in, 3);
  try {
    init::xavier_normal(ein::empty({3}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::rank);
    EXPECT_NE(std::string(error.what()).find("xavier_normal"), std::string::npos);
  }
}

TEST(Init, ReachesParametersAndFollowsTheSeed) {
  ein::nn::Linear a(4, 3), b(4, 3);
  const auto fill = [](const ein::nn::Linear& layer, std::uint64_t seed) {
    ein::manual_seed(seed);
    init::kaiming_uniform(layer.weight);
    return layer.weight.to_vector<double>();
  };
  EXPECT_EQ(fill(a, 5), fill(b, 5));
  EXPECT_NE(fill(a, 5), fill(b, 6));
  EXPECT_TRUE(a.weight.requires_grad());
}

// The lecture's "Parameters, models": outputs have the scale √in = 128, and 1 after dividing the
// weight by it.
TEST(Init, FanInKeepsTheScaleOfOutputs) {
  constexpr std::int64_t width = 16384;
  ein::manual_seed(25);
  const Tensor x = ein::randn({64, width}), w = ein::randn({width, 32});
  const auto scale = [](const Tensor& y) { return std::sqrt(Moments(y).variance); };
  EXPECT_NEAR(scale(einsum(x, w, "b i, i o -> b o")), 128, 128 * 5 / std::sqrt(2.0 * 64 * 32))
      << "seed 25";
  EXPECT_NEAR(scale(einsum(x, w / std::sqrt(width), "b i, i o -> b o")), 1,
              5 / std::sqrt(2.0 * 64 * 32))
      << "seed 25";
  EXPECT_NEAR(scale(ein::nn::Linear(width, 32, false)(x)), 1, 5 / std::sqrt(2.0 * 64 * 32))
      << "seed 25";
}

}  // namespace
