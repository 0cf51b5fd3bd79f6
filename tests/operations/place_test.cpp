// place: what a slice or a diagonal read, put back among zeros.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include <ein/cost.hpp>
#include "autograd/vjp.hpp"
#include "cost/scope.hpp"
#include "passes/lower.hpp"
#include "support/one_op.hpp"
#include "support/random_slices.hpp"

namespace ein {
namespace {

using test::computed;
using test::graph_of;
using test::interpreted;
using test::plain;
using test::Values;

Graph placed(const Shape& from, const Shape& to, std::vector<Axis> axes, Access read, Access write,
             DType dtype = DType::f32) {
  return graph_of({{dtype, from}}, {.kind = OpKind::place,
                                    .dtype = dtype,
                                    .shape = to,
                                    .axes = std::move(axes),
                                    .reads = {std::move(read)},
                                    .write = std::move(write)});
}
std::size_t nests(const Graph& graph) {
  const InputLayout layout{contiguous_strides(graph.op(0).shape), 0};
  return lower(graph, {&layout, 1}).nests.size();
}

TEST(PlaceTest, SlicesDiagonalsAndTheWhole) {
  const auto expect = [](const Graph& graph, const Values& x, const Values& want) {
    EXPECT_EQ(interpreted(graph, {x}), want) << to_string(graph);
    EXPECT_EQ(computed(graph, {x}), want) << to_string(graph);
  };
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::i64, DType::u8}) {
    // Every second, from element 1.
    expect(placed({3}, {7}, {{"a", 3}}, plain({0}), {{1, {{0, 2}}}}, dtype), {1, 2, 3},
           {0, 1, 0, 2, 0, 3, 0});
    expect(placed({2}, {2, 2}, {{"a", 2}}, plain({0}), plain({0, 0}), dtype), {5, 6}, {5, 0, 0, 6});
    // One row of a matrix.
    expect(placed({2}, {3, 2}, {{"a", 2}}, plain({0}), {{1, {}}, {0, {{0, 1}}}}, dtype), {5, 6},
           {0, 0, 5, 6, 0, 0});
    // Transposed into a corner.
    expect(placed({2, 2}, {3, 3}, {{"a", 2}, {"b", 2}}, plain({0, 1}),
                  {{1, {{1, 1}}}, {0, {{0, 1}}}}, dtype),
           {1, 2, 3, 4}, {0, 0, 0, 1, 3, 0, 2, 4, 0});
  }
  expect(placed({}, {3}, {}, {}, {{1, {}}}), {4}, {0, 4, 0});
  expect(placed({2, 3}, {6}, {{"a", 2}, {"b", 3}}, plain({0, 1}), {{0, {{0, 3}, {1, 1}}}}),
         {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6});
  expect(placed({0}, {3}, {{"a", 0}}, plain({0}), {{1, {{0, 2}}}}), {}, {0, 0, 0});
  expect(
      placed({0, 2}, {0, 4}, {{"a", 0}, {"b", 2}}, plain({0, 1}), {{0, {{0, 1}}}, {0, {{1, 2}}}}),
      {}, {});
}

TEST(PlaceTest, ZerosAreWrittenOnlyWhereSomeRemain) {
  EXPECT_EQ(nests(placed({3}, {7}, {{"a", 3}}, plain({0}), {{1, {{0, 2}}}})), 2u);
  EXPECT_EQ(nests(placed({2, 3}, {3, 2}, {{"a", 2}, {"b", 3}}, plain({0, 1}), plain({1, 0}))), 1u);
}

TEST(PlaceTest, TextAndCost) {
  const Graph graph = placed({3}, {7}, {{"a", 3}}, plain({0}), {{1, {{0, 2}}}});
  EXPECT_NE(to_string(graph).find("%1 = place %0  \"a -> [2*a+1]\"  : f32 (7,)"), std::string::npos)
      << to_string(graph);
  const Cost c = cost(graph);
  EXPECT_EQ(c.strict(), Count(0));
  EXPECT_EQ(c.model, Count(0));
  EXPECT_EQ(c.bytes_read, Count(12));
  EXPECT_EQ(c.bytes_written, Count(28));
}

TEST(PlaceTest, WhatMayWriteTwiceIsNoPlace) {
  const auto is_refused = [](const Shape& from, const Shape& to, std::vector<Axis> axes,
                             Access read, Access write) {
    EXPECT_THROW(placed(from, to, std::move(axes), std::move(read), std::move(write)),
                 std::logic_error);
  };
  const std::vector<Axis> ab{{"a", 2}, {"b", 3}};
  is_refused({2, 3}, {6}, ab, plain({0, 1}), {{0, {{0, 1}, {1, 1}}}});
  is_refused({2, 3}, {6}, ab, plain({0, 1}), {{0, {{0, 2}, {1, 1}}}});
  is_refused({2, 3}, {3}, ab, plain({0, 1}), plain({1}));
  is_refused({2, 3}, {2, 3}, ab, plain({0, 1}), {{0, {{0, 0}}}, {0, {{1, 1}}}});
  is_refused({3}, {5}, {{"a", 3}}, plain({0}), {{1, {{0, 2}}}});  // leaves it
  // Ambiguous in one dimension, but not with the other.
  EXPECT_NO_THROW(
      placed({2, 3}, {4, 3}, ab, plain({0, 1}), {{0, {{0, 1}, {1, 1}}}, {0, {{1, 1}}}}));
}

