// Small collectives that do not wait for each other, joined.
#pragma once

#include <cstdint>

#include <ein/graph.hpp>

namespace ein {

/// The largest operand of a collective that is joined with others, and the largest joined one. All
/// processes know these numbers, as they must start the same collectives.
struct JoinLimits {
  std::int64_t operand_bytes = std::int64_t{64} << 10;
  std::int64_t joined_bytes = std::int64_t{4} << 20;
};

/// Of the graph of one process: sums (all_reduce, reduce_scatter) of one phase over the same
/// processes and of one dtype, none of which needs another's result, become one of all their
/// operands, one behind the other; so do the all_gathers of the update. It starts when the last
/// operand is there. (An all_gather before the update is of a parameter that is gathered just
/// before its use.) Results have the same bits.
Graph join_collectives(const Graph& graph, const JoinLimits& limits = {});

}  // namespace ein
