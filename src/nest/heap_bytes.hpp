// Bytes that graphs and programs have on the heap. A field that is added does not compile until it
// is named here.
#pragma once

#include "nest/attention.hpp"
#include "nest/nest.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein {

inline std::size_t heap_bytes_of(const Shape& shape) {
  return is_inside(shape.data(), shape) ? 0 : block_bytes(shape.rank() * sizeof(Size));
}
inline std::size_t heap_bytes_of(const ScalarExpr& expr) {
  const auto& [steps] = expr;
  return heap_bytes(steps);
}
inline std::size_t heap_bytes_of(const Placement& placement) {
  const auto& [dims] = placement;
  return heap_bytes(dims);
}
inline std::size_t heap_bytes_of(const Axis& axis) {
  const auto& [name, size] = axis;
  return heap_bytes_of_all(name, size);
}
inline std::size_t heap_bytes_of(const DimIndex& index) {
  const auto& [offset, terms] = index;
  return heap_bytes_of_all(offset, terms);
}
inline std::size_t heap_bytes_of(const Op& op) {
  const auto& [kind, dtype, shape, inputs, axes, reads, write, expr, compute, combine, dim, axis,
               function, roles, from, to, collective, mesh_axes, reverse, detached, stationary,
               picks_classes, parts, again, phase] = op;
  return heap_bytes_of_all(shape, inputs, axes, reads, write, expr, roles, from, to);
}
inline std::size_t heap_bytes_of(const Graph& graph) {
  const auto& [ops, outputs, assignments] = graph;
  return heap_bytes_of_all(ops, outputs, assignments);
}

inline std::size_t heap_bytes_of(const LoopNest::NestAxis& axis) {
  const auto& [name, size, reduced, ordered, role] = axis;
  return heap_bytes(name);
}
inline std::size_t heap_bytes_of(const LoopNest::Operand& operand) {
  const auto& [buffer, dtype, offset, strides, indirection] = operand;
  return heap_bytes_of_all(strides, indirection);
}
inline std::size_t heap_bytes_of(const LoopNest& nest) {
  const auto& [axes, inputs, output, body, combine, epilogue, compute, along, reverse, function,
               collective, mesh_axes, phase, kind, picks_classes, joins] = nest;
  return heap_bytes_of_all(axes, inputs, output, body, epilogue);
}
inline std::size_t heap_bytes_of(const Attention::Gradients& gradients) {
  const auto& [scale, dout, delta, dq, dk, dv] = gradients;
  return heap_bytes_of_all(dout, delta, dq, dk, dv);
}
inline std::size_t heap_bytes_of(const Attention& attention) {
  const auto& [axes, scale, reach, q, k, v, out, log_sums, gradients] = attention;
  return heap_bytes_of_all(axes, q, k, v, out, log_sums, gradients);
}
inline std::size_t heap_bytes_of(const Program::Group& group) {
  const auto& [first, count, blocks, axes, each, row_axes, attention, at_once] = group;
  return heap_bytes_of_all(axes, attention);
}
inline std::size_t heap_bytes_of(const Program::Result& result) {
  const auto& [buffer, dtype, shape, strides, offset] = result;
  return heap_bytes_of_all(shape, strides);
}
inline std::size_t heap_bytes_of(const Program& program) {
  const auto& [input_count, buffers, nests, results, groups] = program;
  return heap_bytes_of_all(buffers, nests, results, groups);
}

}  // namespace ein
