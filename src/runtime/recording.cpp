#include "runtime/recording.hpp"

#include "nest/heap_bytes.hpp"
#include "runtime/complex.hpp"
#include "runtime/device.hpp"
#include "runtime/mesh.hpp"

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

}  // namespace ein::engine
