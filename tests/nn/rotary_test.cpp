// Rotary positions: speeds by each rule beside published numbers, and both layouts beside loops.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/ein.hpp>
#include <ein/nn/rotary.hpp>

#include "support/expect_error.hpp"

namespace {

using ein::ErrorKind;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;
using Rule = nn::RotaryScaling::Rule;

std::vector<double> speeds_of(const nn::Rotary& rotary, std::int64_t head_size) {
  return nn::rotary_speeds(rotary, head_size).to_vector<double>();
}

TEST(Rotary, SpeedsOfLlama31) {
  // transformers 5.24's numbers, which are f32.
  const auto speeds =
      speeds_of({.base = 500000, .scaling = {.rule = Rule::llama3, .factor = 8}}, 128);
  ASSERT_EQ(speeds.size(), 64u);
  const auto near = [&](std::size_t k, double wanted) {
    EXPECT_NEAR(speeds[k] / wanted, 1, 3e-7) << k;
  };
  near(0, 1);
  near(1, .8146172338565447);
  near(28, .003211445994752591);
  near(29, .002166570763503359);
  near(30, .0013718935877681137);
  near(34, .0001785078127679964);
  near(35, 9.556212353964683e-05);
  near(63, 3.068925988914511e-07);
}

TEST(Rotary, SpeedsOfYarn) {
  // gpt-oss: base 150,000, factor 32 of 4,096 positions, not cut to whole pairs; DeepSeek-V3:
  // factor 40, where amplitudes cancel.
  const nn::Rotary oss{
      .base = 150000,
      .scaling = {.rule = Rule::yarn, .factor = 32, .original_positions = 4096, .truncate = false}};
  const auto speeds = speeds_of(oss, 64);
  EXPECT_NEAR(speeds[0], 1, 1e-15);
  EXPECT_NEAR(speeds[31] * 32, std::pow(150000, -62.0 / 64), 1e-12);
  const Tensor zero = ein::zeros({1}, ein::DType::i64);
  EXPECT_NEAR(nn::rotations(oss, 64, zero).cosines.to_vector<double>()[0], 1.3465735902799727,
              1e-7);
  const nn::Rotary deepseek{.base = 10000,
                            .scaling = {.rule = Rule::yarn,
                                        .factor = 40,
                                        .original_positions = 4096,
                                        .mscale = 1,
                                        .mscale_all = 1}};
  EXPECT_NEAR(speeds_of(deepseek, 64)[31] / 3.3338035e-6, 1, 1e-7);
  EXPECT_DOUBLE_EQ(nn::rotations(deepseek, 64, zero).cosines.to_vector<double>()[0], 1);
}

TEST(Rotary, LinearDividesAllSpeeds) {
  const auto plain = speeds_of({}, 16);
  const auto scaled = speeds_of({.scaling = {.rule = Rule::linear, .factor = 8}}, 16);
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_NEAR(plain[k], std::pow(10000, -2.0 * static_cast<double>(k) / 16), 1e-15);
    EXPECT_NEAR(scaled[k] * 8, plain[k], 1e-15);
  }
}

TEST(Rotary, TurnsPairsOfBothLayouts) {
  const std::int64_t head = 10, turned = 8;
  ein::manual_seed(21);
  const Tensor x = ein::randn({2, 3, 5, head});
  const std::vector<double> values = x.to_vector<double>();
  for (const auto layout : {nn::Rotary::Layout::halves, nn::Rotary::Layout::neighbours}) {
    const nn::Rotary rotary{.layout = layout, .fraction = 0.8};
    ASSERT_EQ(nn::rotary_size(rotary, head), turned);
    // Positions 7, 8, ...
    const Tensor y = nn::rotated(x, nn::rotations(rotary, head, ein::arange(7, 12)), layout);
    const std::vector<double> got = y.to_vector<double>();
    for (std::size_t row = 0; row < values.size() / head; ++row) {
      const double position = 7 + static_cast<double>(row % 5);
      std::vector<double> wanted(values.begin() + static_cast<std::ptrdiff_t>(row * head),
                                 values.begin() + static_cast<std::ptrdiff_t>((row + 1) * head));
      for (std::size_t k = 0; k < turned / 2; ++k) {
        const bool halves = layout == nn::Rotary::Layout::halves;
        const std::size_t a = halves ? k : 2 * k, b = halves ? k + turned / 2 : 2 * k + 1;
        const double angle =
            position * std::pow(10000, -2.0 * static_cast<double>(k) / static_cast<double>(turned));
        const double u = wanted[a], v = wanted[b];
        wanted[a] = u * std::cos(angle) - v * std::sin(angle);
        wanted[b] = v * std::cos(angle) + u * std::sin(angle);
      }
      for (std::size_t c = 0; c < head; ++c) EXPECT_NEAR(got[row * head + c], wanted[c], 1e-6);
    }
  }
}

TEST(Rotary, KeepsTheDtype) {
  const Tensor x = ein::ones({2, 4}, ein::DType::bf16);
  EXPECT_EQ(nn::rotated(x, nn::rotations({}, 4, ein::arange(2)), {}).dtype(), ein::DType::bf16);
}

TEST(Rotary, AnglesAreExactUnderAutocast) {
  const Tensor positions = ein::arange(100000, 100004);
  const std::vector<double> wanted = nn::rotations({}, 8, positions).cosines.to_vector<double>();
  const ein::Autocast autocast(ein::DType::bf16);
  EXPECT_EQ(nn::rotations({}, 8, positions).cosines.to_vector<double>(), wanted);
  EXPECT_NEAR(wanted[0], std::cos(100000.0), 1e-7);
}

TEST(Rotary, RefusesNumbersOutsideTheirDomain) {
  expect_error([] { nn::rotary_size({}, 7); }, ErrorKind::value, {"7 of the 7", "pairs"});
  expect_error([] { nn::rotary_size({.fraction = 0}, 8); }, ErrorKind::value, {"fraction is 0"});
  expect_error([] { nn::rotary_size({.fraction = 1.5}, 8); }, ErrorKind::value, {"fraction"});
  expect_error([] { nn::rotary_speeds({.base = 1}, 8); }, ErrorKind::value, {"base is 1"});
  expect_error([] { nn::rotary_speeds({.scaling = {.rule = Rule::linear, .factor = 0}}, 8); },
               ErrorKind::value, {"factor is 0"});
  expect_error(
      [] {
        nn::rotary_speeds(
            {.scaling = {.rule = Rule::llama3, .low_frequency = 4, .high_frequency = 4}}, 8);
      },
      ErrorKind::value, {"high_frequency is 4"});
}

}  // namespace
