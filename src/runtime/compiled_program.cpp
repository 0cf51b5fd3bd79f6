// A trace becomes a program: passes, where results and assigned values lie, memory; and its runs.
#include "runtime/compiled_program.hpp"

#include <algorithm>

#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "nest/attention.hpp"
#include "passes/memory_plan.hpp"
#include "passes/simplify.hpp"
#include "runtime/device.hpp"
#include "runtime/random_state.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/fork.hpp"

namespace ein {
namespace {

std::size_t bytes_of(const Program::Buffer& buffer) {
  return static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype);
}

/// A copy of a result into a buffer that lies as `to` says, as a nest.
LoopNest copy_nest(const Program::Result& from, int buffer, const InputLayout& to) {
  LoopNest nest;
  LoopNest::Operand source{from.buffer, from.dtype, from.offset},
      target{buffer, from.dtype, to.offset};
  for (std::size_t d = 0; d < from.shape.rank(); ++d) {
    nest.axes.push_back({"i" + std::to_string(d), from.shape[d], false});
    source.strides.push_back(from.strides[d]);
    target.strides.push_back(to.strides[d]);
  }
  nest.inputs = {source};
  nest.output = target;
  nest.body = Ex::input(0);
  nest.compute = compute_type(from.dtype);
  nest.phase = Phase::update;
  nest.kind = OpKind::reindex;
  simplify(nest);
  return nest;
}

/// Whether every element of `input` is read where and when `output` is written.
bool in_step(const LoopNest::Operand& input, const LoopNest::Operand& output) {
  return input.offset == output.offset && input.strides == output.strides &&
         input.dtype == output.dtype && !input.is_indirect();
}

}  // namespace

