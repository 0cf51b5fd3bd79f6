// The forms of nests, one file each. None of these nests is empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/emit.hpp"

namespace ein::codegen {

using Kernels = std::vector<KernelSource>;

/// What all forms are told beside the nest.
struct Context {
  GpuTarget target;
  std::string suffix;  // of kernels' names
};

Kernels emit_map(const LoopNest& nest, const Context& context);
/// Maps that move elements without a look at them, and gathers.
Kernels emit_copy(const LoopNest& nest, const Context& context);
Kernels emit_reduce(const LoopNest& nest, const Context& context);
/// Whether a nest is for emit_contract: the sum of the products of its first two inputs.
bool is_contraction(const LoopNest& nest);
Kernels emit_contract(const LoopNest& nest, const Context& context);
std::vector<Alternative> contract_alternatives(const LoopNest& nest, const Context& context);
/// A reduction of pairs in tiles, which is no contraction; none where tiles would not pay.
std::optional<Kernels> emit_pairs(const LoopNest& nest, const Context& context);
Kernels emit_scatter(const LoopNest& nest, const Context& context);
Kernels emit_scan(const LoopNest& nest, const Context& context);
Kernels emit_sort(const LoopNest& nest, const Context& context);
/// A group whose chains are alike (Program::Group::each).
Kernels emit_many(const Program& program, const Program::Group& group, const Context& context);
/// Steps whose units are rows, or pieces of rows. `workspace`: the number of the buffer that is the
/// workspace, if any is.
Kernels emit_rows(const Schedule& schedule, const Context& context, int workspace = -1);

}  // namespace ein::codegen
