// Nests that do the same to many tensors as one group.
#pragma once

#include <span>

#include "nest/nest.hpp"

namespace ein {

/// Whether one thread for some neighbours can run it: elementwise on contiguous tensors and single
/// numbers, without a look at indices and random numbers.
bool is_flat(const LoopNest& nest);

/// Reorders a program's groups, which are filled in, so that the update of many parameters becomes
/// few of them: flat nests of the update that work on the same elements one after the other become
/// a chain, and chains that are alike and independent of each other become one group (Group::each).
/// Buffers that a chain alone uses, nor `kept`, become local. `memory` as for group_nests.
void group_many(Program& program, std::span<const int> kept, std::span<const int> memory = {});

}  // namespace ein
