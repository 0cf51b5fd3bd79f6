// The list of passes: what is printed of it, and what differs between a call and a function.
#include "compile/passes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/grammar/parse.hpp>
#include "compile/compiled.hpp"
#include "graph/build.hpp"
#include "support/command.hpp"

namespace ein {
namespace {

using test::expect_holds;
using test::text_of;

TEST(Passes, ThoseThatTheEnvironmentNamesPrintWhatTheyMake) {
  const std::vector<std::string> words{"emit",    "nest", "einsum",  "i k, k j -> i j",
                                       "--shape", "2,3",  "--shape", "3,4"};
  const std::string quiet = text_of(words);
  EXPECT_EQ(quiet.find("== "), std::string::npos);
  EXPECT_EQ(text_of(words, {"EIN_PRINT=low,er"}), quiet);
  const std::string lower = text_of(words, {"EIN_PRINT=lower"});
  expect_holds(lower, {"== lower\n", quiet});
  EXPECT_EQ(lower.find("== order_contractions\n"), std::string::npos);
  for (const char* both : {"EIN_PRINT=all", "EIN_PRINT=lower,order_contractions"})
    expect_holds(text_of(words, {both}), {"== order_contractions\n", "== lower\n"});
}

/// y = x * 2, z = y + 1, where y is a result too.
Graph chain() {
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .shape = {6}});
  for (const double by : {2.0, 3.0}) {
    Op op = plain_op(OpKind::map, DType::f32, {6});
    op.inputs = {static_cast<ValueId>(graph.ops.size()) - 1};
    op.reads = {op.write};
    op.expr = Ex::input(0) * Ex(by);
    graph.ops.push_back(std::move(op));
  }
  graph.outputs = {2};
  return graph;
}

TEST(Passes, OnlyAFunctionIsSimplified) {
  const Graph graph = chain();
  EXPECT_EQ(engine::lowered(graph, engine::job_of(graph)).graph.ops.size(), 3u);
  engine::Job job = engine::job_of(graph, engine::Job::Of::function);
  job.places = {{2, std::nullopt, {contiguous_strides({6}), 0}}};
  EXPECT_EQ(engine::lowered(graph, job).graph.ops.size(), 2u);
}

TEST(Passes, AnAssignedValueIsNoResult) {
  Graph graph = chain();
  graph.assignments = {{0, 2}};
  graph.outputs.clear();
  engine::Job job = engine::job_of(graph);
  job.memory = {0};
  const engine::Compilation made = engine::lowered(graph, job);
  EXPECT_TRUE(made.program.results.empty());
  ASSERT_EQ(made.assigned.size(), 1u);
  EXPECT_EQ(made.assigned[0].input, 0);
  ASSERT_FALSE(made.program.nests.empty());
  EXPECT_EQ(made.program.nests.back().output.buffer, 0);
}

TEST(Compiled, BindsARangeToLengths) {
  const Size n = Size::named("n");
  Graph graph = chain();
  for (Op& op : graph.ops) {
    op.shape = {n};
    for (Axis& axis : op.axes) axis.size = n;
  }
  engine::Job job = engine::job_of(graph);
  auto compiled = std::make_shared<engine::Compiled>(graph, job, SizeValues{{n, 6}});
  compiled->load();
  EXPECT_TRUE(compiled->guards().hold({{n, 7}}));
  for (const std::int64_t length : {5, 1000}) {
    const engine::Bound bound(compiled, {{n, length}});
    EXPECT_EQ(bound.result_bytes(), static_cast<std::size_t>(4 * length));
    const Tensor x = ones({length});
    std::vector<std::byte*> addresses(bound.buffers(), nullptr);
    addresses[0] = reinterpret_cast<std::byte*>(x.data<float>());
    ASSERT_EQ(bound.result_buffers().size(), 1u);
    const auto memory = Storage::allocate(bound.result_buffers()[0].bytes);
    const auto block = Storage::allocate(bound.block_bytes(1) + 64);
    addresses[bound.result_buffers()[0].buffer] = memory->data();
    bound.run(addresses, block->data(), {}, 1, nullptr);
    const auto results = bound.results([&](std::size_t) -> const Tensor& { return x; },
                                       [&](std::size_t) { return memory; });
    ASSERT_EQ(results.size(), 1u);
    ASSERT_EQ(results[0].shape(), Shape{length});
    for (std::int64_t i = 0; i < length; ++i) ASSERT_EQ(results[0].data<float>()[i], 6.0f);
  }
}

}  // namespace
}  // namespace ein
