// A program's kernels in few translation units.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emit.hpp"

namespace ein::codegen {

/// Nests that differ only in the buffers they work on have one kernel.
struct Units {
  std::vector<std::string> texts;      // complete translation units
  std::vector<KernelSource> launches;  // in order; their texts are in the units
  std::vector<std::size_t> unit_of;    // of each launch
  /// Collectives, in order, each with the number of the launch that it comes before; their copies
  /// are launches.
  std::vector<std::pair<std::size_t, CollectiveSource>> collectives;
};

/// Compiling a unit costs some 20 ms before its first kernel, and one unit keeps one core busy.
inline constexpr std::size_t kernels_per_unit = 8;

/// How the kernels of a group are made: by emit(), unless it is said otherwise.
using Emission =
    std::function<std::vector<KernelSource>(const Program& program, const Program::Group& group,
                                            const GpuTarget& target, std::string_view suffix)>;

/// The kernels of a grouped program. A unit depends on the program and the target alone, so that a
/// cache has it again.
Units emit_units(const Program& program, const GpuTarget& target = {},
                 std::size_t most_kernels = kernels_per_unit, const Emission& emission = {});

}  // namespace ein::codegen