namespace detail {

InputLayout CompiledFunction::Program::layout_of(const Tensor& x) {
  return {x.strides(), engine::elements_before(x)};
}

CompiledFunction::Program::Program(Arguments arguments, Function function, const void* context,
                                   std::optional<Device> target) {
  engine::Trace trace;
  std::vector<Tensor> traced;
  for (const Tensor& argument : arguments) traced.push_back(trace.argument(argument));
  const std::vector<Tensor> results = function(context, traced);
  graph_ = trace.finish(results);
  streams_ = trace.streams();
  state_ = trace.captured();
  verify(graph_);
  graph_ = order_contractions(simplify(graph_));
  verify(graph_);
  arguments_ = arguments.size();

  std::vector<InputLayout> layouts;
  std::vector<const Tensor*> inputs;
  for (const Tensor& x : arguments) inputs.push_back(&x);
  for (const Tensor& x : state_) inputs.push_back(&x);
  device_ = !inputs.empty()   ? engine::common_device("compile", inputs)
            : results.empty() ? cpu
                              : results.front().device();
  for (const Tensor* x : inputs) layouts.push_back(layout_of(*x));
  for (const Tensor& x : arguments) memory_.arguments += x.nbytes();
  for (const Tensor& x : state_) memory_.state += x.nbytes();
  Graph whole = graph_;
  for (const Assignment& a : graph_.assignments) whole.outputs.push_back(a.value);
  program_ = lower(whole, layouts);
  place_results(trace.result_places());
  assign_targets();
  group(target.value_or(device_));
  plan_memory();
  cost_ = ein::cost(program_);
  make_bill(trace);
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
          bytes_of(program_.buffers[static_cast<std::size_t>(buffer)]));
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
  for (int target : targets_)
    state_[static_cast<std::size_t>(target) - arguments_].storage()->count_write();
  std::vector<Tensor> results;
  for (std::size_t r = 0; r < graph_.outputs.size(); ++r) {
    const ein::Program::Result& result = program_.results[r];
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

void CompiledFunction::Program::place_results(
    const std::vector<engine::Trace::ResultPlace>& places) {
  std::vector<LoopNest> of_inputs;
  std::unordered_map<int, ValueId> owner_of;  // of buffers
  for (std::size_t r = 0; r < graph_.outputs.size(); ++r) {
    ein::Program::Result& result = program_.results[r];
    is_view_.push_back(places[r].input.has_value());
    if (places[r].input) {
      const InputLayout& layout = places[r].layout;
      result = {static_cast<int>(*places[r].input), result.dtype, result.shape, layout.strides,
                layout.offset};
    } else if (static_cast<std::size_t>(result.buffer) < program_.input_count) {
      of_inputs.push_back(copy_out(result));
    } else if (const auto [owner, is_new] = owner_of.try_emplace(result.buffer, places[r].owner);
               !is_new && owner->second != places[r].owner) {
      program_.nests.push_back(copy_out(result));
    }
  }
  program_.nests.insert(program_.nests.begin(), of_inputs.begin(), of_inputs.end());
}

LoopNest CompiledFunction::Program::copy_out(ein::Program::Result& result) {
  const int own = static_cast<int>(program_.buffers.size());
  program_.buffers.push_back({numel(result.shape), result.dtype});
  const Strides strides = contiguous_strides(result.shape);
  LoopNest nest = copy_nest(result, own, {strides});
  result = {own, result.dtype, result.shape, strides, 0};
  return nest;
}

std::shared_ptr<Storage> CompiledFunction::Program::storage_of(int buffer) const {
  const auto b = static_cast<std::size_t>(buffer);
  return b >= arguments_ && b < program_.input_count ? state_[b - arguments_].storage() : nullptr;
}

void CompiledFunction::Program::assign_targets() {
  std::vector<int> number_of(graph_.ops.size(), -1);
  int inputs = 0;
  for (std::size_t id = 0; id < graph_.ops.size(); ++id) {
    if (graph_.ops[id].kind == OpKind::input) number_of[id] = inputs++;
  }
  const std::size_t outputs = graph_.outputs.size();
  std::vector<std::pair<int, std::size_t>> copies;  // target, result
  for (std::size_t a = 0; a < graph_.assignments.size(); ++a) {
    const int target = number_of[static_cast<std::size_t>(graph_.assignments[a].target)];
    targets_.push_back(target);
    if (!write_in_place(target, outputs + a)) copies.emplace_back(target, outputs + a);
  }
  // Values that are themselves tensors from outside may be overwritten by another of these copies.
  for (auto& [target, r] : copies) {
    ein::Program::Result& value = program_.results[r];
    if (storage_of(value.buffer)) program_.nests.push_back(copy_out(value));
  }
  for (const auto& [target, r] : copies) {
    const Tensor& x = state_[static_cast<std::size_t>(target) - arguments_];
    program_.nests.push_back(copy_nest(program_.results[r], target, layout_of(x)));
  }
}

bool CompiledFunction::Program::write_in_place(int target, std::size_t r) {
  const ein::Program::Result& value = program_.results[r];
  const Tensor& x = state_[static_cast<std::size_t>(target) - arguments_];
  const int buffer = value.buffer;
  if (static_cast<std::size_t>(buffer) < program_.input_count || value.offset != 0 ||
      engine::elements_before(x) != 0 || !(value.strides == x.strides()) ||
      bytes_of(program_.buffers[static_cast<std::size_t>(buffer)]) != x.nbytes()) {
    return false;
  }
  for (std::size_t other = 0; other < program_.results.size(); ++other) {
    if (other != r && program_.results[other].buffer == buffer) return false;
  }
  const auto overwritten = [&](int b) { return b == target || storage_of(b) == x.storage(); };
  for (std::size_t other = 0; other < program_.results.size(); ++other) {
    const bool is_view =
        other < is_view_.size() && is_view_[other];  // sees what is written, as it should
    if (!is_view && overwritten(program_.results[other].buffer)) return false;
  }
  bool is_written = false;
  for (const LoopNest& nest : program_.nests) {
    if (overwritten(nest.output.buffer)) return false;
    const bool writes = nest.output.buffer == buffer;
    for (const LoopNest::Operand& input : nest.inputs) {
      if (!overwritten(input.buffer)) continue;
      const bool follows = is_written || (writes && (nest.combine || !in_step(input, nest.output)));
      if (follows) return false;
    }
    is_written |= writes;
  }
  const auto rename = [&](LoopNest::Operand& operand) {
    if (operand.buffer == buffer) operand.buffer = target;
  };
  for (LoopNest& nest : program_.nests) {
    for (LoopNest::Operand& input : nest.inputs) rename(input);
    rename(nest.output);
  }
  program_.results[r].buffer = target;
  return true;
}

void CompiledFunction::Program::group(Device device) {
  std::vector<int> kept, memory;
  for (std::size_t r = 0; r < graph_.outputs.size(); ++r)
    kept.push_back(program_.results[r].buffer);
  for (std::size_t b = 0; b < program_.input_count; ++b) {
    int first = static_cast<int>(b);
    for (int other = 0; other < first; ++other) {
      if (storage_of(other) && storage_of(other) == storage_of(first)) first = other;
    }
    memory.push_back(first);
  }
  engine::backend_of(device).group(program_, kept, memory);
}

void CompiledFunction::Program::plan_memory() {
  const std::size_t count = program_.buffers.size();
  constexpr std::size_t never = static_cast<std::size_t>(-1);
  std::vector<Lifetime> lifetimes(count, {0, never, 0});
  for (std::size_t g = 0; g < program_.groups.size(); ++g) {
    const auto touch = [&](const LoopNest::Operand& operand) {
      Lifetime& life = lifetimes[static_cast<std::size_t>(operand.buffer)];
      life.first = std::min(life.first, g);
      life.last = std::max(life.last, g);
    };
    const ein::Program::Group& group = program_.groups[g];
    for (std::size_t n = group.first; n < group.first + group.count; ++n) {
      for (const LoopNest::Operand& input : program_.nests[n].inputs) touch(input);
      touch(program_.nests[n].output);
    }
    if (group.attention) touch(group.attention->out);  // which the gradients read too
  }
  for (std::size_t r = 0; r < graph_.outputs.size(); ++r) {
    const int buffer = program_.results[r].buffer;
    if (static_cast<std::size_t>(buffer) < program_.input_count) continue;
    if (kept_.emplace(buffer, nullptr).second)
      memory_.results += bytes_of(program_.buffers[static_cast<std::size_t>(buffer)]);
  }
  std::vector<Lifetime> shared;
  std::vector<std::size_t> buffers;
  for (std::size_t b = program_.input_count; b < count; ++b) {
    if (lifetimes[b].first == never || kept_.contains(static_cast<int>(b))) continue;
    lifetimes[b].bytes = bytes_of(program_.buffers[b]);
    memory_.unshared += lifetimes[b].bytes;
    if (program_.buffers[b].is_local) continue;
    shared.push_back(lifetimes[b]);
    buffers.push_back(b);
  }
  const Arena arena = plan_arena(shared);
  // The workspace follows the arena in one block.
  memory_.arena =
      (arena.bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    arena_offsets_.emplace_back(buffers[i], arena.offsets[i]);
}

void CompiledFunction::Program::make_bill(const engine::Trace& trace) {
  bill_ = step_bill(program_);
  roles_.assign(arguments_, InputRole::argument);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const bool is_assigned = std::find(targets_.begin(), targets_.end(),
                                       static_cast<int>(arguments_ + i)) != targets_.end();
    const InputRole role = trace.is_parameter(i) ? InputRole::parameter
                           : is_assigned         ? InputRole::optimizer_state
                                                 : InputRole::constant;
    roles_.push_back(role);
    (role == InputRole::parameter         ? bill_.parameters
     : role == InputRole::optimizer_state ? bill_.optimizer_state
                                          : bill_.constants) += state_[i].nbytes();
  }
}

void CompiledFunction::Program::require_apart(Arguments arguments) const {
  for (int target : targets_) {
    const auto& storage = state_[static_cast<std::size_t>(target) - arguments_].storage();
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
