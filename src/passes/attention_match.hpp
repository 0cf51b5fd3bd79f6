// The nests that together are one attention, and which of their operands are its parts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "nest/nest.hpp"
#include "passes/attention_value.hpp"

namespace ein::attention {

/// Who uses which buffer.
struct Uses {
  explicit Uses(const Program& program);
  std::vector<std::vector<std::size_t>> readers, writers;
};

/// A part that an operand has in attention, as one nest has it.
struct Part {
  std::size_t nest = 0;
  const LoopNest::Operand* operand = nullptr;
  /// Strides of the matrix of scores along the nest's axes; 0 along the depth.
  std::vector<Size> matrix;
  std::size_t depth = 0;  // that axis
};

/// The matrix of scores and all that is shaped like it are contiguous, with the keys innermost; a
/// value for each query lies like the matrix's rows. So an axis of a nest is known by its stride in
/// the matrix, whatever it was merged with.
struct Match {
  std::vector<std::size_t> forward, backward;  // nests
  std::vector<std::size_t> finished;           // those that do more to a result behind it
  std::vector<int> locals;                     // buffers in between

  Size keys = 0, elements = 0;  // of a row, and of all, of the matrix
  std::optional<Scores> scores;
  int total = -1, delta = -1;  // buffers of the values of that name, in f32
  int weights = -1;            // the buffer of probabilities
  std::optional<ScoreGradient> gradient;
  std::vector<Part> operands;  // beside the product
  std::vector<Part> q, k, v, dout;
  std::optional<Part> out, dq, dk, dv;

  std::set<Size> boundaries;                   // strides in the matrix at which axes begin and end
  std::optional<std::pair<Size, Size>> query;  // of the mask: stride and size
};

/// The attention that begins with the product of nest `first`; none if there is none, or if
/// anything else reads what is in between or `kept` names it. Where gradients are all that is
/// wanted, no nest gives its result: then there is no `out`.
std::optional<Match> match(const Program& program, const Uses& uses, std::span<const int> kept,
                           std::size_t first);

}  // namespace ein::attention
