// argsort: the places of values in order, stable, NaN the greatest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <stdexcept>

#include <ein/cost.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "passes/lower.hpp"
#include "support/one_op.hpp"

namespace ein {
namespace {

using test::computed;
using test::graph_of;
using test::interpreted;
using test::plain;
using test::Values;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Graph argsort_of(const Shape& shape, int axis, bool reverse = false, DType dtype = DType::f32) {
  Op op{.kind = OpKind::argsort,
        .dtype = DType::i64,
        .shape = shape,
        .axis = axis,
        .reverse = reverse};
  std::vector<int> dims;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    dims.push_back(static_cast<int>(d));
    op.axes.push_back({std::string(1, static_cast<char>('a' + d)), shape[d]});
  }
  op.reads = {plain(dims)};
  op.write = plain(dims);
  return graph_of({{dtype, shape}}, op);
}

void expect(const Graph& graph, const Values& x, const Values& want) {
  EXPECT_EQ(interpreted(graph, {x}), want) << to_string(graph);
  EXPECT_EQ(computed(graph, {x}), want) << to_string(graph);
}

TEST(SortTest, ByHand) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32}) {
    expect(argsort_of({4}, 0, false, dtype), {3, -1, 2, -1}, {1, 3, 2, 0});
    expect(argsort_of({4}, 0, true, dtype), {3, -1, 2, -1}, {0, 2, 1, 3});
    expect(argsort_of({2, 3}, 0, false, dtype), {1, 5, 3, 0, 9, 3}, {1, 0, 0, 0, 1, 1});
    expect(argsort_of({2, 3}, 1, true, dtype), {1, 5, 3, 0, 9, 3}, {1, 2, 0, 1, 2, 0});
  }
  expect(argsort_of({4}, 0, false, DType::boolean), {1, 0, 1, 0}, {1, 3, 0, 2});
  expect(argsort_of({3}, 0, false, DType::u8), {200, 100, 255}, {1, 0, 2});
  expect(argsort_of({3, 1}, 1), {3, 1, 2}, {0, 0, 0});
  expect(argsort_of({0}, 0), {}, {});
  expect(argsort_of({3, 0}, 0), {}, {});
  expect(argsort_of({0, 3}, 0), {}, {});
}

TEST(SortTest, NanZerosAndInfinities) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e5m2}) {
    expect(argsort_of({8}, 0, false, dtype), {nan, 1, inf, 0, -0.0, -inf, -nan, -1},
           {5, 7, 3, 4, 1, 2, 0, 6});
    expect(argsort_of({8}, 0, true, dtype), {nan, 1, inf, -0.0, 0, -inf, -nan, -1},
           {0, 6, 2, 1, 3, 4, 7, 5});
  }
}

TEST(SortTest, TheWholeRangeOfIntegers) {
  const Tensor x = test::make_tensor(Values(5), {5}, DType::i64);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                     most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t values[] = {0, most, least, most - 1, least + 1};
  std::copy_n(values, 5, static_cast<std::int64_t*>(x.raw_data()));
  EXPECT_EQ(test::get_values(test::run_kernels(argsort_of({5}, 0, false, DType::i64), {x})),
            (Values{2, 4, 0, 3, 1}));
  EXPECT_EQ(test::get_values(test::run_kernels(argsort_of({5}, 0, true, DType::i64), {x})),
            (Values{1, 3, 0, 4, 2}));
}

