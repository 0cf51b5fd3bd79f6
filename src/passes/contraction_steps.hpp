// Which operands of a contraction meet at which step.
#pragma once

#include <cstdint>
#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// Operands are numbered 0, 1, ...; step i multiplies those that it names, sums the axes that
/// neither the result nor another operand has, and makes operand n + i.
struct ContractionSteps {
  /// Operands whose own axes are summed before the first step, where that keeps the limit.
  std::vector<bool> is_summed_first;
  std::vector<std::vector<int>> steps;
};

/// The axes that `access` moves along, in order.
std::vector<int> axes_along(const Access& access);

/// The steps of a contraction of two operands or more. Up to 10 operands they are the cheapest of
/// all by cost() of the resulting graph, found by dynamic programming over the subsets of operands;
/// beyond, greedy ones: at each step the pair whose product shrinks the data most.
///
/// A step has two operands. Where no such steps keep every intermediate result within
/// `max_intermediate` elements (0: no limit), it may have more, up to 15, or 4 of complex numbers:
/// as many as one loop nest multiplies and sums without storing the products. An Error of kind
/// `memory` where that does not help either.
ContractionSteps contraction_steps(const Op& op, std::int64_t max_intermediate);

}  // namespace ein
