// Rotary positions.
#pragma once

#include <cstdint>
#include <optional>

#include <ein/tensor.hpp>

namespace ein::nn {

/// How the angles of rotary positions are made smaller, for texts that are longer than those of
/// training.
struct RotaryScaling {
  enum class Rule : std::uint8_t {
    none,
    linear,  ///< every angle by `factor` (Chen et al. 2023)
    llama3,  ///< slow pairs by `factor`, fast ones not (Llama 3.1's rule)
    yarn  ///< the same with a ramp over the pairs, and longer queries and keys (Peng et al. 2023)
  };
  Rule rule = Rule::none;
  double factor = 1;
  double original_positions = 8192;  ///< of training: llama3, yarn
  double low_frequency = 1;          ///< llama3: turns over original_positions below which: slow
  double high_frequency = 4;         ///< llama3: above which: fast
  double beta_fast = 32;             ///< yarn: turns over original_positions where the ramp begins
  double beta_slow = 1;              ///< yarn: where it ends
  bool truncate = true;              ///< yarn: the ramp begins and ends at whole pairs
  /// yarn: what cosines and sines are multiplied by; not said: 0.1·ln(factor) + 1, or where both
  /// `mscale` are not 0 the quotient of 0.1·mscale·ln(factor) + 1 and the same of mscale_all.
  std::optional<double> amplitude{};
  double mscale = 0, mscale_all = 0;
  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

/// Rotary positions (Su et al. 2021): pair k of the elements of each query and key is turned by the
/// angle position · base^(-2k / size), where size is how many elements are turned.
struct Rotary {
  enum class Layout : std::uint8_t {
    halves,     ///< elements k and k + size/2 are a pair: files of Hugging Face
    neighbours  ///< elements 2k and 2k + 1: the paper, Meta's files, CS336
  };
  Layout layout = Layout::halves;
  double base = 10000;
  double fraction = 1;  ///< of each head, its first elements, which turns
  RotaryScaling scaling{};
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// How many elements of a head are turned: fraction · head_size, in whole numbers. An Error of kind
/// `value` unless that is even and at least 2.
std::int64_t rotary_size(const Rotary& rotary, std::int64_t head_size);
/// An Error of kind `value` also for a base, a factor or another number of the rule that is outside
/// its domain.
void require_rotary(const Rotary& rotary, std::int64_t head_size);
/// The angle of each pair at position 1, in radians: size/2 numbers in f64. Errors as those of
/// require_rotary.
Tensor rotary_speeds(const Rotary& rotary, std::int64_t head_size, Device device = cpu);

/// Cosines and sines of the angles of some positions, as `rotated` uses them: (positions, size).
struct Rotations {
  Tensor cosines, sines;
};
/// Of `positions` (n), integers, in f32; angles are computed in f64.
Rotations rotations(const Rotary& rotary, std::int64_t head_size, const Tensor& positions);
/// Queries or keys (..., positions, head size), each pair turned; as many first elements of each
/// head as the rotations have, the others as they are. In x's dtype.
Tensor rotated(const Tensor& x, const Rotations& by, Rotary::Layout layout);

}  // namespace ein::nn
