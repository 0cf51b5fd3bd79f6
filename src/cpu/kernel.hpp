// Kernel: a loop nest prepared for this machine. Planned once, run any number of times.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "nest/nest.hpp"

namespace ein::cpu {

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Runs on the addresses of the program's buffers, on the thread pool. Thread-safe.
  virtual void run(std::span<std::byte* const> buffers) const = 0;
  /// Bytes that it allocates while it runs.
  virtual std::size_t workspace_bytes() const { return 0; }
};

/// Any nest: a copy, a contraction, a reduction, or a map.
std::unique_ptr<Kernel> make_kernel(const LoopNest& nest);

// One maker per kind of nest.
std::unique_ptr<Kernel> make_copy_kernel(const LoopNest& nest);         // is_copy() between equal dtypes
std::unique_ptr<Kernel> make_contract_kernel(const LoopNest& nest);     // is_contraction()
std::unique_ptr<Kernel> make_reduce_kernel(const LoopNest& nest);       // combine
std::unique_ptr<Kernel> make_map_kernel(const LoopNest& nest);          // no combine

}  // namespace ein::cpu
