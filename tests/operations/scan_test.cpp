// scan: cumulative sums, products, maxima and minima.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>
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

Graph scan_of(const Shape& shape, int axis, Combine combine, bool reverse = false,
              DType from = DType::f32, DType to = DType::f32) {
  Op op{.kind = OpKind::scan,
        .dtype = to,
        .shape = shape,
        .combine = combine,
        .axis = axis,
        .reverse = reverse};
  std::vector<int> dims;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    dims.push_back(static_cast<int>(d));
    op.axes.push_back({std::string(1, static_cast<char>('a' + d)), shape[d]});
  }
  op.reads = {plain(dims)};
  op.write = plain(dims);
  return graph_of({{from, shape}}, op);
}

TEST(ScanTest, ByHand) {
  const auto expect = [](const Graph& graph, const Values& x, const Values& want) {
    EXPECT_EQ(interpreted(graph, {x}), want) << to_string(graph);
    EXPECT_EQ(computed(graph, {x}), want) << to_string(graph);
  };
  const Values x{1, 2, 3, 4, 5, 6};
  expect(scan_of({2, 3}, 1, Combine::sum), x, {1, 3, 6, 4, 9, 15});
  expect(scan_of({2, 3}, 1, Combine::sum, true), x, {6, 5, 3, 15, 11, 6});
  expect(scan_of({2, 3}, 0, Combine::sum), x, {1, 2, 3, 5, 7, 9});
  expect(scan_of({2, 3}, 0, Combine::sum, true), x, {5, 7, 9, 4, 5, 6});
  expect(scan_of({6}, 0, Combine::prod), x, {1, 2, 6, 24, 120, 720});
  expect(scan_of({5}, 0, Combine::max), {2, 1, 3, -1, 3}, {2, 2, 3, 3, 3});
  expect(scan_of({5}, 0, Combine::min, true), {2, 1, 3, -1, 3}, {-1, -1, -1, -1, 3});
  expect(scan_of({1}, 0, Combine::sum), {7}, {7});
  expect(scan_of({3, 1}, 1, Combine::sum), {7, 8, 9}, {7, 8, 9});
  expect(scan_of({0}, 0, Combine::sum), {}, {});
  expect(scan_of({2, 0}, 1, Combine::max), {}, {});
  expect(scan_of({0, 2}, 1, Combine::prod), {}, {});
  expect(scan_of({3}, 0, Combine::sum), {1, inf, 2}, {1, inf, inf});
}

/// y_i = f_i · y_{i-1} + x_i, of x and f.
Graph recurrence_of(const Shape& shape, int axis, bool reverse = false, DType dtype = DType::f32) {
  Op op = scan_of(shape, axis, Combine::sum, reverse, dtype, dtype).ops.back();
  op.inputs.clear();
  op.reads.push_back(op.reads[0]);
  return graph_of({{dtype, shape}, {dtype, shape}}, op);
}

TEST(ScanTest, WithFactorsByHand) {
  const auto expect = [](const Graph& graph, const Values& x, const Values& f, const Values& want) {
    EXPECT_EQ(interpreted(graph, {x, f}), want) << to_string(graph);
    EXPECT_EQ(computed(graph, {x, f}), want) << to_string(graph);
  };
  const Values x{1, 2, 3, 4, 5, 6}, f{nan, 2, -1, inf, 0, 3};  // the first is of no result
  expect(recurrence_of({2, 3}, 1), x, f, {1, 4, -1, 4, 5, 21});
  expect(recurrence_of({2, 3}, 0), x, {nan, nan, nan, 2, 0, -1}, {1, 2, 3, 6, 5, 3});
  expect(recurrence_of({3}, 0, true), {1, 2, 3}, {10, 100, nan}, {3021, 302, 3});
  expect(recurrence_of({1}, 0), {7}, {nan}, {7});
  expect(recurrence_of({2, 0}, 1), {}, {}, {});
}

