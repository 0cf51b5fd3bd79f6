// Which maps what reads them can compute. simplify() makes one operation of maps, which is counted,
// drawn and differentiated as one. lower() makes one nest of more: of a reduction, what it reads
// and what finishes it; and of maps that are two operations still, as those of calls, which are not
// simplified, and those that later passes made. Both ask here.
#pragma once

#include <cstddef>

#include <ein/graph.hpp>

namespace ein {

/// The most that a nest may grow to by fusion. A processor's registers and streams are limited, and
/// passes take time for each step; beside so many steps, memory traffic between nests costs
/// little.
struct FusedSize {
  static constexpr std::size_t most_reads = 16, most_steps = 128;
  std::size_t reads = 0, steps = 0;

  explicit FusedSize(const Op& op) : reads(op.inputs.size()), steps(op.expr.steps.size()) {}
  bool has_room_for(const FusedSize& other) const {
    return reads + other.reads <= most_reads && steps + other.steps <= most_steps;
  }
  FusedSize& operator+=(const FusedSize& other) {
    reads += other.reads;
    steps += other.steps;
    return *this;
  }
};

/// The type in which the nest of `op` computes.
DType nest_type(const Graph& graph, const Op& op);

/// Whether `reader`, a map or a reduction, can compute `map` in place of what `read` says that it
/// reads: with the same numbers, and no element more often than `map` does.
bool takes_in(const Graph& graph, const Op& reader, const Op& map, const Access& read);

/// The same in one nest, where they stay two operations. The indices of a map that a map reads
/// would be in the way where that finishes a reduction: an epilogue has none.
bool takes_in_by_nest(const Graph& graph, const Op& reader, const Op& map, const Access& read);

}  // namespace ein
