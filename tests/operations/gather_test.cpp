// gather and scatter_add: by hand, against the interpreter, and what must be refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <stdexcept>

#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "passes/lower.hpp"
#include "support/one_op.hpp"

namespace ein {
namespace {

using namespace literals;

using test::computed;
using test::graph_of;
using test::interpreted;
using test::plain;
using test::Values;

/// "[v] d, b s -> b s d"
Graph embedding(std::int64_t v, std::int64_t d, std::int64_t b, std::int64_t s,
                DType dtype = DType::f32, DType positions = DType::i64) {
  return graph_of({{dtype, {v, d}}, {positions, {b, s}}},
                  {.kind = OpKind::gather,
                   .dtype = dtype,
                   .shape = {b, s, d},
                   .axes = {{"b", b}, {"s", s}, {"d", d}},
                   .reads = {{{}, {0, {{2, 1}}}}, plain({0, 1})},
                   .write = plain({0, 1, 2}),
                   .dim = 0});
}

/// "b s d, b s -> [v] d"
Graph embedding_gradient(std::int64_t v, std::int64_t d, std::int64_t b, std::int64_t s,
                         DType dtype = DType::f32) {
  return graph_of({{dtype, {b, s, d}}, {DType::i64, {b, s}}},
                  {.kind = OpKind::scatter,
                   .dtype = dtype,
                   .shape = {v, d},
                   .axes = {{"b", b}, {"s", s}, {"d", d}},
                   .reads = {plain({0, 1, 2}), plain({0, 1})},
                   .write = {{}, {0, {{2, 1}}}},
                   .dim = 0});
}

/// "b [v], b -> b", and back "b, b -> b [v]"
Graph choice(std::int64_t b, std::int64_t v) {
  return graph_of({{DType::f32, {b, v}}, {DType::i32, {b}}},
                  {.kind = OpKind::gather,
                   .shape = {b},
                   .axes = {{"b", b}},
                   .reads = {{{0, {{0, 1}}}, {}}, plain({0})},
                   .write = plain({0}),
                   .dim = 1});
}
Graph one_hot(std::int64_t b, std::int64_t v, DType dtype = DType::f32) {
  return graph_of({{dtype, {b}}, {DType::i32, {b}}}, {.kind = OpKind::scatter,
                                                      .dtype = dtype,
                                                      .shape = {b, v},
                                                      .axes = {{"b", b}},
                                                      .reads = {plain({0}), plain({0})},
                                                      .write = {{0, {{0, 1}}}, {}},
                                                      .dim = 1});
}
/// "n, n -> [v]"
Graph histogram(std::int64_t n, std::int64_t v, DType dtype) {
  return graph_of({{dtype, {n}}, {DType::i64, {n}}}, {.kind = OpKind::scatter,
                                                      .dtype = dtype,
                                                      .shape = {v},
                                                      .axes = {{"n", n}},
                                                      .reads = {plain({0}), plain({0})},
                                                      .write = {{}},
                                                      .dim = 0});
}

TEST(GatherTest, RowsOfATable) {
  const Values table{0, 1, 10, 11, 20, 21}, positions{2, 0, 2, 1};
  const Values want{20, 21, 0, 1, 20, 21, 10, 11};
  const Graph graph = embedding(3, 2, 2, 2);
  EXPECT_EQ(interpreted(graph, {table, positions}), want);
  EXPECT_EQ(computed(graph, {table, positions}), want);
  EXPECT_EQ(computed(embedding(3, 2, 2, 2, DType::f16, DType::i32), {table, positions}), want);
  EXPECT_EQ(computed(embedding(3, 2, 2, 2, DType::u8), {table, positions}), want);
}

TEST(GatherTest, AnElementOfEachRow) {
  const Values x{1, 2, 3, 4, 5, 6}, positions{2, 0};
  EXPECT_EQ(interpreted(choice(2, 3), {x, positions}), (Values{3, 4}));
  EXPECT_EQ(computed(choice(2, 3), {x, positions}), (Values{3, 4}));
}

TEST(GatherTest, MoreRowsThanOneTaskTakes) {
  constexpr std::int64_t n = 100'000;
  Values x(3 * n), positions(n), want(n);
  for (std::size_t i = 0; i < n; ++i) {
    positions[i] = static_cast<double>(i * i % 3);
    for (std::size_t k = 0; k < 3; ++k)
      x[3 * i + k] = static_cast<double>(i) + (k == i * i % 3 ? 0.5 : 0);
    want[i] = static_cast<double>(i) + 0.5;
  }
  EXPECT_EQ(computed(choice(n, 3), {x, positions}), want);
}

TEST(GatherTest, GraphAndNestPrinted) {
  const Graph graph = embedding(30, 8, 2, 5);
  EXPECT_EQ(to_string(graph),
            "%0 = input  : f32 (30, 8)\n"
            "%1 = input  : i64 (2, 5)\n"
            "%2 = gather %0, %1  \"[%1] d, b s -> b s d\"  : f32 (2, 5, 8)\n"
            "return %2\n");
  const InputLayout layouts[] = {{{8, 1}, 0}, {{5, 1}, 0}};
  EXPECT_EQ(to_string(lower(graph, layouts)),
            "b0: input, 240 f32\n"
            "b1: input, 10 i64\n"
            "b2: 80 f32\n"
            "for (b s) in 0..10\n"
            "  for d in 0..8\n"
            "    x1 = b1[(b s)]  : i64\n"
            "    x0 = b0[d + 8·x1]  : f32\n"
            "    b2[8·(b s) + d] = x0  : f32 in f32\n"
            "return b2 (2, 5, 8) strides (40, 8, 1)\n");
}

TEST(GatherTest, CostIsOfElementsAndPositions) {
  const Graph graph = embedding(30, 8, 2, 5);
  const InputLayout layouts[] = {{{8, 1}, 0}, {{5, 1}, 0}};
  for (const Cost& c : {cost(graph), cost(lower(graph, layouts))}) {
    EXPECT_EQ(c.model, Count(0));
    EXPECT_EQ(c.strict(), Count(0));
    EXPECT_EQ(c.bytes_read, Count(2 * 5 * 8 * 4 + 2 * 5 * 8));
    EXPECT_EQ(c.bytes_written, Count(2 * 5 * 8 * 4));
  }
  EXPECT_EQ(cost_formula(graph).bytes_read.to_string(), "4·b·s·d + 8·b·s");
}

TEST(GatherTest, PositionsOutsideAreErrors) {
  const auto fails = [](const Graph& graph, const std::vector<Values>& inputs,
                        const std::string& text) {
    try {
      computed(graph, inputs);
      ADD_FAILURE() << "no error where there ought to be: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      EXPECT_EQ(error.what(), text);
    }
    EXPECT_THROW(interpreted(graph, inputs), Error);
  };
  fails(choice(1, 5), {{1, 2, 3, 4, 5}, {7}}, "gather: position 7 is outside an axis of size 5");
  fails(choice(1, 5), {{1, 2, 3, 4, 5}, {-1}}, "gather: position -1 is outside an axis of size 5");
  fails(choice(1, 5), {{1, 2, 3, 4, 5}, {5}}, "gather: position 5 is outside an axis of size 5");
  fails(embedding(0, 2, 1, 1), {{}, {0}}, "gather: position 0 is outside an axis of size 0");
  fails(one_hot(1, 5), {{1}, {-3}}, "scatter_add: position -3 is outside an axis of size 5");
  fails(histogram(2, 4, DType::bf16), {{1, 1}, {3, 4}},
        "scatter_add: position 4 is outside an axis of size 4");
  // In the last of very many, found by one of several threads.
  Values positions(100'000, 3);
  positions.back() = 4;
  set_num_threads(3);
  fails(histogram(100'000, 4, DType::f32), {Values(100'000, 1), positions},
        "scatter_add: position 4 is outside an axis of size 4");
}

TEST(GatherTest, PositionsOfU64AreNamedAsTheyAre) {
  const Tensor positions = from_vector<std::uint64_t>({0, (std::uint64_t{1} << 63) + 5}, {2});
  const auto fails = [](auto&& call, const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "no error where there ought to be: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      EXPECT_EQ(error.what(), text);
    }
  };
  fails(
      [&] {
        gather(ones({5, 3}), positions, "[v] c, n -> n c");
      },
      "gather: position 9223372036854775813 is outside an axis of size 5");
  fails([&] { scatter_add(ones({2}), positions, "n, n -> [v]", "v"_a = 4); },
        "scatter_add: position 9223372036854775813 is outside an axis of size 4");
  fails(
      [&] {
        cross_entropy(ones({2, 3}), positions, "n [v], n");
      },
      "cross_entropy: target 9223372036854775813 is none of the 3 classes, 0 to 2");
}

TEST(GatherTest, NothingToGatherOrToAdd) {
  EXPECT_EQ(computed(embedding(3, 0, 2, 2), {{}, {9, 9, 9, 9}}), Values{});
  EXPECT_EQ(computed(embedding(3, 2, 0, 2), {Values(6), {}}), Values{});
  EXPECT_EQ(computed(embedding_gradient(3, 2, 0, 2), {{}, {}}), Values(6, 0));
  EXPECT_EQ(computed(embedding_gradient(3, 2, 0, 2, DType::f16), {{}, {}}), Values(6, 0));
  EXPECT_EQ(computed(embedding_gradient(3, 0, 2, 2), {{}, {1, 1, 1, 1}}), Values{});
  EXPECT_EQ(computed(embedding_gradient(0, 2, 0, 2), {{}, {}}), Values{});
  EXPECT_EQ(computed(one_hot(0, 3), {{}, {}}), Values{});
}

TEST(ScatterAddTest, SumsByPosition) {
  const Values values{1, 2, 3, 4, 5, 6, 7, 8}, positions{2, 0, 2, 2};
  const Values want{3, 4, 0, 0, 13, 16};
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    const Graph graph = embedding_gradient(3, 2, 2, 2, dtype);
    EXPECT_EQ(interpreted(graph, {values, positions}), want);
    EXPECT_EQ(computed(graph, {values, positions}), want) << name(dtype);
  }
  EXPECT_EQ(computed(one_hot(2, 3), {{5, 6}, {2, 0}}), (Values{0, 0, 5, 6, 0, 0}));
  EXPECT_EQ(computed(one_hot(2, 3, DType::f16), {{5, 6}, {2, 0}}), (Values{0, 0, 5, 6, 0, 0}));
}