TEST(ScanTest, WithFactorsOfLongLinesAndColumns) {
  // Halves of what was before, and 1 more: 2 - 2^-i.
  for (const Shape& shape : {Shape{5000}, Shape{3, 3000}, Shape{3000, 3}, Shape{70, 40, 2}}) {
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const auto n = static_cast<std::size_t>(numel(shape));
      for (const bool reverse : {false, true}) {
        const Graph graph = recurrence_of(shape, static_cast<int>(axis), reverse, DType::f64);
        const std::vector<Values> inputs{Values(n, 1), Values(n, 0.5)};
        EXPECT_EQ(computed(graph, inputs), interpreted(graph, inputs)) << to_string(graph);
      }
    }
  }
}

TEST(ScanTest, WithFactorsTextAndCost) {
  const Graph graph = recurrence_of({4, 10}, 1);
  EXPECT_NE(to_string(graph).find("scan sum %0, %1 along b"), std::string::npos);
  const InputLayout layouts[] = {{{10, 1}, 0}, {{10, 1}, 0}};
  const Program program = lower(graph, layouts);
  EXPECT_NE(to_string(program.nests[0]).find("sum x0 with factors x1"), std::string::npos)
      << to_string(program.nests[0]);
  for (const Cost& c : {cost(graph), cost(program)}) {
    EXPECT_EQ(c.add, Count(36));
    EXPECT_EQ(c.mul, Count(36));
    EXPECT_EQ(c.bytes_read, Count(320));
  }
  const auto broken = [&](auto&& change) {
    Graph other = graph;
    change(other.ops.back());
    EXPECT_THROW(verify(other), std::logic_error);
  };
  broken([](Op& op) { op.combine = Combine::prod; });
  broken([](Op& op) { op.inputs.push_back(0), op.reads.push_back(op.reads[0]); });
}

TEST(ScanTest, NanStays) {
  for (Combine combine : {Combine::sum, Combine::prod, Combine::max, Combine::min}) {
    for (const Values& y : {interpreted(scan_of({4}, 0, combine), {{1, 2, nan, 4}}),
                            computed(scan_of({4}, 0, combine), {{1, 2, nan, 4}})}) {
      EXPECT_FALSE(std::isnan(y[1])) << name(combine);
      EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3])) << name(combine);
    }
  }
}

TEST(ScanTest, SumsAreKeptInWiderNumbers) {
  // In bf16, 256 + 1 is 256; in f32, 2^24 + 1 is 2^24.
  const Values ones(1024, 1);
  EXPECT_EQ(
      computed(scan_of({1024}, 0, Combine::sum, false, DType::bf16, DType::bf16), {ones}).back(),
      1024);
  Values x(4097, 1);
  x[0] = 1 << 24;
  EXPECT_EQ(computed(scan_of({4097}, 0, Combine::sum), {x}).back(), (1 << 24) + 4096);
  EXPECT_EQ(computed(scan_of({4097, 3}, 0, Combine::sum), {Values(4097 * 3, 1)}).back(), 4097);
  // Integers and truth values count in i64.
  EXPECT_EQ(computed(scan_of({3}, 0, Combine::sum, false, DType::i32, DType::i64),
                     {{2147483647, 2147483647, 1}})
                .back(),
            4294967295.0);
  EXPECT_EQ(
      computed(scan_of({4}, 0, Combine::sum, false, DType::boolean, DType::i64), {{1, 0, 1, 1}}),
      (Values{1, 1, 2, 3}));
}

TEST(ScanTest, TextAndCost) {
  const Graph graph = scan_of({4, 10}, 1, Combine::sum, true);
  EXPECT_NE(to_string(graph).find(
                "%1 = scan sum %0 along b, from the end  \"a b -> a b\"  : f32 (4, 10)"),
            std::string::npos)
      << to_string(graph);
  const InputLayout layout{{10, 1}, 0};
  const Program program = lower(graph, {&layout, 1});
  ASSERT_EQ(program.nests.size(), 1u);
  EXPECT_EQ(to_string(program.nests[0]),
            "for a in 0..4\n"
            "  scan b in 10..0\n"
            "    x0 = b0[10·a + b]  : f32\n"
            "    b1[10·a + b] = sum x0  : f32 in f32\n");
  for (const Cost& c : {cost(graph), cost(program)}) {
    EXPECT_EQ(c.add, Count(36));
    EXPECT_EQ(c.strict(), Count(36));
    EXPECT_EQ(c.model, Count(40));
    EXPECT_EQ(c.bytes_read, Count(160));
    EXPECT_EQ(c.bytes_written, Count(160));
  }
  EXPECT_EQ(cost_formula(graph).add.to_string(), "a·b - a");
  EXPECT_EQ(cost(scan_of({4, 10}, 0, Combine::max)).compare, Count(30));
  EXPECT_EQ(cost(scan_of({4, 0}, 1, Combine::sum)).strict(), Count(0));
}

