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
#include "runtime/scratch.hpp"
#include "runtime/trace.hpp"

namespace ein::detail {

class CompiledFunction::Program {
 public:
  /// Traces and lowers; load() makes it ready to run. Groups are those of `target`, or of the
  /// tensors' device.
  Program(Arguments arguments, Function function, const void* context,
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

  static InputLayout layout_of(const Tensor& x);

  // --- results ---

  /// A result is a view of an input where eager execution returns one, and shares its storage with
  /// another result only where both do eagerly. What has storage of its own holds what an input
  /// held before anything was assigned.
  void place_results(const std::vector<engine::Trace::ResultPlace>& places);
  /// The nest that copies a result to a buffer of its own, where the result then lies.
  LoopNest copy_out(ein::Program::Result& result);

  // --- assignments ---

  /// Of a tensor from outside; null for other buffers.
  std::shared_ptr<Storage> storage_of(int buffer) const;
  /// Lets the nest that computes an assigned value write it where it belongs, if nobody reads what
  /// was there after that; else copies it in the end.
  void assign_targets();
  /// Whether the nest that computes result `r` now writes to input `target`.
  bool write_in_place(int target, std::size_t r);

  // --- memory ---

  void group(Device device);
  void plan_memory();
  void make_bill(const engine::Trace& trace);
  /// No argument may share memory with what is assigned to.
  void require_apart(Arguments arguments) const;

  Graph graph_;
  ein::Program program_;
  std::vector<Tensor> state_;
  std::size_t arguments_ = 0;
  std::vector<int> targets_;
  std::vector<bool> is_view_;  // of each result of the function: it views an input
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
