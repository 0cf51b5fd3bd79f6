// A trace becomes a program, pass by pass; and its runs.
#include "runtime/compiled_program.hpp"

#include <algorithm>

#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "graph/at_sizes.hpp"
#include "graph/verified.hpp"
#include "passes/simplify.hpp"
#include "runtime/device.hpp"
#include "runtime/random_state.hpp"
#include "tensor/fork.hpp"

namespace ein {
namespace {

std::vector<InputLayout> layouts_of(std::span<const Tensor* const> inputs) {
  std::vector<InputLayout> layouts;
  for (const Tensor* x : inputs) layouts.push_back({x->strides(), engine::elements_before(*x)});
  return layouts;
}

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

namespace detail {

CompiledFunction::Program::Program(const engine::Recording& recording, Arguments arguments,
                                   const SizeValues& lengths, std::optional<Device> target)
    : graph_(at_sizes(recording.graph, lengths)),
      state_(recording.state),
      arguments_(arguments.size()),
      streams_(recording.streams),
      device_(recording.device) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& x : arguments) inputs.push_back(&x);
  for (const Tensor& x : state_) inputs.push_back(&x);
  const std::vector<InputLayout> layouts = layouts_of(inputs);
  const std::vector<int> shared = shared_memory();
  std::vector<ResultPlace> places = recording.result_places;
  for (ResultPlace& place : places) {
    place.layout.strides = at_sizes(place.layout.strides, lengths);
    place.layout.offset = evaluate(place.layout.offset, lengths);
  }

  verified(graph_);
  graph_ = verified(simplify(graph_));
  graph_ = verified(order_contractions(graph_));
  assigned_ = assigned_inputs(graph_, layouts);
  program_ = lower(with_assigned_values(graph_), layouts);
  place_results(program_, places);
  assign_inputs(program_, assigned_, places, shared);
  engine::backend_of(target.value_or(device_)).group(program_, shared);
  const ProgramMemory memory = plan_memory(program_);
  cost_ = ein::cost(program_);
  roles_ = roles_of_inputs(recording);
  bill_ = step_bill(program_);

  note_memory(arguments, memory);
}

std::vector<int> CompiledFunction::Program::shared_memory() const {
  std::vector<int> memory(arguments_ + state_.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<int>(i);
    for (std::size_t other = arguments_; other < i; ++other) {
      if (state_[other - arguments_].storage() != state_[i - arguments_].storage()) continue;
      memory[i] = static_cast<int>(other);
      break;
    }
  }
  return memory;
}

std::vector<InputRole> CompiledFunction::Program::roles_of_inputs(
    const engine::Recording& recording) const {
  std::vector<InputRole> roles(arguments_, InputRole::argument);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const bool is_assigned = std::any_of(
        assigned_.begin(), assigned_.end(),
        [&](const AssignedInput& a) { return a.input == static_cast<int>(arguments_ + i); });
    roles.push_back(recording.is_parameter[i] ? InputRole::parameter
                    : is_assigned             ? InputRole::optimizer_state
                                              : InputRole::constant);
  }
  return roles;
}

void CompiledFunction::Program::note_memory(Arguments arguments, const ProgramMemory& memory) {
  for (const Tensor& x : arguments) memory_.arguments += x.nbytes();
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const InputRole role = roles_[arguments_ + i];
    memory_.state += state_[i].nbytes();
    (role == InputRole::parameter         ? bill_.parameters
     : role == InputRole::optimizer_state ? bill_.optimizer_state
                                          : bill_.constants) += state_[i].nbytes();
  }
  memory_.results = memory.result_bytes;
  memory_.unshared = memory.unshared_bytes;
  // The workspace follows the arena in one block.
  memory_.arena =
      (memory.arena_bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
  arena_offsets_ = memory.intermediate;
  for (const int buffer : memory.results) kept_.emplace(buffer, nullptr);
}

void CompiledFunction::Program::load() {
  kernels_ = engine::backend_of(device_).compile(program_);
  memory_.workspace = kernels_->workspace_bytes(num_threads());
  addresses_.assign(program_.buffers.size(), nullptr);
  for (std::size_t i = 0; i < state_.size(); ++i)
    addresses_[arguments_ + i] = engine::address_of(state_[i]);
}

void CompiledFunction::Program::forget_results() {
  const NoFork no_fork;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (auto& [buffer, storage] : kept_) storage.reset();
}

std::vector<Tensor> CompiledFunction::Program::run(Arguments arguments, engine::Scratch& scratch) {
  const NoForkLock lock(mutex_);
  const int threads = num_threads();
  memory_.workspace = kernels_->workspace_bytes(threads);
  for (std::size_t i = 0; i < arguments_; ++i) addresses_[i] = engine::address_of(arguments[i]);
  require_apart(arguments);
  // A result that somebody still holds keeps its memory.
  for (auto& [buffer, storage] : kept_) {
    if (!storage || storage.use_count() > 1)
      storage = engine::backend_of(device_).allocate(
          program_.buffers[static_cast<std::size_t>(buffer)].bytes());
    addresses_[static_cast<std::size_t>(buffer)] = storage->data();
  }
  if (CostRecorder::is_active())
    CostRecorder::record("compiled function", cost_,
                         memory_.results + memory_.arena + memory_.workspace);
  std::shared_ptr<Storage> block = scratch.take(memory_.arena + memory_.workspace, device_);
  for (const auto& [buffer, offset] : arena_offsets_) addresses_[buffer] = block->data() + offset;
  kernels_->run(
      {addresses_, block->data() + memory_.arena, engine::take_streams(streams_), threads});
  scratch.give_back(std::move(block));
  for (const AssignedInput& assigned : assigned_)
    state_[static_cast<std::size_t>(assigned.input) - arguments_].storage()->count_write();
  std::vector<Tensor> results;
  for (const ein::Program::Result& result : program_.results) {
    const auto b = static_cast<std::size_t>(result.buffer);
    if (b < program_.input_count) {
      const Tensor& from = b < arguments_ ? arguments[b] : state_[b - arguments_];
      results.emplace_back(view_of(from.storage(), result.dtype, result.shape, result.strides,
                                   from.offset() - engine::elements_before(from) + result.offset));
    } else {
      results.emplace_back(view_of(kept_.at(result.buffer), result.dtype, result.shape,
                                   result.strides, result.offset));
    }
  }
  return results;
}

void CompiledFunction::Program::require_apart(Arguments arguments) const {
  for (const AssignedInput& assigned : assigned_) {
    const auto& storage = state_[static_cast<std::size_t>(assigned.input) - arguments_].storage();
    for (const Tensor& argument : arguments) {
      if (argument.storage() != storage) continue;
      throw Error(ErrorKind::value,
                  "compile: an argument of shape " + argument.shape().to_string() +
                      " shares memory with a tensor that the function assigns to; pass a clone()");
    }
  }
}

}  // namespace detail
}  // namespace ein
