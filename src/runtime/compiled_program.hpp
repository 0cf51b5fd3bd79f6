// One program of a compiled function: a plan, for the lengths of a call.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ein/compile.hpp>
#include "cost/step_bill.hpp"
#include "graph/svg.hpp"
#include "runtime/program_plan.hpp"
#include "runtime/scratch.hpp"
#include "tensor/kept.hpp"

namespace ein::detail {

class CompiledFunction::Program {
 public:
  /// For arguments of these lengths, which the plan's guards allow; load() makes it ready to run.
  Program(std::shared_ptr<const engine::ProgramPlan> plan, Arguments arguments,
          const SizeValues& lengths);

  /// Makes the kernels, of a plan that is loaded.
  void load();
  /// Runs on memory of `scratch`. One run at a time; others wait.
  std::vector<Tensor> run(Arguments arguments, engine::Scratch& scratch);
  /// Frees results that nobody holds, unless a run goes on.
  void forget_results();

  const engine::ProgramPlan& plan() const { return *plan_; }
  const Graph& graph() const { return accounts().graph; }
  const Cost& cost() const { return accounts().cost; }
  const StepBill& bill() const { return accounts().bill; }
  MemoryPlan memory() const {
    MemoryPlan memory = memory_;
    memory.workspace = workspace_;
    return memory;
  }
  const std::vector<Exchange>& exchanges() const { return accounts().exchanges; }
  std::string svg() const { return to_svg(graph(), roles_); }
  std::string print() const { return plan_->print(); }

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
  const std::vector<Tensor>& state() const { return plan_->recording()->state; }
  const engine::MeshPointer& mesh() const { return plan_->recording()->mesh; }

  std::shared_ptr<const engine::ProgramPlan> plan_;
  SizesAt sizes_;
  Device device_;
  std::size_t arguments_;
  std::vector<ein::Program::Result> results_;
  std::unique_ptr<const engine::Kernels> kernels_;
  std::vector<InputRole> roles_;  // of the inputs
  MemoryPlan memory_;
  std::atomic<std::size_t> workspace_{0};  // of the latest run's threads; read while others run
  struct Kept {
    std::size_t bytes;
    std::shared_ptr<Storage> storage;
  };
  std::vector<std::pair<std::size_t, std::size_t>> arena_offsets_;  // of buffers
  /// What a process runs the program on: this one, or each of those that it stands for.
  struct Here {
    const mesh::Process* process = nullptr;  // null without a mesh
    std::vector<Tensor> state;  // its parts; private copies of whole tensors that are assigned
    std::unordered_map<int, Kept> kept;  // of the results
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
