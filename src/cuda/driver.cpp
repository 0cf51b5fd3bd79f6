#include "cuda/driver.hpp"

#include <string_view>
#include <utility>

#include <ein/error.hpp>

#include "cuda/driver_constants.hpp"
#include "io/number.hpp"
#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "machine/shared_library.hpp"
#include "size/ask.hpp"

namespace ein::gpu {

// Each with its symbol and its parameters.
#define EIN_FOR_EACH_DRIVER_FUNCTION(F)                                                          \
  F(init, "cuInit", unsigned)                                                                    \
  F(version, "cuDriverGetVersion", int*)                                                         \
  F(error_name, "cuGetErrorName", Result, const char**)                                          \
  F(error_text, "cuGetErrorString", Result, const char**)                                        \
  F(device_count, "cuDeviceGetCount", int*)                                                      \
  F(device, "cuDeviceGet", int*, int)                                                            \
  F(device_name, "cuDeviceGetName", char*, int, int)                                             \
  F(device_attribute, "cuDeviceGetAttribute", int*, int, int)                                    \
  F(device_memory, "cuDeviceTotalMem_v2", std::size_t*, int)                                     \
  F(retain_context, "cuDevicePrimaryCtxRetain", void**, int)                                     \
  F(release_context, "cuDevicePrimaryCtxRelease_v2", int)                                        \
  F(set_context, "cuCtxSetCurrent", void*)                                                       \
  F(free_memory, "cuMemGetInfo_v2", std::size_t*, std::size_t*)                                  \
  F(allocate, "cuMemAlloc_v2", std::uint64_t*, std::size_t)                                      \
  F(free, "cuMemFree_v2", std::uint64_t)                                                         \
  F(allocate_pinned, "cuMemHostAlloc", void**, std::size_t, unsigned)                            \
  F(free_pinned, "cuMemFreeHost", void*)                                                         \
  F(copy_in, "cuMemcpyHtoDAsync_v2", std::uint64_t, const void*, std::size_t, void*)             \
  F(copy_out, "cuMemcpyDtoHAsync_v2", void*, std::uint64_t, std::size_t, void*)                  \
  F(copy, "cuMemcpyDtoDAsync_v2", std::uint64_t, std::uint64_t, std::size_t, void*)              \
  F(fill, "cuMemsetD8Async", std::uint64_t, unsigned char, std::size_t, void*)                   \
  F(load_module, "cuModuleLoadData", void**, const void*)                                        \
  F(unload_module, "cuModuleUnload", void*)                                                      \
  F(kernel, "cuModuleGetFunction", void**, void*, const char*)                                   \
  F(set_kernel_attribute, "cuFuncSetAttribute", void*, int, int)                                 \
  F(launch, "cuLaunchKernel", void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, void*, void**, void**)                                                             \
  F(create_stream, "cuStreamCreate", void**, unsigned)                                           \
  F(destroy_stream, "cuStreamDestroy_v2", void*)                                                 \
  F(synchronize_stream, "cuStreamSynchronize", void*)                                            \
  F(wait_event, "cuStreamWaitEvent", void*, void*, unsigned)                                     \
  F(create_event, "cuEventCreate", void**, unsigned)                                             \
  F(destroy_event, "cuEventDestroy_v2", void*)                                                   \
  F(record_event, "cuEventRecord", void*, void*)                                                 \
  F(synchronize_event, "cuEventSynchronize", void*)                                              \
  F(elapsed, "cuEventElapsedTime", float*, void*, void*)                                         \
  F(encode_tiled, "cuTensorMapEncodeTiled", void*, int, unsigned, void*, const std::uint64_t*,   \
    const std::uint64_t*, const unsigned*, const unsigned*, int, int, int, int)                  \
  F(create_graph, "cuGraphCreate", void**, unsigned)                                             \
  F(destroy_graph, "cuGraphDestroy", void*)                                                      \
  F(add_kernel_node, "cuGraphAddKernelNode_v2", void**, void*, void* const*, std::size_t,        \
    const KernelNode*)                                                                           \
  F(instantiate_graph, "cuGraphInstantiateWithFlags", void**, void*, unsigned long long)         \
  F(destroy_instance, "cuGraphExecDestroy", void*)                                               \
  F(set_kernel_node, "cuGraphExecKernelNodeSetParams_v2", void*, void*, const KernelNode*)       \
  F(launch_graph, "cuGraphLaunch", void*, void*)

struct DriverFunctions {
  SharedLibrary library;
#define EIN_FUNCTION(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  EIN_FOR_EACH_DRIVER_FUNCTION(EIN_FUNCTION)
#undef EIN_FUNCTION

