#include <ein/nn/rotary.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"

namespace ein::nn {

using namespace ein::literals;

namespace {

/// The pair that turns so many times over the original positions, as a real number (YaRN's eq. 18).
double pair_of_turns(double turns, const Rotary& rotary, double size) {
  return size * std::log(rotary.scaling.original_positions / (2 * std::numbers::pi * turns)) /
         (2 * std::log(rotary.base));
}

/// Part of each pair's angle that is divided by the factor, from 0 to 1; a number or (pairs).
Tensor scaled_parts(const Rotary& rotary, double size, const Tensor& pairs, const Tensor& speeds) {
  const RotaryScaling& s = rotary.scaling;
  if (s.rule == RotaryScaling::Rule::linear) return ones({}, DType::f64, pairs.device());
  if (s.rule == RotaryScaling::Rule::llama3) {
    const Tensor turns = speeds * (s.original_positions / (2 * std::numbers::pi));
    const Tensor fast = (turns - s.low_frequency) / (s.high_frequency - s.low_frequency);
    return 1 - clamp(fast, 0, 1);
  }
  double low = pair_of_turns(s.beta_fast, rotary, size),
         high = pair_of_turns(s.beta_slow, rotary, size);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;  // as the reference has it
  return clamp((pairs - low) / (high - low), 0, 1);
}

void require_domains(const Rotary& rotary) {
  const RotaryScaling& s = rotary.scaling;
  require_in(above_one, "Rotary", "base", rotary.base);
  if (s.rule == RotaryScaling::Rule::none) return;
  require_in(at_least_one, "Rotary", "factor", s.factor);
  if (s.rule == RotaryScaling::Rule::linear) return;
  require_in(positive, "Rotary", "original_positions", s.original_positions);
  if (s.rule == RotaryScaling::Rule::llama3) {
    require_in(positive, "Rotary", "low_frequency", s.low_frequency);
    require_in({.least = s.low_frequency, .least_is_open = true}, "Rotary", "high_frequency",
               s.high_frequency);
    return;
  }
  require_in(positive, "Rotary", "beta_fast", s.beta_fast);
  require_in(positive, "Rotary", "beta_slow", s.beta_slow);
  require_in(not_negative, "Rotary", "mscale", s.mscale);
  require_in(not_negative, "Rotary", "mscale_all", s.mscale_all);
  if (s.amplitude) require_in(positive, "Rotary", "amplitude", *s.amplitude);
}

double amplitude(const RotaryScaling& s) {
  if (s.rule != RotaryScaling::Rule::yarn) return 1;
  if (s.amplitude) return *s.amplitude;
  const auto of = [&](double mscale) {
    return s.factor <= 1 ? 1 : 0.1 * mscale * std::log(s.factor) + 1;
  };
  return s.mscale > 0 && s.mscale_all > 0 ? of(s.mscale) / of(s.mscale_all) : of(1);
}

}  // namespace

std::int64_t rotary_size(const Rotary& rotary, std::int64_t head_size) {
  require_in({.least = 0, .most = 1, .least_is_open = true}, "Rotary", "fraction", rotary.fraction);
  const auto size = static_cast<std::int64_t>(rotary.fraction * static_cast<double>(head_size));
  if (size >= 2 && size % 2 == 0) return size;
  throw Error(ErrorKind::value, "Rotary: " + std::to_string(size) + " of the " +
                                    std::to_string(head_size) +
                                    " elements of a head turn, and pairs are to turn");
}

void require_rotary(const Rotary& rotary, std::int64_t head_size) {
  require_domains(rotary);
  rotary_size(rotary, head_size);
}

Tensor rotary_speeds(const Rotary& rotary, std::int64_t head_size, Device device) {
  require_rotary(rotary, head_size);
  const std::int64_t size = rotary_size(rotary, head_size);
  const auto real_size = static_cast<double>(size);
  const Tensor pairs = arange(size / 2, device).to(DType::f64);
  const Tensor speeds = exp(pairs * (-2 * std::log(rotary.base) / real_size));
  if (rotary.scaling.rule == RotaryScaling::Rule::none) return speeds;
  const Tensor part = scaled_parts(rotary, real_size, pairs, speeds);
  return speeds * (1 - part) + speeds / rotary.scaling.factor * part;
}

Rotations rotations(const Rotary& rotary, std::int64_t head_size, const Tensor& positions) {
  const Tensor speeds = rotary_speeds(rotary, head_size, positions.device());
  // No contraction, which an Autocast would round.
  const Tensor angles = rearrange(positions.to(DType::f64), "s -> s 1") * speeds;
  const double factor = amplitude(rotary.scaling);
  const auto as_f32 = [&](const Tensor& x) {
    return (factor == 1 ? x : x * factor).to(DType::f32);
  };
  const Tensor cosines = as_f32(cos(angles)), sines = as_f32(sin(angles));
  // The first of a pair (x, y) becomes x·cos - y·sin, the second y·cos + x·sin.
  if (rotary.layout == Rotary::Layout::halves)
    return {rearrange(cosines, cosines, "s k, s l -> s (k + l)"),
            rearrange(-sines, sines, "s k, s l -> s (k + l)")};
  return {repeat(cosines, "s k -> s (k 2)"),
          rearrange(std::vector{-sines, sines}, "two s k -> s (k two)")};
}

Tensor rotated(const Tensor& x, const Rotations& by, Rotary::Layout layout) {
  const Size head = x.shape()[x.rank() - 1], turned = by.cosines.shape()[1];
  if (turned != head) {
    const auto [first, rest] = rearrange(x, "... (t + r) -> ... t, ... r"_p, "t"_a = turned);
    return rearrange(rotated(first, by, layout), rest, "... t, ... r -> ... (t + r)");
  }
  const Tensor others = layout == Rotary::Layout::halves ? flip(x, "... ([p] k)", "p"_a = 2)
                                                         : flip(x, "... (k [p])", "p"_a = 2);
  return (x * by.cosines + others * by.sines).to(x.dtype());
}

}  // namespace ein::nn
