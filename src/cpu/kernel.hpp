// Kernel: a loop nest prepared for this machine. Planned once, run any number of times.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "nest/nest.hpp"
#include "size/size_scope.hpp"
#include "tensor/kept.hpp"

namespace ein::host {

using engine::Run;

/// Bytes [begin, end) of memory.
struct MemoryRange {
  const std::byte *begin = nullptr, *end = nullptr;
  bool meets(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

/// What a kernel has started, and what goes on while others run. Its end waits.
class Underway {
 public:
  virtual ~Underway() = default;
  virtual void wait() = 0;
  /// What must not be written until then, and what not be read, either.
  virtual bool uses(const MemoryRange& memory) const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Runs on the thread pool. Thread-safe for different workspaces.
  virtual void run(const Run& run) const = 0;
  /// The same, begun: null where that is nothing else than run().
  virtual std::unique_ptr<Underway> start(const Run& /*run*/) const { return nullptr; }
  /// Bytes of scratch memory that run() takes on this number of threads. Only that of groups
  /// depends on it.
  virtual std::size_t workspace_bytes(int /*threads*/) const { return 0; }

  KeptBytes kept;
};

/// Bytes of a part of a workspace, so that the next part is aligned as well.
constexpr std::size_t aligned_bytes(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// A nest or a group planned for all lengths: what is left is numbers. Thread-safe.
class KernelPlan {
 public:
  virtual ~KernelPlan() = default;
  /// The kernel for these sizes; it may outlive the plan.
  virtual std::unique_ptr<Kernel> at(SizesAt& sizes) const = 0;
  std::unique_ptr<Kernel> at_numbers() const;
};

/// Any nest, as its schedule says. `buffers` are the program's, if they are known.
std::unique_ptr<const KernelPlan> plan_kernel(const LoopNest& nest,
                                              std::span<const Program::Buffer> buffers = {});
inline std::unique_ptr<Kernel> make_kernel(const LoopNest& nest,
                                           std::span<const Program::Buffer> buffers = {}) {
  return plan_kernel(nest, buffers)->at_numbers();
}

/// All nests of a group as one kernel. Local buffers have no address.
std::unique_ptr<const KernelPlan> plan_kernel(const Program& program, const Program::Group& group);
inline std::unique_ptr<Kernel> make_kernel(const Program& program, const Program::Group& group) {
  return plan_kernel(program, group)->at_numbers();
}

/// The schedules of all groups of a program.
std::string to_string_of_schedules(const Program& program);

/// Any nest, by the one engine of its kind: what a schedule leaves whole.
std::unique_ptr<Kernel> make_engine(const LoopNest& nest);

// One maker per kind of nest.
std::unique_ptr<Kernel> make_copy_kernel(const LoopNest& nest);  // is_copy() between equal dtypes
std::unique_ptr<Kernel> make_contract_kernel(const LoopNest& nest);    // sums_products()
std::unique_ptr<Kernel> make_gather_kernel(const LoopNest& nest);      // is_gather()
std::unique_ptr<Kernel> make_scatter_kernel(const LoopNest& nest);     // is_scatter()
std::unique_ptr<Kernel> make_scan_kernel(const LoopNest& nest);        // Along::scan
std::unique_ptr<Kernel> make_sort_kernel(const LoopNest& nest);        // Along::argsort
std::unique_ptr<Kernel> make_matrix_kernel(const LoopNest& nest);      // is_matrix()
std::unique_ptr<Kernel> make_collective_kernel(const LoopNest& nest);  // is_collective()

}  // namespace ein::host
