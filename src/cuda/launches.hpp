// Launches: the nests of a program as kernels on a GPU.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/arguments.hpp"
#include "cuda/gpu.hpp"

namespace ein::codegen {

/// Emitted, compiled and loaded once, launched any number of times. Many kernels become a CUDA
/// graph when they are launched for the second time. Thread-safe.
class Launches {
 public:
  Launches(const Program& program, Gpu& gpu);
  ~Launches();

  Gpu& gpu() const { return gpu_; }
  /// Bytes of scratch memory that run() wants.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Whether a kernel looks at positions, so that Gpu::take_fault() may have something to tell
  /// afterwards.
  bool checks_positions() const { return checks_positions_; }

  /// What one run works on.
  struct Run {
    std::span<std::byte* const> buffers;  // the device's addresses of the program's buffers
    std::byte* workspace = nullptr;       // they and the workspace are aligned to 16 bytes
    RandomOrigin random{};
  };
  /// Starts them.
  void run(const Run& run) const;

 private:
  struct Kernel {
    Launch launch;
    KernelSource source;
  };
  struct Replay;
  Arguments::Memory memory_of(const Run& run) const;
  bool replay(const Run& run) const;

  Gpu& gpu_;
  std::vector<std::shared_ptr<Module>> modules_;  // keep the kernels valid
  std::vector<Kernel> kernels_;
  std::size_t workspace_bytes_ = 0;
  bool checks_positions_ = false;
  std::unique_ptr<Replay> replay_;
};

}  // namespace ein::codegen
