// Backend: a device at work. Who runs programs or wants memory asks it, and not which device it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ein/device.hpp>
#include "nest/nest.hpp"
#include "size/size_scope.hpp"
#include "tensor/device_kind.hpp"

namespace ein {
class MemoryCount;
class Storage;
namespace mesh {
class Process;
}
struct Hardware;

namespace engine {

/// What one run of kernels works on. Addresses are those of the device.
struct Run {
  std::span<std::byte* const> buffers;  // the program's
  std::byte* workspace = nullptr;       // workspace_bytes(threads) of them, 64-byte aligned
  RandomOrigin random{};                // where random streams that are relative to the run begin
  int threads = 1;                      // of the host, that the workspace is for
  const mesh::Process* process = nullptr;  // of a mesh, whose part of a program this is
};

/// A program made ready to run. Thread-safe for different workspaces.
class Kernels {
 public:
  virtual ~Kernels() = default;
  /// Bytes of scratch memory for a run on this number of the host's threads.
  virtual std::size_t workspace_bytes(int threads) const = 0;
  /// Starts them. On a device with a queue errors come later.
  virtual void run(const Run& run) const = 0;
  /// Throws what a run of `call` met, if it may have met anything, waiting for it.
  virtual void require_success(std::string_view /*call*/) const {}
};

/// A program planned for all lengths: what is left is numbers. Thread-safe.
class KernelsPlan {
 public:
  virtual ~KernelsPlan() = default;
  /// The kernels for these sizes; they may outlive the plan.
  virtual std::unique_ptr<Kernels> at(SizesAt& sizes) const = 0;
};

/// Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // --- programs ---

  /// Fills in program.groups as it suits the device, and may change the nests for it: see
  /// group_nests, which says what `memory` is. Takes no device.
  virtual void group(Program& program, std::span<const int> memory = {}) const = 0;
  /// A grouped program, ready but for its lengths.
  virtual std::unique_ptr<const KernelsPlan> plan(const Program& program) const = 0;
  /// A grouped program of numbers as kernels.
  std::unique_ptr<Kernels> compile(const Program& program) const;
  /// How it runs a grouped program, as text; empty where the groups say all.
  virtual std::string describe(const Program& /*program*/) const { return {}; }
  /// What users asked of its code: a part of the key of every plan.
  virtual std::uint8_t settings() const { return 0; }
  /// Bytes that the addresses of buffers must be multiples of.
  virtual std::size_t alignment() const { return 1; }
  /// Waits until the device has done all that it was given; reports what failed on it as an Error.
  virtual void synchronize() const = 0;

  // --- memory ---

  /// An Error of kind `memory` when the device has no more.
  virtual std::shared_ptr<Storage> allocate(std::size_t bytes) const = 0;
  /// Between the host and the device, after all that the device was given before.
  virtual void copy_in(std::byte* to, const std::byte* from_host, std::size_t bytes) const = 0;
  virtual void copy_out(std::byte* to_host, const std::byte* from, std::size_t bytes) const = 0;
  /// Bytes that are alive, as they were asked for.
  virtual MemoryCount& memory_count() const = 0;
  /// Bytes that are held from the system or the driver.
  virtual std::size_t memory_reserved() const = 0;
  /// Gives back what is kept to be used again.
  virtual void release_memory() const = 0;

  /// What the device promises; nothing if nobody knows.
  virtual std::optional<Hardware> hardware() const = 0;
};

/// Lives until the process ends. The device itself is opened when it is first needed, with an Error
/// of kind `device` where it cannot be, and of kind `value` where there is none of this index.
const Backend& backend_of(Device device);

}  // namespace engine
}  // namespace ein
