// What the processes of a mesh do together. Their transport takes values without gaps: others are
// copied to scratch memory first, or from there.
#include <algorithm>
#include <optional>

#include <ein/error.hpp>
#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/strided_copy.hpp"
#include "machine/parallel.hpp"
#include "mesh/process.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

/// An operand or result: the axes along which it moves, in order, are row-major without gaps for
/// the transport.
class Side {
 public:
  Side(const LoopNest& nest, const LoopNest::Operand& operand, bool has_processes, bool is_read)
      : operand_(operand) {
    std::vector<CopyAxis> axes;
    for (std::size_t a = nest.axes.size(); a-- > 0;) {
      const bool is_of_processes = a == 0 && nest.collective != Collective::all_reduce;
      if (is_of_processes && !has_processes) continue;
      const std::int64_t size = nest.axes[a].size, stride = operand.strides[a];
      is_packed_ &= size <= 1 || stride == elements_;
      axes.push_back(is_read ? CopyAxis{size, elements_, stride}
                             : CopyAxis{size, stride, elements_});
      elements_ *= size;
    }
    if (!is_packed_) copy_.emplace(std::move(axes), size_of(operand.dtype));
  }

  std::int64_t elements() const { return elements_; }
  /// Of scratch memory.
  std::size_t bytes() const {
    return is_packed_
               ? 0
               : aligned_bytes(static_cast<std::size_t>(elements_) * size_of(operand_.dtype));
  }
  std::byte* lies_at(const Run& run) const { return base(operand_, run.buffers); }
  /// Where the transport finds it: in place, or in `scratch`.
  std::byte* packed_at(const Run& run, std::byte* scratch) const {
    return is_packed_ ? lies_at(run) : scratch;
  }
  /// Of one that is packed.
  MemoryRange memory(const Run& run) const {
    std::byte* const begin = lies_at(run);
    return {begin, begin + elements_ * static_cast<std::int64_t>(size_of(operand_.dtype))};
  }
  void pack(const Run& run, std::byte* scratch) const {
    if (copy_) move(scratch, lies_at(run));
  }
  void unpack(const Run& run, const std::byte* scratch) const {
    if (copy_) move(lies_at(run), scratch);
  }

 private:
  void move(std::byte* to, const std::byte* from) const {
    parallel_for(copy_->parts(), [&](std::int64_t part) { copy_->run(to, from, part); });
  }

  LoopNest::Operand operand_;
  std::int64_t elements_ = 1;
  bool is_packed_ = true;
  std::optional<StridedCopy> copy_;  // none where it is packed
};

class UnderwayCollective final : public Underway {
 public:
  UnderwayCollective(mesh::Ticket ticket, MemoryRange from, MemoryRange to)
      : ticket_(std::move(ticket)), from_(from), to_(to) {}
  void wait() override { ticket_.wait(); }
  bool uses(const MemoryRange& memory) const override {
    return memory.meets(from_) || memory.meets(to_);
  }

 private:
  mesh::Ticket ticket_;
  MemoryRange from_, to_;
};

class CollectiveKernel final : public Kernel {
 public:
  explicit CollectiveKernel(const LoopNest& nest)
      : collective_(nest.collective),
        mesh_axes_(nest.mesh_axes),
        dtype_(nest.output.dtype),
        combine_(mesh::for_collective(nest.combine.value_or(Combine::sum))),
        from_(nest, nest.inputs[0],
              collective_ == Collective::reduce_scatter || collective_ == Collective::all_to_all,
              true),
        to_(nest, nest.output,
            collective_ == Collective::all_gather || collective_ == Collective::all_to_all, false) {
  }

  std::size_t workspace_bytes(int /*threads*/) const override {
    return from_.bytes() + to_.bytes();
  }

  /// Scratch memory is the next kernel's, too, so what needs some is not left alone.
  std::unique_ptr<Underway> start(const Run& run) const override {
    if (!run.process || workspace_bytes(1) > 0) return nullptr;
    return std::make_unique<UnderwayCollective>(
        start(run.process->group(mesh_axes_), from_.lies_at(run), to_.lies_at(run)),
        from_.memory(run), to_.memory(run));
  }

  void run(const Run& run) const override {
    if (!run.process) throw std::logic_error("a collective of a program that runs on no mesh");
    std::byte* const from = from_.packed_at(run, run.workspace);
    std::byte* const scratch = run.workspace + from_.bytes();
    std::byte* const to = to_.packed_at(run, scratch);
    from_.pack(run, run.workspace);
    start(run.process->group(mesh_axes_), from, to).wait();
    to_.unpack(run, scratch);
  }

 private:
  mesh::Ticket start(mesh::Group& group, const std::byte* from, std::byte* to) const {
    const std::int64_t blocks = collective_ == Collective::all_to_all ? group.size() : 1;
    return group.start(collective_, from, to, std::min(from_.elements(), to_.elements()) / blocks,
                       dtype_, combine_);
  }

  Collective collective_;
  std::uint32_t mesh_axes_;
  DType dtype_;
  Combine combine_;
  Side from_, to_;
};

}  // namespace

std::unique_ptr<Kernel> make_collective_kernel(const LoopNest& nest) {
  return std::make_unique<CollectiveKernel>(nest);
}

}  // namespace ein::host
