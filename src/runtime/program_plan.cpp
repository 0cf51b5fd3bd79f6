// A trace becomes a program, pass by pass.
#include "runtime/program_plan.hpp"

#include <algorithm>

#include "cost/scope.hpp"
#include "graph/after_pass.hpp"
#include "nest/heap_bytes.hpp"
#include "passes/gather_again.hpp"
#include "passes/join_collectives.hpp"
#include "passes/simplify.hpp"
#include "passes/slopes.hpp"
#include "runtime/device.hpp"
#include "runtime/mesh.hpp"
#include "runtime/writes.hpp"
#include "tensor/size_arithmetic.hpp"

namespace ein::engine {
namespace {

/// With the values that are assigned as results after those of the function.
Graph with_assigned_values(Graph graph) {
  for (const Assignment& a : graph.assignments) graph.outputs.push_back(a.value);
  return graph;
}

std::vector<AssignedInput> assigned_inputs(const Graph& graph,
                                           std::span<const InputLayout> layouts) {
  std::vector<AssignedInput> assigned;
  const auto is_input = [](const Op& op) { return op.kind == OpKind::input; };
  for (const Assignment& a : graph.assignments) {
    const auto input = std::count_if(graph.ops.begin(), graph.ops.begin() + a.target, is_input);
    assigned.push_back({static_cast<int>(input), layouts[static_cast<std::size_t>(input)]});
  }
  return assigned;
}

}  // namespace

ProgramPlan::ProgramPlan(std::shared_ptr<const Recording> recording, const SizeValues& lengths,
                         std::optional<Device> target)
    : recording_(std::move(recording)), lengths_(lengths) {
  SizeScope scope(lengths, SizeScope::Reading::is_guard, recording_->guards);
  const std::vector<InputLayout>& layouts = recording_->layouts;
  std::vector<ResultPlace> places = recording_->result_places;
  const std::vector<int> shared = shared_memory();

  graph_ = recording_->graph;
  for (const ValueId output : graph_.outputs) result_shapes_.push_back(graph_.op(output).shape);
  if (recording_->mesh) {
    ProcessGraph own =
        distribute("compile", gather_again(graph_), recording_->mesh->axes, recording_->placements);
    graph_ = join_collectives(own.graph);
    placements_ = std::move(own.outputs);
    places.clear();  // parts of results are no views of parts of inputs
    for (const ValueId output : graph_.outputs)
      places.push_back({output, std::nullopt, {contiguous_strides(graph_.op(output).shape)}});
  }
  graph_ = after_pass("simplify", simplify(without_slopes(graph_)));
  graph_ = after_pass("order_contractions", order_contractions(graph_));
  assigned_ = assigned_inputs(graph_, layouts);
  program_ = lower(with_assigned_values(graph_), layouts);
  place_results(program_, places);
  assign_inputs(program_, assigned_, places, shared);
  backend_of(target.value_or(recording_->device)).group(program_, shared);
  memory_ = plan_memory(program_);
  guards_ = scope.guards();
  kept_.add(sizeof *this + heap_bytes_of_all(graph_, program_, result_shapes_));
}

void ProgramPlan::load() {
  SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  kernels_ = backend_of(recording_->device).plan(program_);
  guards_ = scope.guards();
}

std::string ProgramPlan::print() const {
  // It was made for lengths with the same answers.
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  const std::string guards = guards_.to_string();
  return (guards.empty() ? "" : "for lengths where " + guards + "\n") + to_string(graph_) + "\n" +
         to_string(program_) + "\n" + backend_of(recording_->device).describe(program_);
}

CostOfLengths ProgramPlan::cost_formula() const {
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  return cost_of_lengths(program_);
}

MemoryFormula ProgramPlan::memory_formula() const {
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  MemoryFormula formula;
  std::size_t input = 0;
  for (const Op& op : recording_->graph.ops) {
    if (op.kind == OpKind::input && input++ < recording_->arguments)
      formula.arguments += numel(op.shape) * size_of(op.dtype);
  }
  for (const Tensor& x : recording_->state) formula.state += local_bytes(x);
  formula.results = memory_.result_bytes;
  formula.unshared = memory_.unshared_bytes;
  std::vector<Lifetime> lives;
  for (const ProgramMemory::Intermediate& value : memory_.intermediate) lives.push_back(value.life);
  formula.arena = round_up(plan_arena(lives).bytes, arena_alignment);
  return formula;
}

std::vector<int> ProgramPlan::shared_memory() const {
  const std::vector<Tensor>& state = recording_->state;
  const std::size_t arguments = recording_->arguments;
  const std::size_t coordinates = recording_->mesh ? recording_->mesh->axes.size() : 0;
  std::vector<int> memory(arguments + state.size() + coordinates);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i);
  for (std::size_t i = 0; i < state.size(); ++i) {
    for (std::size_t other = 0; other < i; ++other) {
      const int one = memory[arguments + other], same = memory[arguments + i];
      if (one == same || !share_memory(state[other], state[i])) continue;
      // Two blocks apart may both overlap with this one.
      std::replace(memory.begin(), memory.end(), std::max(one, same), std::min(one, same));
    }
  }
  return memory;
}

}  // namespace ein::engine