TEST(SortTest, TextAndCost) {
  const Graph graph = argsort_of({4, 10}, 1, true);
  EXPECT_NE(
      to_string(graph).find("%1 = argsort %0 along b, descending  \"a b -> a b\"  : i64 (4, 10)"),
      std::string::npos)
      << to_string(graph);
  const InputLayout layout{{10, 1}, 0};
  const Program program = lower(graph, {&layout, 1});
  ASSERT_EQ(program.nests.size(), 1u);
  EXPECT_EQ(to_string(program.nests[0]),
            "for a in 0..4\n"
            "  sort b in 10..0\n"
            "    x0 = b0[10·a + b]  : f32\n"
            "    b1[10·a + b] = place of x0  : i64 in f32\n");
  for (const Cost& c : {cost(graph), cost(program)}) {
    EXPECT_EQ(c.compare, Count(4 * 10 * 4));
    EXPECT_EQ(c.strict(), Count(4 * 10 * 4));
    EXPECT_EQ(c.model, Count(4 * 10 * 4));
    EXPECT_EQ(c.bytes_read, Count(160));
    EXPECT_EQ(c.bytes_written, Count(320));
  }
  EXPECT_EQ(cost_formula(graph).compare.to_string(), "4·a·b");
  const std::pair<std::int64_t, int> rounds[] = {{0, 0}, {1, 0}, {2, 1}, {3, 2},
                                                 {4, 2}, {5, 3}, {8, 3}, {9, 4}};
  for (const auto& [size, each] : rounds)
    EXPECT_EQ(cost(argsort_of({size}, 0)).compare, Count(size * each)) << size;
}

TEST(SortTest, VerifyFindsWhatIsWrong) {
  Graph graph = argsort_of({2, 3}, 1);
  graph.ops.back().dtype = DType::i32;
  EXPECT_THROW(verify(graph), std::logic_error);
  graph = argsort_of({2, 3}, 1);
  graph.ops.back().axis = 2;
  EXPECT_THROW(verify(graph), std::logic_error);
}

TEST(SortTest, RandomSortsAgreeWithTheInterpreter) {
  constexpr std::uint64_t seed = 20250401;
  std::cout << "seed " << seed << "\n";
  const std::int64_t some_sizes[] = {1, 2, 3, 5, 8, 33, 70, 600, 5000};
  std::size_t compared = 0;
  for (std::uint64_t i = 0; i < 600 && !HasFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    const auto below = [&](std::int64_t n) {
      return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
    };
    Op op{.kind = OpKind::argsort, .dtype = DType::i64, .reverse = below(2) == 0};
    std::int64_t points = 1;
    std::vector<int> order;
    for (std::int64_t a = 1 + below(4); a > 0; --a) {
      std::int64_t size = below(30) == 0 ? 0 : some_sizes[below(9)];
      if (points * size > 10'000) size = 1 + below(2);
      points *= std::max<std::int64_t>(1, size);
      order.push_back(static_cast<int>(op.axes.size()));
      op.axes.push_back({std::string(1, static_cast<char>('a' + op.axes.size())), size});
    }
    op.axis = static_cast<int>(below(static_cast<std::int64_t>(op.axes.size())));
    const auto shape_of = [&](const std::vector<int>& list) {
      Shape shape;
      for (int a : list) shape.push_back(op.axes[static_cast<std::size_t>(a)].size);
      return shape;
    };
    op.write = plain(order);
    op.shape = shape_of(order);
    std::shuffle(order.begin(), order.end(), random);
    op.reads = {plain(order)};
    const DType dtype = real_dtypes[below(std::size(real_dtypes))];
    const Graph graph = graph_of({{dtype, shape_of(order)}}, op);
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + to_string(graph));
    Values x(static_cast<std::size_t>(numel(op.shape)));
    const std::int64_t range = 1 + below(below(2) == 0 ? 4 : 1000);  // with many equal ones, or few
    for (double& v : x) {
      v = static_cast<double>(below(2 * range + 1) - range);
      if (is_floating(dtype) && below(20) == 0) v = nan;
      v = is_integral(dtype) ? test::stored(std::abs(v), dtype) : test::stored(v, dtype);
    }
    const std::vector<Tensor> tensors{test::scattered(x, shape_of(order), dtype, random)};
    const Values want = interpreted(graph, {x});
    set_num_threads(1);
    ASSERT_EQ(test::get_values(test::run_kernels(graph, tensors)), want);
    set_num_threads(3);
    ASSERT_EQ(test::get_values(test::run_kernels(graph, tensors)), want);
    compared += want.size();
    const InputLayout layout = engine::layout_of(tensors[0]);
    EXPECT_EQ(cost(graph).compare, cost(lower(graph, {&layout, 1})).compare);
  }
  EXPECT_GT(compared, 100'000u);
}

}  // namespace
}  // namespace ein
