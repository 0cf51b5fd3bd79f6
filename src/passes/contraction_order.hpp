// The order in which a contraction of many operands is computed, two at a time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ein/graph.hpp>

namespace ein {

struct OrderOptions {
  /// No intermediate result may have more elements than this; 0 for no limit.
  std::int64_t max_intermediate = 0;
};

/// Replaces every `contract` by contractions of two operands, after summing the axes that only one
/// of them has. Up to 10 operands the order is the cheapest of all by cost() of the resulting
/// graph, found by dynamic programming over the subsets of operands; beyond, a greedy one: at each
/// step the pair whose product shrinks the data most. Intermediates of 8- and 16-bit floats are
/// f32. An Error of kind `memory` when no order keeps the limit (or, beyond 10 operands, the greedy
/// one does not).
Graph order_contractions(const Graph& graph, const OrderOptions& options = {});

}  // namespace ein