/// Every second of 7 elements, from element 1; the others are those of a second input.
Graph written(DType dtype) {
  return graph_of({{dtype, {3}}, {dtype, {7}}}, {.kind = OpKind::place,
                                                 .dtype = dtype,
                                                 .shape = {7},
                                                 .axes = {{"a", 3}},
                                                 .reads = {plain({0}), {{1, {{0, 2}}}}},
                                                 .write = {{1, {{0, 2}}}}});
}

TEST(PlaceTest, IntoAnotherValue) {
  const Values part{1, 2, 3}, whole{10, 20, 30, 40, 50, 60, 70}, want{10, 1, 30, 2, 50, 3, 70};
  for (DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8}) {
    const Graph graph = written(dtype);
    EXPECT_EQ(interpreted(graph, {part, whole}), want) << to_string(graph);
    EXPECT_EQ(computed(graph, {part, whole}), want) << to_string(graph);
  }
  const Cost c = cost(written(DType::f32));
  EXPECT_EQ(c.bytes_read, Count(12 + 16));
  EXPECT_EQ(c.bytes_written, Count(28));
  // Each element of the result sends its cotangent where it came from.
  const Values g{1, 2, 3, 4, 5, 6, 7};
  for (DType dtype : {DType::f32, DType::f64}) {
    const autograd::Vjp vjp = autograd::vjp(written(dtype), {true, true}, {true});
    ASSERT_TRUE(vjp.needs.empty());
    const auto cotangents = Interpreter<>::run(vjp.graph, {g});
    EXPECT_EQ(cotangents.at(0), (Values{2, 4, 6}));
    EXPECT_EQ(cotangents.at(1), (Values{1, 0, 3, 0, 5, 0, 7}));
  }
  Graph bad = written(DType::f32);
  bad.ops[2].reads[1][0].offset = 0;
  EXPECT_THROW(verify(bad), std::logic_error);
  bad = written(DType::f32);
  bad.ops[1].shape = {8};
  EXPECT_THROW(verify(bad), std::logic_error);
}

/// Two neighbours of 6 elements, from a position on.
Graph written_at(DType dtype, DType positions) {
  return graph_of({{dtype, {2}}, {dtype, {6}}, {positions, {}}},
                  {.kind = OpKind::place,
                   .dtype = dtype,
                   .shape = {6},
                   .axes = {{"a", 2}},
                   .reads = {plain({0}), plain({0}), {}},
                   .write = plain({0})});
}

TEST(PlaceTest, AtAPosition) {
  const Values part{1, 2}, whole{10, 20, 30, 40, 50, 60}, want{10, 20, 30, 1, 2, 60};
  for (DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8}) {
    for (DType positions : {DType::i32, DType::i64}) {
      const Graph graph = written_at(dtype, positions);
      EXPECT_EQ(interpreted(graph, {part, whole, {3}}), want) << to_string(graph);
      EXPECT_EQ(computed(graph, {part, whole, {3}}), want) << to_string(graph);
      for (double wrong : {-1, 5}) {
        EXPECT_THROW(interpreted(graph, {part, whole, {wrong}}), Error);
        EXPECT_THROW(computed(graph, {part, whole, {wrong}}), Error);
      }
    }
  }
  const Graph graph = written_at(DType::f32, DType::i64);
  EXPECT_NE(to_string(graph).find("%3 = place %0, %1, %2  \"a, a,  -> [%2+a]\"  : f32 (6,)"),
            std::string::npos)
      << to_string(graph);
  EXPECT_EQ(cost(graph).bytes_read, Count(8 + 16 + 8));
  EXPECT_EQ(cost(graph).bytes_written, Count(24));
  // Each element of the result sends its cotangent where it came from; and so does that of a slice.
  const Values g{1, 2, 3, 4, 5, 6};
  for (DType dtype : {DType::f32, DType::f64}) {
    const autograd::Vjp vjp =
        autograd::vjp(written_at(dtype, DType::i64), {true, true, false}, {true});
    ASSERT_EQ(vjp.needs, std::vector<std::size_t>{2});
    const auto cotangents = Interpreter<>::run(vjp.graph, {{3}, g});
    EXPECT_EQ(cotangents.at(0), (Values{4, 5}));
    EXPECT_EQ(cotangents.at(1), (Values{1, 2, 3, 0, 0, 6}));
    // Of the cotangents.
    const autograd::Vjp again = autograd::vjp(vjp.graph, {false, true}, {true, true});
    EXPECT_EQ(Interpreter<>::run(again.graph, {{3}, {1, 2}, g}).at(0), (Values{1, 2, 3, 1, 2, 6}));
  }
}

