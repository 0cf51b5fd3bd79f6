#include "cuda/driver.hpp"

#include <string_view>

#include <ein/error.hpp>

#include "cuda/driver_constants.hpp"
#include "cuda/shared_library.hpp"
#include "tensor/fork.hpp"

namespace ein::gpu {

struct DriverFunctions {
  SharedLibrary library;

  Result (*init)(unsigned);
  Result (*version)(int*);
  Result (*error_name)(Result, const char**);
  Result (*error_text)(Result, const char**);
  Result (*device_count)(int*);
  Result (*device)(int*, int);
  Result (*device_name)(char*, int, int);
  Result (*device_attribute)(int*, int, int);
  Result (*device_memory)(std::size_t*, int);
  Result (*retain_context)(void**, int);
  Result (*release_context)(int);
  Result (*set_context)(void*);
  Result (*free_memory)(std::size_t*, std::size_t*);
  Result (*allocate)(std::uint64_t*, std::size_t);
  Result (*free)(std::uint64_t);
  Result (*allocate_pinned)(void**, std::size_t, unsigned);
  Result (*free_pinned)(void*);
  Result (*copy_in)(std::uint64_t, const void*, std::size_t, void*);
  Result (*copy_out)(void*, std::uint64_t, std::size_t, void*);
  Result (*copy)(std::uint64_t, std::uint64_t, std::size_t, void*);
  Result (*fill)(std::uint64_t, unsigned char, std::size_t, void*);
  Result (*load_module)(void**, const void*);
  Result (*unload_module)(void*);
  Result (*kernel)(void**, void*, const char*);
  Result (*set_kernel_attribute)(void*, int, int);
  Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
  Result (*create_stream)(void**, unsigned);
  Result (*destroy_stream)(void*);
  Result (*synchronize_stream)(void*);
  Result (*wait_event)(void*, void*, unsigned);
  Result (*create_event)(void**, unsigned);
  Result (*destroy_event)(void*);
  Result (*record_event)(void*, void*);
  Result (*synchronize_event)(void*);
  Result (*elapsed)(float*, void*, void*);
  Result (*encode_tiled)(void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                         const unsigned*, const unsigned*, int, int, int, int);
  Result (*create_graph)(void**, unsigned);
  Result (*destroy_graph)(void*);
  Result (*add_kernel_node)(void**, void*, void* const*, std::size_t, const KernelNode*);
  Result (*instantiate_graph)(void**, void*, unsigned long long);
  Result (*destroy_instance)(void*);
  Result (*set_kernel_node)(void*, void*, const KernelNode*);
  Result (*launch_graph)(void*, void*);

  explicit DriverFunctions(const std::vector<std::string>& names) : library(names) {}

