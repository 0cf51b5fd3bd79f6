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
/// of them has, in the steps of contraction_steps(). A step of more than two operands is a map, the
/// products, and a reduction, their sum. Intermediates of 8- and 16-bit floats are f32. An Error of
/// kind `memory` when no steps keep the limit (or, beyond 10 operands, the greedy ones do not).
Graph order_contractions(const Graph& graph, const OrderOptions& options = {});

}  // namespace ein
