// The runs of a compiled program.
#include "runtime/compiled_program.hpp"

#include <algorithm>

#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/exchange.hpp"
#include "cost/scope.hpp"
#include "graph/after_pass.hpp"
#include "io/xxh64.hpp"
#include "nest/at_sizes.hpp"
#include "nest/heap_bytes.hpp"
#include "runtime/complex.hpp"
#include "runtime/device.hpp"
#include "runtime/mesh.hpp"
#include "runtime/random_state.hpp"
#include "runtime/writes.hpp"
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
  here_.resize(mesh() ? mesh()->here.size() : 1);
  note_memory(arguments);
}

bool CompiledFunction::Program::is_assigned(std::size_t state) const {
  const auto assigned = plan_->assigned();
  return std::any_of(assigned.begin(), assigned.end(), [&](const AssignedInput& a) {
    return a.input == static_cast<int>(arguments_ + state);
  });
}

std::vector<InputRole> CompiledFunction::Program::roles_of_inputs() const {
  std::vector<InputRole> roles(arguments_, InputRole::argument);
  for (std::size_t i = 0; i < state().size(); ++i) {
    roles.push_back(plan_->recording()->is_parameter[i] ? InputRole::parameter
                    : is_assigned(i)                    ? InputRole::optimizer_state
                                                        : InputRole::constant);
  }
  if (mesh()) roles.resize(roles.size() + mesh()->axes.size(), InputRole::constant);
  return roles;
}

void CompiledFunction::Program::note_memory(Arguments arguments) {
  const ProgramMemory& memory = plan_->memory();
  const auto bytes = [&](Size size) { return static_cast<std::size_t>(sizes_(size)); };
  for (const Tensor& x : arguments) memory_.arguments += engine::local_bytes(x);
  for (const Tensor& x : state()) memory_.state += engine::local_bytes(x);
  memory_.results = bytes(memory.result_bytes);
  memory_.unshared = bytes(memory.unshared_bytes);
  // The workspace follows the arena in one block.
  const Arena arena = arena_at(memory, sizes_);
  memory_.arena = bytes(round_up(arena.bytes, engine::ProgramPlan::arena_alignment));
  for (std::size_t i = 0; i < memory.intermediate.size(); ++i)
    arena_offsets_.emplace_back(memory.intermediate[i].buffer, bytes(arena.offsets[i]));
  for (const int buffer : memory.results) {
    const auto b = static_cast<std::size_t>(buffer);
    for (Here& here : here_)
      here.kept.emplace(buffer, Kept{bytes(plan_->program().buffers[b].bytes()), nullptr});
  }
}

const CompiledFunction::Program::Accounts& CompiledFunction::Program::accounts() const {
  const NoForkLock lock(accounts_mutex_);
  if (accounts_) return *accounts_;
  SizesAt sizes(sizes_.values());
  const ein::Program program = at_sizes(plan_->program(), sizes);
  Accounts made{at_sizes(plan_->graph(), sizes), ein::cost(program), step_bill(program),
                mesh() ? exchanges_of(program, mesh()->axes) : std::vector<Exchange>()};
  for (std::size_t i = 0; i < state().size(); ++i) {
    const InputRole role = roles_[arguments_ + i];
    (role == InputRole::parameter         ? made.bill.parameters
     : role == InputRole::optimizer_state ? made.bill.optimizer_state
                                          : made.bill.constants) += engine::local_bytes(state()[i]);
  }
  kept_.add(heap_bytes(made.graph));
  return accounts_.emplace(std::move(made));
}

void CompiledFunction::Program::load() {
  kernels_ = plan_->kernels_at(sizes_);
  workspace_ = kernels_->workspace_bytes(num_threads());
  for (std::size_t h = 0; h < here_.size(); ++h) {
    Here& here = here_[h];
    here.addresses.assign(plan_->program().buffers.size(), nullptr);
    std::size_t input = arguments_;
    for (std::size_t i = 0; i < state().size(); ++i) {
      const Tensor& part = engine::part_of(state()[i], h);
      // What all processes write to, each of them has for itself.
      const bool is_copy = h > 0 && !state()[i].is_placed() && is_assigned(i);
      here.state.push_back(is_copy ? part.clone() : part);
      here.addresses[input++] = engine::address_of(here.state.back());
    }
    if (!mesh()) continue;
    here.process = &mesh()->here[h].process;
    if (verifies_passes() && !mesh()->loop)
      here.process->all().require_same(io::xxh64(to_string(plan_->program())),
                                       "the compiled program");
    for (const Tensor& coordinate : mesh()->here[h].coordinates(device_))
      here.addresses[input++] = engine::address_of(coordinate);
  }
}