  /// The first function that the library lacks; null if it has all.
  const char* find_all() {
    const char* missing = nullptr;
    const auto find = [&](const char* symbol, auto*& function) {
      library.find(symbol, function);
      if (!function && !missing) missing = symbol;
    };
    find("cuInit", init);
    find("cuDriverGetVersion", version);
    find("cuGetErrorName", error_name);
    find("cuGetErrorString", error_text);
    find("cuDeviceGetCount", device_count);
    find("cuDeviceGet", device);
    find("cuDeviceGetName", device_name);
    find("cuDeviceGetAttribute", device_attribute);
    find("cuDeviceTotalMem_v2", device_memory);
    find("cuDevicePrimaryCtxRetain", retain_context);
    find("cuDevicePrimaryCtxRelease_v2", release_context);
    find("cuCtxSetCurrent", set_context);
    find("cuMemGetInfo_v2", free_memory);
    find("cuMemAlloc_v2", allocate);
    find("cuMemFree_v2", free);
    find("cuMemHostAlloc", allocate_pinned);
    find("cuMemFreeHost", free_pinned);
    find("cuMemcpyHtoDAsync_v2", copy_in);
    find("cuMemcpyDtoHAsync_v2", copy_out);
    find("cuMemcpyDtoDAsync_v2", copy);
    find("cuMemsetD8Async", fill);
    find("cuModuleLoadData", load_module);
    find("cuModuleUnload", unload_module);
    find("cuModuleGetFunction", kernel);
    find("cuFuncSetAttribute", set_kernel_attribute);
    find("cuLaunchKernel", launch);
    find("cuStreamCreate", create_stream);
    find("cuStreamDestroy_v2", destroy_stream);
    find("cuStreamSynchronize", synchronize_stream);
    find("cuStreamWaitEvent", wait_event);
    find("cuEventCreate", create_event);
    find("cuEventDestroy_v2", destroy_event);
    find("cuEventRecord", record_event);
    find("cuEventSynchronize", synchronize_event);
    find("cuEventElapsedTime", elapsed);
    find("cuTensorMapEncodeTiled", encode_tiled);
    find("cuGraphCreate", create_graph);
    find("cuGraphDestroy", destroy_graph);
    find("cuGraphAddKernelNode_v2", add_kernel_node);
    find("cuGraphInstantiateWithFlags", instantiate_graph);
    find("cuGraphExecDestroy", destroy_instance);
    find("cuGraphExecKernelNodeSetParams_v2", set_kernel_node);
    find("cuGraphLaunch", launch_graph);
    return missing;
  }
};

namespace {

/// What every kernel may use without asking.
constexpr std::size_t plain_shared_bytes = 48 << 10;

constexpr CudaVersion oldest{12, 0};

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

Driver::Driver(const std::vector<std::string>& names)
    : generation_(fork_generation()), functions_(std::make_unique<DriverFunctions>(names)) {
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
  } else if (version_ = {number / 1000, number % 1000 / 10}; version_ < oldest) {
    missing_ = "the NVIDIA driver is too old, for CUDA " + to_string(version_) + update;
  } else if (const Result counted = cuda.device_count(&count); counted != success) {
    missing_ = "the NVIDIA driver does not tell its devices: " + reason(cuda, counted);
  } else if (count <= 0) {
    missing_ = "the NVIDIA driver has no device; CUDA_VISIBLE_DEVICES may hide it";
  }
  if (missing_.empty()) {
    contexts_.resize(static_cast<std::size_t>(count));
  } else {
    functions_.reset();
  }
}

Driver::~Driver() {
  for (const Context& context : contexts_) {
    if (context.pointer && generation_ == fork_generation())
      functions_->release_context(context.device);
  }
}

Driver& Driver::of_system() {
  return made_once([] {
    const std::string given = environment("EIN_CUDA_DRIVER");
    return Driver({given.empty() ? "libcuda.so.1" : given});
  });
}

const DriverFunctions& Driver::needed() const {
  if (!functions_) throw Error(ErrorKind::device, missing_);
  if (generation_ != fork_generation()) {
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
    throw Error(ErrorKind::value, "cuda:" + std::to_string(device) + ": the number of devices is " +
                                      std::to_string(device_count()) + ", the first is cuda:0");
  }
  return cuda;
}

codegen::EncodedTensorMap Driver::encode(int device, const codegen::TensorMap& map,
                                         std::uint64_t address) {
  const DriverFunctions& cuda = on(device);
  const int type = map.dtype == DType::bf16 ? map_bf16 : map.dtype == DType::f16 ? map_f16 : map_u8;
  const std::vector<unsigned> steps(map.sizes.size(), 1);
  // A local with the alignment could be built in the place of the result, which has none.
  struct alignas(tensor_map_alignment) Aligned {
    codegen::EncodedTensorMap map{};
  } encoded;
  check(cuda,
        cuda.encode_tiled(&encoded.map, type, static_cast<unsigned>(map.sizes.size()),
                          reinterpret_cast<void*>(address), map.sizes.data(), map.strides.data(),
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
  check(cuda, cuda.device(&handle, device), device, "cuDeviceGet");
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
    check(cuda, cuda.device(&context.device, device), device, "cuDeviceGet");
    check(cuda, cuda.retain_context(&context.pointer, context.device), device,
          "cuDevicePrimaryCtxRetain");
  }
  check(cuda, cuda.set_context(context.pointer), device, "cuCtxSetCurrent");
  return cuda;
}

namespace {

/// For destructors, in which a device that is lost has nothing left to free.
template <class F>
void release(Driver& driver, int device, F&& f) {
  try {
    f(driver.on(device));
  } catch (const Error&) {
  }
}

std::string bytes_free(const DriverFunctions& cuda) {
  std::size_t free = 0, total = 0;
  if (cuda.free_memory(&free, &total) != success) return "";
  return ", of " + std::to_string(total) + " bytes " + std::to_string(free) + " are free";
}

}  // namespace

DeviceMemory::DeviceMemory(Driver& driver, int device, std::size_t bytes)
    : driver_(driver), device_(device), bytes_(bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  if (bytes == 0) return;  // the driver makes no empty piece
  const Result result = cuda.allocate(&address_, bytes);
  check(cuda, result, device_,
        "cuMemAlloc of " + std::to_string(bytes) + " bytes" +
            (result == out_of_memory ? bytes_free(cuda) : ""));
}

DeviceMemory::~DeviceMemory() {
  if (address_ == 0) return;
  release(driver_, device_, [this](const DriverFunctions& cuda) { cuda.free(address_); });
}

PinnedMemory::PinnedMemory(Driver& driver, int device, std::size_t bytes)
    : driver_(driver), device_(device), bytes_(bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  if (bytes == 0) return;
  check(cuda, cuda.allocate_pinned(&data_, bytes, pinned_for_all_devices), device_,
        "cuMemHostAlloc of " + std::to_string(bytes) + " bytes");
}

PinnedMemory::~PinnedMemory() {
  if (!data_) return;
  release(driver_, device_, [this](const DriverFunctions& cuda) { cuda.free_pinned(data_); });
}

Module::Module(Driver& driver, int device, const Cubin& cubin) : driver_(driver), device_(device) {
  kernels_of(cubin);  // throws unless the image is whole: the driver is not told its length
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.load_module(&module_, cubin.image.data()), device_, "cuModuleLoadData");
}

Module::~Module() {
  release(driver_, device_, [this](const DriverFunctions& cuda) { cuda.unload_module(module_); });
}

void* Module::kernel(const std::string& name, std::size_t shared_bytes) const {
  const DriverFunctions& cuda = driver_.on(device_);
  void* kernel = nullptr;
  check(cuda, cuda.kernel(&kernel, module_, name.c_str()), device_, "cuModuleGetFunction " + name);
  if (shared_bytes > plain_shared_bytes) {
    check(cuda,
          cuda.set_kernel_attribute(kernel, kernel_dynamic_shared, static_cast<int>(shared_bytes)),
          device_, name + " with " + std::to_string(shared_bytes) + " bytes of shared memory");
  }
  return kernel;
}

Event::Event(Driver& driver, int device) : driver_(driver), device_(device) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.create_event(&event_, 0), device_, "cuEventCreate");
}

