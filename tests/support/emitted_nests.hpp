// Nests of every form, each from a graph of one call.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/emit.hpp"
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "passes/lower.hpp"
#include "support/one_op.hpp"

namespace ein::test {

/// What a graph of inputs that lie in row-major order becomes.
struct NamedProgram {
  std::string name;
  Program program;
};

inline Program lowered(const Graph& graph) {
  std::vector<InputLayout> layouts;
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::input) layouts.push_back({contiguous_strides(op.shape), 0});
  }
  return lower(graph, layouts);
}

inline Graph graph_of_pattern(Operation op, const std::string& pattern,
                              const std::vector<Shape>& shapes, DType dtype,
                              Reduction reduction = Reduction::sum,
                              const std::vector<AxisSize>& sizes = {}) {
  const auto reading = grammar::parse_pattern(pattern);
  std::vector<OperandType> types;
  for (const Shape& shape : shapes) types.push_back({shape, dtype});
  return build_graph({op, reading.buffer.pattern(pattern), sizes, reduction}, types);
}

struct PairSizes {
  std::int64_t i, j, d;
};
/// `combine` over d of `expr`, whose inputs lie along i and d, along j and d, and others as said.
inline Graph graph_of_pairs(DType dtype, DType compute, const PairSizes& sizes, const Ex& expr,
                            Combine combine, const std::vector<std::vector<int>>& others = {}) {
  const std::vector<Axis> axes{{"i", sizes.i}, {"j", sizes.j}, {"d", sizes.d}};
  std::vector<std::vector<int>> places{{0, 2}, {1, 2}};
  places.insert(places.end(), others.begin(), others.end());
  std::vector<std::pair<DType, Shape>> inputs;
  Op map{.kind = OpKind::map,
         .dtype = dtype,
         .shape = {sizes.i, sizes.j, sizes.d},
         .axes = axes,
         .write = plain({0, 1, 2}),
         .expr = expr,
         .compute = compute};
  for (const std::vector<int>& place : places) {
    Shape shape;
    for (const int a : place) shape.push_back(axes[static_cast<std::size_t>(a)].size);
    inputs.emplace_back(dtype, shape);
    map.reads.push_back(plain(place));
  }
  Graph graph = graph_of(inputs, map);
  graph.ops.push_back({.kind = OpKind::reduce,
                       .dtype = dtype,
                       .shape = {sizes.i, sizes.j},
                       .inputs = graph.outputs,
                       .axes = axes,
                       .reads = {plain({0, 1, 2})},
                       .write = plain({0, 1}),
                       .combine = combine});
  graph.outputs = {static_cast<ValueId>(graph.ops.size()) - 1};
  return graph;
}

/// The graph with rearrangements that are copies even where a view would do.
inline Graph copied(Graph graph) {
  for (Op& op : graph.ops) {
    if (op.kind == OpKind::reindex) op.kind = OpKind::place;
  }
  verify(graph);
  return graph;
}

