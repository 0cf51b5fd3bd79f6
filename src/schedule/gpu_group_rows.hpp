// Groups of nests that are run row by row.
#pragma once

#include <span>

#include "nest/nest.hpp"
#include "schedule/target.hpp"

namespace ein {

/// Puts nests that share their rows into groups, each of which can be one kernel: a softmax, a
/// norm, a cross-entropy, with what comes before and after at each point of the row. A row is a
/// point of the axes that a reduction keeps; of what the group writes, its nests need only the same
/// row's values. Nests change places where that brings a group together, and have the axes of their
/// group afterwards (see Group::row_axes). Buffers that nothing else uses, nor `kept`, become
/// local. Groups of several nests that are there already stay as they are, and each other nest is a
/// group by itself. `memory` says which input buffers share memory: equal numbers do; empty for
/// none.
void group_rows(Program& program, const GpuTarget& target, std::span<const int> kept,
                std::span<const int> memory = {});

}  // namespace ein