Event::~Event() {
  release(driver_, device_, [this](const DriverFunctions& cuda) { cuda.destroy_event(event_); });
}

void Event::wait() const {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.synchronize_event(event_), device_, "cuEventSynchronize");
}

double Event::seconds_since(const Event& earlier) const {
  const DriverFunctions& cuda = driver_.on(device_);
  float milliseconds = 0;
  check(cuda, cuda.elapsed(&milliseconds, earlier.event_, event_), device_, "cuEventElapsedTime");
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

LaunchGraph::LaunchGraph(Driver& driver, int device) : driver_(driver), device_(device) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.create_graph(&graph_, 0), device_, "cuGraphCreate");
}

LaunchGraph::~LaunchGraph() {
  release(driver_, device_, [this](const DriverFunctions& cuda) {
    if (ready_) cuda.destroy_instance(ready_);
    cuda.destroy_graph(graph_);
  });
}

void LaunchGraph::add(const Launch& launch, std::span<void* const> arguments) {
  const DriverFunctions& cuda = driver_.on(device_);
  const KernelNode node = node_of(launch, arguments);
  void* added = nullptr;
  const bool is_first = nodes_.empty();
  check(cuda,
        cuda.add_kernel_node(&added, graph_, is_first ? nullptr : &nodes_.back(), is_first ? 0 : 1,
                             &node),
        device_, "cuGraphAddKernelNode");
  nodes_.push_back(added);
}

void LaunchGraph::finish() {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.instantiate_graph(&ready_, graph_, 0), device_, "cuGraphInstantiate");
}

void LaunchGraph::set(std::size_t index, const Launch& launch, std::span<void* const> arguments) {
  const DriverFunctions& cuda = driver_.on(device_);
  const KernelNode node = node_of(launch, arguments);
  check(cuda, cuda.set_kernel_node(ready_, nodes_[index], &node), device_,
        "cuGraphExecKernelNodeSetParams");
}

Stream::Stream(Driver& driver, int device) : driver_(driver), device_(device) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.create_stream(&stream_, stream_non_blocking), device_, "cuStreamCreate");
}

Stream::~Stream() {
  release(driver_, device_, [this](const DriverFunctions& cuda) { cuda.destroy_stream(stream_); });
}

void Stream::copy_in(std::uint64_t to, const void* from, std::size_t bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.copy_in(to, from, bytes, stream_), device_, "cuMemcpyHtoDAsync");
}

void Stream::copy_out(void* to, std::uint64_t from, std::size_t bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.copy_out(to, from, bytes, stream_), device_, "cuMemcpyDtoHAsync");
}

void Stream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.copy(to, from, bytes, stream_), device_, "cuMemcpyDtoDAsync");
}

void Stream::fill(std::uint64_t to, unsigned char byte, std::size_t bytes) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.fill(to, byte, bytes, stream_), device_, "cuMemsetD8Async");
}

void Stream::launch(const Launch& launch, std::span<void* const> arguments) {
  const DriverFunctions& cuda = driver_.on(device_);
  const auto& [x, y, z] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  // The driver reads the arguments but takes them as not constant.
  check(cuda,
        cuda.launch(launch.kernel, x, y, z, bx, by, bz, static_cast<unsigned>(launch.shared_bytes),
                    stream_, const_cast<void**>(arguments.data()), nullptr),
        device_, "cuLaunchKernel");
}

void Stream::launch(const LaunchGraph& graph) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.launch_graph(graph.get(), stream_), device_, "cuGraphLaunch");
}

void Stream::record(Event& event) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.record_event(event.get(), stream_), device_, "cuEventRecord");
}

void Stream::wait(const Event& event) {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.wait_event(stream_, event.get(), 0), device_, "cuStreamWaitEvent");
}

void Stream::synchronize() {
  const DriverFunctions& cuda = driver_.on(device_);
  check(cuda, cuda.synchronize_stream(stream_), device_, "cuStreamSynchronize");
}

}  // namespace ein::gpu
