// Mesh: processes in rows and columns, and tensors whose axes are split over them.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ein/pattern.hpp>
#include <ein/placement.hpp>
#include <ein/tensor.hpp>
#include <ein/typed_named.hpp>

#include <ein/detail/check_call.hpp>  // behind typed_named.hpp, which takes it back

namespace ein {

namespace detail {
struct MeshData;
}

/// The processes of a program, along named axes: `ein::Mesh mesh({{"data", 2}, {"model", 2}})` are
/// four, of which ranks count along the last axis first.
///
/// A tensor is placed on a mesh by the names of its axes: `b@data` is the axis b, split in equal
/// parts over the mesh axis data, of which each process has the part of its place along data. What
/// is not placed is whole on every process. Operations take placed tensors as they take others, and
/// know from their patterns where results lie: axes that meet lie alike. Where an operation sums
/// over a split axis, processes add their parts. Nothing else is moved between processes but by
/// reshard.
class Mesh {
 public:
  /// The processes that `ein launch` or `mpirun` started, or else this one alone, which then
  /// computes the parts of all: `transport` is "shm", "mpi" or "loop" where it is not to be found
  /// out. Tensors on GPUs are exchanged by NCCL between processes. Errors of kind `value`: another
  /// number of processes than runs, names that are none or equal; of kind `peer`: processes that
  /// cannot be reached.
  explicit Mesh(std::vector<MeshAxis> axes, std::string_view transport = {});

  /// The processes at this one's place along an axis, along the others: (pipe=4, data=2) without
  /// pipe are four meshes (data=2), of which each process has its own. Where this process stands
  /// for all, the new mesh stands for those of any one place. An Error of kind `value` where there
  /// is no such axis.
  Mesh without(std::string_view axis) const;

  const std::vector<MeshAxis>& axes() const;
  /// Of all axes, or of one.
  int size() const;
  int size(std::string_view axis) const;
  /// Of this process, 0 where it stands for all.
  int rank() const;
  int coordinate(std::string_view axis) const;
  std::string_view transport() const;
  /// What this process has given to collectives, as the transport counts it, with what other meshes
  /// of the same processes gave meanwhile.
  std::vector<Exchange> exchanged() const;

  const std::shared_ptr<const detail::MeshData>& impl() const { return data_; }

 private:
  Mesh() = default;
  std::size_t axis_named(std::string_view name) const;
  std::shared_ptr<const detail::MeshData> data_;
};

/// Of a tensor that is whole on every process, and the same, the parts: `place(x, mesh, "b@data
/// s")`. Nothing is sent. Gradients flow back.
Tensor place(const Tensor& x, const Mesh& mesh,
             const PatternFor<Operation::place, detail::Types<Tensor>>& pattern);

/// The same values lying otherwise: `reshard(x, "b@data s c -> b s c@model")`. This is what moves
/// them between processes: an axis that becomes whole is gathered from them, one that becomes split
/// is cut, one mesh axis that goes from one axis to another is an exchange of all with all. The
/// left side says how x lies, which is checked. In a function that ein::compile traces a sum that
/// is split at once is a reduce_scatter. The gradient is the way back.
Tensor reshard(const Tensor& x,
               const PatternFor<Operation::reshard, detail::Types<Tensor>>& pattern);

// Of typed tensors, with the pattern in a type, the result's type says where it lies.

template <class T, FixedString A, FixedString Pattern>
auto place(const Typed<T, A>& x, const Mesh& mesh, PatternLiteral<Pattern>) {
  using Call = detail::StaticCallOn<Typed<T, A>, Operation::place, Pattern>;
  check_call(Call());
  return detail::with_type<Call>(
      place(static_cast<const Tensor&>(x), mesh,
            PatternFor<Operation::place, detail::Types<Tensor>>(Call::facts.argument)));
}
template <class T, FixedString A, FixedString Pattern>
auto reshard(const Typed<T, A>& x, PatternLiteral<Pattern>) {
  using Call = detail::StaticCallOn<Typed<T, A>, Operation::reshard, Pattern>;
  check_call(Call());
  return detail::with_type<Call>(
      reshard(static_cast<const Tensor&>(x),
              PatternFor<Operation::reshard, detail::Types<Tensor>>(Call::facts.argument)));
}
#undef check_call

/// The pattern under which a process keeps its part of x alone: that of placement(x), with the
/// first axis that is whole and that the mesh axis divides split over it. Empty where there is
/// none.
std::string shard_pattern(const Tensor& x, const Mesh& mesh, std::string_view axis);
/// The same values with no axis split over that mesh axis; x itself where none is. An Error of kind
/// `value` where x lies on a mesh without such an axis.
Tensor gather_over(const Tensor& x, std::string_view axis);

/// How a tensor lies, its axes called i0, i1, ...: "i0@data i1".
std::string placement(const Tensor& x);

}  // namespace ein
