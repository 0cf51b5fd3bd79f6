// A call as a graph, without running it: what it costs, before there is any tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ein/graph.hpp>
#include <ein/pattern.hpp>
#include <ein/reduction.hpp>

namespace ein {

/// What a call says beside its operation, pattern and shapes.
struct CallOptions {
  DType dtype = DType::f32;                                 // of all operands
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // of axes, by name
  Reduction reduction = Reduction::sum;                     // reduce
  std::vector<Shape> packed_shapes;                         // unpack
  std::optional<DType> result;  // dtype of the result; none: result_dtype()
};

/// The verified graph of `op` on operands of these shapes. The errors are those of the call itself.
/// Not for parse_shape, which computes nothing.
///
///     cost(graph_of(Operation::einsum, runtime("i k, k j -> i j"), {{2, 3}, {3, 4}})).model  // 48
Graph graph_of(Operation op, RuntimeText pattern, const std::vector<Shape>& shapes,
               const CallOptions& options = {});

}  // namespace ein