TEST(ScatterAddTest, SmallFloatsAreAddedInF32) {
  // In bf16, 256 + 1 is 256.
  const Values ones(1000, 1), zeros(1000, 0);
  EXPECT_EQ(computed(histogram(1000, 2, DType::bf16), {ones, zeros}), (Values{1000, 0}));
  EXPECT_EQ(computed(histogram(1000, 2, DType::boolean), {ones, zeros}), (Values{1, 0}));
}

TEST(ScatterAddTest, GraphNestAndCost) {
  const Graph graph = embedding_gradient(30, 8, 2, 5);
  EXPECT_NE(to_string(graph).find("scatter sum %0, %1  \"b s d, b s -> [%1] d\"  : f32 (30, 8)"),
            std::string::npos)
      << to_string(graph);
  const InputLayout layouts[] = {{{40, 8, 1}, 0}, {{5, 1}, 0}};
  const Program program = lower(graph, layouts);
  ASSERT_EQ(program.nests.size(), 1u);
  EXPECT_EQ(to_string(program.nests[0]),
            "for d in 0..8\n"
            "  reduce (b s) in 0..10\n"
            "    x0 = b0[8·(b s) + d]  : f32\n"
            "    x1 = b1[(b s)]  : i64\n"
            "    b2[d + 8·x1] += x0  : f32 in f32\n");
  for (const Cost& c : {cost(graph), cost(program)}) {
    EXPECT_EQ(c.add, Count(80));
    EXPECT_EQ(c.strict(), Count(80));
    EXPECT_EQ(c.model, Count(80));
    EXPECT_EQ(c.bytes_read, Count(80 * 4 + 10 * 8));
    EXPECT_EQ(c.bytes_written, Count(30 * 8 * 4));
  }
  EXPECT_EQ(cost_formula(graph).add.to_string(), "b·s·d");
  EXPECT_EQ(cost_formula(graph).bytes_written.to_string(), "120·d");
}

