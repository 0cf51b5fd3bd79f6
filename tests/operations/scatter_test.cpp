// scatter_prod, scatter_max and scatter_min: gradients are those of PyTorch's scatter_reduce (2.15)
// into what they begin with.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

void expect_same(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << i << ": " << got[i] << ", " << want[i];
  }
}

TEST(Scatter, Values) {
  const Tensor x = make_tensor({1, 5, 5, 2, nan, 0}, {6}),
               at = from_vector<std::int64_t>({0, 1, 1, 0, 2, 3}, {6});
  expect_same(get_values(scatter_max(x, at, "n, n -> [v]", "v"_a = 5)), {2, 5, nan, 0, -inf});
  expect_same(get_values(scatter_min(x, at, "n, n -> [v]", "v"_a = 5)), {1, 5, nan, 0, inf});
  expect_same(get_values(scatter_prod(x, at, "n, n -> [v]", "v"_a = 5)), {2, 25, nan, 0, 1});
  const Tensor rows = make_tensor({1, 2, 3, 4, 5, 6}, {3, 2}),
               row = from_vector<std::int32_t>({1, 0, 1}, {3});
  EXPECT_EQ(get_values(scatter_max(rows, row, "n d, n -> [v] d", "v"_a = 2)), (Values{3, 4, 5, 6}));
  EXPECT_EQ(get_values(scatter_prod(rows, row, "n d, n -> d [v]", "v"_a = 2)),
            (Values{3, 5, 4, 12}));
  EXPECT_EQ(get_values(scatter_min(rows, row, "n d, n -> [v]", "v"_a = 2)), (Values{3, 1}));
  EXPECT_EQ(get_values(scatter_max(rows, row, "n d, n -> n [2] d")),
            (Values{-inf, -inf, 1, 2, 3, 4, -inf, -inf, -inf, -inf, 5, 6}));
}

TEST(Scatter, WhereNoValueIs) {
  const Tensor at = zeros({1}, DType::i64);
  const auto at_end = [&](const Tensor& x) { return x[1]; };
  EXPECT_EQ(
      at_end(scatter_max(ones({1}, DType::i8), at, "n, n -> [v]", "v"_a = 2)).item<std::int64_t>(),
      -128);
  EXPECT_EQ(
      at_end(scatter_min(ones({1}, DType::i32), at, "n, n -> [v]", "v"_a = 2)).item<std::int64_t>(),
      2147483647);
  EXPECT_EQ(at_end(scatter_min(ones({1}, DType::u64), at, "n, n -> [v]", "v"_a = 2))
                .item<std::uint64_t>(),
            UINT64_MAX);
  EXPECT_EQ(
      at_end(scatter_max(ones({1}, DType::u16), at, "n, n -> [v]", "v"_a = 2)).item<std::int64_t>(),
      0);
  EXPECT_EQ(
      at_end(scatter_max(ones({1}, DType::boolean), at, "n, n -> [v]", "v"_a = 2)).item<bool>(),
      false);
  EXPECT_EQ(
      at_end(scatter_min(ones({1}, DType::boolean), at, "n, n -> [v]", "v"_a = 2)).item<bool>(),
      true);
  EXPECT_EQ(
      at_end(scatter_max(ones({1}, DType::f8e4m3), at, "n, n -> [v]", "v"_a = 2)).item<float>(),
      -448);
  EXPECT_EQ(
      at_end(scatter_prod(ones({1}, DType::i8), at, "n, n -> [v]", "v"_a = 2)).item<std::int64_t>(),
      1);
}

TEST(Scatter, PositionsOutside) {
  const Tensor at = full({2}, 3, DType::i64);
  test::expect_error([&] { scatter_max(ones({2}), at, "n, n -> [v]", "v"_a = 3); },
                     ErrorKind::value, {"scatter_max", "position 3"});
  test::expect_error([&] { scatter_prod(ones({2}), at, "n, n -> [v]", "v"_a = 3); },
                     ErrorKind::value, {"scatter_prod", "position 3"});
}

