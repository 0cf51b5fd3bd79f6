// The runs of a compiled program.
#include "runtime/compiled_program.hpp"

#include <algorithm>

#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "compile/operand.hpp"
#include "cost/exchange.hpp"
#include "cost/scope.hpp"
#include "graph/after_pass.hpp"
#include "graph/at_sizes.hpp"
#include "io/xxh64.hpp"
#include "machine/fork.hpp"
#include "passes/memory_timeline.hpp"
#include "runtime/call.hpp"
#include "runtime/complex.hpp"
#include "runtime/mesh.hpp"
#include "runtime/random_state.hpp"
#include "runtime/writes.hpp"
#include "size/size_arithmetic.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::detail {

CompiledFunction::Program::Program(std::shared_ptr<const engine::Recording> recording,
                                   std::shared_ptr<const engine::Compiled> compiled,
                                   Arguments arguments, const SizeValues& lengths)
    : recording_(std::move(recording)),
      bound_(std::move(compiled), lengths),
      arguments_(arguments.size()) {
  roles_ = roles_of_inputs();
  note_memory(arguments);
  place_state();
}

bool CompiledFunction::Program::is_assigned(std::size_t state) const {
  const auto assigned = bound_.compiled().assigned();
  return std::any_of(assigned.begin(), assigned.end(), [&](const AssignedInput& a) {
    return a.input == static_cast<int>(arguments_ + state);
  });
}

std::vector<InputRole> CompiledFunction::Program::roles_of_inputs() const {
  std::vector<InputRole> roles(arguments_, InputRole::argument);
  for (std::size_t i = 0; i < state().size(); ++i) {
    roles.push_back(recording_->is_parameter[i] ? InputRole::parameter
                    : is_assigned(i)            ? InputRole::optimizer_state
                                                : InputRole::constant);
  }
  if (mesh()) roles.resize(roles.size() + mesh()->axes.size(), InputRole::constant);
  return roles;
}

void CompiledFunction::Program::note_memory(Arguments arguments) {
  SizesAt sizes(bound_.lengths());
  for (const Tensor& x : arguments) memory_.arguments += engine::local_bytes(x);
  for (const Tensor& x : state()) memory_.state += engine::local_bytes(x);
  memory_.results = bound_.result_bytes();
  memory_.unshared = static_cast<std::size_t>(sizes(bound_.compiled().memory().unshared_bytes));
  memory_.arena = bound_.arena_bytes();
  workspace_ = bound_.kernels().workspace_bytes(num_threads());
}

const CompiledFunction::Program::Accounts& CompiledFunction::Program::accounts() const {
  const NoForkLock lock(accounts_mutex_);
  if (accounts_) return *accounts_;
  SizesAt sizes(bound_.lengths());
  const ein::Program program = bound_.program();
  Accounts made{at_sizes(bound_.compiled().graph(), sizes), ein::cost(program), step_bill(program),
                mesh() ? exchanges_of(program, mesh()->axes) : std::vector<Exchange>()};
  for (std::size_t i = 0; i < state().size(); ++i) {
    const InputRole role = roles_[arguments_ + i];
    (role == InputRole::parameter         ? made.bill.parameters
     : role == InputRole::optimizer_state ? made.bill.optimizer_state
                                          : made.bill.constants) += engine::local_bytes(state()[i]);
  }
  kept_.add(heap_bytes(made.graph) + heap_bytes(made.bill.kept));
  return accounts_.emplace(std::move(made));
}

MemoryTimeline CompiledFunction::Program::timeline() const {
  return memory_timeline(bound_.program(), bound_.arena_bytes(),
                         memory_.arguments + memory_.state + memory_.results);
}

void CompiledFunction::Program::place_state() {
  const ein::Program& program = bound_.compiled().program();
  here_.resize(mesh() ? mesh()->here.size() : 1);
  for (std::size_t h = 0; h < here_.size(); ++h) {
    Here& here = here_[h];
    here.kept.resize(bound_.result_buffers().size());
    here.addresses.assign(program.buffers.size(), nullptr);
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
      here.process->all().require_same(io::xxh64(to_string(program)), "the compiled program");
    for (const Tensor& coordinate : mesh()->here[h].coordinates(bound_.compiled().device()))
      here.addresses[input++] = engine::address_of(coordinate);
  }
}

void CompiledFunction::Program::forget_results() {
  const NoFork no_fork;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (Here& here : here_) {
    for (std::shared_ptr<Storage>& kept : here.kept) kept.reset();
  }
}

std::vector<Tensor> CompiledFunction::Program::run(Arguments arguments, engine::Scratch& scratch) {
  const NoForkLock lock(mutex_);
  const int threads = num_threads();
  workspace_ = bound_.kernels().workspace_bytes(threads);
  require_apart(arguments);
  if (CostRecorder::is_active())
    CostRecorder::record("compiled function", cost(), memory_.results + memory_.arena + workspace_);
  const RandomOrigin random = engine::take_streams(recording_->streams);
  std::vector<Tensor> results;
  if (!mesh()) {
    results = run(here_.front(), 0, arguments, scratch, random, threads);
  } else {
    // Copies of what all write to begin as that is, before any of them runs.
    for (std::size_t h = 1; h < here_.size(); ++h) {
      for (std::size_t i = 0; i < here_[h].state.size(); ++i) {
        const Tensor& part = engine::part_of(state()[i], h);
        if (!here_[h].state[i].same_storage(part)) here_[h].state[i].copy_from(part);
      }
    }
    SizesAt sizes(bound_.lengths());
    const auto shape_of = [&](std::size_t r) {
      Shape shape = recording_->result_shape(r);
      for (Size& size : shape) size = sizes(size);
      return shape;
    };
    results = engine::run_parts(
        mesh(), bound_.compiled().placements(), shape_of,
        [&](std::size_t h) { return run(here_[h], h, arguments, scratch, random, threads); });
  }
  for (const AssignedInput& assigned : bound_.compiled().assigned())
    engine::count_write(state()[static_cast<std::size_t>(assigned.input) - arguments_]);
  return engine::complex_where(recording_->is_complex, std::move(results));
}

std::vector<Tensor> CompiledFunction::Program::run(Here& here, std::size_t number,
                                                   Arguments arguments, engine::Scratch& scratch,
                                                   RandomOrigin random, int threads) {
  const engine::Backend& backend = engine::backend_of(bound_.compiled().device());
  const auto argument = [&](std::size_t i) {
    return engine::as_real(engine::part_of(arguments[i], number));
  };
  for (std::size_t i = 0; i < arguments_; ++i) here.addresses[i] = engine::address_of(argument(i));
  // A result that somebody still holds keeps its memory.
  std::size_t r = 0;
  for (const auto& [buffer, bytes] : bound_.result_buffers()) {
    std::shared_ptr<Storage>& kept = here.kept[r++];
    if (!kept || kept.use_count() > 1) kept = backend.allocate(bytes);
    here.addresses[buffer] = kept->data();
  }
  std::shared_ptr<Storage> block =
      scratch.take(memory_.arena + workspace_, bound_.compiled().device());
  bound_.run(here.addresses, block->data(), random, threads, here.process);
  scratch.give_back(std::move(block));
  return bound_.results(
      [&](std::size_t b) { return b < arguments_ ? argument(b) : here.state[b - arguments_]; },
      [&](std::size_t memory) { return here.kept[memory]; });
}

void CompiledFunction::Program::require_apart(Arguments arguments) const {
  for (const AssignedInput& assigned : bound_.compiled().assigned()) {
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