void CompiledFunction::Program::forget_results() {
  const NoFork no_fork;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (Here& here : here_) {
    for (auto& [buffer, kept] : here.kept) kept.storage.reset();
  }
}

std::vector<Tensor> CompiledFunction::Program::run(Arguments arguments, engine::Scratch& scratch) {
  const NoForkLock lock(mutex_);
  const int threads = num_threads();
  workspace_ = kernels_->workspace_bytes(threads);
  require_apart(arguments);
  if (CostRecorder::is_active())
    CostRecorder::record("compiled function", cost(), memory_.results + memory_.arena + workspace_);
  const RandomOrigin random = engine::take_streams(plan_->recording()->streams);
  std::vector<Tensor> results;
  if (!mesh()) {
    results = run(here_.front(), 0, arguments, scratch, random, threads);
  } else {
    std::vector<std::vector<Tensor>> parts(results_.size(), std::vector<Tensor>(here_.size()));
    // Copies of what all write to begin as that is, before any of them runs.
    for (std::size_t h = 1; h < here_.size(); ++h) {
      for (std::size_t i = 0; i < here_[h].state.size(); ++i) {
        const Tensor& part = engine::part_of(state()[i], h);
        if (!here_[h].state[i].same_storage(part)) here_[h].state[i].copy_from(part);
      }
    }
    engine::for_each_here(*mesh(), [&](std::size_t h) {
      std::vector<Tensor> own = run(here_[h], h, arguments, scratch, random, threads);
      for (std::size_t r = 0; r < own.size(); ++r) parts[r][h] = std::move(own[r]);
    });
    for (std::size_t r = 0; r < parts.size(); ++r) {
      Shape shape = plan_->result_shape(r);
      for (Size& size : shape) size = sizes_(size);
      results.push_back(
          engine::joined(mesh(), plan_->placements()[r], std::move(shape), std::move(parts[r])));
    }
  }
  for (const AssignedInput& assigned : plan_->assigned())
    engine::count_write(state()[static_cast<std::size_t>(assigned.input) - arguments_]);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (plan_->recording()->is_complex[r]) results[r] = engine::as_complex(results[r]);
  }
  return results;
}

std::vector<Tensor> CompiledFunction::Program::run(Here& here, std::size_t number,
                                                   Arguments arguments, engine::Scratch& scratch,
                                                   RandomOrigin random, int threads) {
  std::vector<std::byte*>& addresses = here.addresses;
  const auto argument = [&](std::size_t i) {
    return engine::as_real(engine::part_of(arguments[i], number));
  };
  for (std::size_t i = 0; i < arguments_; ++i) addresses[i] = engine::address_of(argument(i));
  // A result that somebody still holds keeps its memory.
  for (auto& [buffer, kept] : here.kept) {
    if (!kept.storage || kept.storage.use_count() > 1)
      kept.storage = engine::backend_of(device_).allocate(kept.bytes);
    addresses[static_cast<std::size_t>(buffer)] = kept.storage->data();
  }
  std::shared_ptr<Storage> block = scratch.take(memory_.arena + workspace_, device_);
  for (const auto& [buffer, offset] : arena_offsets_) addresses[buffer] = block->data() + offset;
  kernels_->run({addresses, block->data() + memory_.arena, random, threads, here.process});
  scratch.give_back(std::move(block));
  std::vector<Tensor> results;
  for (const ein::Program::Result& result : results_) {
    const auto b = static_cast<std::size_t>(result.buffer);
    if (b < plan_->program().input_count) {
      const Tensor from = b < arguments_ ? argument(b) : here.state[b - arguments_];
      results.emplace_back(view_of(from.storage(), result.dtype, result.shape, result.strides,
                                   from.offset() - engine::elements_before(from) + result.offset));
    } else {
      results.emplace_back(view_of(here.kept.at(result.buffer).storage, result.dtype, result.shape,
                                   result.strides, result.offset));
    }
  }
  return results;
}

void CompiledFunction::Program::require_apart(Arguments arguments) const {
  for (const AssignedInput& assigned : plan_->assigned()) {
    const Tensor& written = state()[static_cast<std::size_t>(assigned.input) - arguments_];
    for (const Tensor& argument : arguments) {
      if (!engine::share_memory(argument, written)) continue;
      throw Error(ErrorKind::value,
                  "compile: an argument of shape " + argument.shape().to_string() +
                      " shares memory with a tensor that the function assigns to; pass a clone()");
    }
  }
}

}  // namespace ein::detail
