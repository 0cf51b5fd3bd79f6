#include "cuda/gpu.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <ein/error.hpp>

#include "cuda/cubin_cache.hpp"
#include "machine/fork.hpp"
#include "nest/nest.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

constexpr std::size_t stage_bytes = std::size_t{4} << 20;

/// Instructions of one architecture alone exist from Hopper on.
GpuTarget target_of(int device, const DeviceInfo& info) {
  require_supported(device, info);
  return {.sm = info.major * 10 + info.minor, .accelerated = info.major >= 9, .sms = info.sms};
}

}  // namespace

Gpu::Gpu(Driver& driver, int index)
    : driver_(driver),
      index_(index),
      target_(target_of(index, driver.info(index))),
      arch_("sm_" + std::to_string(target_.sm) + (target_.accelerated ? "a" : "")),
      stream_(driver, index),
      memory_(driver, index, stream_) {
  register_self();
}

Gpu& Gpu::of_system(int index) {
  static std::mutex mutex;
  auto& gpus = made_once([] { return std::map<int, std::unique_ptr<Gpu>>(); });
  const NoForkLock lock(mutex);
  std::unique_ptr<Gpu>& gpu = gpus[index];
  if (!gpu) gpu = std::make_unique<Gpu>(Driver::of_system(), index);
  return *gpu;
}

Gpu::Stage& Gpu::stage(std::size_t number) {
  std::unique_ptr<Stage>& stage = stages_[number % 2];
  if (!stage) stage = std::make_unique<Stage>(driver_, index_, stage_bytes);
  return *stage;
}

void Gpu::copy_in(std::uint64_t to, const void* from, std::size_t bytes) {
  const NoForkLock lock(copy_mutex_);
  for (std::size_t begin = 0, number = 0; begin < bytes; begin += stage_bytes, ++number) {
    const std::size_t count = std::min(stage_bytes, bytes - begin);
    Stage& half = stage(number);
    half.done.wait();
    std::memcpy(half.memory.data(), static_cast<const std::byte*>(from) + begin, count);
    stream_.copy_in(to + begin, half.memory.data(), count);
    stream_.record(half.done);
  }
}

void Gpu::copy_out(void* to, std::uint64_t from, std::size_t bytes) {
  {
    const NoForkLock lock(copy_mutex_);
    // While the device fills one half, the host empties the other.
    const std::size_t pieces = (bytes + stage_bytes - 1) / stage_bytes;
    for (std::size_t piece = 0; piece <= pieces; ++piece) {
      const auto size = [&](std::size_t p) {
        return std::min(stage_bytes, bytes - p * stage_bytes);
      };
      if (piece < pieces) {
        Stage& half = stage(piece);
        stream_.copy_out(half.memory.data(), from + piece * stage_bytes, size(piece));
        stream_.record(half.done);
      }
      if (piece > 0) {
        Stage& half = stage(piece - 1);
        half.done.wait();
        std::memcpy(static_cast<std::byte*>(to) + (piece - 1) * stage_bytes, half.memory.data(),
                    size(piece - 1));
      }
    }
  }
  report_fault();
}

void Gpu::synchronize() {
  stream_.synchronize();
  report_fault();
}

std::uint64_t Gpu::fault() {
  const NoForkLock lock(fault_mutex_);
  if (!fault_) {
    fault_ = std::make_unique<DeviceMemory>(driver_, index_, sizeof(codegen::KernelSource::Fault));
    stream_.fill(fault_->address(), 0, sizeof(codegen::KernelSource::Fault));
  }
  return fault_->address();
}

std::optional<codegen::KernelSource::Fault> Gpu::take_fault() {
  const NoForkLock lock(fault_mutex_);
  if (!fault_) return std::nullopt;
  codegen::KernelSource::Fault fault;
  stream_.copy_out(&fault, fault_->address(), sizeof fault);
  stream_.synchronize();
  if (fault.happened == 0) return std::nullopt;
  stream_.fill(fault_->address(), 0, sizeof fault);
  return fault;
}

std::string to_string(const codegen::KernelSource::Fault& fault) {
  return outside_axis(fault.position, fault.length, fault.size);
}

void Gpu::report_fault() {
  if (const auto fault = take_fault()) {
    throw Error(ErrorKind::value, "cuda:" + std::to_string(index_) + ": " + to_string(*fault) +
                                      ", in an operation before this one");
  }
}

std::vector<std::shared_ptr<Module>> Gpu::load(std::span<const std::string> units) {
  const NoForkLock lock(modules_mutex_);
  std::vector<Source> sources;
  for (const std::string& text : units) {
    if (!modules_.contains(text))
      sources.push_back({.name = "kernels.cu", .text = text, .arch = arch_});
  }
  if (!sources.empty()) {
    if (const std::string why_not = why_not_on(driver_.version()); !why_not.empty())
      throw Error(ErrorKind::device, "cuda:" + std::to_string(index_) + ": " + why_not);
    const std::optional<CubinCache>& cache = CubinCache::of_process();
    const std::vector<Compiled> compiled = compile_all(sources, cache ? &*cache : nullptr);
    // A module goes when its last kernel does, which may still be at work.
    const auto unload = [this](Module* module) {
      const std::unique_ptr<Module> owner(module);
      try {
        stream_.synchronize();
      } catch (const Error&) {
      }
    };
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::shared_ptr<Module> module(new Module(driver_, index_, compiled[i].cubin), unload);
      modules_.emplace(sources[i].text,
                       Loaded{std::move(module), KeptBytes(sources[i].text.size())});
    }
    LastUse::next();
  }
  std::vector<std::shared_ptr<Module>> modules;
  for (const std::string& text : units) {
    modules.push_back(modules_.at(text).module);
    modules.back()->last_use.note();
  }
  return modules;
}

// A module that is being compiled is waited for by nobody.
std::uint64_t Gpu::oldest_use() {
  const std::unique_lock lock(modules_mutex_, std::try_to_lock);
  return lock ? oldest_use_of(modules_, module_of) : LastUse::never;
}
void Gpu::drop(std::uint64_t until, Dropped& dropped) {
  const std::unique_lock lock(modules_mutex_, std::try_to_lock);
  if (lock) drop_from(modules_, until, dropped, module_of);
}

}  // namespace ein::gpu
