// What processes do together, between kernels: NCCL takes values without gaps, so others are copied
// to the workspace first, or from there.
#include <algorithm>
#include <utility>

#include "codegen/emit.hpp"
#include "passes/lower.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"

namespace ein::codegen {
namespace {

/// An operand or result along the axes that it has, in order.
struct Side {
  Program::Result at;
  Program::Result packed{};  // the same without gaps, in the workspace
  bool is_packed = true;

  Side(const LoopNest& nest, const LoopNest::Operand& operand, bool has_processes)
      : at{operand.buffer, operand.dtype, {}, {}, operand.offset} {
    const bool is_of_processes = nest.collective != Collective::all_reduce && !has_processes;
    for (std::size_t a = is_of_processes ? 1 : 0; a < nest.axes.size(); ++a) {
      at.shape.push_back(nest.axes[a].size);
      at.strides.push_back(operand.strides[a]);
    }
    packed = {workspace_buffer, operand.dtype, at.shape, contiguous_strides(at.shape), 0};
    for (std::size_t d = 0; d < at.shape.rank(); ++d)
      is_packed &= is_one(at.shape[d]) || always_equal(at.strides[d], packed.strides[d]);
  }

  Size elements() const { return numel(at.shape); }
  /// Of the workspace, in elements.
  Size room() const {
    const auto aligned = static_cast<std::int64_t>(256 / size_of(at.dtype));
    return is_packed ? Size(0) : round_up(elements(), aligned);
  }
  CollectiveSource::Place place() const {
    const Program::Result& lies = is_packed ? at : packed;
    return {lies.buffer, lies.offset * size_of(lies.dtype)};
  }
};

}  // namespace

CollectiveSource emit_collective(const LoopNest& nest, const GpuTarget& target,
                                 std::string_view suffix) {
  const Collective kind = nest.collective;
  Side from(nest, nest.inputs[0],
            kind == Collective::reduce_scatter || kind == Collective::all_to_all);
  Side to(nest, nest.output, kind == Collective::all_gather || kind == Collective::all_to_all);
  to.packed.offset = from.room();
  CollectiveSource source{.collective = kind,
                          .mesh_axes = nest.mesh_axes,
                          .dtype = nest.output.dtype,
                          .combine = nest.combine.value_or(Combine::sum),
                          .count = kind == Collective::all_gather ? from.elements() : to.elements(),
                          .from = from.place(),
                          .to = to.place()};
  if (kind == Collective::all_to_all) source.count = to.elements() / nest.axes[0].size;
  const auto copy = [&](const Program::Result& a, const Program::Result& b) {
    std::vector<KernelSource> kernels = emit(copy_nest(a, b), target, suffix);
    for (KernelSource& kernel : kernels)
      kernel.workspace_bytes = (from.room() + to.room()) * size_of(a.dtype);
    return kernels;
  };
  if (!from.is_packed) source.before = copy(from.at, from.packed);
  if (!to.is_packed) source.after = copy(to.packed, to.at);
  return source;
}

}  // namespace ein::codegen