TEST(GatherTest, VerifyFindsWhatIsWrong) {
  const Graph good = embedding(3, 2, 2, 2);
  const auto broken = [&](auto&& change) {
    Graph graph = good;
    change(graph.ops.back());
    EXPECT_THROW(verify(graph), std::logic_error) << to_string(graph);
  };
  broken([](Op& op) { op.dim = 1; });
  broken([](Op& op) { op.dim = 2; });
  broken([](Op& op) { op.dim = -1; });
  broken([](Op& op) { op.reads[0][0].offset = 1; });
  broken([](Op& op) { op.reads[0][0].terms = {{2, 1}}; });
  broken([](Op& op) { op.dtype = DType::f16; });
  broken([](Op& op) { op.write[0].offset = 1; });
  broken([](Op& op) { op.axes.push_back({"r", 2}); });
  Graph real_positions = good;
  real_positions.ops[1].dtype = DType::f32;
  EXPECT_THROW(verify(real_positions), std::logic_error);
  Graph scatter = embedding_gradient(3, 2, 2, 2);
  scatter.ops.back().write[0].terms = {{2, 1}};
  EXPECT_THROW(verify(scatter), std::logic_error);
  scatter = embedding_gradient(3, 2, 2, 2);
  scatter.ops.back().write[1].terms = {};
  EXPECT_THROW(verify(scatter), std::logic_error);
}

