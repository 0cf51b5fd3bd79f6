// Recording: what the trace of a compiled function gave, for all lengths that its guards allow.
#pragma once

#include <ein/compile.hpp>
#include "passes/place_results.hpp"
#include "runtime/argument_types.hpp"
#include "runtime/plan.hpp"
#include "runtime/trace.hpp"
#include "tensor/kept.hpp"
#include "tensor/size_scope.hpp"

namespace ein::engine {

struct Recording {
  /// Traces `function` for arguments like these. Null types: all sizes are numbers.
  Recording(std::span<const Tensor> arguments, const ArgumentTypes* types,
            detail::TensorFunction function, const void* context);

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
