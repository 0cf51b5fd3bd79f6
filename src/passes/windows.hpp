// Sums whose indices leave their operands, or meet in the result, as sums that do neither.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// The graph in which each contraction and reduction reads inside its inputs and writes each
/// element of its result once, as all passes after this one want it. What is read beside an input
/// is padded; what is written several times is read several times instead: y[2q + r] of
/// "x, k -> {2*x + k}" is the sum of x[q - j] · k[2j + r] over j.
Graph without_windows(Graph graph);

}  // namespace ein
