// Reductions of pairs: results that share their operands, in tiles that stay in registers.
#pragma once

#include "nest/nest.hpp"
#include "schedule/steps.hpp"
#include "schedule/target.hpp"

namespace ein {

/// Adds the steps of a reduction that combines, for each pair of points of two axes, what is
/// computed of them, as a product of matrices does: max_k (a_ik + b_kj), Σ_d (x_id - y_jd)². A tile
/// is some rows of results, each some registers long. What its rows share is laid so that a unit
/// reads it from end to end. False, and no step, for other nests, or where tiles do not pay.
bool choose_tiles(const LoopNest& nest, const Target& target, Steps& steps);

}  // namespace ein
