// The first position of an element of a row: how argmax and argmin find it.
#include "cpu/first_equal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <ein/call.hpp>
#include <ein/ein.hpp>
#include "nest/first_found.hpp"
#include "passes/lower.hpp"
#include "support/one_op.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16,   DType::f16, DType::i8,
                            DType::i16, DType::i32, DType::i64,    DType::u8,  DType::u16,
                            DType::u32, DType::u64, DType::boolean};

/// A number of few, so that equal ones are near: zeros of both signs, the ends of the dtype, and
/// now and then NaN.
double some_value(std::mt19937_64& random, DType dtype, bool may_be_nan) {
  if (dtype == DType::boolean) return static_cast<double>(random() % 2);
  if (!is_floating(dtype)) return static_cast<double>(random() % 4);
  constexpr double values[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, 3.5};
  if (may_be_nan && random() % 50 == 0) return random() % 2 == 0 ? NAN : -NAN;
  return values[random() % std::size(values)];
}

/// A length around those of blocks and groups, or any.
std::int64_t some_length(std::mt19937_64& random) {
  constexpr std::int64_t borders[] = {16, 32, 64, 128, 256, 512, 1024, 4096};
  if (random() % 2 == 0) return borders[random() % std::size(borders)] - 1 + random() % 3;
  return 1 + static_cast<std::int64_t>(random() % 700);
}

TEST(FirstEqual, IsThatOfAPlainLoop) {
  test::for_seeds(400, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const DType dtype = dtypes[random() % std::size(dtypes)];
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 4),
                       length = some_length(random), step = length + random() % 3;
    // One value in a hundred is looked for, so that blocks are passed.
    const Tensor x = full({rows, step}, 2.0, dtype), values = zeros({rows}, dtype);
    std::vector<double> elements(static_cast<std::size_t>(rows * step), 2.0), wanted;
    const unsigned rare = random() % 2 == 0 ? 2 : 100;
    for (double& element : elements) {
      if (random() % rare == 0) element = some_value(random, dtype, true);
    }
    for (std::int64_t r = 0; r < rows; ++r) wanted.push_back(some_value(random, dtype, true));
    test::set_values(x, elements);
    test::set_values(values, wanted);
    elements = test::get_values(x);
    wanted = test::get_values(values);
    std::vector<std::int64_t> places(static_cast<std::size_t>(rows));
    ASSERT_TRUE(host::finds_first_equal(dtype));
    host::first_equal({static_cast<const std::byte*>(x.raw_data()),
                       static_cast<const std::byte*>(values.raw_data()), step, 1, rows, length},
                      dtype, places.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t first = 0;
      const auto is_hit = [&](double e) {
        return e == wanted[static_cast<std::size_t>(r)] || std::isnan(e);
      };
      while (first < length && !is_hit(elements[static_cast<std::size_t>(r * step + first)]))
        ++first;
      ASSERT_EQ(places[static_cast<std::size_t>(r)], first)
          << name(dtype) << ", row " << r << " of " << length;
    }
  });
}

// 2^53 + 1 and its neighbours are one number in f64.
TEST(FirstEqual, IntegersOf64BitsAreExact) {
  constexpr std::int64_t large = std::int64_t{1} << 53;
  std::vector<std::int64_t> x(100, large);
  for (std::size_t at = 0; at < x.size(); ++at) {
    std::vector<std::int64_t> row = x;
    row[at] = large + 1;
    const std::int64_t value = large + 1;
    std::int64_t place = -1;
    host::first_equal({reinterpret_cast<const std::byte*>(row.data()),
                       reinterpret_cast<const std::byte*>(&value), 100, 0, 1, 100},
                      DType::i64, &place);
    EXPECT_EQ(place, static_cast<std::int64_t>(at));
  }
}

TEST(FirstEqual, PositionsOfExtremes) {
  test::for_seeds(150, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const DType dtype = dtypes[random() % std::size(dtypes)];
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 40),
                       length = random() % 40 == 0 ? 70'000 : some_length(random),
                       step = 1 + static_cast<std::int64_t>(random() % 8 == 0);
    std::vector<double> elements(static_cast<std::size_t>(rows * length * step));
    const bool may_be_nan = random() % 2 == 0;
    for (double& element : elements) element = some_value(random, dtype, may_be_nan);
    const Tensor all = zeros({rows, length * step}, dtype);
    test::set_values(all, elements);
    const Tensor x = all.at({slice(0, rows), slice(0, length * step, step)});
    const std::vector<double> in = test::get_values(x);
    std::vector<double> greatest, least;
    for (std::int64_t r = 0; r < rows; ++r) {
      const double* const row = in.data() + r * length;
      const double* const nan = std::find_if(row, row + length, [](double e) { return e != e; });
      const bool has_nan = nan != row + length;
      greatest.push_back(
          static_cast<double>((has_nan ? nan : std::max_element(row, row + length)) - row));
      least.push_back(
          static_cast<double>((has_nan ? nan : std::min_element(row, row + length)) - row));
    }
    SCOPED_TRACE(std::string(name(dtype)) + " " + x.shape().to_string());
    ASSERT_EQ(test::get_values(argmax(x, "a [b]")), greatest);
    ASSERT_EQ(test::get_values(argmin(x, "a [b]")), least);
  });
}

