// Graphs of one operation, run by the kernels and by the interpreter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <ein/graph.hpp>
#include <ein/tensor.hpp>
#include "compile/operand.hpp"
#include "cpu/kernel.hpp"
#include "oracle/interpret.hpp"
#include "passes/lower.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {

using Values = std::vector<double>;

/// One axis per dimension.
inline Access plain(const std::vector<int>& axes) {
  Access access;
  for (int a : axes) access.push_back({0, {{a, 1}}});
  return access;
}

/// Inputs and one operation on all of them; verified.
inline Graph graph_of(const std::vector<std::pair<DType, Shape>>& inputs, Op op) {
  Graph graph;
  for (const auto& [dtype, shape] : inputs) {
    op.inputs.push_back(static_cast<ValueId>(graph.ops.size()));
    graph.ops.push_back({.kind = OpKind::input, .dtype = dtype, .shape = shape});
  }
  graph.outputs = {static_cast<ValueId>(graph.ops.size())};
  graph.ops.push_back(std::move(op));
  verify(graph);
  return graph;
}

inline Values interpreted(const Graph& graph, const std::vector<Values>& inputs) {
  return Interpreter<>::run(graph, inputs).at(0);
}

/// The first result of the kernels of the nests that `graph` is lowered to.
inline Tensor run_kernels(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<InputLayout> layouts;
  std::vector<std::shared_ptr<Storage>> storages;
  std::vector<std::byte*> buffers;
  for (const Tensor& x : inputs) {
    layouts.push_back(engine::layout_of(x));
    buffers.push_back(engine::address_of(x));
    storages.push_back(x.storage());
  }
  const Program program = lower(graph, layouts);
  for (std::size_t b = inputs.size(); b < program.buffers.size(); ++b) {
    const Program::Buffer& buffer = program.buffers[b];
    storages.push_back(
        Storage::allocate(static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype)));
    // What a kernel does not write is seen.
    std::fill_n(storages.back()->data(),
                static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype), std::byte{0x5A});
    buffers.push_back(storages.back()->data());
  }
  for (const LoopNest& nest : program.nests) {
    const auto kernel = host::make_kernel(nest);
    const auto workspace = Storage::allocate(kernel->workspace_bytes(1));
    std::fill_n(workspace->data(), kernel->workspace_bytes(1), std::byte{0x5A});
    kernel->run({buffers, workspace->data()});
  }
  const Program::Result& result = program.results.at(0);
  return Tensor(storages[static_cast<std::size_t>(result.buffer)], result.dtype, result.shape,
                result.strides, result.offset);
}

/// The same for row-major inputs of these values.
inline Values computed(const Graph& graph, const std::vector<Values>& inputs) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(make_tensor(inputs[i], graph.op(static_cast<ValueId>(i)).shape,
                                  graph.op(static_cast<ValueId>(i)).dtype));
  }
  return get_values(run_kernels(graph, tensors));
}

/// A tensor of these values that lies in memory in some random way.
template <class Random>
Tensor scattered(const Values& values, const Shape& shape, DType dtype, Random& random) {
  Tensor x = scattered_tensor(shape, dtype, std::vector<bool>(shape.rank()), random);
  set_values(x, values);
  return x;
}

}  // namespace ein::test
