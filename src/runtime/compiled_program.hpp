// One program of a compiled function, for the lengths of a call, with the memory that it keeps.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include "compile/compiled.hpp"
#include "cost/step_bill.hpp"
#include "draw/graph.hpp"
#include "runtime/recording.hpp"
#include "runtime/scratch.hpp"
#include "tensor/kept.hpp"

namespace ein::detail {

class CompiledFunction::Program {
 public:
  /// For arguments of these lengths, which the guards of `compiled` allow.
  Program(std::shared_ptr<const engine::Recording> recording,
          std::shared_ptr<const engine::Compiled> compiled, Arguments arguments,
          const SizeValues& lengths);

  /// Runs on memory of `scratch`. One run at a time; others wait.
  std::vector<Tensor> run(Arguments arguments, engine::Scratch& scratch);
  /// Frees results that nobody holds, unless a run goes on.
  void forget_results();

  const engine::Recording& recording() const { return *recording_; }
  const Graph& graph() const { return accounts().graph; }
  const Cost& cost() const { return accounts().cost; }
  const StepBill& bill() const { return accounts().bill; }
  MemoryPlan memory() const {
    MemoryPlan memory = memory_;
    memory.workspace = workspace_;
    return memory;
  }
  MemoryTimeline timeline() const;
  const std::vector<Exchange>& exchanges() const { return accounts().exchanges; }
  std::string svg() const { return to_svg(graph(), roles_); }
  CostOfLengths cost_formula() const { return bound_.compiled().cost_formula(); }
  MemoryFormula memory_formula() const { return recording_->memory_formula(bound_.compiled()); }
  std::string text() const { return bound_.compiled().text(); }

  LastUse last_use;

 private:
  /// What is counted of the program, in numbers.
  struct Accounts {
    Graph graph;
    Cost cost;
    StepBill bill;
    std::vector<Exchange> exchanges;
  };
  const Accounts& accounts() const;

  std::vector<InputRole> roles_of_inputs() const;
  void note_memory(Arguments arguments);
  /// No argument may share memory with what is assigned to.
  void require_apart(Arguments arguments) const;
  const std::vector<Tensor>& state() const { return recording_->state; }
  const engine::MeshPointer& mesh() const { return recording_->mesh; }
  /// On each process that is here: its state, and the addresses of all that stays where it is.
  void place_state();

  std::shared_ptr<const engine::Recording> recording_;
  engine::Bound bound_;
  std::size_t arguments_;
  std::vector<InputRole> roles_;  // of the inputs
  MemoryPlan memory_;
  std::atomic<std::size_t> workspace_{0};  // of the latest run's threads; read while others run
  /// What a process runs the program on: this one, or each of those that it stands for.
  struct Here {
    const mesh::Process* process = nullptr;  // null without a mesh
    std::vector<Tensor> state;  // its parts; private copies of whole tensors that are assigned
    std::vector<std::shared_ptr<Storage>> kept;  // of the result buffers
    std::vector<std::byte*> addresses;
  };
  std::vector<Tensor> run(Here& here, std::size_t number, Arguments arguments,
                          engine::Scratch& scratch, RandomOrigin random, int threads);
  bool is_assigned(std::size_t state) const;

  std::vector<Here> here_;
  std::mutex mutex_;
  mutable std::mutex accounts_mutex_;
  mutable std::optional<const Accounts> accounts_;  // made when they are first wanted
  KeptBytes kept_{sizeof *this};
};

}  // namespace ein::detail
