// Launches: the nests of a program as kernels on a GPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "codegen/gpu.hpp"

namespace ein::codegen {

/// Emitted, compiled and loaded once, launched any number of times. Thread-safe.
class Launches {
 public:
  Launches(const Program& program, Gpu& gpu);

  Gpu& gpu() const { return gpu_; }
  /// Bytes of scratch memory that run() wants.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Whether a kernel looks at positions, so that Gpu::take_fault() may have something to tell
  /// afterwards.
  bool checks_positions() const { return checks_positions_; }
  /// Starts them. `buffers`: the device's addresses of the program's buffers; they and the
  /// workspace are aligned to 16 bytes.
  void run(std::span<std::byte* const> buffers, std::byte* workspace, RandomOrigin random) const;

 private:
  struct Kernel {
    std::shared_ptr<Module> module;  // keeps `launch` valid
    Launch launch;
    std::vector<int> buffers;
    std::vector<std::int64_t> offsets;
    bool checks_positions = false;
    std::vector<KernelSource::Stream> streams;
  };

  Gpu& gpu_;
  std::vector<Kernel> kernels_;
  std::size_t workspace_bytes_ = 0;
  bool checks_positions_ = false;
};

}  // namespace ein::codegen
