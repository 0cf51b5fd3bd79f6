// Groups: several nests, block by block. Each block's kernels see only their own piece of every operand.
#include <atomic>
#include <map>

#include "cpu/kernel.hpp"
#include "cpu/parallel.hpp"
#include "cpu/rows.hpp"
#include "cpu/small_array.hpp"

namespace ein::host {
namespace {

class GroupKernel final : public Kernel {
 public:
  GroupKernel(const Program& program, const Program::Group& group)
      : blocks_(group.blocks) {
    std::vector<int> uses(program.buffers.size(), 0);
    for (std::size_t i = 0; i < group.count; ++i) {
      parts_.push_back(part_of(program, group, i));
      for (const Use& use : parts_.back().uses) ++uses[static_cast<std::size_t>(use.buffer)];
    }
    std::size_t most_workspace = 0;
    for (std::size_t i = 0; i < parts_.size();) {
      const std::size_t count = rows_from(program, i, uses);
      members_.push_back(count > 1 ? member_of_rows(program, i, count, uses) : Member{});
      if (!members_.back().kernel) members_.back() = member_of_one(i);
      i += members_.back().nests;
      most_workspace = std::max(most_workspace, aligned_bytes(members_.back().kernel->workspace_bytes(1)));
    }
    parts_.clear();
    place_of_.clear();
    thread_bytes_ = local_bytes_ + most_workspace;
  }

  std::size_t workspace_bytes(int threads) const override { return static_cast<std::size_t>(parts(threads)) * thread_bytes_; }

  void run(const Run& run) const override {
    // Each part begins with blocks of its own and then helps the others.
    const std::int64_t threads = parts(run.threads);
    SmallArray<Range, 32> ranges(static_cast<std::size_t>(threads));
    for (std::int64_t t = 0; t < threads; ++t) {
      ranges[static_cast<std::size_t>(t)].next = blocks_ * t / threads;
      ranges[static_cast<std::size_t>(t)].end = blocks_ * (t + 1) / threads;
    }
    parallel_for(threads, [&](std::int64_t part) {
      std::byte* const memory = run.workspace + static_cast<std::size_t>(part) * thread_bytes_;
      for (std::int64_t t = 0; t < threads; ++t) {
        Range& range = ranges[static_cast<std::size_t>((part + t) % threads)];
        for (std::int64_t block; (block = range.next++) < range.end;) run_block(run, block, memory);
      }
    });
  }

 private:
  std::int64_t parts(int threads) const { return std::min<std::int64_t>(blocks_, threads); }

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
    std::size_t nests = 1;
  };
  /// A nest's piece of one block.
  struct Use {
    int buffer;
    Operand operand;
  };
  struct Part {
    LoopNest nest;
    std::size_t axis;
    std::vector<Use> uses;  // of each operand, the output last
  };

  Part part_of(const Program& program, const Program::Group& group, std::size_t i) {
    Part part{program.nests[group.first + i], group.axes[i], {}};
    part.nest.axes[part.axis].size /= group.blocks;
    const auto take = [&](const LoopNest::Operand& operand) {
      const auto bytes = static_cast<std::int64_t>(size_of(operand.dtype));
      const Program::Buffer& buffer = program.buffers[static_cast<std::size_t>(operand.buffer)];
      Operand place{operand.buffer, operand.strides[part.axis] * part.nest.axes[part.axis].size * bytes, -1};
      if (buffer.is_local) {
        const auto [found, is_new] = place_of_.try_emplace(operand.buffer, static_cast<std::int64_t>(local_bytes_));
        if (is_new) local_bytes_ += aligned_bytes(static_cast<std::size_t>(buffer.elements / group.blocks * bytes));
        place = {-1, 0, found->second};
      }
      part.uses.push_back({operand.buffer, place});
    };
    for (const LoopNest::Operand& input : part.nest.inputs) take(input);
    take(part.nest.output);
    return part;
  }

  Member member_of_one(std::size_t i) {
    Member member;
    LoopNest nest = parts_[i].nest;
    for (std::size_t o = 0; o < parts_[i].uses.size(); ++o) {
      (o < nest.inputs.size() ? nest.inputs[o] : nest.output).buffer = static_cast<int>(o);
      member.operands.push_back(parts_[i].uses[o].operand);
    }
    simplify(nest);  // the axis that was cut may be of one point now
    member.kernel = make_kernel(nest);
    return member;
  }

  /// What rows.hpp asks of parts [first, first + count).
  struct RowMembers {
    RowMembers(const Program& program, std::span<const Part> parts, std::int64_t blocks, const std::vector<int>& uses) {
      std::size_t operands = 0;
      std::map<int, int> uses_here;
      for (const Part& part : parts) {
        operands += part.uses.size();
        for (const Use& use : part.uses) ++uses_here[use.buffer];
      }
      is_kept = std::make_unique<bool[]>(operands);
      memory.reserve(operands);
      for (const Part& part : parts) {
        const std::size_t begin = memory.size();
        for (const Use& use : part.uses) {
          const Program::Buffer& buffer = program.buffers[static_cast<std::size_t>(use.buffer)];
          is_kept[memory.size()] = !buffer.is_local || uses_here[use.buffer] != uses[static_cast<std::size_t>(use.buffer)];
          memory.push_back(buffer.memory < 0 ? use.buffer : buffer.memory);
        }
        const std::size_t size = part.uses.size();
        members.push_back({&part.nest, part.axis, blocks, {memory.data() + begin, size}, {is_kept.get() + begin, size}});
      }
    }
    std::vector<int> memory;
    std::unique_ptr<bool[]> is_kept;
    std::vector<RowMember> members;
  };

  std::size_t rows_from(const Program& program, std::size_t first, const std::vector<int>& uses) const {
    return count_rows_together(RowMembers(program, std::span(parts_).subspan(first), blocks_, uses).members);
  }

  Member member_of_rows(const Program& program, std::size_t first, std::size_t count, const std::vector<int>& uses) const {
    const RowMembers rows(program, std::span(parts_).subspan(first, count), blocks_, uses);
    Member member{{}, make_rows_kernel(rows.members), count};
    for (std::size_t i = first; i < first + count; ++i) {
      for (const Use& use : parts_[i].uses) member.operands.push_back(use.operand);
    }
    return member;
  }

  void run_block(const Run& run, std::int64_t block, std::byte* memory) const {
    for (const Member& member : members_) {
      SmallArray<std::byte*, most_operands> buffers(member.operands.size());
      for (std::size_t o = 0; o < member.operands.size(); ++o) {
        const Operand& operand = member.operands[o];
        buffers[o] = operand.local >= 0 ? memory + operand.local
                                        : run.buffers[static_cast<std::size_t>(operand.buffer)] + block * operand.block_bytes;
      }
      member.kernel->run({{buffers.data(), buffers.size()}, memory + local_bytes_, run.random});
    }
  }

  std::int64_t blocks_;
  std::vector<Part> parts_;                // while the kernel is made
  std::map<int, std::int64_t> place_of_;  // of local buffers in a thread's memory
  std::vector<Member> members_;
  std::size_t local_bytes_ = 0, thread_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Program& program, const Program::Group& group) {
  if (group.count == 1) return make_kernel(program.nests[group.first]);
  return std::make_unique<GroupKernel>(program, group);
}

}  // namespace ein::host
