// Compiled: a program and its kernels, for all lengths that its guards allow. Bound: the same for
// the lengths of a call, so that all is numbers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ein/cost.hpp>
#include <ein/tensor.hpp>
#include "backend/backend.hpp"
#include "compile/operand.hpp"
#include "compile/passes.hpp"
#include "passes/memory_plan.hpp"
#include "size/size_scope.hpp"
#include "tensor/kept.hpp"

namespace ein::engine {

class Compiled {
 public:
  /// Passes decide for these lengths whatever they ask; what they ask joins `known`.
  Compiled(Graph graph, const Job& job, SizeValues lengths = {}, SizeGuards known = {});
  /// Of a program of numbers, without a graph.
  Compiled(Program program, Device device);

  /// Plans the kernels, on its device; this may add guards.
  void load();

  /// Of one process, as it was lowered. That of a call is its plan's: here it has no operations.
  const Graph& graph() const { return made_.graph; }
  const Program& program() const { return made_.program; }
  const ProgramMemory& memory() const { return memory_; }
  /// Where the results lie on a mesh, if there is one.
  const std::vector<Placement>& placements() const { return made_.placements; }
  /// Inputs that values are assigned to.
  std::span<const AssignedInput> assigned() const { return made_.assigned; }
  Device device() const { return device_; }
  const SizeGuards& guards() const { return guards_; }

  /// The graph, the program and how the device runs it, as text.
  std::string text() const;
  CostOfLengths cost_formula() const;
  /// Bytes of the block in which intermediate values lie.
  Size arena_bytes() const;
  std::unique_ptr<const Kernels> kernels_at(SizesAt& sizes) const { return kernels_->at(sizes); }

  LastUse last_use;

 private:
  Compilation made_;
  Device device_;
  SizeValues lengths_;  // that it was made for
  SizeGuards guards_;
  ProgramMemory memory_;
  std::unique_ptr<const KernelsPlan> kernels_;
  KeptBytes kept_;
};

/// Thread-safe for different memory.
class Bound {
 public:
  /// `compiled` is loaded, and its guards hold for these lengths. An Error of kind `overflow` where
  /// a buffer would have too many bytes.
  explicit Bound(std::shared_ptr<const Compiled> compiled, const SizeValues& lengths = {});

  const Compiled& compiled() const { return *compiled_; }
  Program program() const;
  const Kernels& kernels() const { return *kernels_; }
  std::size_t buffers() const { return compiled_->program().buffers.size(); }
  const SizeValues& lengths() const { return lengths_; }

  /// Memory of its own for each buffer that holds a result.
  struct ResultBuffer {
    std::size_t buffer, bytes;
  };
  std::span<const ResultBuffer> result_buffers() const { return result_buffers_; }
  std::size_t result_bytes() const { return result_bytes_; }
  /// Bytes of the intermediate values. The workspace follows them in one block.
  std::size_t arena_bytes() const { return arena_bytes_; }
  std::size_t block_bytes(int threads) const {
    return arena_bytes_ + kernels_->workspace_bytes(threads);
  }

  /// `addresses` are those of the program's buffers, of which inputs and result buffers are set.
  /// `block` has block_bytes(threads).
  void run(std::span<std::byte*> addresses, std::byte* block, RandomOrigin random, int threads,
           const mesh::Process* process) const;
  /// The results: views of input(b), a Tensor, for an input b, or of memory(r), that of result
  /// buffer r.
  template <class Input, class Memory>
  std::vector<Tensor> results(const Input& input, const Memory& memory) const;
  struct Result {
    Program::Result view;
    std::size_t memory;  // the number of its result buffer; none of an input
  };
  std::span<const Result> result_views() const { return results_; }

 private:
  std::shared_ptr<const Compiled> compiled_;
  SizeValues lengths_;
  std::unique_ptr<const Kernels> kernels_;
  std::vector<ResultBuffer> result_buffers_;
  std::size_t result_bytes_ = 0, arena_bytes_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> arena_offsets_;  // of buffers
  std::vector<Result> results_;
  KeptBytes kept_;
};

template <class Input, class Memory>
std::vector<Tensor> Bound::results(const Input& input, const Memory& memory) const {
  std::vector<Tensor> tensors;
  tensors.reserve(results_.size());
  const std::size_t inputs = compiled_->program().input_count;
  for (const Result& result : results_) {
    const auto& [buffer, dtype, shape, strides, offset] = result.view;
    const auto b = static_cast<std::size_t>(buffer);
    if (b < inputs) {
      const Tensor& from = input(b);
      tensors.emplace_back(detail::view_of(from.storage(), dtype, shape, strides,
                                           from.offset() - elements_before(from) + offset));
    } else {
      tensors.emplace_back(detail::view_of(memory(result.memory), dtype, shape, strides, offset));
    }
  }
  return tensors;
}

}  // namespace ein::engine
