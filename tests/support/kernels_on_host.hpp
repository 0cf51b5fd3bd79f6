// Emitted kernels, compiled by the host's compiler and run there.
#pragma once

#include <dlfcn.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/emit.hpp"
#include "cuda/arguments.hpp"
#include "support/host_compiler.hpp"
#include "support/host_tensor_map.hpp"
#include "support/scratch.hpp"

namespace ein::test {

/// Many kernels in one translation unit. Each is known by its name.
class KernelsOnHost {
 public:
  ~KernelsOnHost() {
    if (library_) ::dlclose(library_);
  }
  KernelsOnHost() = default;
  KernelsOnHost(const KernelsOnHost&) = delete;
  KernelsOnHost& operator=(const KernelsOnHost&) = delete;

  void add(const codegen::KernelSource& kernel) {
    if (!launches_.emplace(kernel.name, nullptr).second)
      throw std::logic_error("two kernels " + kernel.name);
    text_ += kernel.text.substr(kernel.kernel_begin);
    text_ +=
        "extern \"C\" const char* launch_" + kernel.name +
        "(const unsigned* grid, const unsigned* block, bool fibres, void* const* arguments) {\n"
        "  return device::launch(" +
        kernel.name + ", grid, block, fibres, arguments);\n}\n\n";
  }

  /// What the compiler has to say if it fails; else nothing.
  std::string build() {
    ScratchDirectory directory;
    // A precompiled header is one only where it comes first.
    write_bytes(directory.path("kernels.cpp"),
                std::string("#include \"") + host_header + "\"\n" + text_ +
                    "extern \"C\" std::size_t used_shared_bytes() { return "
                    "device::used_shared_bytes; }\n");
    if (std::string wrong = compile_on_host(directory.path(""), "kernels"); !wrong.empty())
      return wrong;
    library_ = ::dlopen(directory.path("kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) return ::dlerror();
    for (auto& [name, launch] : launches_) {
      launch = reinterpret_cast<Launch>(::dlsym(library_, ("launch_" + name).c_str()));
      if (!launch) return "no kernel " + name;
    }
    return {};
  }

  /// Runs a kernel on these program buffers; returns what went wrong in it, or nothing.
  std::string run(const codegen::KernelSource& kernel, std::span<std::byte* const> buffers,
                  std::byte* workspace, RandomOrigin origin,
                  codegen::KernelSource::Fault* fault) const {
    const char* wrong_map = nullptr;
    const auto encode = [&](const codegen::TensorMap& map, std::uint64_t address) {
      HostTensorMap encoded;
      const std::vector<std::uint64_t> sizes(map.sizes.begin(), map.sizes.end()),
          strides(map.strides.begin(), map.strides.end());
      const char* const wrong =
          encode_host_tensor_map(encoded, static_cast<std::uint32_t>(size_of(map.dtype)),
                                 static_cast<std::uint32_t>(map.sizes.size()), address,
                                 sizes.data(), strides.data(), map.box.data());
      if (wrong) wrong_map = wrong;
      return std::bit_cast<codegen::EncodedTensorMap>(encoded);
    };
    gpu::Arguments arguments;
    arguments.set(kernel,
                  {buffers, workspace, reinterpret_cast<std::uint64_t>(fault), origin, encode});
    if (wrong_map) return std::string("a tensor map cannot have this: ") + wrong_map;
    const std::string text = kernel.text.substr(kernel.kernel_begin);
    bool fibres = false;
    for (const char* word :
         {"__syncthreads", "__shfl", "combine_lanes", "combine_rows", "scan_block", "sorted<"}) {
      fibres |= text.find(word) != std::string::npos;
    }
    const std::string wrong = launches_.at(kernel.name)(kernel.grid().data(), kernel.block.data(),
                                                        fibres, arguments.addresses().data());
    if (!wrong.empty()) return wrong;
    const auto used = reinterpret_cast<std::size_t (*)()>(::dlsym(library_, "used_shared_bytes"))();
    if (used <= kernel.shared_bytes) return {};
    return std::to_string(used) + " bytes of shared memory are used, " +
           std::to_string(kernel.shared_bytes) + " asked for";
  }

 private:
  using Launch = const char* (*)(const unsigned*, const unsigned*, bool, void* const*);
  std::string text_;
  std::map<std::string, Launch> launches_;
  void* library_ = nullptr;
};

}  // namespace ein::test
