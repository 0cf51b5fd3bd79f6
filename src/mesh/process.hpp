// A process of a mesh: what its part of a program is computed with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <ein/placement.hpp>
#include "mesh/transport.hpp"

namespace ein::mesh {

class Process {
 public:
  /// Process `transport.rank()` of a mesh of these processes of the transport, in ascending order:
  /// they count along the last axis first. The transport outlives it.
  Process(Transport& transport, std::span<const MeshAxis> axes, std::vector<int> processes);

  /// Among the processes of the mesh.
  int rank() const { return rank_; }
  /// Those of the mesh, by their ranks in the transport.
  const std::vector<int>& processes() const { return processes_; }
  /// The place along a mesh axis.
  int coordinate(std::size_t axis) const { return coordinates_[axis]; }
  /// The processes that differ from this one along these mesh axes alone, a bit for each, by their
  /// ranks in the transport.
  std::vector<int> along(std::uint32_t mesh_axes) const;
  /// The group of those; all of them ask for it.
  Group& group(std::uint32_t mesh_axes) const { return group(mesh_axes, transport_); }
  /// The same processes as `by` has them, another transport between those of this one.
  Group& group(std::uint32_t mesh_axes, Transport& by) const;
  /// All of the mesh.
  Group& all() const {
    return group(static_cast<std::uint32_t>((std::uint64_t{1} << axes_.size()) - 1));
  }
  /// What was given to the groups that were asked for, since they were, by their mesh axes; by all
  /// transports.
  std::map<std::uint32_t, Counters> counters() const;
  Transport& transport() const { return transport_; }

 private:
  Transport& transport_;
  std::vector<MeshAxis> axes_;
  std::vector<int> processes_;
  int rank_;
  std::vector<int> coordinates_;
  struct Known {
    std::mutex mutex;
    /// And what was counted before.
    std::map<std::pair<std::uint32_t, Transport*>, std::pair<Group*, Counters>> groups;
  };
  std::unique_ptr<Known> known_ = std::make_unique<Known>();
};

}  // namespace ein::mesh
