// Tensors that lie on a mesh: their parts, and what runs on all of them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <ein/mesh.hpp>
#include "mesh/loop.hpp"
#include "mesh/process.hpp"
#include "runtime/plan.hpp"

namespace ein {

struct detail::MeshData {
  std::vector<MeshAxis> axes;
  mesh::Transport* transport = nullptr;  // null where this process stands for all
  std::unique_ptr<mesh::Loop> loop;      // null where it does not
  /// A process that is here.
  class Here {
   public:
    Here(mesh::Process here, std::size_t axes) : process(std::move(here)), axes_(axes) {}
    /// Where it is along each axis, as a program on that device reads it. Thread-safe.
    const std::vector<Tensor>& coordinates(Device device) const;

    mesh::Process process;

   private:
    struct Known {
      std::mutex mutex;
      std::deque<std::pair<Device, std::vector<Tensor>>> coordinates;
    };
    std::size_t axes_;
    std::unique_ptr<Known> known_ = std::make_unique<Known>();
  };
  std::vector<Here> here;
};

struct detail::PlacedData {
  std::shared_ptr<const MeshData> mesh;
  Placement placement;
  std::vector<Tensor> parts;  // of the processes that are here
};

namespace engine {

/// How many processes these axes have; an Error of kind `value` where they make no mesh.
int processes_of(const std::vector<MeshAxis>& axes);
bool are_same(const detail::MeshData& a, const detail::MeshData& b);
/// The mesh on which operands lie, null if all are whole; an Error of kind `placement`, which
/// begins with `call`, where there are several.
MeshPointer common_mesh(const std::string& call, Operands operands);
/// That, or the mesh of the trace.
MeshPointer mesh_of_call(const std::string& call, Operands operands);
/// How a side of a pattern says that a value of this shape lies; dimensions under an ellipsis lie
/// as `under_ellipsis` says. Errors: of kind `rank`; of kind `placement` where the mesh has no
/// such axis.
Placement placement_in(const std::string& call, const grammar::Pattern& pattern,
                       const grammar::Side& side, const Shape& shape,
                       const std::vector<MeshAxis>& axes,
                       const Placement::Split& under_ellipsis = {});
/// Whether a side says of one of its axes that it is split.
bool places(const grammar::Pattern& pattern, const grammar::Side& side);
/// As a side calls its dimensions; none where some are under an ellipsis.
std::vector<std::string> names_in(const grammar::Pattern& pattern, const grammar::Side& side);
/// The graph of a call, whose operands and result lie as its pattern says where it says any of it:
/// a side that places an axis leaves the others whole.
Graph lying_as_written(const std::string& call, const Graph& graph, const grammar::Pattern& pattern,
                       const MeshPointer& mesh);
/// Of a whole tensor nothing.
Placement placement_of(const Tensor& x);
/// The part of the process that is number `here` of those that are here; a whole tensor as it is.
const Tensor& part_of(const Tensor& x, std::size_t here);
/// Of elements and gaps, of the first part of a placed tensor.
const std::shared_ptr<Storage>& memory_of(const Tensor& x);
/// A placed tensor is written to.
void count_write(const Tensor& x);
/// Bytes that one process has of it.
std::size_t local_bytes(const Tensor& x);

/// A tensor of this shape whose parts these are; the first of them where it is whole.
Tensor joined(const MeshPointer& mesh, Placement placement, Shape shape, std::vector<Tensor> parts);
/// What each process that is here computes, together: f(here) gives its parts of results, which lie
/// as `placements` say and have the shapes shape_of(result) as a whole.
std::vector<Tensor> run_parts(const MeshPointer& mesh, const std::vector<Placement>& placements,
                              const std::function<Shape(std::size_t)>& shape_of,
                              const std::function<std::vector<Tensor>(std::size_t)>& f);
/// The tensor whose parts are f(part) and which has this shape.
Tensor with_parts(const Tensor& x, Shape shape, Placement placement,
                  const std::function<Tensor(const Tensor&)>& f);
/// A whole tensor as `like` lies, of its shape. In a trace, where nobody knows that yet, as it is.
Tensor lying_as(const Tensor& whole, const Tensor& like);
/// A whole tensor on the mesh of `like`, if that is placed, and lying so.
Tensor lying_as(const Tensor& whole, const Tensor& like, const Placement& placement);
/// Tensor::copy_from of placed tensors.
void copy_parts(const Tensor& from, const Tensor& to);
/// f(here) for each process that is here, each on a thread of its own where there are several.
void for_each_here(const detail::MeshData& mesh, const std::function<void(std::size_t)>& f);

}  // namespace engine
}  // namespace ein
