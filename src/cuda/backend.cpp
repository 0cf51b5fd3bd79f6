// A GPU of NVIDIA as a backend: kernels are work of its stream, and memory is its pool's.
#include "backend/backend.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <ein/hardware.hpp>
#include <ein/tensor.hpp>
#include "cuda/gpu.hpp"
#include "cuda/launches.hpp"
#include "cuda/settings.hpp"
#include "graph/after_pass.hpp"
#include "machine/fork.hpp"
#include "passes/find_attention.hpp"
#include "passes/pad_rows.hpp"
#include "schedule/gpu_choose.hpp"
#include "schedule/gpu_group_many.hpp"
#include "schedule/gpu_group_rows.hpp"
#include "size/ask.hpp"

namespace ein {
namespace gpu {
namespace {

std::uint64_t address(const std::byte* of_device) {
  return reinterpret_cast<std::uint64_t>(of_device);
}

class CudaBackend final : public engine::Backend {
 public:
  explicit CudaBackend(int index) : index_(index) {}

  void group(Program& program, std::span<const int> memory) const override {
    const std::vector<int> kept = result_buffers(program);
    for (std::size_t b = 0; b < std::min(memory.size(), program.buffers.size()); ++b)
      program.buffers[b].memory = memory[b];
    find_attention(program, kept, memory, codegen::has_kernels_for);
    after_pass("find_attention", program);
    group_rows(program, GpuTarget{}, kept, memory);
    after_pass("group_rows", program);
    group_many(program, kept, memory);
    after_pass("group_many", program);
    pad_rows(program, kept);
    after_pass("pad_rows", program);
  }
  std::unique_ptr<const engine::KernelsPlan> plan(const Program& program) const override {
    return std::make_unique<LaunchPlan>(program, gpu());
  }
  std::string describe(const Program& program) const override {
    std::string text;
    for (std::size_t g = 0; g < program.groups.size(); ++g) {
      if (program.groups[g].rows())
        text += "schedule of group " + std::to_string(g) + ":\n" +
                to_string(choose(program, program.groups[g], GpuTarget{}));
    }
    return text;
  }
  std::uint8_t settings() const override { return gpu::settings().tf32; }
  std::size_t alignment() const override { return 16; }
  void synchronize() const override { gpu().synchronize(); }

  std::shared_ptr<Storage> allocate(std::size_t bytes) const override {
    MemoryPool& pool = gpu().memory();
    const auto give_back = [&pool, bytes](DeviceMemory* block) {
      pool.give_back(MemoryPool::Block(block), bytes);
    };
    const std::shared_ptr<DeviceMemory> block(pool.take(bytes).release(), give_back);
    return std::make_shared<Storage>(reinterpret_cast<std::byte*>(block->address()), bytes, block,
                                     cuda(index_));
  }
  void copy_in(std::byte* to, const std::byte* from_host, std::size_t bytes) const override {
    gpu().copy_in(address(to), from_host, bytes);
  }
  void copy_out(std::byte* to_host, const std::byte* from, std::size_t bytes) const override {
    gpu().copy_out(to_host, address(from), bytes);
  }
  MemoryCount& memory_count() const override { return gpu().memory().count(); }
  std::size_t memory_reserved() const override { return gpu().memory().reserved(); }
  void release_memory() const override { gpu().memory().release(); }

  std::optional<Hardware> hardware() const override {
    const DeviceInfo info = Driver::of_system().info(index_);
    return find_hardware(info.name, info.sms);
  }

 private:
  Gpu& gpu() const { return Gpu::of_system(index_); }

  int index_;
};

}  // namespace
}  // namespace gpu

const detail::DeviceKind detail::cuda_kind{
    .name = "cuda",
    .backend = [](int index) -> const engine::Backend& {
      static std::mutex mutex;
      auto& backends = made_once([] { return std::map<int, gpu::CudaBackend>(); });
      const NoForkLock lock(mutex);
      return backends.try_emplace(index, index).first->second;
    },
    .count =
        [] {
          const gpu::Driver& driver = gpu::Driver::of_system();
          return driver.missing().empty() ? driver.device_count() : 0;
        },
    .is_single = false};

void allow_tf32(bool allowed) { gpu::settings().tf32 = allowed; }
void tune(bool wanted) { gpu::settings().tunes = wanted; }

}  // namespace ein
