// Maps that finish contractions, in the contraction's nest: the kernels against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include "support/one_op.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"
#include "tensor/compute_type.hpp"

namespace ein::test {
namespace {

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

/// Axes in any order, as one dimension each.
std::vector<int> shuffled(std::vector<int> axes, Random& random) {
  std::shuffle(axes.begin(), axes.end(), random);
  return axes;
}

struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
};

/// A contraction over random axes, then a map that reads its result and one to three other values.
Case random_case(Random& random, DType dtype, DType result) {
  Graph graph;
  Case c;
  std::vector<Axis> axes;
  std::vector<int> left, right, kept;
  const auto add_axes = [&](std::int64_t most, std::int64_t size, bool in_left, bool in_right,
                            bool is_kept) {
    for (std::int64_t n = below(random, most + 1); n > 0; --n) {
      const int axis = static_cast<int>(axes.size());
      axes.push_back({"i" + std::to_string(axis), 1 + below(random, n == 1 ? size : 9)});
      if (in_left) left.push_back(axis);
      if (in_right) right.push_back(axis);
      if (is_kept) kept.push_back(axis);
    }
  };
  add_axes(1, 4, true, true, true);
  add_axes(2, 50, true, false, true);
  add_axes(2, 40, false, true, true);
  axes.push_back({"k", 1 + below(random, random() % 4 == 0 ? 600 : 30)});
  left.push_back(static_cast<int>(axes.size()) - 1);
  right.push_back(static_cast<int>(axes.size()) - 1);
  left = shuffled(left, random);
  right = shuffled(right, random);
  kept = shuffled(kept, random);
  const auto shape_of = [&](const std::vector<int>& which) {
    Shape shape;
    for (int a : which) shape.push_back(axes[static_cast<std::size_t>(a)].size);
    return shape;
  };
  const auto add_input = [&](const Shape& shape) {
    graph.ops.push_back({.kind = OpKind::input, .dtype = dtype, .shape = shape});
    Values values(static_cast<std::size_t>(numel(shape)));
    for (double& value : values)
      value = stored(is_integral(dtype) ? static_cast<double>(below(random, 9))
                                        : std::normal_distribution<double>()(random),
                     dtype);
    c.inputs.push_back(make_tensor(values, shape, dtype));
    return static_cast<ValueId>(graph.ops.size() - 1);
  };
  const ValueId a = add_input(shape_of(left)), b = add_input(shape_of(right));
  // What the map reads has some of the kept axes; its own axes are the result's dimensions.
  std::vector<ValueId> more;
  std::vector<Access> reads;
  for (std::int64_t n = 1 + below(random, 3); n > 0; --n) {
    std::vector<int> dims;
    for (std::size_t d = 0; d < kept.size(); ++d) {
      if (random() % 4 != 0) dims.push_back(static_cast<int>(d));
    }
    dims = shuffled(dims, random);
    Shape shape;
    for (int d : dims)
      shape.push_back(axes[static_cast<std::size_t>(kept[static_cast<std::size_t>(d)])].size);
    more.push_back(add_input(shape));
    reads.push_back(plain(dims));
  }
  Op contract{.kind = OpKind::contract,
              .dtype = dtype,
              .shape = shape_of(kept),
              .inputs = {a, b},
              .axes = axes};
  contract.reads = {plain(left), plain(right)};
  contract.write = plain(kept);
  graph.ops.push_back(contract);
  const auto product = static_cast<ValueId>(graph.ops.size() - 1);
  Op map{.kind = OpKind::map,
         .dtype = result,
         .shape = shape_of(kept),
         .compute = compute_type(dtype)};
  std::vector<int> dims;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    dims.push_back(static_cast<int>(d));
    map.axes.push_back({"j" + std::to_string(d), map.shape[d]});
  }
  map.write = plain(dims);
  // The product is not always the first that the map reads.
  const std::size_t at =
      static_cast<std::size_t>(below(random, static_cast<std::int64_t>(more.size()) + 1));
  Ex value(1.0);
  for (std::size_t i = 0, m = 0; i <= more.size(); ++i) {
    const Ex x = Ex::input(static_cast<int>(i));
    if (i == at) {
      map.inputs.push_back(product);
      map.reads.push_back(map.write);
      value = value * 2.0 + x;
    } else {
      map.inputs.push_back(more[m]);
      map.reads.push_back(reads[m++]);
      value = random() % 2 ? value - x : value + x * x;
    }
  }
  map.expr = value;
  graph.outputs = {static_cast<ValueId>(graph.ops.size())};
  graph.ops.push_back(std::move(map));
  verify(graph);
  c.graph = std::move(graph);
  return c;
}

TEST(Epilogue, RandomMapsOfContractions) {
  const std::uint64_t seed = 20261121 + test::first_seed();
  std::cout << "seed " << seed << "\n";
  Random random(seed);
  const std::pair<DType, DType> dtypes[] = {{DType::f32, DType::f32},   {DType::f32, DType::bf16},
                                            {DType::f64, DType::f64},   {DType::i64, DType::i64},
                                            {DType::bf16, DType::bf16}, {DType::f16, DType::f32}};
  int fused = 0;
  for (int round = 0; round < static_cast<int>(test::seeds_or(400)); ++round) {
    const auto [dtype, result] = dtypes[round % 6];
    const Case c = random_case(random, dtype, result);
    std::vector<Values> values;
    std::vector<InputLayout> layouts;
    for (const Tensor& x : c.inputs) {
      values.push_back(get_values(x));
      layouts.push_back({x.strides(), 0});
    }
    fused += lower(c.graph, layouts).nests.size() == 1;
    const Values want = interpreted(c.graph, values),
                 got = get_values(run_kernels(c.graph, c.inputs));
    ASSERT_EQ(got.size(), want.size());
    const double tolerance = result == DType::f64                                         ? 1e-12
                             : result == DType::bf16 || size_of(c.graph.op(0).dtype) == 2 ? 8e-3
                                                                                          : 1e-5;
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], tolerance * (30 + std::abs(want[i])))
          << "round " << round << ", element " << i << "\n"
          << to_string(c.graph);
    }
  }
  EXPECT_GT(fused, static_cast<int>(test::at_least(
                       300)));  // all but those whose axes of size 1 leave nothing to sum
}

TEST(Epilogue, ALayersBiasAndResidualAreTheProductsNest) {
  const Tensor x = randn({6, 8}), w = randn({8, 16}), bias = randn({16}), residual = randn({6, 16});
  auto layer = compile([](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    return einsum(a, b, "s i, i o -> s o") + c + d;
  });
  layer(x, w, bias, residual);
  const std::string text = layer.text();
  EXPECT_NE(text.find(", then "), std::string::npos) << text;
  // What it costs does not change: 2 · 6 · 8 · 16 for the product, and two additions for each
  // result.
  EXPECT_EQ(layer.cost().model, Count(2 * 6 * 8 * 16 + 2 * 6 * 16));
  EXPECT_EQ(layer.cost().matmul_only, Count(2 * 6 * 8 * 16));
}

TEST(Epilogue, AMapOfTheProductAndOfItsFormerValueIsAssigned) {
  Tensor state = zeros({5, 7});
  const Tensor a = ones({5, 3}), b = ones({3, 7});
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    state.copy_from(state * 0.5 + einsum(x, y, "i k, k j -> i j"));
    return state;
  });
  step(a, b);
  step(a, b);
  for (double value : get_values(state)) EXPECT_EQ(value, 4.5);
}

}  // namespace
}  // namespace ein::test
