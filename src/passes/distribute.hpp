// The part of a graph that each process of a mesh computes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// The same program on every process: its inputs are those of the graph, as they lie on a process,
/// and then, for each axis of the mesh, the place of the process along it, one i64.
struct ProcessGraph {
  Graph graph;
  std::vector<Placement> outputs;
};

/// Axes of operations that meet in a dimension are one class, which lies alike everywhere: as one
/// of the inputs says, or a `reshard`, or, for outputs that are to lie somewhere, that. Of a
/// composite dimension the outermost axis is split, so (h d) is split where h is. All other classes
/// are whole. The rest follows from the graph:
/// - Where an operation combines over a split axis, each process combines its part, and an
///   all_reduce the parts, in the order of ranks. Elements at positions along a split dimension are
///   found by the one process that has them.
/// - A `reshard` becomes slices, all_gathers and all_to_alls, one for each mesh axis that moves. A
///   slice of a sum that nothing else reads becomes a reduce_scatter.
/// - Indices, and random numbers, are those of the whole.
/// - The part of an axis b that is split over data is named "b/data".
///
/// An Error of kind `placement`, which begins with `call`, where axes of one class lie differently,
/// where an operation needs an axis whole that is split, and where no parts are equal.
ProcessGraph distribute(const std::string& call, const Graph& graph, std::span<const MeshAxis> mesh,
                        std::span<const Placement> inputs,
                        std::span<const std::optional<Placement>> outputs = {});

/// "b@data s": dimensions of these names. They are called i0, i1, ... where `names` has fewer.
std::string to_string(const Placement& placement, std::span<const MeshAxis> mesh, std::size_t rank,
                      std::span<const std::string> names = {});

/// In how many parts a dimension is split.
std::int64_t parts_of(const Placement::Split& split, std::span<const MeshAxis> mesh);

/// The shape of the part that one process has; sizes must be divisible.
Shape local_shape(const Shape& shape, const Placement& placement, std::span<const MeshAxis> mesh);

}  // namespace ein
