// Gpu: a device at work, with its stream, its memory and the kernels that are loaded on it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/emit.hpp"
#include "cuda/driver.hpp"
#include "cuda/memory_pool.hpp"
#include "tensor/kept.hpp"

namespace ein::gpu {

/// "position 7 is outside an axis of size 5".
std::string to_string(const codegen::KernelSource::Fault& fault);

/// Everything that ein does on a GPU is work of one stream. Thread-safe.
class Gpu final : Releasable {
 public:
  Gpu(Driver& driver, int index);
  ~Gpu() override { unregister(); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// One of the system's; lives until the process ends. An Error of kind `device` where there is no
  /// driver, of kind `value` for a number that no device has.
  static Gpu& of_system(int index);

  Driver& driver() const { return driver_; }
  int index() const { return index_; }
  const GpuTarget& target() const { return target_; }
  Stream& stream() { return stream_; }
  MemoryPool& memory() { return memory_; }

  /// Copies through pinned memory. The host's bytes may change when copy_in returns, and are there
  /// when copy_out does. copy_out reports, as synchronize does, what failed before.
  void copy_in(std::uint64_t to, const void* from, std::size_t bytes);
  void copy_out(void* to, std::uint64_t from, std::size_t bytes);
  /// Waits for all work. An Error of kind `value` when a kernel met a position outside of its axis,
  /// and of kind `device` when one failed.
  void synchronize();

  /// Where kernels that check positions leave what they find.
  std::uint64_t fault();
  /// Waits for them. What was found, if anything was; it is told once.
  std::optional<codegen::KernelSource::Fault> take_fault();

  /// The modules of translation units: loaded before, else out of the user's cache, else compiled.
  std::vector<std::shared_ptr<Module>> load(std::span<const std::string> units);

 private:
  /// Half of the memory through which copies go, and when it may be used again.
  struct Stage {
    Stage(Driver& driver, int device, std::size_t bytes)
        : memory(driver, device, bytes), done(driver, device) {}
    PinnedMemory memory;
    Event done;
  };
  Stage& stage(std::size_t number);
  void report_fault();
  // Of modules that no plan uses.
  std::uint64_t oldest_use() override;
  void drop(std::uint64_t until, Dropped& dropped) override;

  Driver& driver_;
  int index_;
  GpuTarget target_;
  std::string arch_;
  Stream stream_;
  MemoryPool memory_;
  std::mutex copy_mutex_;
  std::unique_ptr<Stage> stages_[2];
  std::mutex fault_mutex_;
  std::unique_ptr<DeviceMemory> fault_;
  std::mutex modules_mutex_;
  struct Loaded {
    std::shared_ptr<Module> module;
    KeptBytes kept;  // of the text
  };
  static constexpr auto module_of = [](auto& entry) -> auto& { return entry.second.module; };
  std::unordered_map<std::string, Loaded> modules_;  // by text
};

}  // namespace ein::gpu
