// The runs of a compiled program.
#include "runtime/compiled_program.hpp"

#include <algorithm>

#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "graph/verified.hpp"
#include "nest/at_sizes.hpp"
#include "runtime/complex.hpp"
#include "runtime/device.hpp"
#include "runtime/random_state.hpp"
#include "tensor/fork.hpp"
#include "tensor/size_arithmetic.hpp"

namespace ein::detail {

CompiledFunction::Program::Program(std::shared_ptr<const engine::ProgramPlan> plan,
                                   Arguments arguments, const SizeValues& lengths)
    : plan_(std::move(plan)),
      sizes_(lengths),
      device_(plan_->recording()->device),
      arguments_(arguments.size()) {
  if (verifies_passes()) verify(at_sizes(plan_->program(), sizes_));
  // All of them have to be numbers, whether they are allocated or not.
  for (const ein::Program::Buffer& buffer : plan_->program().buffers) sizes_(buffer.bytes());
  for (const ein::Program::Result& result : plan_->program().results)
    results_.push_back(at_sizes(result, sizes_));
  roles_ = roles_of_inputs();
  note_memory(arguments);
}

std::vector<InputRole> CompiledFunction::Program::roles_of_inputs() const {
  std::vector<InputRole> roles(arguments_, InputRole::argument);
  const auto assigned = plan_->assigned();
  for (std::size_t i = 0; i < state().size(); ++i) {
    const bool is_assigned = std::any_of(
        assigned.begin(), assigned.end(),
        [&](const AssignedInput& a) { return a.input == static_cast<int>(arguments_ + i); });
    roles.push_back(plan_->recording()->is_parameter[i] ? InputRole::parameter
                    : is_assigned                       ? InputRole::optimizer_state
                                                        : InputRole::constant);
  }
  return roles;
}

void CompiledFunction::Program::note_memory(Arguments arguments) {
  const ProgramMemory& memory = plan_->memory();
  const auto bytes = [&](Size size) { return static_cast<std::size_t>(sizes_(size)); };
  for (const Tensor& x : arguments) memory_.arguments += x.nbytes();
  for (const Tensor& x : state()) memory_.state += x.nbytes();
  memory_.results = bytes(memory.result_bytes);
  memory_.unshared = bytes(memory.unshared_bytes);
  // The workspace follows the arena in one block.
  const Arena arena = arena_at(memory, sizes_);
  memory_.arena = bytes(round_up(arena.bytes, engine::ProgramPlan::arena_alignment));
  for (std::size_t i = 0; i < memory.intermediate.size(); ++i)
    arena_offsets_.emplace_back(memory.intermediate[i].buffer, bytes(arena.offsets[i]));
  for (const int buffer : memory.results) {
    const auto b = static_cast<std::size_t>(buffer);
    kept_.emplace(buffer, Kept{bytes(plan_->program().buffers[b].bytes()), nullptr});
  }
}

const CompiledFunction::Program::Accounts& CompiledFunction::Program::accounts() const {
  const NoForkLock lock(accounts_mutex_);
  if (accounts_) return *accounts_;
  SizesAt sizes(sizes_.values());
  const ein::Program program = at_sizes(plan_->program(), sizes);
  Accounts made{at_sizes(plan_->graph(), sizes), ein::cost(program), step_bill(program)};
  for (std::size_t i = 0; i < state().size(); ++i) {
    const InputRole role = roles_[arguments_ + i];
    (role == InputRole::parameter         ? made.bill.parameters
     : role == InputRole::optimizer_state ? made.bill.optimizer_state
                                          : made.bill.constants) += state()[i].nbytes();
  }
  return accounts_.emplace(std::move(made));
}

void CompiledFunction::Program::load() {
  kernels_ = plan_->kernels_at(sizes_);
  memory_.workspace = kernels_->workspace_bytes(num_threads());
  addresses_.assign(plan_->program().buffers.size(), nullptr);
  for (std::size_t i = 0; i < state().size(); ++i)
    addresses_[arguments_ + i] = engine::address_of(state()[i]);
}

void CompiledFunction::Program::forget_results() {
  const NoFork no_fork;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (auto& [buffer, kept] : kept_) kept.storage.reset();
}

std::vector<Tensor> CompiledFunction::Program::run(Arguments arguments, engine::Scratch& scratch) {
  const NoForkLock lock(mutex_);
  const int threads = num_threads();
  memory_.workspace = kernels_->workspace_bytes(threads);
  for (std::size_t i = 0; i < arguments_; ++i)
    addresses_[i] = engine::address_of(engine::as_real(arguments[i]));
  require_apart(arguments);
  // A result that somebody still holds keeps its memory.
  for (auto& [buffer, kept] : kept_) {
    if (!kept.storage || kept.storage.use_count() > 1)
      kept.storage = engine::backend_of(device_).allocate(kept.bytes);
    addresses_[static_cast<std::size_t>(buffer)] = kept.storage->data();
  }
  if (CostRecorder::is_active())
    CostRecorder::record("compiled function", cost(),
                         memory_.results + memory_.arena + memory_.workspace);
  std::shared_ptr<Storage> block = scratch.take(memory_.arena + memory_.workspace, device_);
  for (const auto& [buffer, offset] : arena_offsets_) addresses_[buffer] = block->data() + offset;
  kernels_->run({addresses_, block->data() + memory_.arena,
                 engine::take_streams(plan_->recording()->streams), threads});
  scratch.give_back(std::move(block));
  for (const AssignedInput& assigned : plan_->assigned())
    state()[static_cast<std::size_t>(assigned.input) - arguments_].storage()->count_write();
  std::vector<Tensor> results;
  for (const ein::Program::Result& result : results_) {
    const auto b = static_cast<std::size_t>(result.buffer);
    if (b < plan_->program().input_count) {
      const Tensor from = b < arguments_ ? engine::as_real(arguments[b]) : state()[b - arguments_];
      results.emplace_back(view_of(from.storage(), result.dtype, result.shape, result.strides,
                                   from.offset() - engine::elements_before(from) + result.offset));
    } else {
      results.emplace_back(view_of(kept_.at(result.buffer).storage, result.dtype, result.shape,
                                   result.strides, result.offset));
    }
    if (plan_->recording()->is_complex[results.size() - 1])
      results.back() = engine::as_complex(results.back());
  }
  return results;
}

void CompiledFunction::Program::require_apart(Arguments arguments) const {
  for (const AssignedInput& assigned : plan_->assigned()) {
    const auto& storage = state()[static_cast<std::size_t>(assigned.input) - arguments_].storage();
    for (const Tensor& argument : arguments) {
      if (argument.storage() != storage) continue;
      throw Error(ErrorKind::value,
                  "compile: an argument of shape " + argument.shape().to_string() +
                      " shares memory with a tensor that the function assigns to; pass a clone()");
    }
  }
}

}  // namespace ein::detail
