// The reference interpreter, by hand: it is the oracle of the backends, so nothing else checks it
// but this and the brute force of oracle_test.cpp.
#include "oracle/interpret.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ein {
namespace {

using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Access plain(std::initializer_list<int> axes) {
  Access access;
  for (int a : axes) access.push_back({0, {{a, 1}}});
  return access;
}

/// A graph of inputs (f64) and one operation on them.
Graph graph_of(std::vector<Shape> shapes, Op op) {
  Graph graph;
  for (const Shape& shape : shapes) {
    op.inputs.push_back(static_cast<ValueId>(graph.ops.size()));
    graph.ops.push_back({.kind = OpKind::input, .dtype = DType::f64, .shape = shape});
  }
  if (op.dtype == DType::f32) op.dtype = DType::f64;
  graph.outputs = {static_cast<ValueId>(graph.ops.size())};
  graph.ops.push_back(std::move(op));
  verify(graph);
  return graph;
}

Values run(const Graph& graph, std::vector<Values> inputs) {
  return Interpreter<>::run(graph, std::move(inputs))[0];
}

TEST(InterpretTest, ReindexTransposesSplitsRepeatsAndTakesDiagonals) {
  const std::vector<Axis> ab{{"a", 2}, {"b", 3}};
  const auto moved = [&](const Shape& from, const Shape& to, std::vector<Axis> axes, Access read,
                         Access write, Values x) {
    return run(
        graph_of(
            {from},
            {.kind = OpKind::reindex, .shape = to, .axes = axes, .reads = {read}, .write = write}),
        {x});
  };
  EXPECT_EQ(moved({2, 3}, {3, 2}, ab, plain({0, 1}), plain({1, 0}), {1, 2, 3, 4, 5, 6}),
            (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(moved({6}, {3, 2}, ab, {{0, {{0, 3}, {1, 1}}}}, plain({1, 0}), {1, 2, 3, 4, 5, 6}),
            (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(moved({2}, {2, 3}, ab, plain({0}), plain({0, 1}), {7, 8}), (Values{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(moved({3, 3}, {3}, {{"a", 3}}, plain({0, 0}), plain({0}), {1, 2, 3, 4, 5, 6, 7, 8, 9}),
            (Values{1, 5, 9}));
  // A slice: from element 1, every second.
  EXPECT_EQ(moved({6}, {3}, {{"a", 3}}, {{1, {{0, 2}}}}, plain({0}), {0, 1, 2, 3, 4, 5}),
            (Values{1, 3, 5}));
}

TEST(InterpretTest, Contract) {
  const Op product{.kind = OpKind::contract,
                   .shape = {2, 2},
                   .axes = {{"i", 2}, {"j", 2}, {"k", 3}},
                   .reads = {plain({0, 2}), plain({2, 1})},
                   .write = plain({0, 1})};
  EXPECT_EQ(run(graph_of({{2, 3}, {3, 2}}, product), {{1, 2, 3, 4, 5, 6}, {1, 0, 2, 1, 0, 3}}),
            (Values{5, 11, 14, 23}));
  const Op nothing{.kind = OpKind::contract,
                   .shape = {2},
                   .axes = {{"i", 2}, {"k", 0}},
                   .reads = {plain({0, 1}), plain({1})},
                   .write = plain({0})};
  EXPECT_EQ(run(graph_of({{2, 0}, {0}}, nothing), {{}, {}}), (Values{0, 0}));
  const Op outer{.kind = OpKind::contract,
                 .shape = {2, 2},
                 .axes = {{"i", 2}, {"j", 2}},
                 .reads = {plain({0}), plain({1}), plain({})},
                 .write = plain({0, 1})};
  EXPECT_EQ(run(graph_of({{2}, {2}, {}}, outer), {{1, 2}, {3, 4}, {10}}), (Values{30, 40, 60, 80}));
}

Values reduced(Combine combine, const Values& x, DType dtype = DType::f64) {
  const auto n = static_cast<std::int64_t>(x.size());
  Graph graph = graph_of({{n}}, {.kind = OpKind::reduce,
                                 .dtype = DType::f64,
                                 .axes = {{"n", n}},
                                 .reads = {plain({0})},
                                 .combine = combine});
  for (Op& op : graph.ops) op.dtype = dtype;
  return run(graph, {x});
}

TEST(InterpretTest, Reduce) {
  EXPECT_EQ(reduced(Combine::sum, {1, 2, 4}), Values{7});
  EXPECT_EQ(reduced(Combine::prod, {1, 2, 4}), Values{8});
  EXPECT_EQ(reduced(Combine::max, {-3, -1, -2}), Values{-1});
  EXPECT_EQ(reduced(Combine::min, {3, 1, 2}), Values{1});
  EXPECT_EQ(reduced(Combine::any, {0, 0, 5}), Values{1});
  EXPECT_EQ(reduced(Combine::any, {0, 0}), Values{0});
  EXPECT_EQ(reduced(Combine::any, {5}), Values{1});
  EXPECT_EQ(reduced(Combine::all, {3, 0, 5}), Values{0});
  EXPECT_EQ(reduced(Combine::all, {3, 4, 5}), Values{1});
  EXPECT_EQ(reduced(Combine::all, {3}), Values{1});
  for (Combine combine : {Combine::sum, Combine::prod, Combine::max, Combine::min}) {
    EXPECT_TRUE(std::isnan(reduced(combine, {1, nan, 2})[0]));
    EXPECT_TRUE(std::isnan(reduced(combine, {nan, 1})[0]));
    EXPECT_TRUE(std::isnan(reduced(combine, {1, nan})[0]));
  }
  EXPECT_EQ(reduced(Combine::sum, {}), Values{0});
  EXPECT_EQ(reduced(Combine::prod, {}), Values{1});
  EXPECT_EQ(reduced(Combine::max, {}), Values{-inf});
  EXPECT_EQ(reduced(Combine::min, {}), Values{inf});
  EXPECT_EQ(reduced(Combine::any, {}), Values{0});
  EXPECT_EQ(reduced(Combine::all, {}), Values{1});
  EXPECT_EQ(reduced(Combine::sum, {1, 1}, DType::boolean), Values{1});
}

/// The value of an expression of two numbers.
double evaluated(const Ex& expr, double x, double y, DType dtype = DType::f64) {
  return run(graph_of({{}, {}}, {.kind = OpKind::map,
                                 .dtype = dtype,
                                 .reads = {{}, {}},
                                 .expr = expr,
                                 .compute = DType::f64}),
             {{x}, {y}})[0];
}

TEST(InterpretTest, EveryScalarOperation) {
  const Ex x = Ex::input(0), y = Ex::input(1);
  const auto one = [&](ScalarOp op, double a) { return evaluated(Ex::apply(op, x), a, 0); };
  const auto two = [&](ScalarOp op, double a, double b) {
    return evaluated(Ex::apply(op, x, y), a, b);
  };
  EXPECT_EQ(one(ScalarOp::neg, 3), -3);
  EXPECT_EQ(one(ScalarOp::abs, -3), 3);
  EXPECT_EQ(one(ScalarOp::sqrt, 9), 3);
  EXPECT_EQ(one(ScalarOp::rsqrt, 4), 0.5);
  EXPECT_EQ(one(ScalarOp::exp, 0), 1);
  EXPECT_DOUBLE_EQ(one(ScalarOp::log, std::exp(2.0)), 2);
  EXPECT_DOUBLE_EQ(one(ScalarOp::tanh, 0.5), std::tanh(0.5));
  EXPECT_DOUBLE_EQ(one(ScalarOp::erf, 0.5), std::erf(0.5));
  EXPECT_EQ(one(ScalarOp::sigmoid, 0), 0.5);
  EXPECT_DOUBLE_EQ(one(ScalarOp::sigmoid, -745), std::exp(-745.0));
  EXPECT_EQ(one(ScalarOp::normal_cdf, 0), 0.5);
  EXPECT_DOUBLE_EQ(one(ScalarOp::silu, 2), 2 / (1 + std::exp(-2.0)));
  EXPECT_DOUBLE_EQ(one(ScalarOp::gelu, 2), 2 * one(ScalarOp::normal_cdf, 2));
  for (ScalarOp op : {ScalarOp::silu, ScalarOp::gelu}) {
    EXPECT_EQ(one(op, -INFINITY), 0);
    EXPECT_EQ(one(op, INFINITY), INFINITY);
  }
  EXPECT_EQ(one(ScalarOp::gelu_slope, 0), 0.5);
  EXPECT_DOUBLE_EQ(one(ScalarOp::gelu_slope, 1),
                   one(ScalarOp::normal_cdf, 1) + 0.24197072451914337);
  EXPECT_EQ(one(ScalarOp::gelu_slope, -INFINITY), 0);
  EXPECT_EQ(one(ScalarOp::gelu_slope, INFINITY), 1);
  EXPECT_DOUBLE_EQ(one(ScalarOp::normal_cdf, -1), std::erfc(1 / std::sqrt(2.0)) / 2);
  EXPECT_EQ(one(ScalarOp::logical_not, 0), 1);
  EXPECT_EQ(one(ScalarOp::logical_not, 7), 0);
  EXPECT_EQ(one(ScalarOp::normal_quantile, 0.5), 0);
  EXPECT_EQ(two(ScalarOp::add, 5, 2), 7);
  EXPECT_EQ(two(ScalarOp::sub, 5, 2), 3);
  EXPECT_EQ(two(ScalarOp::mul, 5, 2), 10);
  EXPECT_EQ(two(ScalarOp::div, 5, 2), 2.5);
  EXPECT_EQ(two(ScalarOp::pow, 5, 2), 25);
  EXPECT_EQ(two(ScalarOp::min, 5, 2), 2);
  EXPECT_EQ(two(ScalarOp::max, 5, 2), 5);
  for (ScalarOp op : {ScalarOp::min, ScalarOp::max}) {
    EXPECT_TRUE(std::isnan(two(op, nan, 1)));
    EXPECT_TRUE(std::isnan(two(op, 1, nan)));
  }
  const struct {
    ScalarOp op;
    double less, same, more;  // for (1, 2), (2, 2), (3, 2)
  } comparisons[] = {{ScalarOp::lt, 1, 0, 0}, {ScalarOp::le, 1, 1, 0}, {ScalarOp::gt, 0, 0, 1},
                     {ScalarOp::ge, 0, 1, 1}, {ScalarOp::eq, 0, 1, 0}, {ScalarOp::ne, 1, 0, 1}};
  for (const auto& c : comparisons) {
    EXPECT_EQ(two(c.op, 1, 2), c.less) << info(c.op).name;
    EXPECT_EQ(two(c.op, 2, 2), c.same) << info(c.op).name;
    EXPECT_EQ(two(c.op, 3, 2), c.more) << info(c.op).name;
    EXPECT_EQ(two(c.op, nan, 2), c.op == ScalarOp::ne) << info(c.op).name;
  }
  EXPECT_EQ(two(ScalarOp::logical_and, 2, 0), 0);
  EXPECT_EQ(two(ScalarOp::logical_and, 2, 3), 1);
  EXPECT_EQ(two(ScalarOp::logical_or, 2, 0), 1);
  EXPECT_EQ(two(ScalarOp::logical_or, 0, 0), 0);
  EXPECT_EQ(evaluated(Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::gt, x, y), x, y), 5, 2), 5);
  EXPECT_EQ(evaluated(Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::gt, x, y), x, y), 2, 5), 5);
  EXPECT_EQ(evaluated((x + 1.0) * (y - 2.0) / 4.0, 3, 10), 8);
  EXPECT_EQ(evaluated(x, 2.9, 0, DType::i64), 2);
  EXPECT_EQ(evaluated(x, -2.9, 0, DType::i64), -2);
  EXPECT_EQ(evaluated(x, 0.5, 0, DType::boolean), 1);
}

TEST(InterpretTest, IndexAndRandomLeavesKnowTheirPlace) {
  const Op index{.kind = OpKind::map,
                 .shape = {3, 2},
                 .axes = {{"a", 2}, {"b", 3}},
                 .write = plain({1, 0}),
                 .expr = Ex::index(0) * 10.0 + Ex::index(1),
                 .compute = DType::f64};
  EXPECT_EQ(run(graph_of({}, index), {}), (Values{0, 10, 1, 11, 2, 12}));
  Op uniform{.kind = OpKind::map,
             .shape = {2, 2},
             .axes = {{"a", 2}, {"b", 2}},
             .write = plain({1, 0}),
             .expr = Ex::random(ScalarOp::uniform, 5, 6),
             .compute = DType::f64};
  Values numbers(4);
  random::fill_uniform(5, 6, 0, 4, numbers.data());
  EXPECT_EQ(run(graph_of({}, uniform), {}), numbers);
  uniform.expr = Ex::random(ScalarOp::normal, 5, 6);
  random::fill_normal(5, 6, 0, 4, numbers.data());
  EXPECT_EQ(run(graph_of({}, uniform), {}), numbers);
  uniform.expr = Ex::random_of_run(ScalarOp::normal, 4);
  EXPECT_EQ(Interpreter<>::run(graph_of({}, uniform), {}, {.seed = 5, .stream = 2})[0], numbers);
  random::fill_normal(0, 4, 0, 4, numbers.data());
  EXPECT_EQ(run(graph_of({}, uniform), {}), numbers);
  uniform.expr = Ex::random_at(uniform.expr.steps.back(), Ex::index(1) * 2.0 + Ex::index(0) + 3.0);
  random::fill_normal(0, 4, 3, 4, numbers.data());
  EXPECT_EQ(run(graph_of({}, uniform), {}), numbers);
}

TEST(InterpretTest, ConcatJoinsAlongOneDimension) {
  EXPECT_EQ(run(graph_of({{2, 1}, {2, 2}}, {.kind = OpKind::concat, .shape = {2, 3}, .dim = 1}),
                {{1, 2}, {3, 4, 5, 6}}),
            (Values{1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(run(graph_of({{1, 2}, {0, 2}, {1, 2}}, {.kind = OpKind::concat, .shape = {2, 2}}),
                {{1, 2}, {}, {3, 4}}),
            (Values{1, 2, 3, 4}));
}

TEST(InterpretTest, ValuesAreUsedAnyNumberOfTimes) {
  Graph graph = graph_of({{2}}, {.kind = OpKind::map,
                                 .shape = {2},
                                 .axes = {{"a", 2}},
                                 .reads = {plain({0})},
                                 .write = plain({0}),
                                 .expr = Ex::input(0) * 2.0,
                                 .compute = DType::f64});
  graph.ops.push_back({.kind = OpKind::contract,
                       .dtype = DType::f64,
                       .inputs = {1, 1, 0},
                       .axes = {{"a", 2}},
                       .reads = {plain({0}), plain({0}), plain({0})}});
  graph.outputs = {2, 1, 0, 2};
  verify(graph);
  const std::vector<Values> results = Interpreter<>::run(graph, {{1, 3}});
  EXPECT_EQ(results, (std::vector<Values>{{4 + 108}, {2, 6}, {1, 3}, {4 + 108}}));
}

}  // namespace
}  // namespace ein
