// Decoders whose training step is run in every way that it must agree with itself.
#pragma once

#include <string>
#include <vector>

#include "support/decoder.hpp"

namespace ein::attack {

using test::Decoder;

/// Norms × 1 to 4 layers × masks × with a feed-forward × f32, bf16 × checkpointed × 256, 512
/// positions: 768, most with attention in tiles where the second-level cache has 1 MiB.
std::vector<Decoder> decoder_grid();

struct DecoderVerdict {
  /// What is wrong with the compiled step; empty if nothing is.
  std::string wrong{};
  /// Call by call it is too far from what it should be to compare with.
  bool uncertain = false;
  /// Attention ran in tiles, without a matrix of scores.
  bool in_tiles = false;
};
/// The compiled step must give the same bits on one thread and on two, in two runs; and its loss,
/// gradients and new parameters may be little more off from those of the same step in f64 than
/// those of the step that runs call by call.
DecoderVerdict check(const Decoder& decoder);

/// A simpler one with the same kind of fault.
Decoder shrunk(Decoder decoder);

}  // namespace ein::attack