TEST(ScanTest, VerifyFindsWhatIsWrong) {
  const Graph good = scan_of({2, 3}, 1, Combine::sum);
  const auto broken = [&](auto&& change) {
    Graph graph = good;
    change(graph.ops.back());
    EXPECT_THROW(verify(graph), std::logic_error);
  };
  broken([](Op& op) { op.axis = 2; });
  broken([](Op& op) { op.axis = -1; });
  broken([](Op& op) { op.combine = Combine::any; });
  broken([](Op& op) { op.combine = Combine::all; });
  broken([](Op& op) { op.write = {{0, {{0, 1}}}, {}}; });
}

TEST(ScanTest, RandomScansAgreeWithTheInterpreter) {
  constexpr std::uint64_t seed = 20250309;
  std::cout << "seed " << seed << "\n";
  const std::int64_t some_sizes[] = {1, 2, 3, 5, 8, 33, 70, 600, 1500, 2100};
  std::size_t compared = 0;
  for (std::uint64_t i = 0; i < 1000 && !HasFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    const auto below = [&](std::int64_t n) {
      return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
    };
    Op op{.kind = OpKind::scan,
          .dtype = real_dtypes[below(std::size(real_dtypes))],
          .reverse = below(2) == 0};
    std::int64_t points = 1;
    std::vector<int> order;
    for (std::int64_t a = 1 + below(4); a > 0; --a) {
      std::int64_t size = below(30) == 0 ? 0 : some_sizes[below(10)];
      if (points * size > 10'000) size = 1 + below(2);
      points *= std::max<std::int64_t>(1, size);
      order.push_back(static_cast<int>(op.axes.size()));
      op.axes.push_back({std::string(1, static_cast<char>('a' + op.axes.size())), size});
    }
    op.axis = static_cast<int>(below(static_cast<std::int64_t>(op.axes.size())));
    const Combine combines[] = {Combine::sum, Combine::prod, Combine::max, Combine::min};
    op.combine = combines[below(4)];
    const auto shape_of = [&](const std::vector<int>& list) {
      Shape shape;
      for (int a : list) shape.push_back(op.axes[static_cast<std::size_t>(a)].size);
      return shape;
    };
    op.write = plain(order);
    op.shape = shape_of(order);
    std::shuffle(order.begin(), order.end(), random);
    if (below(4) == 0) order.pop_back();  // the same along that axis
    op.reads = {plain(order)};
    const Graph graph = graph_of({{op.dtype, shape_of(order)}}, op);
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + to_string(graph));
    Values x(static_cast<std::size_t>(numel(shape_of(order))));
    // Sums and products that every dtype but the smallest holds exactly.
    for (double& v : x) {
      v = static_cast<double>(below(op.combine == Combine::sum ? 2 : 5));
      if (op.combine == Combine::prod)
        v = below(20) == 0 ? 0 : 1 + static_cast<double>(below(200) == 0);
    }
    if (op.dtype == DType::boolean) {
      for (double& v : x) v = v != 0;
    }
    const std::vector<Tensor> tensors{test::scattered(x, shape_of(order), op.dtype, random)};
    Values want = interpreted(graph, {x});
    for (double& v : want) v = test::stored(v, op.dtype);
    set_num_threads(1);
    ASSERT_EQ(test::get_values(test::run_kernels(graph, tensors)), want);
    set_num_threads(3);
    ASSERT_EQ(test::get_values(test::run_kernels(graph, tensors)), want);
    compared += want.size();
    const InputLayout layout = engine::layout_of(tensors[0]);
    const Cost of_graph = cost(graph), of_nests = cost(lower(graph, {&layout, 1}));
    EXPECT_EQ(of_graph.strict(), of_nests.strict());
    EXPECT_EQ(of_graph.model, of_nests.model);
  }
  EXPECT_GT(compared, 100'000u);
}

}  // namespace
}  // namespace ein
