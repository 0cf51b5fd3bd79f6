// Schedules for a GPU.
#pragma once

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"
#include "schedule/target.hpp"

namespace ein {

/// Of a group of nests that run row by row (Program::Group::row_axes): a unit is a row.
Schedule choose(const Program& program, const Program::Group& group, const GpuTarget& target);

/// Of a reduction: a unit is what one result combines. Few results of many elements are cut into
/// pieces, which a second step combines.
Schedule choose(const LoopNest& reduction, const GpuTarget& target);

}  // namespace ein