  explicit DriverFunctions(const std::vector<std::string>& names) : library(names) {}

  /// The first function that the library lacks; null if it has all.
  const char* find_all() {
    const char* missing = nullptr;
    const auto find = [&](const char* symbol, auto*& function) {
      library.find(symbol, function);
      if (!function && !missing) missing = symbol;
    };
#define EIN_FUNCTION(name, symbol, ...) find(symbol, name);
    EIN_FOR_EACH_DRIVER_FUNCTION(EIN_FUNCTION)
#undef EIN_FUNCTION
    return missing;
  }
};

namespace {

/// What every kernel may use without asking.
constexpr std::size_t plain_shared_bytes = 48 << 10;

const char* advice(Result result) {
  switch (result) {
    case out_of_memory:
      return "let go of tensors, or make smaller ones; other processes may use the GPU too";
    case no_device:
      return "no NVIDIA GPU is visible; CUDA_VISIBLE_DEVICES may hide it";
    case stub_library:
      return "this is the toolkit's stub and not the driver; take its folder off LD_LIBRARY_PATH";
    case driver_mismatch:
      return "the driver was updated under the running kernel module; reboot";
    case invalid_image:
    case no_binary_for_gpu:
    case unsupported_version:
      return "the kernels were compiled for another architecture, or by an NVRTC newer than the "
             "driver; update the driver";
    case illegal_address:
    case misaligned_address:
    case launch_failed:
      return "a kernel failed, and the device is lost to this process; compute-sanitizer shows "
             "where";
    case launch_out_of_resources:
      return "a block wants more registers, threads or shared memory than there are";
    default:
      return nullptr;
  }
}

std::string reason(const DriverFunctions& functions, Result result) {
  const char *name = nullptr, *text = nullptr;
  functions.error_name(result, &name);
  functions.error_text(result, &text);
  std::string reason = name ? name : "error " + std::to_string(result);
  if (text) reason += " (" + std::string(text) + ")";
  if (const char* what_to_do = advice(result)) reason += "; " + std::string(what_to_do);
  return reason;
}

void check(const DriverFunctions& functions, Result result, int device, std::string_view what) {
  if (result == success) return;
  throw Error(result == out_of_memory ? ErrorKind::memory : ErrorKind::device,
              "cuda:" + std::to_string(device) + ": " + std::string(what) + ": " +
                  reason(functions, result));
}

}  // namespace

Driver::Driver(const std::vector<std::string>& names, std::optional<int> only)
    : functions_(std::make_unique<DriverFunctions>(names)) {
  constexpr const char* update = "; install a driver of version 525 or newer";
  DriverFunctions& cuda = *functions_;
  int number = 0, count = 0;
  if (!cuda.library.is_open()) {
    missing_ = "no NVIDIA driver: " + cuda.library.why_not() +
               "; install NVIDIA's driver, and in a container run it with the GPU (--gpus all)";
  } else if (const char* symbol = cuda.find_all()) {
    missing_ =
        "the NVIDIA driver " + cuda.library.name() + " is too old, it lacks " + symbol + update;
  } else if (const Result result = cuda.init(0); result != success) {
    missing_ = "the NVIDIA driver refuses: " + reason(cuda, result);
  } else if (const Result told = cuda.version(&number); told != success) {
    missing_ = "the NVIDIA driver does not tell its version: " + reason(cuda, told);
  } else if (version_ = {number / 1000, number % 1000 / 10}; version_ < oldest_cuda) {
    missing_ = "the NVIDIA driver is too old, for CUDA " + to_string(version_) + update;
  } else if (const Result counted = cuda.device_count(&count); counted != success) {
    missing_ = "the NVIDIA driver does not tell its devices: " + reason(cuda, counted);
  } else if (count <= 0) {
    missing_ = "the NVIDIA driver has no device; CUDA_VISIBLE_DEVICES may hide it";
  }
  if (missing_.empty()) {
    has_one_of_several_ = only && count > 1;
    if (has_one_of_several_) first_ = *only % count;
    contexts_.resize(has_one_of_several_ ? 1 : static_cast<std::size_t>(count));
  } else {
    functions_.reset();
  }
}

Driver::~Driver() {
  for (const Context& context : contexts_) {
    if (context.pointer && owner_.is_this()) functions_->release_context(context.device);
  }
}

namespace {

/// Which one this process is of several on this machine, as `ein launch`, Open MPI and MPICH say.
std::optional<int> rank_on_machine() {
  constexpr std::pair<Variable, Variable> variables[] = {
      {Variable::rank, Variable::size},
      {Variable::open_mpi_local_rank, Variable::open_mpi_local_size},
      {Variable::mpi_local_rank, Variable::mpi_local_size}};
  for (const auto& [rank, size] : variables) {
    const auto number = io::number_of<int>(environment(rank)),
               count = io::number_of<int>(environment(size));
    if (number && count && *number >= 0 && *count > 1) return number;
  }
  return std::nullopt;
}

}  // namespace

Driver& Driver::of_system() {
  return made_once([] {
    const std::string given = environment(Variable::cuda_driver);
    return Driver({given.empty() ? "libcuda.so.1" : given}, rank_on_machine());
  });
}

const DriverFunctions& Driver::needed() const {
  if (!functions_) throw Error(ErrorKind::device, missing_);
  if (!owner_.is_this()) {
    throw Error(ErrorKind::device,
                "CUDA was started by the parent of this process, which called fork(), and the "
                "driver works in no child of it\n"
                "  help: call fork() before the first use of a GPU, or exec() in the child");
  }
  return *functions_;
}

CudaVersion Driver::version() const {
  needed();
  return version_;
}

int Driver::device_count() const {
  needed();
  return static_cast<int>(contexts_.size());
}

const DriverFunctions& Driver::needed_for(int device) const {
  const DriverFunctions& cuda = needed();
  if (device < 0 || device >= device_count()) {
    throw Error(ErrorKind::value,
                "cuda:" + std::to_string(device) + ": the number of devices is " +
                    std::to_string(device_count()) + ", the first is cuda:0" +
                    (has_one_of_several_ ? "\n  help: each of several processes on a machine "
                                           "has one of its GPUs, as ein::cuda"
                                         : ""));
  }
  return cuda;
}

codegen::EncodedTensorMap Driver::encode(int device, const codegen::TensorMap& map,
                                         std::uint64_t address) {
  const DriverFunctions& cuda = on(device);
  const int type = map.dtype == DType::bf16 ? map_bf16 : map.dtype == DType::f16 ? map_f16 : map_u8;
  const std::vector<unsigned> steps(map.sizes.size(), 1);
  const std::vector<std::uint64_t> sizes(map.sizes.begin(), map.sizes.end()),
      strides(map.strides.begin(), map.strides.end());
  // A local with the alignment could be built in the place of the result, which has none.
  struct alignas(tensor_map_alignment) Aligned {
    codegen::EncodedTensorMap map{};
  } encoded;
  check(cuda,
        cuda.encode_tiled(&encoded.map, type, static_cast<unsigned>(map.sizes.size()),
                          reinterpret_cast<void*>(address), sizes.data(), strides.data(),
                          map.box.data(), steps.data(), 0, swizzle_128_bytes, promote_256_bytes, 0),
        device, "cuTensorMapEncodeTiled");
  return encoded.map;
}

void require_supported(int device, const DeviceInfo& info) {
  if (info.major >= 8) return;
  throw Error(
      ErrorKind::device,
      "cuda:" + std::to_string(device) + ": " + info.name + " is of compute capability " +
          std::to_string(info.major) + "." + std::to_string(info.minor) +
          ", and kernels are made for 8.0 (Ampere) and newer; use another GPU, or ein::cpu");
}

DeviceInfo Driver::info(int device) const {
  const DriverFunctions& cuda = needed_for(device);
  int handle = 0;
  check(cuda, cuda.device(&handle, first_ + device), device, "cuDeviceGet");
  DeviceInfo info;
  char name[256] = "";
  check(cuda, cuda.device_name(name, static_cast<int>(sizeof name) - 1, handle), device,
        "cuDeviceGetName");
  info.name = name;
  std::size_t bytes = 0;
  check(cuda, cuda.device_memory(&bytes, handle), device, "cuDeviceTotalMem");
  info.memory = bytes;
  const auto ask = [&](int attribute, int& value) {
    check(cuda, cuda.device_attribute(&value, attribute, handle), device, "cuDeviceGetAttribute");
  };
  ask(attribute_major, info.major);
  ask(attribute_minor, info.minor);
  ask(attribute_sms, info.sms);
  ask(attribute_l2, info.l2_bytes);
  ask(attribute_shared_per_block, info.shared_bytes_per_block);
  ask(attribute_shared_per_sm, info.shared_bytes_per_sm);
  ask(attribute_registers_per_sm, info.registers_per_sm);
  ask(attribute_threads_per_sm, info.threads_per_sm);
  return info;
}

const DriverFunctions& Driver::on(int device) {
  const DriverFunctions& cuda = needed_for(device);
  const NoForkLock lock(contexts_mutex_);
  Context& context = contexts_[static_cast<std::size_t>(device)];
  if (!context.pointer) {
    check(cuda, cuda.device(&context.device, first_ + device), device, "cuDeviceGet");
    check(cuda, cuda.retain_context(&context.pointer, context.device), device,
          "cuDevicePrimaryCtxRetain");
  }
  check(cuda, cuda.set_context(context.pointer), device, "cuCtxSetCurrent");
  return cuda;
}

template <class Function, class... Arguments>
void OfDevice::call(std::string_view what, Function function, Arguments... arguments) const {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, (cuda.*function)(arguments...), device_, what);
}