// --- random calls ---

/// x or the result of a scatter has the axes `own` and one dimension for the positions; positions
/// have some axes; the values, or the result of a gather, have axes in any order.
struct RandomCall {
  Graph graph;
  std::vector<Values> inputs;
};

RandomCall random_call(std::mt19937_64& random, bool gathers) {
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  const std::int64_t some_sizes[] = {1, 1, 2, 3, 4, 5, 8, 17, 70};
  std::vector<Axis> axes;
  const std::int64_t count = below(5);
  std::int64_t points = 1;
  for (std::int64_t a = 0; a < count; ++a) {
    std::int64_t size = below(25) == 0 ? 0 : some_sizes[below(9)];
    if (points * size > 20'000) size = 1;
    points *= std::max<std::int64_t>(1, size);
    axes.push_back({std::string(1, static_cast<char>('a' + a)), size});
  }
  const auto shuffled = [&](std::vector<int> list) {
    std::shuffle(list.begin(), list.end(), random);
    return list;
  };
  std::vector<int> own, of_positions, all(axes.size());
  std::iota(all.begin(), all.end(), 0);
  for (int a : all) {
    // An axis belongs to the table, to the positions, or to both; of values, sometimes to nothing
    // else.
    const std::int64_t kind = below(7);
    if (kind < 3 || kind == 6) own.push_back(a);
    if (kind >= 3 && kind < 5) of_positions.push_back(a);
    if (kind == 6) of_positions.push_back(a);
  }
  own = shuffled(own);
  of_positions = shuffled(of_positions);
  const std::int64_t size = 1 + below(below(4) == 0 ? 300 : 6);
  const auto dim = below(static_cast<std::int64_t>(own.size()) + 1);

  const auto shape_of = [&](const std::vector<int>& list) {
    Shape shape;
    for (int a : list) shape.push_back(axes[static_cast<std::size_t>(a)].size);
    return shape;
  };
  Access indirect = plain(own);
  Shape indirect_shape;
  indirect.insert(indirect.begin() + dim, DimIndex{});
  for (std::size_t d = 0; d < indirect.size(); ++d) {
    indirect_shape.push_back(static_cast<std::int64_t>(d) == dim
                                 ? Size(size)
                                 : axes[static_cast<std::size_t>(indirect[d].terms[0].axis)].size);
  }
  std::vector<int> other = shuffled(all);
  if (!gathers && !other.empty() && below(4) == 0)
    other.pop_back();  // values that are the same along an axis

  const DType dtype = real_dtypes[below(std::size(real_dtypes))];
  const DType position_dtype = below(2) == 0 ? DType::i64 : DType::i32;
  Op op{.kind = gathers ? OpKind::gather : OpKind::scatter,
        .dtype = dtype,
        .axes = axes,
        .dim = static_cast<int>(dim)};
  constexpr Combine combines[] = {Combine::sum, Combine::sum, Combine::prod, Combine::max,
                                  Combine::min};
  if (!gathers) op.combine = combines[below(5)];
  // Doubles do not hold the greatest integers of 64 bits.
  if (op.combine == Combine::min && is_integral(dtype) && size_of(dtype) == 8)
    op.combine = Combine::max;
  Shape input_shape = gathers ? indirect_shape : shape_of(other);
  op.shape = gathers ? shape_of(other) : indirect_shape;
  op.reads = {gathers ? indirect : plain(other), plain(of_positions)};
  op.write = gathers ? plain(other) : indirect;
  RandomCall call{graph_of({{dtype, input_shape}, {position_dtype, shape_of(of_positions)}}, op),
                  {}};
  Values x(static_cast<std::size_t>(numel(input_shape))),
      positions(static_cast<std::size_t>(numel(shape_of(of_positions))));
  // Sums of few small numbers and products of none, which every dtype holds.
  for (double& v : x)
    v = static_cast<double>(gathers                       ? below(2)
                            : op.combine == Combine::prod ? below(50) != 0
                            : op.combine == Combine::sum  ? below(50) == 0
                                                          : below(2));
  for (double& p : positions) p = static_cast<double>(below(size));
  call.inputs = {x, positions};
  return call;
}

class RandomGatherTest : public testing::TestWithParam<bool> {};

TEST_P(RandomGatherTest, KernelsAgreeWithTheInterpreter) {
  constexpr std::uint64_t seed = 20250117;
  std::cout << "seed " << seed << "\n";
  std::size_t compared = 0;
  for (std::uint64_t i = 0; i < 1500 && !HasFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    const RandomCall call = random_call(random, GetParam());
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + to_string(call.graph));
    std::vector<Tensor> tensors;
    for (std::size_t k = 0; k < 2; ++k) {
      const Op& op = call.graph.ops[k];
      tensors.push_back(test::scattered(call.inputs[k], op.shape, op.dtype, random));
    }
    Values want = interpreted(call.graph, call.inputs);
    const DType dtype = call.graph.ops.back().dtype;
    for (double& x : want) x = test::stored(x, dtype);
    set_num_threads(1);
    const Values got = test::get_values(test::run_kernels(call.graph, tensors));
    ASSERT_EQ(got, want);
    set_num_threads(3);
    ASSERT_EQ(test::get_values(test::run_kernels(call.graph, tensors)), want);
    compared += want.size();
    std::vector<InputLayout> layouts;
    for (const Tensor& x : tensors) layouts.push_back(engine::layout_of(x));
    const Cost of_graph = cost(call.graph), of_nests = cost(lower(call.graph, layouts));
    EXPECT_EQ(of_graph.add, of_nests.add);
    EXPECT_EQ(of_graph.model, of_nests.model);
  }
  EXPECT_GT(compared, 50'000u);
}
INSTANTIATE_TEST_SUITE_P(, RandomGatherTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "gather" : "scatter_add"; });

