// Kernels: a program's nests, prepared for a device.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ein/device.hpp>
#include "cpu/kernel.hpp"

namespace ein {
namespace codegen {
class Launches;
}

namespace engine {

/// Fills in program.groups as it suits the device (see group_nests).
void group(Program& program, Device device, std::span<const int> kept,
           std::span<const int> memory = {});

/// Thread-safe for different workspaces.
class Kernels {
 public:
  /// The program's groups are the kernels.
  Kernels(const Program& program, Device device);
  ~Kernels();

  /// Bytes of scratch memory that a run on so many threads wants.
  std::size_t workspace_bytes(int threads) const;
  /// On the device's addresses. On a GPU this starts them, and errors come later.
  void run(const host::Run& run) const;
  /// Throws what a run of `call` met on a GPU, if it may meet anything, waiting for it.
  void require_success(std::string_view call) const;

 private:
  std::vector<std::unique_ptr<host::Kernel>> on_host_;
  std::unique_ptr<codegen::Launches> on_gpu_;
};

}  // namespace engine
}  // namespace ein