template <class Function, class Handle>
void OfDevice::release(Function function, Handle handle) const {
  if (!handle) return;
  try {
    (driver_.on(device_).*function)(handle);
  } catch (const Error&) {
  }
}

namespace {

std::string bytes_free(const DriverFunctions& cuda) {
  std::size_t free = 0, total = 0;
  if (cuda.free_memory(&free, &total) != success) return "";
  return ", of " + std::to_string(total) + " bytes " + std::to_string(free) + " are free";
}

}  // namespace

DeviceMemory::DeviceMemory(Driver& driver, int device, std::size_t bytes)
    : OfDevice(driver, device), bytes_(bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  if (bytes == 0) return;  // the driver makes no empty piece
  const Result result = cuda.allocate(&address_, bytes);
  check(cuda, result, device_,
        "cuMemAlloc of " + std::to_string(bytes) + " bytes" +
            (result == out_of_memory ? bytes_free(cuda) : ""));
}
DeviceMemory::~DeviceMemory() { release(&DriverFunctions::free, address_); }

PinnedMemory::PinnedMemory(Driver& driver, int device, std::size_t bytes)
    : OfDevice(driver, device), bytes_(bytes) {
  driver_.on(device_);
  if (bytes == 0) return;
  call("cuMemHostAlloc of " + std::to_string(bytes) + " bytes", &DriverFunctions::allocate_pinned,
       &data_, bytes, pinned_for_all_devices);
}
PinnedMemory::~PinnedMemory() { release(&DriverFunctions::free_pinned, data_); }

