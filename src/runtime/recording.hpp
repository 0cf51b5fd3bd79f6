// Recording: what the trace of a compiled function gave, for all lengths that its guards allow.
#pragma once

#include <ein/compile.hpp>
#include "compile/compiled.hpp"
#include "runtime/argument_types.hpp"
#include "runtime/plan.hpp"
#include "runtime/trace.hpp"
#include "size/size_scope.hpp"
#include "tensor/kept.hpp"

namespace ein::engine {

struct Recording {
  /// Traces `function` for arguments like these. Null types: all sizes are numbers.
  Recording(std::span<const Tensor> arguments, const ArgumentTypes* types,
            detail::TensorFunction function, const void* context);

  /// What it is compiled for: a function on `target`.
  Job job(Device target) const;
  Job job() const { return job(device); }
  /// Of a result, of which each process may have a part.
  const Shape& result_shape(std::size_t result) const {
    return graph.op(graph.outputs[result]).shape;
  }
  /// Bytes of the arguments, of the state, and of what a run takes.
  MemoryFormula memory_formula(const Compiled& compiled) const;

  Graph graph;  // of the arguments and the state
  std::size_t arguments = 0;
  std::vector<InputLayout> layouts;  // of the arguments and the state
  std::vector<Tensor> state;         // tensors from outside that it uses
  std::vector<bool> is_parameter;    // of the state
  std::vector<ResultPlace> result_places;
  std::vector<bool>
      is_complex;    // of the results: pairs of the graph that are numbers to the caller
  MeshPointer mesh;  // null: all tensors are whole
  std::vector<Placement> placements;  // of the arguments and the state, on the mesh
  std::uint64_t streams = 0;
  Device device = cpu;
  SizeGuards guards;
  TraceReads reads;
  KeptBytes kept;
};

}  // namespace ein::engine
