// One program of a compiled function: what a trace became.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ein/compile.hpp>
#include "backend/backend.hpp"
#include "cost/step_bill.hpp"
#include "graph/svg.hpp"
#include "nest/nest.hpp"
#include "passes/memory_plan.hpp"
#include "passes/place_results.hpp"
#include "runtime/recording.hpp"
#include "runtime/scratch.hpp"

namespace ein::detail {

class CompiledFunction::Program {
 public:
  /// Of a recording, for arguments of these lengths; load() makes it ready to run. Groups are those
  /// of `target`, or of the tensors' device.
  Program(const engine::Recording& recording, Arguments arguments, const SizeValues& lengths,
          std::optional<Device> target = {});

  /// Makes the kernels.
  void load();
  /// Runs on memory of `scratch`. One run at a time; others wait.
  std::vector<Tensor> run(Arguments arguments, engine::Scratch& scratch);
  /// Frees results that nobody holds, unless a run goes on.
  void forget_results();

  const ein::Program& nests() const { return program_; }
  const Graph& graph() const { return graph_; }
  const Cost& cost() const { return cost_; }
  const MemoryPlan& memory() const { return memory_; }
  const StepBill& bill() const { return bill_; }
  std::string svg() const { return to_svg(graph_, roles_); }
  std::string print() const {
    return to_string(graph_) + "\n" + to_string(program_) + "\n" +
           engine::backend_of(device_).describe(program_);
  }

 private:
  static constexpr std::size_t workspace_alignment = 256;  // of memory that a GPU's allocator gives

  /// For each input the first that shares its memory, among tensors from outside.
  std::vector<int> shared_memory() const;
  std::vector<InputRole> roles_of_inputs(const engine::Recording& recording) const;
  /// What runs, bill and memory() want to know.
  void note_memory(Arguments arguments, const ProgramMemory& memory);
  /// No argument may share memory with what is assigned to.
  void require_apart(Arguments arguments) const;

  Graph graph_;
  ein::Program program_;
  std::vector<Tensor> state_;
  std::size_t arguments_ = 0;
  std::vector<AssignedInput> assigned_;
  std::uint64_t streams_ = 0;
  Device device_ = cpu;
  std::unique_ptr<const engine::Kernels> kernels_;
  Cost cost_;
  StepBill bill_;
  std::vector<InputRole> roles_;  // of the inputs
  MemoryPlan memory_;
  std::vector<std::pair<std::size_t, std::size_t>> arena_offsets_;  // of buffers
  std::unordered_map<int, std::shared_ptr<Storage>> kept_;          // of the results
  std::vector<std::byte*> addresses_;
  std::mutex mutex_;
};

}  // namespace ein::detail
