// A driver without a GPU: memory of the host behind the functions of libcuda.so.1, for the tests of
// what calls them. It runs kernels that fake_nvrtc.cpp compiled, counts what is not given back, and
// fails where the environment's FAKE_CUDA says: "cuMemAlloc_v2=2 devices=0 version=11040", a call
// and its result or a figure for each word.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/host_tensor_map.hpp"
#include "support/minimal_cubin.hpp"

namespace {

long setting(const char* name, long otherwise) {
  const char* const words = std::getenv("FAKE_CUDA");
  if (!words) return otherwise;
  const std::string text = " " + std::string(words), key = " " + std::string(name) + "=";
  const std::size_t at = text.find(key);
  return at == text.npos ? otherwise : std::strtol(text.c_str() + at + key.size(), nullptr, 10);
}

constexpr int devices = 2, most_devices = 8;  // unless the setting "devices" says so
int contexts[most_devices];                   // their addresses stand for them
int retained = 0, held = 0;                   // contexts, and everything else
thread_local int current = -1;                // the context's device
struct Stream {
  int device, ended;
};  // ended: the failure that the next wait reports
struct Event {
  int device;
  float when;
  int ended = 0;  // of the stream, when it was recorded
};
using HostKernel = const char* (*)(const unsigned* grid, const unsigned* block,
                                   void* const* arguments);
using ArgumentSize = unsigned long (*)(unsigned long);
struct Kernel {
  int shared_limit = 48 << 10;
  HostKernel on_host = nullptr;
  ArgumentSize argument_size = [](unsigned long i) { return i < 2 ? 8ul : i == 2 ? 4ul : 0ul; };
} add_kernel;
struct Launch {  // CUDA_KERNEL_NODE_PARAMS_v2
  Kernel* kernel;
  unsigned grid[3], block[3], shared_bytes;
  void** arguments;
  void *extra, *library_kernel, *context;
};
static_assert(sizeof(Launch) == 72);
struct Node {
  Launch launch;
  std::vector<std::vector<char>> values{};  // a driver keeps the arguments' values
  int number = 0;
  explicit Node(const Launch& from) : launch(from) {
    for (unsigned long i = 0; const unsigned long size = from.kernel->argument_size(i); ++i) {
      const char* const begin = static_cast<const char*>(from.arguments[i]);
      values.emplace_back(begin, begin + size);
    }
  }
};
struct Graph {
  int device;
  std::vector<std::unique_ptr<Node>> nodes{};
};
struct Instance {
  int device;
  std::vector<Node> nodes{};
};
long launches = 0, kernels = 0;  // calls that start work, and kernels that ran
long tensor_maps = 0;            // encoded
long modules = 0, graphs = 0;    // loaded, instantiated
struct Module {
  int device;
  void* library = nullptr;  // of kernels for the host
  std::map<std::string, Kernel> kernels{};
};
float clock_of_events = 0;
std::atomic<long> allocated{0};               // bytes; the setting "memory" bounds them
std::map<std::uint64_t, std::size_t> blocks;  // of the devices, by address
std::mutex mutex;

int result_of(const char* function) { return static_cast<int>(setting(function, 0)); }
constexpr int no_context = 201, invalid_value = 1;

}  // namespace