/// All forms for elements of `dtype`; those that make no sense of it are left out.
inline std::vector<NamedProgram> programs_of_every_form(DType dtype) {
  std::vector<NamedProgram> all;
  const auto add = [&](const std::string& name, const Graph& graph) {
    all.push_back({name, lowered(graph)});
  };
  const auto reduce = [&](const std::string& name, const std::string& pattern, const Shape& shape,
                          Reduction reduction) {
    add(name, graph_of_pattern(Operation::reduce, pattern, {shape}, dtype, reduction));
  };
  const auto einsum = [&](const std::string& name, const std::string& pattern,
                          const std::vector<Shape>& shapes) {
    add(name, graph_of_pattern(Operation::einsum, pattern, shapes, dtype));
  };
  const auto rearrange = [&](const std::string& name, const std::string& pattern,
                             const Shape& shape, const std::vector<AxisSize>& sizes = {}) {
    add(name, copied(graph_of_pattern(Operation::rearrange, pattern, {shape}, dtype, Reduction::sum,
                                      sizes)));
  };
  const bool floats = is_floating(dtype);
  const DType compute = floats ? (dtype == DType::f64 ? dtype : DType::f32) : DType::i64;

  Op map{.kind = OpKind::map,
         .dtype = dtype,
         .shape = {64, 1000},
         .axes = {{"b", 64}, {"d", 1000}},
         .reads = {plain({0, 1}), plain({1})},
         .write = plain({0, 1}),
         .compute = compute};
  const Ex x = Ex::input(0), bias = Ex::input(1);
  map.expr = floats ? Ex::apply(ScalarOp::max, x + bias, Ex(0.0))
                    : Ex::apply(ScalarOp::max, x + bias, Ex::integer(0));
  add("map", graph_of({{dtype, {64, 1000}}, {dtype, {1000}}}, map));
  if (floats) {
    map.expr = Ex(0.5) * x * (Ex(1.0) + Ex::apply(ScalarOp::erf, x * Ex(0.70710678118654752))) +
               Ex::apply(ScalarOp::exp, bias);
    add("map_gelu", graph_of({{dtype, {64, 1000}}, {dtype, {1000}}}, map));
    map.expr = Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::le, Ex::index(1), Ex::index(0)), x,
                         Ex(-INFINITY)) +
               bias;
    add("map_causal", graph_of({{dtype, {64, 1000}}, {dtype, {1000}}}, map));
    Op random{.kind = OpKind::map,
              .dtype = dtype,
              .shape = {4097},
              .axes = {{"n", 4097}},
              .write = plain({0}),
              .expr = Ex::random_of_run(ScalarOp::normal, 1),
              .compute = compute};
    add("random_normal", graph_of({}, random));
  }
  add("copy_repeat",
      copied(graph_of_pattern(Operation::repeat, "b d -> b 3 d", {Shape{16, 24}}, dtype)));
  rearrange("copy_heads", "b s (h d) -> b h s d", {2, 64, 192}, {{"h", 6}});
  rearrange("transpose", "b r c -> b c r", {3, 100, 70});
  reduce("reduce_rows", "b d -> b", {300, 1000}, Reduction::sum);
  reduce("reduce_columns", "b d -> d", {300, 1000}, Reduction::max);
  reduce("reduce_all", "b d ->", {300, 1000}, Reduction::sum);
  reduce("reduce_any", "b s d -> b d", {8, 50, 12}, Reduction::any);
  reduce("reduce_prod", "b d -> b", {300, 7}, Reduction::prod);
  if (floats) {
    reduce("reduce_mean", "b s d -> s", {8, 40, 64}, Reduction::mean);
    reduce("logsumexp", "b d -> b", {30, 500}, Reduction::logsumexp);
  }
  einsum("contract", "m k, k n -> m n", {{200, 130}, {130, 150}});
  einsum("contract_large", "m k, k n -> m n", {{2048, 1024}, {1024, 2048}});
  einsum("contract_turned", "k m, n k -> n m", {{1024, 2050}, {2050, 1024}});
  einsum("contract_scores", "b q h d, b k h d -> b h q k", {{2, 65, 3, 16}, {2, 70, 3, 16}});
  einsum("contract_small", "b i k, b j k -> b j i", {{50, 7, 9}, {50, 6, 9}});
  einsum("contract_vector", "m k, k -> m", {{1000, 512}, {512}});
  const auto pairs = [&](const std::string& name, const PairSizes& sizes, Combine combine) {
    add(name, graph_of_pairs(dtype, compute, sizes, Ex::apply(ScalarOp::abs, x - bias), combine));
  };
  pairs("pairs", {2048, 2050, 72}, Combine::sum);
  pairs("pairs_deep", {200, 300, 2000}, Combine::sum);
  pairs("pairs_greatest", {500, 300, 64}, Combine::max);
  add("gather", graph_of({{dtype, {30, 64}}, {DType::i64, {2, 50}}},
                         {.kind = OpKind::gather,
                          .dtype = dtype,
                          .shape = {2, 50, 64},
                          .axes = {{"b", 2}, {"s", 50}, {"d", 64}},
                          .reads = {{{}, {0, {{2, 1}}}}, plain({0, 1})},
                          .write = plain({0, 1, 2}),
                          .dim = 0}));
  add("scatter_add", graph_of({{dtype, {2, 50, 64}}, {DType::i32, {2, 50}}},
                              {.kind = OpKind::scatter,
                               .dtype = dtype,
                               .shape = {30, 64},
                               .axes = {{"b", 2}, {"s", 50}, {"d", 64}},
                               .reads = {plain({0, 1, 2}), plain({0, 1})},
                               .write = {{}, {0, {{2, 1}}}},
                               .dim = 0}));
  Op along{.kind = OpKind::scan,
           .dtype = dtype,
           .shape = {5, 1000},
           .axes = {{"b", 5}, {"n", 1000}},
           .reads = {plain({0, 1})},
           .write = plain({0, 1}),
           .axis = 1};
  add("scan_lines", graph_of({{dtype, {5, 1000}}}, along));
  along.axis = 0;
  along.combine = Combine::max;
  along.reverse = true;
  add("scan", graph_of({{dtype, {5, 1000}}}, along));
  along.kind = OpKind::argsort;
  along.dtype = DType::i64;
  add("argsort_short", graph_of({{dtype, {5, 1000}}}, along));
  along.axis = 1;
  add("argsort", graph_of({{dtype, {5, 1000}}}, along));
  return all;
}

/// The kernels of a program, whose names end with `suffix` and the number of their nest.
inline std::vector<codegen::KernelSource> emitted(const Program& program, const GpuTarget& target,
                                                  const std::string& suffix = "") {
  std::vector<codegen::KernelSource> kernels;
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    const std::string number =
        program.nests.size() > 1 || !suffix.empty() ? suffix + "_" + std::to_string(n) : "";
    for (codegen::KernelSource& kernel : codegen::emit(program.nests[n], target, number))
      kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace ein::test
