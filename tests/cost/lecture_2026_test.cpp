// CS336, lecture 2 of 2026 ("PyTorch (einops), resource accounting"): the figures that are new or
// other than in 2025, which lecture_cost_test.cpp has.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/hardware.hpp>
#include <ein/napkin.hpp>
#include <ein/nn.hpp>
#include <ein/ops.hpp>
#include <ein/shapes_only.hpp>

namespace ein {
namespace {

Hardware h100() { return hardware_named("h100-sxm"); }

TEST(Lecture2026, LargestModelAtTwelveBytes) {
  napkin::Recipe recipe = napkin::mixed_precision();
  recipe.has_f32_master = false;
  EXPECT_EQ(napkin::bytes_per_parameter(recipe), 2 + 2 + (4 + 4));
  EXPECT_EQ(static_cast<std::int64_t>(napkin::largest_model(8, h100().memory, 12)),
            std::int64_t{53'333'333'333});
}

TEST(Lecture2026, Peaks) {
  EXPECT_EQ(hardware_named("b200").peak(DType::f32), 75e12);
  EXPECT_EQ(hardware_named("b200").peak(DType::bf16), 4.5e15 / 2);
  EXPECT_EQ(h100().bandwidth, 3.35e12);
}

TEST(Lecture2026, RankFour) {
  using namespace literals;
  EXPECT_EQ(zeros({32, 16, 16, 64}).rank(), 4u);
  const Tensor product =
      einsum(ones({3, 4}), ones({4, 3}), "seq1 hidden, hidden seq2 -> seq1 seq2");
  EXPECT_EQ(product.to_vector<double>(), std::vector<double>(9, 4));
  const Tensor heads = rearrange(ones({3, 8}), "... (heads h) -> ... heads h", "heads"_a = 2);
  const Tensor mixed = einsum(heads, ones({4, 4}), "... h, h g -> ... g");
  EXPECT_EQ(mixed.to_vector<double>(), std::vector<double>(24, 4));
  EXPECT_EQ(rearrange(mixed, "... heads g -> ... (heads g)").shape(), (Shape{3, 8}));
}

Cost product(const char* pattern, const std::vector<Shape>& shapes) {
  CallOptions options;
  options.dtype = DType::bf16;
  return cost(graph_of(Operation::einsum, runtime(pattern), shapes, options));
}
/// Of an operation on 2^20 elements.
Cost of_elements(Tensor (*function)(const Tensor&)) {
  const ShapesOnly shapes;
  return shapes.cost(function(empty({1 << 20}, DType::bf16)));
}

/// max(x, 0): one operation, as the lecture counts a ReLU. ein::relu, whose slope at 0 is 0, is a
/// comparison and a selection, and counts two.
Tensor largest_of_zero_and(const Tensor& x) { return maximum(x, 0); }

void expect_bound(const Cost& cost, std::int64_t flops, std::int64_t bytes, double intensity,
                  double mfu) {
  EXPECT_EQ(cost.bytes(), Count(bytes));
  const double i = static_cast<double>(flops) / cost.bytes().approximate();
  EXPECT_NEAR(i, intensity, 1e-6 * intensity);
  const double ridge = *h100().peak(DType::bf16) / h100().bandwidth;
  EXPECT_NEAR(std::min(1.0, i / ridge), mfu, 5.01e-7);
}

TEST(Lecture2026, IntensitiesBesideTheRidge) {
  EXPECT_NEAR(*h100().peak(DType::bf16) / h100().bandwidth, 295.373, 0.0005);
  const std::int64_t many = 1 << 20, n = 1024;
  const Cost of_relu = of_elements(largest_of_zero_and), of_gelu = of_elements(gelu);
  EXPECT_EQ(of_relu.model, Count(many));
  EXPECT_EQ(of_elements(relu).model, Count(2 * many));
  expect_bound(of_relu, many, 4 * many, 0.25, 0.000846);
  expect_bound(of_gelu, 20 * many, 4 * many, 5, 0.016928);  // the lecture's 20 FLOPs
  // ein counts GELU's parts in `strict`, and as one operation in its model.
  EXPECT_EQ(of_gelu.model, Count(many));
  const auto strict = [](const Cost& of) { return of.mul + of.add; };
  const Cost dot = product("n, n ->", {{many}, {many}});
  EXPECT_EQ(strict(dot), Count(2 * many - 1));
  expect_bound(dot, 2 * many - 1, 4 * many + 2, 0.4999995, 0.001693);
  const Cost vector = product("m n, n -> m", {{n, n}, {n}});
  EXPECT_EQ(strict(vector), Count(n * (2 * n - 1)));
  expect_bound(vector, n * (2 * n - 1), 4 * n + 2 * n * n, 0.997563, 0.003377);
  const Cost matmul = product("m k, k n -> m n", {{n, n}, {n, n}});
  EXPECT_EQ(strict(matmul), Count(n * n * (2 * n - 1)));
  EXPECT_NEAR(strict(matmul).approximate() / matmul.bytes().approximate(), 341.1667, 5e-5);
  expect_bound(matmul, n * n * (2 * n - 1), 6 * n * n, 341.16667, 1);
}

TEST(Lecture2026, TimeOfReLU) {
  const Roofline bound = roofline(of_elements(largest_of_zero_and), h100(), DType::bf16);
  EXPECT_NEAR(bound.bandwidth_seconds, 1.25203e-6, 5e-12);
  EXPECT_NEAR(bound.compute_seconds, 1.0597e-9, 5e-14);
  EXPECT_EQ(bound.bound, Bound::bandwidth);
}

TEST(Lecture2026, OneLayerForwardAndBackward) {
  const std::int64_t b = 1024, d = 256;
  const ShapesOnly shapes;
  const Tensor x = empty({b, d}).requires_grad(true), w = empty({d, d}).requires_grad(true);
  const Tensor y = einsum(x, w, "b i, i o -> b o");
  const Count forward = shapes.cost(y).matmul_only;
  reduce(y, "b o ->", "sum").backward();
  const Count all = shapes.cost(std::vector{y, x.grad(), w.grad()}).matmul_only;
  EXPECT_EQ(forward, Count(134'217'728));
  EXPECT_EQ(all - forward, Count(268'435'456));
  EXPECT_EQ(forward, Count(2 * b * d * d));
  EXPECT_EQ(all, Count(6 * b * d * d));
}

/// L times a matrix (D, D) and ReLU.
struct DeepNetwork : nn::Layer {
  DeepNetwork(std::int64_t dim, int count) {
    for (int i = 0; i < count; ++i) layers.emplace_back(dim, dim, false);
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (const nn::Linear& layer : layers) y = ein::relu(layer(y));
    return y;
  }
  nn::ModuleList<nn::Linear> layers;
  EIN_MODULES(layers);
};

TEST(Lecture2026, DeepNetworks) {
  EXPECT_EQ(DeepNetwork(8, 3).parameter_count(), 192);
  const DeepNetwork small(4, 3);
  const std::int64_t parameters = small.parameter_count(), activations = 2 * 4 * 3;
  EXPECT_EQ(parameters, 48);
  const napkin::Recipe adagrad{napkin::Optimizer::adagrad, DType::bf16, DType::bf16, DType::f32,
                               false};
  EXPECT_EQ(napkin::bytes_per_parameter(adagrad) * parameters + 2 * activations, 432);
  EXPECT_EQ(napkin::training_flops(parameters, 2), Count(576));
  EXPECT_EQ(napkin::bytes_per_parameter(
                {napkin::Optimizer::adamw, DType::bf16, DType::bf16, DType::f32, false}) -
                napkin::bytes_per_parameter(adagrad),
            4);  // Adam has two states
}

}  // namespace
}  // namespace ein
