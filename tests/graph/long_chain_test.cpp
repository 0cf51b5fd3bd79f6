// Chains of many operations: what is fused stays bounded, and what is printed grows with the
// operations, not with the paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/graph.hpp>
#include <ein/scalar_expr.hpp>
#include "passes/lower.hpp"
#include "passes/simplify.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

/// n operations, each on the value of the one before.
template <class F>
Graph chain(int n, F&& op) {
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .dtype = DType::f32, .shape = {8}});
  for (int i = 0; i < n; ++i) {
    Op map{.kind = OpKind::map, .dtype = DType::f32, .shape = {8}};
    map.compute = DType::f32;
    map.axes = {{"a", 8}};
    map.inputs = {static_cast<ValueId>(i)};
    map.reads = {{{0, {{0, 1}}}}};
    map.write = {{0, {{0, 1}}}};
    map.expr = op(Ex::input(0));
    graph.ops.push_back(map);
  }
  graph.outputs = {static_cast<ValueId>(n)};
  return graph;
}

TEST(LongChain, NestsHaveABoundedNumberOfSteps) {
  for (int n : {10, 100, 3000}) {
    const Graph graph = chain(n, [](const Ex& x) { return x * Ex(0.5) + Ex(0.25); });
    for (const Graph& planned : {graph, simplify(graph)}) {
      const Program program =
          lower(planned, std::vector<InputLayout>{{contiguous_strides({8}), 0}});
      std::size_t steps = 0, most = 0;
      for (const LoopNest& nest : program.nests) {
        steps += nest.body.steps.size();
        most = std::max(most, nest.body.steps.size());
      }
      EXPECT_LE(most, 128U) << n;
      EXPECT_LE(program.nests.size(), static_cast<std::size_t>(n / 15 + 1))
          << n << ": fused as far as the bound lets them";
      EXPECT_LE(steps, 6 * static_cast<std::size_t>(n)) << n;
    }
  }
}

TEST(LongChain, SharedPartsArePrintedOnce) {
  Ex x = Ex::input(0);
  EXPECT_EQ(to_string(x * x + x), "((x0 * x0) + x0)");
  for (int i = 0; i < 60; ++i) x = x * x;
  const std::string text = to_string(x);
  EXPECT_LE(text.size(), 3000U);
  EXPECT_NE(text.find(" with t0 = (((("), std::string::npos) << text;
  EXPECT_NE(text.find(", t1 = ((((t0 * t0) * "), std::string::npos) << text;
  std::size_t before = 0;
  for (int n : {200, 400}) {
    auto f = compile([n](const Tensor& given) {
      Tensor y = given;
      for (int i = 0; i < n; ++i) y = y * y + 0.125;
      return y;
    });
    f(zeros({8}));
    const std::size_t size = f.text().size();
    if (before > 0) {
      EXPECT_LE(size, 3 * before);
    }
    before = size;
  }
}

TEST(LongChain, ComputesWhatEagerCallsDo) {
  const auto f = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 300; ++i) y = y * 0.5 + where(y > 1.0, x, y * y * 0.125);
    return y;
  };
  const Tensor x = arange(8).to(DType::f32) * 0.25;
  EXPECT_EQ(test::get_values(compile(f)(x)), test::get_values(f(x)));
}

}  // namespace
}  // namespace ein