Module::Module(Driver& driver, int device, const Cubin& cubin) : OfDevice(driver, device) {
  kernels_of(cubin);  // throws unless the image is whole: the driver is not told its length
  call("cuModuleLoadData", &DriverFunctions::load_module, &module_, cubin.image.data());
  kept_.add(cubin.image.size());
}
Module::~Module() { release(&DriverFunctions::unload_module, module_); }

void* Module::kernel(const std::string& name, std::size_t shared_bytes) const {
  void* kernel = nullptr;
  call("cuModuleGetFunction " + name, &DriverFunctions::kernel, &kernel, module_, name.c_str());
  if (shared_bytes > plain_shared_bytes) {
    call(name + " with " + std::to_string(shared_bytes) + " bytes of shared memory",
         &DriverFunctions::set_kernel_attribute, kernel, kernel_dynamic_shared,
         static_cast<int>(shared_bytes));
  }
  return kernel;
}

Event::Event(Driver& driver, int device) : OfDevice(driver, device) {
  call("cuEventCreate", &DriverFunctions::create_event, &event_, 0u);
}
Event::~Event() { release(&DriverFunctions::destroy_event, event_); }

void Event::wait() const {
  call("cuEventSynchronize", &DriverFunctions::synchronize_event, event_);
}

double Event::seconds_since(const Event& earlier) const {
  float milliseconds = 0;
  call("cuEventElapsedTime", &DriverFunctions::elapsed, &milliseconds, earlier.event_, event_);
  return 1e-3 * static_cast<double>(milliseconds);
}