TEST(ScatterAddTest, BitsDoNotDependOnThreads) {
  constexpr std::uint64_t seed = 11;
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  const auto expect_same = [&](const Graph& graph, std::int64_t size) {
    std::vector<Values> inputs;
    for (ValueId i = 0; i < 2; ++i) {
      inputs.emplace_back(static_cast<std::size_t>(numel(graph.op(i).shape)));
      for (double& x : inputs.back()) {
        x = i == 0 ? std::normal_distribution<double>()(random)
                   : static_cast<double>(random() % static_cast<std::uint64_t>(size));
      }
    }
    set_num_threads(1);
    const Values one = computed(graph, inputs);
    for (int threads : {2, 3, 8}) {
      set_num_threads(threads);
      EXPECT_EQ(computed(graph, inputs), one) << threads << " threads\n" << to_string(graph);
    }
    for (double& x : inputs[0]) x = test::stored(x, graph.op(0).dtype);
    const Values exact = interpreted(graph, inputs);
    const double tolerance = graph.op(0).dtype == DType::f32 ? 1e-4 : 1e-2;
    for (std::size_t e = 0; e < one.size(); ++e)
      ASSERT_NEAR(one[e], exact[e], tolerance * (1 + std::abs(exact[e])));
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    expect_same(embedding_gradient(50, 200, 4, 300, dtype), 50);
    expect_same(histogram(200'000, 100, dtype), 100);
    expect_same(histogram(200'000, 1, dtype), 1);
  }
}

}  // namespace
}  // namespace ein
