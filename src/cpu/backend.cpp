// The CPU as a backend: kernels run at once, on the thread pool.
#include "backend/backend.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/tensor.hpp>
#include "cpu/kernel.hpp"
#include "cpu/measure.hpp"
#include "cpu/row_code.hpp"
#include "graph/verified.hpp"
#include "passes/find_attention.hpp"
#include "schedule/choose.hpp"
#include "schedule/group_nests.hpp"
#include "tensor/fork.hpp"
#include "tensor/memory_count.hpp"
#include "tensor/processor.hpp"

namespace ein::host {
namespace {

class CpuKernels final : public engine::Kernels {
 public:
  explicit CpuKernels(std::vector<std::shared_ptr<const Kernel>> kernels)
      : kernels_(std::move(kernels)) {}
  std::size_t workspace_bytes(int threads) const override {
    std::size_t most = 0;
    for (const auto& kernel : kernels_) most = std::max(most, kernel->workspace_bytes(threads));
    return most;
  }
  void run(const Run& run) const override {
    for (const auto& kernel : kernels_) kernel->run(run);
  }

 private:
  std::vector<std::shared_ptr<const Kernel>> kernels_;
};

class CpuKernelsPlan final : public engine::KernelsPlan {
 public:
  explicit CpuKernelsPlan(const Program& program) {
    const SizeScope* const scope = SizeScope::active();
    const SizeValues values = scope ? scope->values() : SizeValues();
    for (const Program::Group& group : program.groups) {
      auto plan = plan_kernel(program, group);
      SizesAt sizes(values);
      std::shared_ptr<const Kernel> kernel = plan->at(sizes);
      members_.push_back(sizes.has_met_formula() ? Member{std::move(plan), nullptr}
                                                 : Member{nullptr, std::move(kernel)});
    }
  }
  std::unique_ptr<engine::Kernels> at(SizesAt& sizes) const override {
    std::vector<std::shared_ptr<const Kernel>> kernels;
    kernels.reserve(members_.size());
    for (const Member& member : members_)
      kernels.push_back(member.kernel ? member.kernel : member.plan->at(sizes));
    return std::make_unique<CpuKernels>(std::move(kernels));
  }

 private:
  /// A kernel that suits all lengths, or the plan of one that does not.
  struct Member {
    std::unique_ptr<const KernelPlan> plan;
    std::shared_ptr<const Kernel> kernel;
  };
  std::vector<Member> members_;
};

class CpuBackend final : public engine::Backend {
 public:
  void group(Program& program, std::span<const int> memory) const override {
    require_processor();
    const Target& target = RowCode::target();
    const std::vector<int> kept = result_buffers(program);
    find_attention(program, kept, memory,
                   [&](const Attention& attention) { return is_for_tiles(attention, target); });
    verified(program);
    group_nests(program, target, kept, memory);
    verified(program);
  }
  std::unique_ptr<const engine::KernelsPlan> plan(const Program& program) const override {
    require_processor();
    return std::make_unique<CpuKernelsPlan>(program);
  }
  std::string describe(const Program& program) const override {
    require_processor();
    return to_string_of_schedules(program);
  }
  void synchronize() const override {}

  std::shared_ptr<Storage> allocate(std::size_t bytes) const override {
    return Storage::allocate(bytes);
  }
  void copy_in(std::byte* to, const std::byte* from_host, std::size_t bytes) const override {
    std::memcpy(to, from_host, bytes);
  }
  void copy_out(std::byte* to_host, const std::byte* from, std::size_t bytes) const override {
    std::memcpy(to_host, from, bytes);
  }
  MemoryCount& memory_count() const override { return host_memory().count; }
  std::size_t memory_reserved() const override { return host_memory().reserved.live(); }
  void release_memory() const override { release_host_memory(); }

  std::optional<Hardware> hardware() const override { return ein::measured_cpu(); }
};

}  // namespace
}  // namespace ein::host

ein::Hardware ein::measured_cpu() {
  host::require_processor();
  return host::measured_cpu();
}

const ein::engine::Backend& ein::engine::cpu_backend(int index) {
  if (index != 0)
    throw Error(ErrorKind::value, to_string(cpu(index)) + ": there is one CPU, ein::cpu");
  return made_once([] { return host::CpuBackend(); });
}