/// The least position of each of 3 rows of 100 elements where x is the row's value, or NaN; or
/// `otherwise`.
Graph least_positions(DType dtype, DType compute, double otherwise) {
  const Ex x = Ex::input(0), value = Ex::input(1);
  const Ex is_it = Ex::apply(ScalarOp::logical_or, Ex::apply(ScalarOp::eq, x, value),
                             Ex::apply(ScalarOp::ne, x, x));
  const std::vector<Axis> axes{{"a", 3}, {"b", 100}};
  const Ex none =
      is_floating(compute) ? Ex(otherwise) : Ex::integer(static_cast<std::int64_t>(otherwise));
  Graph graph = test::graph_of({{dtype, {3, 100}}, {dtype, {3}}},
                               {.kind = OpKind::map,
                                .dtype = compute,
                                .shape = {3, 100},
                                .axes = axes,
                                .reads = {test::plain({0, 1}), test::plain({0})},
                                .write = test::plain({0, 1}),
                                .expr = where(is_it, Ex::index(1), none).expr(),
                                .compute = compute});
  graph.ops.push_back({.kind = OpKind::reduce,
                       .dtype = compute,
                       .shape = {3},
                       .inputs = {2},
                       .axes = axes,
                       .reads = {test::plain({0, 1})},
                       .write = test::plain({0}),
                       .combine = Combine::min});
  graph.outputs = {3};
  verify(graph);
  return graph;
}

// As argmax has it, but for a number that is less than positions, or elements that are compared in
// another type: 2^53 + 1 is 2^53 in f64.
TEST(FirstEqual, OtherMinimaOfPositions) {
  constexpr std::pair<DType, DType> types[] = {{DType::f32, DType::f64}, {DType::f64, DType::f64},
                                               {DType::i64, DType::i64}, {DType::u8, DType::i64},
                                               {DType::i64, DType::f64}, {DType::f64, DType::f32}};
  constexpr double large = 9007199254740992.0;
  for (const auto& [dtype, compute] : types) {
    for (const double otherwise : {3.0, 50.0, 99.0, 100.0, 200.0}) {
      const Graph graph = least_positions(dtype, compute, otherwise);
      const Tensor x = zeros({3, 100}, dtype), values = ones({3}, dtype);
      x.at({0, 5}).fill(1);
      x.at({1, 77}).fill(1);
      const std::vector<double> want = {std::min(5.0, otherwise), std::min(77.0, otherwise),
                                        otherwise};
      EXPECT_EQ(test::get_values(test::run_kernels(graph, {x, values})), want)
          << name(dtype) << " in " << name(compute) << ", otherwise " << otherwise;
    }
  }
  const Tensor x = zeros({3, 100}, DType::i64),
               values = full({3}, static_cast<std::int64_t>(large) + 1, DType::i64);
  x.at({0, 7}).fill(static_cast<std::int64_t>(large));
  EXPECT_EQ(test::get_values(
                test::run_kernels(least_positions(DType::i64, DType::f64, 100), {x, values})),
            (std::vector<double>{7, 100, 100}));
}

/// The reductions of argmax and argmin are what kernels look for.
TEST(FirstEqual, NestsOfArgmaxAreFound) {
  for (const Operation op : {Operation::argmax, Operation::argmin}) {
    for (const DType dtype : dtypes) {
      CallOptions options;
      options.dtype = dtype;
      const Graph graph = graph_of(op, runtime("a [b]"), {{3, 5}}, options);
      const InputLayout layout{contiguous_strides(Shape{3, 5}), 0};
      const Program program = lower(graph, {&layout, 1});
      EXPECT_TRUE(std::any_of(program.nests.begin(), program.nests.end(), [](const LoopNest& nest) {
        return first_found(nest.body, nest.combine).has_value();
      })) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace ein