namespace {

KernelNode node_of(const Launch& launch, std::span<void* const> arguments) {
  const auto& [x, y, z] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  return {launch.kernel,
          {x, y, z},
          {bx, by, bz},
          static_cast<unsigned>(launch.shared_bytes),
          const_cast<void**>(arguments.data())};
}

}  // namespace

LaunchGraph::LaunchGraph(Driver& driver, int device) : OfDevice(driver, device) {
  call("cuGraphCreate", &DriverFunctions::create_graph, &graph_, 0u);
}
LaunchGraph::~LaunchGraph() {
  release(&DriverFunctions::destroy_instance, ready_);
  release(&DriverFunctions::destroy_graph, graph_);
}

void LaunchGraph::add(const Launch& launch, std::span<void* const> arguments) {
  const KernelNode node = node_of(launch, arguments);
  void* added = nullptr;
  const bool is_first = nodes_.empty();
  call("cuGraphAddKernelNode", &DriverFunctions::add_kernel_node, &added, graph_,
       is_first ? nullptr : &nodes_.back(), std::size_t{!is_first}, &node);
  nodes_.push_back(added);
}

void LaunchGraph::finish() {
  call("cuGraphInstantiate", &DriverFunctions::instantiate_graph, &ready_, graph_, 0ull);
}

void LaunchGraph::set(std::size_t index, const Launch& launch, std::span<void* const> arguments) {
  const KernelNode node = node_of(launch, arguments);
  call("cuGraphExecKernelNodeSetParams", &DriverFunctions::set_kernel_node, ready_, nodes_[index],
       &node);
}

Stream::Stream(Driver& driver, int device) : OfDevice(driver, device) {
  call("cuStreamCreate", &DriverFunctions::create_stream, &stream_, stream_non_blocking);
}
Stream::~Stream() { release(&DriverFunctions::destroy_stream, stream_); }

void Stream::copy_in(std::uint64_t to, const void* from, std::size_t bytes) {
  call("cuMemcpyHtoDAsync", &DriverFunctions::copy_in, to, from, bytes, stream_);
}
void Stream::copy_out(void* to, std::uint64_t from, std::size_t bytes) {
  call("cuMemcpyDtoHAsync", &DriverFunctions::copy_out, to, from, bytes, stream_);
}
void Stream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  call("cuMemcpyDtoDAsync", &DriverFunctions::copy, to, from, bytes, stream_);
}
void Stream::fill(std::uint64_t to, unsigned char byte, std::size_t bytes) {
  call("cuMemsetD8Async", &DriverFunctions::fill, to, byte, bytes, stream_);
}

void Stream::launch(const Launch& launch, std::span<void* const> arguments) {
  const auto& [x, y, z] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  // The driver reads the arguments but takes them as not constant.
  call("cuLaunchKernel", &DriverFunctions::launch, launch.kernel, x, y, z, bx, by, bz,
       static_cast<unsigned>(launch.shared_bytes), stream_, const_cast<void**>(arguments.data()),
       nullptr);
}
void Stream::launch(const LaunchGraph& graph) {
  call("cuGraphLaunch", &DriverFunctions::launch_graph, graph.get(), stream_);
}

void Stream::record(Event& event) {
  call("cuEventRecord", &DriverFunctions::record_event, event.get(), stream_);
}
void Stream::wait(const Event& event) {
  call("cuStreamWaitEvent", &DriverFunctions::wait_event, stream_, event.get(), 0u);
}
void Stream::synchronize() {
  call("cuStreamSynchronize", &DriverFunctions::synchronize_stream, stream_);
}

}  // namespace ein::gpu
