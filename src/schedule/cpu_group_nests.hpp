// Groups of nests that are run block by block.
#pragma once

#include <span>

#include "nest/nest.hpp"
#include "schedule/target.hpp"

namespace ein {

/// Fills in program.groups, in the order of the nests: a softmax, a norm, an optimizer's update
/// becomes one group, whose data passes the cache once. A nest belongs to a group if each block of
/// it needs only what the same block of the others makes. Nests change places where that brings a
/// group together; and a reduction over what the blocks are cut from (the sum down the columns of a
/// norm's gradient) becomes two nests, one of the group and one after it. Buffers that nothing else
/// uses, nor `kept`, become local. `memory` says which input buffers share memory: equal numbers
/// do; empty for none.
void group_nests(Program& program, const Target& target, std::span<const int> kept,
                 std::span<const int> memory = {});

}  // namespace ein
