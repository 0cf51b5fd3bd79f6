#include "runtime/recording.hpp"

#include <algorithm>

#include "compile/operand.hpp"
#include "runtime/complex.hpp"
#include "runtime/mesh.hpp"
#include "runtime/writes.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::engine {

Recording::Recording(std::span<const Tensor> given, const ArgumentTypes* types,
                     detail::TensorFunction function, const void* context)
    : arguments(given.size()) {
  std::optional<SizeScope> sizes;
  if (types) sizes.emplace(types->open_sizes(given));
  Trace trace;
  std::vector<Tensor> traced;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const Shape shape = types ? types->shape(k, given[k]) : given[k].shape();
    const Strides strides = types ? types->strides(k, given[k]) : given[k].strides();
    const Tensor& part = part_of(given[k], 0);
    layouts.push_back(given[k].is_placed()
                          ? layout_of(as_real(part))
                          : layout_of(as_real(part), real_shape(part.dtype(), shape),
                                      real_strides(part.dtype(), strides)));
    placements.push_back(placement_of(given[k]));
    if (given[k].is_placed()) trace.lies_on(given[k].impl().placed->mesh);
    traced.push_back(trace.argument(given[k], shape, strides));
  }
  if (types) trace.name_sizes(types->names());
  const std::vector<Tensor> results = function(context, traced);
  for (const Tensor& result : results) is_complex.push_back(ein::is_complex(result.dtype()));
  graph = trace.finish(results);
  verify(graph);
  state = trace.captured();
  for (std::size_t i = 0; i < state.size(); ++i) is_parameter.push_back(trace.is_parameter(i));
  result_places = trace.result_places();
  streams = trace.streams();
  reads = trace.take_reads();
  if (sizes) guards = sizes->guards();

  std::vector<const Tensor*> inputs;
  for (const Tensor& x : given) inputs.push_back(&x);
  for (const Tensor& x : state) {
    inputs.push_back(&x);
    layouts.push_back(layout_of(part_of(x, 0)));
    placements.push_back(placement_of(x));
  }
  mesh = trace.mesh();
  if (mesh) layouts.resize(layouts.size() + mesh->axes.size());  // of the coordinates
  device = !inputs.empty()   ? common_device("compile", inputs)
           : results.empty() ? cpu
                             : results.front().device();
  kept.add(sizeof *this + heap_bytes(graph));
}

namespace {

/// For each input the first that shares its memory, among tensors from outside.
std::vector<int> shared_memory(const Recording& recording) {
  const std::vector<Tensor>& state = recording.state;
  const std::size_t arguments = recording.arguments;
  std::vector<int> memory(recording.layouts.size());
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

}  // namespace

Job Recording::job(Device target) const {
  Job job{.call = "compile",
          .of = Job::Of::function,
          .device = target,
          .layouts = layouts,
          .places = result_places,
          .memory = shared_memory(*this)};
  if (mesh) {
    job.mesh = mesh->axes;
    job.operands = placements;
  }
  return job;
}

MemoryFormula Recording::memory_formula(const Compiled& compiled) const {
  MemoryFormula formula;
  std::size_t input = 0;
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::input && input++ < arguments)
      formula.arguments += numel(op.shape) * size_of(op.dtype);
  }
  for (const Tensor& x : state) formula.state += local_bytes(x);
  formula.results = compiled.memory().result_bytes;
  formula.unshared = compiled.memory().unshared_bytes;
  formula.arena = compiled.arena_bytes();
  return formula;
}

}  // namespace ein::engine
