// Emitted kernels, compiled by NVRTC and run on a GPU.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ein/tensor.hpp>
#include "codegen/emit.hpp"
#include "codegen/vocabulary.hpp"
#include "cuda/arguments.hpp"
#include "cuda/cubin_cache.hpp"
#include "cuda/driver.hpp"

namespace ein::test {

/// Many kernels, some in each translation unit. Each is known by its name.
class KernelsOnDevice {
 public:
  /// The device that the environment's EIN_TEST_DEVICE names.
  KernelsOnDevice()
      : device_(std::atoi(std::getenv("EIN_TEST_DEVICE"))), stream_(driver_, device_) {}
  static bool are_wanted() { return std::getenv("EIN_TEST_DEVICE") != nullptr; }

  void add(const codegen::KernelSource& kernel) {
    if (kernels_ % kernels_per_unit == 0)
      sources_.push_back({"kernels.cu", codegen::vocabulary(), arch(), {}});
    sources_.back().text += kernel.text.substr(kernel.kernel_begin) + "\n";
    unit_[kernel.name] = kernels_++ / kernels_per_unit;
  }

  /// What the compiler or the driver has to say if it fails; else nothing.
  std::string build() try {
    for (const gpu::Compiled& compiled : gpu::compile_all(sources_)) {
      modules_.push_back(std::make_unique<gpu::Module>(driver_, device_, compiled.cubin));
    }
    return {};
  } catch (const Error& error) {
    return error.what();
  }

  /// Copies the program's buffers to the device, runs a kernel on them, and copies them back;
  /// returns what went wrong, or nothing.
  std::string run(const codegen::KernelSource& kernel,
                  std::span<const std::shared_ptr<Storage>> buffers,
                  const std::shared_ptr<Storage>& workspace, RandomOrigin origin,
                  codegen::KernelSource::Fault* fault) try {
    const Copy fault_copy(*this, reinterpret_cast<std::byte*>(fault), sizeof *fault);
    std::map<const Storage*, Copy> copies;
    std::vector<std::byte*> addresses(buffers.size());
    std::byte* workspace_address = nullptr;
    std::vector<int> named = kernel.buffers;
    for (const codegen::TensorMap& map : kernel.maps) named.push_back(map.buffer);
    for (const int b : named) {
      const bool is_workspace = b == codegen::workspace_buffer;
      const Storage& storage = is_workspace ? *workspace : *buffers[static_cast<std::size_t>(b)];
      const auto [copy, is_new] = copies.try_emplace(
          &storage, *this, const_cast<std::byte*>(storage.data()), storage.bytes());
      (is_workspace ? workspace_address : addresses[static_cast<std::size_t>(b)]) =
          reinterpret_cast<std::byte*>(copy->second.address());
    }
    gpu::Arguments arguments;
    arguments.set(kernel, {addresses, workspace_address, fault_copy.address(), origin,
                           driver_.encoder(device_)});
    stream_.launch(modules_.at(unit_.at(kernel.name))->launch_of(kernel), arguments.addresses());
    for (const auto& [storage, copy] : copies) copy.back();
    fault_copy.back();
    stream_.synchronize();
    return {};
  } catch (const Error& error) {
    return error.what();
  }

 private:
  static constexpr std::size_t kernels_per_unit = 32;

  /// Memory of the device with the content of some of the host's.
  class Copy {
   public:
    Copy(KernelsOnDevice& owner, std::byte* host, std::size_t bytes)
        : owner_(owner),
          host_(host),
          bytes_(host ? bytes : 0),
          memory_(owner.driver_, owner.device_, std::max<std::size_t>(16, bytes_)) {
      if (bytes_ > 0) owner_.stream_.copy_in(memory_.address(), host_, bytes_);
    }
    std::uint64_t address() const { return memory_.address(); }
    void back() const {
      if (bytes_ > 0) owner_.stream_.copy_out(host_, memory_.address(), bytes_);
    }

   private:
    KernelsOnDevice& owner_;
    std::byte* host_;
    std::size_t bytes_;
    gpu::DeviceMemory memory_;
  };

  std::string arch() const {
    const gpu::DeviceInfo info = driver_.info(device_);
    return "sm_" + std::to_string(info.major * 10 + info.minor) + (info.major >= 9 ? "a" : "");
  }

  gpu::Driver& driver_ = gpu::Driver::of_system();
  int device_;
  gpu::Stream stream_;
  std::vector<gpu::Source> sources_;
  std::map<std::string, std::size_t> unit_;
  std::size_t kernels_ = 0;
  std::vector<std::unique_ptr<gpu::Module>> modules_;
};

}  // namespace ein::test
