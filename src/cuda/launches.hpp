// Launches: the nests of a program as kernels on a GPU.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/arguments.hpp"
#include "cuda/gpu.hpp"

namespace ein::gpu {

/// The kernels of a program: emitted, compiled and loaded once. Sizes that are formulas are
/// arguments.
struct LoadedKernels;
struct Replay;

class LaunchPlan final : public engine::KernelsPlan {
 public:
  LaunchPlan(const Program& program, Gpu& gpu);
  std::unique_ptr<engine::Kernels> at(SizesAt& sizes) const override;

 private:
  std::shared_ptr<LoadedKernels> kernels_;
};

/// The kernels of a plan for the lengths of a call, launched any number of times. Thread-safe.
class Launches final : public engine::Kernels {
 public:
  Launches(std::shared_ptr<LoadedKernels> kernels, SizesAt& sizes);

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
  Arguments::Memory memory_of(const engine::Run& run) const;
  /// Kernels first to last - 1, between two collectives.
  void run(const engine::Run& run, std::size_t first, std::size_t last, Replay& replay) const;
  bool start(Replay& replay, const engine::Run& run, std::size_t first, std::size_t last) const;

  std::shared_ptr<LoadedKernels> loaded_;
  std::vector<Kernel> kernels_;
  /// Each before a kernel of this number.
  std::vector<std::pair<std::size_t, codegen::CollectiveSource>> collectives_;
  std::size_t workspace_bytes_ = 0;
  KeptBytes kept_;
};

}  // namespace ein::gpu
