// Groups: several nests, block by block. Each block's kernels see only their own piece of every operand.
#include <atomic>

#include "cpu/kernel.hpp"
#include "cpu/parallel.hpp"
#include "cpu/small_array.hpp"

namespace ein::host {
namespace {

class GroupKernel final : public Kernel {
 public:
  GroupKernel(const Program& program, const Program::Group& group)
      : blocks_(group.blocks), threads_(std::min<std::int64_t>(group.blocks, num_threads())) {
    std::vector<std::int64_t> place(program.buffers.size(), -1);  // of local buffers in a thread's memory
    std::size_t most_workspace = 0;
    for (std::size_t i = 0; i < group.count; ++i) {
      LoopNest nest = program.nests[group.first + i];
      const std::size_t axis = group.axes[i];
      nest.axes[axis].size /= group.blocks;
      Member member{.operands = {}, .kernel = nullptr};
      const auto take = [&](LoopNest::Operand& operand) {
        const auto b = static_cast<std::size_t>(operand.buffer);
        const auto bytes = static_cast<std::int64_t>(size_of(operand.dtype));
        Operand place_of{operand.buffer, operand.strides[axis] * nest.axes[axis].size * bytes, -1};
        if (program.buffers[b].is_local) {
          if (place[b] < 0) {
            place[b] = static_cast<std::int64_t>(local_bytes_);
            local_bytes_ += aligned_bytes(static_cast<std::size_t>(program.buffers[b].elements / group.blocks * bytes));
          }
          place_of = {-1, 0, place[b]};
        }
        operand.buffer = static_cast<int>(member.operands.size());
        member.operands.push_back(place_of);
      };
      for (LoopNest::Operand& input : nest.inputs) take(input);
      take(nest.output);
      member.kernel = make_kernel(nest);
      most_workspace = std::max(most_workspace, aligned_bytes(member.kernel->workspace_bytes()));
      members_.push_back(std::move(member));
    }
    thread_bytes_ = local_bytes_ + most_workspace;
  }

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(threads_) * thread_bytes_; }

  void run(const Run& run) const override {
    // Each part begins with blocks of its own and then helps the others.
    SmallArray<Range, 32> ranges(static_cast<std::size_t>(threads_));
    for (std::int64_t t = 0; t < threads_; ++t) {
      ranges[static_cast<std::size_t>(t)].next = blocks_ * t / threads_;
      ranges[static_cast<std::size_t>(t)].end = blocks_ * (t + 1) / threads_;
    }
    parallel_for(threads_, [&](std::int64_t part) {
      std::byte* const memory = run.workspace + static_cast<std::size_t>(part) * thread_bytes_;
      for (std::int64_t t = 0; t < threads_; ++t) {
        Range& range = ranges[static_cast<std::size_t>((part + t) % threads_)];
        for (std::int64_t block; (block = range.next++) < range.end;) run_block(run, block, memory);
      }
    });
  }

 private:
  struct Range {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };
  struct Operand {
    int buffer;
    std::int64_t block_bytes;  // from one block to the next
    std::int64_t local;        // of a local buffer: its place in a thread's memory
  };
  struct Member {
    std::vector<Operand> operands;  // a buffer of its own for each, to the kernel
    std::unique_ptr<Kernel> kernel;
  };

  void run_block(const Run& run, std::int64_t block, std::byte* memory) const {
    for (const Member& member : members_) {
      SmallArray<std::byte*, 24> buffers(member.operands.size());
      for (std::size_t o = 0; o < member.operands.size(); ++o) {
        const Operand& operand = member.operands[o];
        buffers[o] = operand.local >= 0 ? memory + operand.local
                                        : run.buffers[static_cast<std::size_t>(operand.buffer)] + block * operand.block_bytes;
      }
      member.kernel->run({{buffers.data(), buffers.size()}, memory + local_bytes_, run.random});
    }
  }

  std::int64_t blocks_, threads_;
  std::vector<Member> members_;
  std::size_t local_bytes_ = 0, thread_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Program& program, const Program::Group& group) {
  if (group.count == 1) return make_kernel(program.nests[group.first]);
  return std::make_unique<GroupKernel>(program, group);
}

}  // namespace ein::host