/// In a compiled function, too, where each value has a line for itself; where a gather has checked
/// the positions, a map takes the scatter's place.
TEST(Scatter, PositionsOutsideOfCompiledCalls) {
  const Tensor x = ones({2}), inside = from_vector<std::int64_t>({0, 2}, {2}),
               outside = from_vector<std::int64_t>({0, 3}, {2});
  const auto in_lines = [](const Tensor& x, const Tensor& at) {
    return scatter_add(x, at, "n, n -> n [v]", "v"_a = 3);
  };
  const auto expect_error = [&](const auto& call) {
    test::expect_error([&] { get_values(call()); }, ErrorKind::value, {"position 3"});
  };
  auto lines = compile(in_lines);
  EXPECT_EQ(get_values(lines(x, inside)), (Values{1, 0, 0, 0, 0, 1}));
  expect_error([&] { return lines(x, outside); });

  // A gather that turns out not to be needed checks nothing.
  auto of_parts = compile([&](const Tensor& x, const Tensor& at) {
    const std::vector<Tensor> parts{gather(ones({3}), at, "[v], n -> n"), x};
    return rearrange(parts, "k n -> k n")[1] + reduce(in_lines(x, at), "n v -> n", "sum");
  });
  EXPECT_EQ(get_values(of_parts(x, inside)), (Values{2, 2}));
  expect_error([&] { return of_parts(x, outside); });

  const Tensor table = ones({2, 3});
  table.requires_grad(true);
  auto slope = compile([&](const Tensor& at) {
    const Tensor picked = reduce(gather(table, at, "n [v], n -> n"), "n ->", "sum");
    return std::vector<Tensor>{picked, gradients(picked, std::vector<Tensor>{table}).front()};
  });
  EXPECT_EQ(get_values(slope(inside)[1]), (Values{1, 0, 0, 0, 0, 1}));
  expect_error([&] { return slope(outside)[1]; });
}

/// What a compiled function was to overwrite is as it was after an error.
TEST(Scatter, StateStaysWhereAPositionIsOutside) {
  const Tensor x = ones({2}), table = ones({3}), outside = from_vector<std::int64_t>({0, 3}, {2});
  const auto expect_whole = [&](const Shape& shape, auto f) {
    const Tensor state = full(shape, 9.0);
    auto step = compile([&](const Tensor& at) {
      state.copy_from(f(at));
      return gather(table, at, "[v], n -> n");
    });
    test::expect_error([&] { get_values(step(outside)); }, ErrorKind::value, {"position 3"});
    for (const double value : get_values(state)) EXPECT_EQ(value, 9);
  };
  expect_whole({2}, [&](const Tensor& at) { return gather(table, at, "[v], n -> n"); });
  expect_whole({3}, [&](const Tensor& at) { return scatter_add(x, at, "n, n -> [v]", "v"_a = 3); });
  expect_whole({2, 3},
               [&](const Tensor& at) { return scatter_max(x, at, "n, n -> n [v]", "v"_a = 3); });
}

TEST(Scatter, Gradients) {
  const Tensor at = from_vector<std::int64_t>({0, 1, 1, 0, 2, 3}, {6}),
               weights = make_tensor({1, 2, 0, 4, 0}, {5});
  const auto slope = [&](auto f) {
    const Tensor x = make_tensor({1, 5, 5, 2, 7, 0}, {6});
    x.requires_grad(true);
    return get_values(gradients(f(x), weights, std::vector<Tensor>{x}).front());
  };
  expect_same(slope([&](const Tensor& x) { return scatter_max(x, at, "n, n -> [v]", "v"_a = 5); }),
              {0, 1, 1, 1, 0, 4});
  expect_same(slope([&](const Tensor& x) { return scatter_min(x, at, "n, n -> [v]", "v"_a = 5); }),
              {1, 1, 1, 0, 0, 4});
  expect_same(slope([&](const Tensor& x) { return scatter_prod(x, at, "n, n -> [v]", "v"_a = 5); }),
              {2, 10, 10, 1, 0, 4});
}

TEST(Scatter, GradientsOfProductsWithZeros) {
  const Tensor at = from_vector<std::int64_t>({0, 0, 1, 1, 1, 0}, {6}),
               weights = make_tensor({1, 10, 100}, {3}, DType::f64);
  const auto slope = [&](const Values& values) {
    const Tensor x = make_tensor(values, {6}, DType::f64);
    x.requires_grad(true);
    return get_values(
        gradients(scatter_prod(x, at, "n, n -> [v]", "v"_a = 3), weights, std::vector<Tensor>{x})
            .front());
  };
  expect_same(slope({2, 0, 3, 0, 5, 4}), {0, 8, 0, 150, 0, 0});
  expect_same(slope({2, 0, 3, 0, 0, 4}), {0, 8, 0, 0, 0, 0});
}

}  // namespace
}  // namespace ein