#define FAILS(function) \
  if (const int result = result_of(#function)) return result
#define NEEDS_CONTEXT(function) \
  FAILS(function);              \
  if (current < 0) return no_context

extern "C" {

int fake_cuda_held() { return held; }
int fake_cuda_retained() { return retained; }
int fake_cuda_launches() { return static_cast<int>(launches); }
int fake_cuda_kernels() { return static_cast<int>(kernels); }
int fake_cuda_tensor_maps() { return static_cast<int>(tensor_maps); }
int fake_cuda_modules() { return static_cast<int>(modules); }
int fake_cuda_graphs() { return static_cast<int>(graphs); }

int cuInit(unsigned) {
  FAILS(cuInit);
  return 0;
}
int cuDriverGetVersion(int* version) {
  FAILS(cuDriverGetVersion);
  *version = static_cast<int>(setting("version", 13000));
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                         : nullptr;
  return *name ? 0 : invalid_value;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 2 ? "out of memory" : nullptr;
  return *text ? 0 : invalid_value;
}
int cuDeviceGetCount(int* count) {
  FAILS(cuDeviceGetCount);
  *count = static_cast<int>(setting("devices", devices));
  return 0;
}
int cuDeviceGet(int* device, int number) {
  if (number < 0 || number >= most_devices) return 101;
  *device = 40 + number;  // so that a number taken for the driver's handle shows
  return 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<std::size_t>(size), "%s",
                device == 40 ? "NVIDIA H100 80GB HBM3" : "Fake device");
  return device >= 40 ? 0 : 101;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < 40) return 101;
  switch (attribute) {
    case 16:
      *value = device == 40 ? 132 : 7;
      return 0;
    case 38:
      *value = 50 << 20;
      return 0;
    case 39:
      *value = 2048;
      return 0;
    case 75:
      *value = static_cast<int>(setting("major", 9));
      return 0;
    case 76:
      *value = 0;
      return 0;
    case 81:
      *value = 233472;
      return 0;
    case 82:
      *value = 65536;
      return 0;
    case 97:
      *value = 232448;
      return 0;
    default:
      return invalid_value;
  }
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = std::size_t{80} << 30;
  return device >= 40 ? 0 : 101;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  FAILS(cuDevicePrimaryCtxRetain);
  if (device < 40) return 101;
  *context = &contexts[device - 40];
  const std::lock_guard lock(mutex);
  ++retained;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  const std::lock_guard lock(mutex);
  --retained;
  return device >= 40 ? 0 : 101;
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<int>(static_cast<int*>(context) - contexts);
  return 0;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  NEEDS_CONTEXT(cuMemGetInfo_v2);
  *free = 12345;
  *total = std::size_t{80} << 30;
  return 0;
}

// Every handle is counted when it is made and when it is given back.
int hold(void* made) {
  if (!made) return 2;
  const std::lock_guard lock(mutex);
  ++held;
  return 0;
}
void drop() {
  const std::lock_guard lock(mutex);
  --held;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  NEEDS_CONTEXT(cuMemAlloc_v2);
  if (bytes == 0) return invalid_value;
  const long limit = setting("memory", 0);
  if (limit > 0 && allocated + static_cast<long>(bytes) > limit) return 2;
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  allocated += static_cast<long>(malloc_usable_size(memory));
  *address = reinterpret_cast<std::uint64_t>(memory);
  {
    const std::lock_guard lock(mutex);
    blocks[*address] = bytes;
  }
  return hold(memory);
}
int cuMemFree_v2(std::uint64_t address) {
  NEEDS_CONTEXT(cuMemFree_v2);
  {
    const std::lock_guard lock(mutex);
    blocks.erase(address);
  }
  allocated -= static_cast<long>(malloc_usable_size(reinterpret_cast<void*>(address)));
  std::free(reinterpret_cast<void*>(address));
  drop();
  return 0;
}
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  NEEDS_CONTEXT(cuMemHostAlloc);
  if (flags != 1) return invalid_value;
  return hold(*memory = std::malloc(bytes));
}
int cuMemFreeHost(void* memory) {
  NEEDS_CONTEXT(cuMemFreeHost);
  std::free(memory);
  drop();
  return 0;
}
/// For a stand-in of another library: the device whose context is current, or -1; the device of a
/// stream; and whether these bytes are memory of a device.
int fake_cuda_current() { return current; }
int fake_cuda_device_of(void* stream) { return stream ? static_cast<Stream*>(stream)->device : -1; }
int fake_cuda_owns(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  const std::lock_guard lock(mutex);
  const auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return 0;
  const auto& [first, size] = *std::prev(after);
  return address + bytes <= first + size;
}
bool is_here(void* stream) { return stream && static_cast<Stream*>(stream)->device == current; }
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT(cuMemcpyHtoDAsync_v2);
  if (!is_here(stream)) return 400;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT(cuMemcpyDtoHAsync_v2);
  if (!is_here(stream)) return 400;
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT(cuMemcpyDtoDAsync_v2);
  if (!is_here(stream)) return 400;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemsetD8Async(std::uint64_t to, unsigned char byte, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT(cuMemsetD8Async);
  if (!is_here(stream)) return 400;
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  NEEDS_CONTEXT(cuModuleLoadData);
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return 200;
  ++modules;
  auto* const made = new Module{current};
  const char* const rest = static_cast<const char*>(image) + ein::test::minimal_cubin().size();
  constexpr std::size_t mark = sizeof ein::test::host_kernels - 1;
  if (std::memcmp(image, ein::test::minimal_cubin().data(), 64) == 0 &&
      std::strncmp(rest, ein::test::host_kernels, mark) == 0)
    made->library = ::dlopen(rest + mark, RTLD_NOW | RTLD_LOCAL);
  return hold(*module = made);
}
int cuModuleUnload(void* module) {
  NEEDS_CONTEXT(cuModuleUnload);
  if (void* const library = static_cast<Module*>(module)->library) ::dlclose(library);
  delete static_cast<Module*>(module);
  drop();
  return 0;
}
int cuModuleGetFunction(void** kernel, void* module, const char* name) {
  NEEDS_CONTEXT(cuModuleGetFunction);
  if (static_cast<Module*>(module)->device != current) return 400;
  if (void* const library = static_cast<Module*>(module)->library) {
    const auto on_host =
        reinterpret_cast<HostKernel>(::dlsym(library, ("host_" + std::string(name)).c_str()));
    if (!on_host) return 500;
    Kernel& found = static_cast<Module*>(module)->kernels[name];
    found.on_host = on_host;
    found.argument_size =
        reinterpret_cast<ArgumentSize>(::dlsym(library, ("size_" + std::string(name)).c_str()));
    *kernel = &found;
    return 0;
  }
  if (std::strcmp(name, "ein_add") != 0) return 500;
  *kernel = &add_kernel;
  return 0;
}
int cuFuncSetAttribute(void* kernel, int attribute, int value) {
  NEEDS_CONTEXT(cuFuncSetAttribute);
  if (attribute != 8 || value > 232448) return invalid_value;
  static_cast<Kernel*>(kernel)->shared_limit = value;
  return 0;
}
/// A kernel for the host, or the one that there is: y[i] = x[i] + 1 for i < n.
int run(const Launch& launch, void* stream) {
  const auto& [x, y, z] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  if (x * y * z == 0 || bx * by * bz == 0 || bx * by * bz > 1024) return invalid_value;
  if (static_cast<int>(launch.shared_bytes) > launch.kernel->shared_limit) return 701;
  if (const HostKernel on_host = launch.kernel->on_host) {
    const std::lock_guard lock(mutex);
    ++kernels;
    const std::string wrong = on_host(launch.grid, launch.block, launch.arguments);
    // As if all threads ran one after another: events tell how many a kernel has.
    clock_of_events +=
        1e-3f * static_cast<float>(launch.grid[0] * launch.grid[1] * launch.block[0]);
    if (!wrong.empty()) std::fprintf(stderr, "fake_cuda: %s\n", wrong.c_str());
    static_cast<Stream*>(stream)->ended = wrong.empty() ? result_of("kernel") : 719;
    return 0;
  }
  if (y != 1 || z != 1 || by != 1 || bz != 1) return invalid_value;
  const auto* from = *static_cast<const float**>(launch.arguments[0]);
  auto* to = *static_cast<float**>(launch.arguments[1]);
  const int count = *static_cast<const int*>(launch.arguments[2]);
  for (int i = 0; i < count && i < static_cast<int>(x * bx); ++i) to[i] = from[i] + 1;
  static_cast<Stream*>(stream)->ended = result_of("kernel");
  return 0;
}
int cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, void* stream, void** arguments, void**) {
  NEEDS_CONTEXT(cuLaunchKernel);
  if (!is_here(stream)) return 400;
  {
    const std::lock_guard lock(mutex);
    ++launches;
  }
  return run({static_cast<Kernel*>(kernel),
              {x, y, z},
              {bx, by, bz},
              shared_bytes,
              arguments,
              nullptr,
              nullptr,
              nullptr},
             stream);
}
int cuGraphCreate(void** graph, unsigned flags) {
  NEEDS_CONTEXT(cuGraphCreate);
  if (flags != 0) return invalid_value;
  return hold(*graph = new Graph{current});
}
int cuGraphDestroy(void* graph) {
  NEEDS_CONTEXT(cuGraphDestroy);
  delete static_cast<Graph*>(graph);
  drop();
  return 0;
}
/// Each node must follow the one before it.
int cuGraphAddKernelNode_v2(void** node, void* graph, void* const* before, std::size_t count,
                            const Launch* launch) {
  NEEDS_CONTEXT(cuGraphAddKernelNode_v2);
  auto& nodes = static_cast<Graph*>(graph)->nodes;
  if (count != (nodes.empty() ? 0 : 1) || (count == 1 && before[0] != nodes.back().get()))
    return invalid_value;
  nodes.push_back(std::make_unique<Node>(*launch));
  nodes.back()->number = static_cast<int>(nodes.size()) - 1;
  *node = nodes.back().get();
  return 0;
}
int cuGraphInstantiateWithFlags(void** instance, void* graph, unsigned long long flags) {
  NEEDS_CONTEXT(cuGraphInstantiateWithFlags);
  if (flags != 0) return invalid_value;
  ++graphs;
  auto* const made = new Instance{current};
  for (const auto& node : static_cast<Graph*>(graph)->nodes) made->nodes.push_back(*node);
  return hold(*instance = made);
}
int cuGraphExecDestroy(void* instance) {
  NEEDS_CONTEXT(cuGraphExecDestroy);
  delete static_cast<Instance*>(instance);
  drop();
  return 0;
}
int cuGraphExecKernelNodeSetParams_v2(void* instance, void* node, const Launch* launch) {
  NEEDS_CONTEXT(cuGraphExecKernelNodeSetParams_v2);
  static_cast<Instance*>(instance)
      ->nodes[static_cast<std::size_t>(static_cast<Node*>(node)->number)] = Node(*launch);
  return 0;
}
int cuGraphLaunch(void* instance, void* stream) {
  NEEDS_CONTEXT(cuGraphLaunch);
  if (!is_here(stream) || static_cast<Instance*>(instance)->device != current) return 400;
  {
    const std::lock_guard lock(mutex);
    ++launches;
  }
  for (Node& node : static_cast<Instance*>(instance)->nodes) {
    std::vector<void*> arguments;
    for (std::vector<char>& value : node.values) arguments.push_back(value.data());
    Launch launch = node.launch;
    launch.arguments = arguments.data();
    if (const int result = run(launch, stream)) return result;
  }
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  NEEDS_CONTEXT(cuStreamCreate);
  if (flags != 1) return invalid_value;
  return hold(*stream = new Stream{current, 0});
}
int cuStreamDestroy_v2(void* stream) {
  NEEDS_CONTEXT(cuStreamDestroy_v2);
  if (!is_here(stream)) return 400;
  delete static_cast<Stream*>(stream);
  drop();
  return 0;
}
int cuStreamSynchronize(void* stream) {
  NEEDS_CONTEXT(cuStreamSynchronize);
  return is_here(stream) ? static_cast<Stream*>(stream)->ended : 400;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  NEEDS_CONTEXT(cuStreamWaitEvent);
  return is_here(stream) && event ? 0 : 400;
}
int cuEventCreate(void** event, unsigned) {
  NEEDS_CONTEXT(cuEventCreate);
  return hold(*event = new Event{current, -1});
}
int cuEventDestroy_v2(void* event) {
  NEEDS_CONTEXT(cuEventDestroy_v2);
  delete static_cast<Event*>(event);
  drop();
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  NEEDS_CONTEXT(cuEventRecord);
  if (!is_here(stream)) return 400;
  static_cast<Event*>(event)->when = clock_of_events += 1.5f;
  static_cast<Event*>(event)->ended = static_cast<Stream*>(stream)->ended;
  return 0;
}
int cuEventSynchronize(void* event) {
  NEEDS_CONTEXT(cuEventSynchronize);
  return static_cast<Event*>(event)->device == current ? static_cast<Event*>(event)->ended : 400;
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  NEEDS_CONTEXT(cuEventElapsedTime);
  *milliseconds = static_cast<Event*>(to)->when - static_cast<Event*>(from)->when;
  return static_cast<Event*>(from)->when < 0 ? 600 : 0;
}

int cuTensorMapEncodeTiled(void* encoded, int type, unsigned rank, void* address,
                           const std::uint64_t* sizes, const std::uint64_t* strides,
                           const unsigned* box, const unsigned* steps, int interleave, int swizzle,
                           int promotion, int filling) {
  NEEDS_CONTEXT(cuTensorMapEncodeTiled);
  if (reinterpret_cast<std::uintptr_t>(encoded) % 128 != 0 || interleave != 0 || swizzle != 3 ||
      promotion < 0 || promotion > 3 || filling != 0)
    return invalid_value;
  if (type != 0 && type != 6 && type != 9) return invalid_value;
  for (unsigned d = 0; d < rank; ++d) {
    if (steps[d] != 1) return invalid_value;
  }
  HostTensorMap map;
  if (encode_host_tensor_map(map, type == 0 ? 1 : 2, rank, reinterpret_cast<std::uint64_t>(address),
                             sizes, strides, box))
    return invalid_value;
  std::memcpy(encoded, &map, sizeof map);
  ++tensor_maps;
  return 0;
}

}  // extern "C"
