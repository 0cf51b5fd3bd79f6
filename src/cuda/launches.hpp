// Launches: the nests of a program as kernels on a GPU.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/arguments.hpp"
#include "cuda/gpu.hpp"

namespace ein::gpu {

/// Emitted, compiled and loaded once, launched any number of times. Many kernels become a CUDA
/// graph when they are launched for the second time. Thread-safe.
class Launches final : public engine::Kernels {
 public:
  Launches(const Program& program, Gpu& gpu);
  ~Launches() override;

  std::size_t workspace_bytes(int /*threads*/) const override { return workspace_bytes_; }
  /// On buffers and a workspace that are aligned to 16 bytes.
  void run(const engine::Run& run) const override;
  /// That no kernel met a position outside of its axis.
  void require_success(std::string_view call) const override;

 private:
  struct Kernel {
    Launch launch;
    codegen::KernelSource source;
  };
  struct Replay;
  Arguments::Memory memory_of(const engine::Run& run) const;
  bool replay(const engine::Run& run) const;

  Gpu& gpu_;
  std::vector<std::shared_ptr<Module>> modules_;  // keep the kernels valid
  std::vector<Kernel> kernels_;
  std::size_t workspace_bytes_ = 0;
  bool checks_positions_ = false;  // whether a kernel does
  std::unique_ptr<Replay> replay_;
};

}  // namespace ein::gpu
