// Tuner: the fastest of the ways to do a nest, by their times on the device at hand.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/gpu.hpp"

namespace ein::gpu {

/// Times what alternatives() offers, on memory of its own that is filled with random numbers. What
/// it finds stays in the user's cubin cache, under the text of all alternatives, the device's name,
/// and the versions of driver and NVRTC.
class Tuner {
 public:
  explicit Tuner(Gpu& gpu) : gpu_(gpu) {}

  /// The kernels of a group; of the fastest alternative, if it is a nest that has several.
  std::vector<codegen::KernelSource> emit(const Program& program, const Program::Group& group,
                                          const GpuTarget& target, std::string_view suffix);
  /// The number of the fastest.
  std::size_t fastest(const LoopNest& nest, const std::vector<codegen::Alternative>& alternatives);

 private:
  std::size_t time_all(const LoopNest& nest, const std::vector<codegen::Alternative>& alternatives);

  Gpu& gpu_;
};

}  // namespace ein::gpu
