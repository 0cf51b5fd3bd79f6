// Functions of one matrix in plain loops, in extended precision: what the interpreters of graphs
// and schedules compute. Nothing in it is shared with decompose.hpp but its meaning.
#pragma once

#include <vector>

#include "linalg/function.hpp"

namespace ein::linalg {

/// `a` and `b` are row-major, and so is the result. Throws where decompose() fails.
std::vector<double> reference(MatrixFunction function, const MatrixSizes& sizes,
                              const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ein::linalg
