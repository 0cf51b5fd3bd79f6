// Nests whose sizes are formulas, for the lengths of a call.
#pragma once

#include "graph/at_sizes.hpp"
#include "nest/nest.hpp"

namespace ein {

void put_sizes(LoopNest::Operand& operand, SizesAt& sizes);
void put_sizes(LoopNest& nest, SizesAt& sizes);
void put_sizes(Program::Result& result, SizesAt& sizes);
void put_sizes(Program& program, SizesAt& sizes);

}  // namespace ein
