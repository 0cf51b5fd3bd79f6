// Driver: NVIDIA's driver API, found while the program runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit.hpp"
#include "cuda/cubin.hpp"
#include "cuda/nvrtc.hpp"
#include "machine/owning_process.hpp"
#include "tensor/kept.hpp"

namespace ein::gpu {

struct DriverFunctions;

/// What a GPU says of itself. Memory in bytes.
struct DeviceInfo {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;  ///< compute capability: 9.0
  int sms = 0;               ///< streaming multiprocessors
  std::uint64_t memory = 0;
  int l2_bytes = 0;
  int shared_bytes_per_block = 0;  ///< the most that a kernel may ask for
  int shared_bytes_per_sm = 0, registers_per_sm = 0, threads_per_sm = 0;
};

/// An Error of kind `device` for a GPU that kernels are not made for: before Ampere (sm_80) there
/// are no bf16 and no asynchronous copies to shared memory.
void require_supported(int device, const DeviceInfo& info);

/// The driver's library. Its functions may be called from any thread.
class Driver {
 public:
  /// Opens the first of these libraries that opens. Of the GPUs it has number `only` alone, counted
  /// round, if that is said.
  explicit Driver(const std::vector<std::string>& names, std::optional<int> only = {});
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// libcuda.so.1, or the file that the environment's EIN_CUDA_DRIVER names. A process of several
  /// that `ein launch` or `mpirun` started has one GPU, that of its number on the machine.
  static Driver& of_system();

  /// Why there is no driver to be used: none is installed, it is too old, or it refuses. Empty if
  /// there is one.
  const std::string& missing() const { return missing_; }
  /// These throw an Error with the text of missing(), if there is any.
  CudaVersion version() const;  ///< of CUDA, the newest that it supports
  int device_count() const;
  /// An Error of kind `value` for a number that no device has.
  DeviceInfo info(int device) const;

  /// What a kernel takes for a tensor that begins at this address of the device, a multiple of 16.
  codegen::EncodedTensorMap encode(int device, const codegen::TensorMap& map,
                                   std::uint64_t address);

  /// The same as a function, for Arguments.
  auto encoder(int device) {
    return [this, device](const codegen::TensorMap& map, std::uint64_t address) {
      return encode(device, map, address);
    };
  }

  /// The functions, with the device's primary context made current on this thread.
  const DriverFunctions& on(int device);

 private:
  struct Context {
    void* pointer = nullptr;  // null until first used
    int device = 0;           // the driver's number
  };
  const DriverFunctions& needed() const;
  const DriverFunctions& needed_for(int device) const;

  const OwningProcess owner_;
  std::unique_ptr<DriverFunctions> functions_;
  std::string missing_;
  CudaVersion version_;
  std::mutex contexts_mutex_;
  std::vector<Context> contexts_;  // by device
  int first_ = 0;                  // the driver's number of device 0
  bool has_one_of_several_ = false;
};

// What follows belongs to one device of a driver, which must live longer. Errors are of kind
// `device`, or `memory` where there is not enough of the device's, and name the device, the call,
// the driver's reason and what to do. An operation that failed on the device is reported by the
// next call that waits for it.

/// What it has in common: the calls of the driver, and that it is not copied.
class OfDevice {
 public:
  OfDevice(const OfDevice&) = delete;
  OfDevice& operator=(const OfDevice&) = delete;

 protected:
  OfDevice(Driver& driver, int device) : driver_(driver), device_(device) {}
  ~OfDevice() = default;

  /// Calls a function of the driver, which errors call `what`.
  template <class Function, class... Arguments>
  void call(std::string_view what, Function function, Arguments... arguments) const;
  /// For destructors: a device that is lost has nothing left to free, and nor has a null handle.
  template <class Function, class Handle>
  void release(Function function, Handle handle) const;

  Driver& driver_;
  int device_;
};

/// Memory of the device.
class DeviceMemory : OfDevice {
 public:
  DeviceMemory(Driver& driver, int device, std::size_t bytes);
  ~DeviceMemory();

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::uint64_t address_ = 0;
};

/// Memory of the host that every device copies from and to while the host goes on.
class PinnedMemory : OfDevice {
 public:
  PinnedMemory(Driver& driver, int device, std::size_t bytes);
  ~PinnedMemory();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// A kernel's launch. Grid and block extents are at least 1.
struct Launch {
  void* kernel = nullptr;
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::size_t shared_bytes = 0;  ///< dynamic
};
/// Of a loaded kernel, as the source says, whose sizes are numbers.
inline Launch launch_of(void* kernel, const codegen::KernelSource& source) {
  return {kernel, source.grid(), source.block, source.shared_bytes};
}

/// Kernels loaded on a device.
class Module : OfDevice {
 public:
  /// An Error that says what to do when driver or device cannot run the cubin.
  Module(Driver& driver, int device, const Cubin& cubin);
  ~Module();

  /// The kernel of this name, ready for launches with up to this much dynamic shared memory, bytes.
  /// It lives as long as the module.
  void* kernel(const std::string& name, std::size_t shared_bytes) const;
  Launch launch_of(const codegen::KernelSource& source) const {
    return gpu::launch_of(kernel(source.name, source.shared_bytes), source);
  }

  LastUse last_use;

 private:
  void* module_ = nullptr;
  KeptBytes kept_;  // of the cubin
};

/// A point in the work of a stream.
class Event : OfDevice {
 public:
  Event(Driver& driver, int device);
  ~Event();

  void* get() const { return event_; }
  void wait() const;
  /// Between two events that have happened.
  double seconds_since(const Event& earlier) const;

 private:
  void* event_ = nullptr;
};

/// Launches that follow each other, prepared so that one call starts them all: a CUDA graph.
class LaunchGraph : OfDevice {
 public:
  LaunchGraph(Driver& driver, int device);
  ~LaunchGraph();

  /// Appends a launch. Arguments are as those of Stream::launch.
  void add(const Launch& launch, std::span<void* const> arguments);
  /// After the last one.
  void finish();
  /// Gives launch number `index`, of the same kernel, another grid and other arguments: from the
  /// next start on.
  void set(std::size_t index, const Launch& launch, std::span<void* const> arguments);
  void* get() const { return ready_; }

 private:
  void *graph_ = nullptr, *ready_ = nullptr;
  std::vector<void*> nodes_;
};

/// Work that the device does in order.
class Stream : OfDevice {
 public:
  Stream(Driver& driver, int device);
  ~Stream();

  /// Copies happen in their turn; the host's memory must live and stay as it is until then. Bytes
  /// are of memory of this device.
  void copy_in(std::uint64_t to, const void* from, std::size_t bytes);
  void copy_out(void* to, std::uint64_t from, std::size_t bytes);
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  void fill(std::uint64_t to, unsigned char byte, std::size_t bytes);
  /// `arguments`: the address of each parameter's value, which is read before this returns.
  void launch(const Launch& launch, std::span<void* const> arguments);
  void launch(const LaunchGraph& graph);
  void record(Event& event);
  /// What comes later in this stream happens after the event, which may be of another stream.
  void wait(const Event& event);
  /// Returns when all is done.
  void synchronize();
  /// As other libraries of NVIDIA take it.
  void* get() const { return stream_; }

 private:
  void* stream_ = nullptr;
};

}  // namespace ein::gpu
