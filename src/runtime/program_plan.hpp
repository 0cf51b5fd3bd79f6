// ProgramPlan: what passes make of a recording, for all lengths that its guards allow.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include "backend/backend.hpp"
#include "passes/memory_plan.hpp"
#include "passes/place_results.hpp"
#include "runtime/recording.hpp"
#include "tensor/kept.hpp"

namespace ein::engine {

class ProgramPlan {
 public:
  /// Decides for these lengths whatever passes ask. Groups are those of `target`, or of the
  /// recording's device.
  ProgramPlan(std::shared_ptr<const Recording> recording, const SizeValues& lengths,
              std::optional<Device> target = {});

  const std::shared_ptr<const Recording>& recording() const { return recording_; }
  const SizeGuards& guards() const { return guards_; }

  const Graph& graph() const { return graph_; }
  /// Of a result, of which each process may have a part.
  const Shape& result_shape(std::size_t result) const { return result_shapes_[result]; }
  const Program& program() const { return program_; }
  const ProgramMemory& memory() const { return memory_; }
  /// Where the results lie on the mesh, if there is one.
  const std::vector<Placement>& placements() const { return placements_; }
  /// Inputs that results are assigned to.
  std::span<const AssignedInput> assigned() const { return assigned_; }

  /// Plans its kernels, for the recording's device; this may add guards.
  void load();
  /// The kernels for these sizes, once it is loaded.
  std::unique_ptr<const Kernels> kernels_at(SizesAt& sizes) const { return kernels_->at(sizes); }
  std::string print() const;
  CostOfLengths cost_formula() const;
  MemoryFormula memory_formula() const;

  /// The workspace follows the arena in one block, aligned as a GPU's allocator does.
  static constexpr std::int64_t arena_alignment = 256;

  LastUse last_use;

 private:
  /// For each input the first that shares its memory, among tensors from outside.
  std::vector<int> shared_memory() const;

  std::shared_ptr<const Recording> recording_;
  SizeValues lengths_;  // that it was made for
  Graph graph_;         // of one process, where there are several
  std::vector<Placement> placements_;
  std::vector<Shape> result_shapes_;  // of the whole
  Program program_;
  ProgramMemory memory_;
  std::vector<AssignedInput> assigned_;
  SizeGuards guards_;
  std::unique_ptr<const KernelsPlan> kernels_;
  KeptBytes kept_;
};

}  // namespace ein::engine