TEST(PlaceTest, WhatIsNoPositionIsRefused) {
  const auto is_refused = [](auto change) {
    Graph bad = written_at(DType::f32, DType::i64);
    change(bad);
    EXPECT_THROW(verify(bad), std::logic_error) << to_string(bad);
  };
  is_refused([](Graph& g) { g.ops[2].dtype = DType::f32; });
  is_refused([](Graph& g) { g.ops[3].dim = 1; });
  is_refused([](Graph& g) {
    g.ops[2].shape = {2};
    g.ops[3].reads[2] = plain({0});
  });
  Op gather{.kind = OpKind::gather,
            .shape = {2, 2},
            .axes = {{"a", 2}, {"b", 2}},
            .reads = {plain({1}), plain({0})},
            .write = plain({0, 1})};
  EXPECT_THROW(graph_of({{DType::f32, {6}}, {DType::i64, {2}}}, gather), std::logic_error);
}

TEST(PlaceTest, RandomSlicesAgreeWithTheInterpreter) {
  constexpr std::uint64_t seed = 20250301;
  std::cout << "seed " << seed << "\n";
  std::size_t moved = 0;
  for (std::uint64_t i = 0; i < 1000 && !HasFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    const test::RandomSlice slice(random, i % 2 == 0);
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + to_string(slice.graph));
    std::vector<Values> values;
    std::vector<Tensor> tensors;
    for (const ValueId input : slice.graph.ops.back().inputs) {
      const Op& op = slice.graph.op(input);
      values.emplace_back(static_cast<std::size_t>(numel(op.shape)));
      for (double& v : values.back())
        v = op.dtype == DType::boolean ? 1 : static_cast<double>(1 + random() % 8);
      if (input + 1 == std::ssize(slice.graph.ops) - 1) values.back()[0] = slice.position;
      tensors.push_back(test::scattered(values.back(), op.shape, op.dtype, random));
    }
    EXPECT_EQ(test::get_values(test::run_kernels(slice.graph, tensors)),
              interpreted(slice.graph, values));
    moved += values[0].size();
  }
  EXPECT_GT(moved, 10'000u);
}

TEST(PlaceTest, RandomPlacesAgreeWithTheInterpreter) {
  constexpr std::uint64_t seed = 20250203;
  std::cout << "seed " << seed << "\n";
  std::size_t copied = 0;
  for (std::uint64_t i = 0; i < 1000 && !HasFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    const auto below = [&](std::int64_t n) {
      return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
    };
    std::vector<Axis> axes;
    std::vector<int> order;
    for (std::int64_t a = below(5); a > 0; --a) {
      order.push_back(static_cast<int>(axes.size()));
      axes.push_back({std::string(1, static_cast<char>('a' + axes.size())),
                      below(20) == 0 ? 0 : 1 + below(6)});
    }
    std::shuffle(order.begin(), order.end(), random);
    Op op{.kind = OpKind::place, .dtype = real_dtypes[below(std::size(real_dtypes))], .axes = axes};
    Shape from;
    for (int a : order) from.push_back(axes[static_cast<std::size_t>(a)].size);
    op.reads = {plain(order)};
    std::shuffle(order.begin(), order.end(), random);
    // Axes alone, in groups with steps, and twice: dimensions of some size that holds them.
    for (std::size_t at = 0; at < order.size();) {
      const std::size_t end = std::min(order.size(), at + 1 + static_cast<std::size_t>(below(2)));
      DimIndex dim{below(3), {}};
      std::int64_t reach = dim.offset, step = 1 + below(2);
      for (std::size_t k = at; k < end; ++k) {
        const std::int64_t size =
            std::max<std::int64_t>(1, axes[static_cast<std::size_t>(order[k])].size);
        dim.terms.push_back({order[k], step});
        reach += step * (size - 1);
        step *= size + below(2);
      }
      at = end;
      for (std::int64_t copies = below(4) == 0 ? 2 : 1; copies > 0; --copies) {
        op.write.push_back(dim);
        op.shape.push_back(reach + 1 + below(2));
      }
    }
    const Graph graph = graph_of({{op.dtype, from}}, op);
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + to_string(graph));
    Values x(static_cast<std::size_t>(numel(from)));
    for (double& v : x) v = static_cast<double>(op.dtype == DType::boolean ? 1 : 1 + below(8));
    EXPECT_EQ(
        test::get_values(test::run_kernels(graph, {test::scattered(x, from, op.dtype, random)})),
        interpreted(graph, {x}));
    copied += x.size();
  }
  EXPECT_GT(copied, 10'000u);
}

}  // namespace
}  // namespace ein
