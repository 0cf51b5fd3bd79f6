// The loops and the CUDA kernels of a call on the command line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/emit.hpp"
#include "graph/call.hpp"
#include "nest/nest.hpp"

namespace ein::command {

/// The loops that run on operands without gaps, contractions in their best order.
Program program_of(const Graph& graph, std::span<const OperandType> operands);

/// What "sm_90a" says. A UsageError for what is no architecture that kernels are made for.
codegen::Target target_of(const std::string& arch);

/// The kernels of all nests, and the one translation unit that they make.
struct Kernels {
  std::vector<codegen::KernelSource> sources;
  std::string text;
};

Kernels kernels_of(const Program& program, const codegen::Target& target);

}  // namespace ein::command
