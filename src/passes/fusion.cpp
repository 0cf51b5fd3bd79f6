#include "passes/fusion.hpp"

#include "graph/rewrite.hpp"
#include "nest/nest.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {

DType nest_type(const Graph& graph, const Op& op) {
  switch (op.kind) {
    case OpKind::map:
      return op.compute;
    case OpKind::argsort:
      return compute_type(graph.op(op.inputs[0]).dtype);
    case OpKind::contract:
    case OpKind::reduce:
    case OpKind::scan: {
      // Integers are combined as what they are and then stored modulo 2^bits: the order of u64 is
      // none of i64.
      DType type = compute_type(is_integral(op.dtype) ? graph.op(op.inputs[0]).dtype : op.dtype);
      for (ValueId input : op.inputs) type = common_compute_type(graph.op(input).dtype, type);
      return type;
    }
    default:
      return compute_type(op.dtype);
  }
}

bool takes_in(const Graph& graph, const Op& reader, const Op& map, const Access& read) {
  return map.kind == OpKind::map && (reader.kind == OpKind::map || reader.kind == OpKind::reduce) &&
         can_compute(map, reader, nest_type(graph, reader)) &&
         (!asks_index(map.expr) || with_indices_of(map.expr, axis_values(map, read)));
}

bool takes_in_by_nest(const Graph& graph, const Op& reader, const Op& map, const Access& read) {
  return takes_in(graph, reader, map, read) &&
         (reader.kind == OpKind::reduce || !asks_index(map.expr));
}

}  // namespace ein
