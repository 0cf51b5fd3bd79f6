// "PyTorch, resource accounting" (Stanford CS336, lecture 2): its figures on cost, time and memory,
// a test a row.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/create.hpp>
#include <ein/dtype.hpp>
#include <ein/elementwise.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include <ein/napkin.hpp>
#include <ein/tensor.hpp>

namespace ein {
namespace {

constexpr std::int64_t billion = 1'000'000'000;
constexpr std::int64_t trillion = 1000 * billion;
constexpr double day = 86400;

double h100_bf16() { return *hardware_named("h100-sxm").peak(DType::bf16); }

// --- napkin mathematics ---

TEST(LectureNapkin, TrainingFlops) {
  const Count flops = napkin::training_flops(70 * billion, 15 * trillion);
  EXPECT_EQ(to_string(flops), "6300000000000000000000000");
  EXPECT_DOUBLE_EQ(flops.approximate(), 6.3e24);
}

TEST(LectureNapkin, H100DenseIsHalfOfTheSparseFigure) { EXPECT_EQ(h100_bf16(), 1979e12 / 2); }

TEST(LectureNapkin, FlopsPerDay) {
  EXPECT_DOUBLE_EQ(napkin::flops_in(day, {1024, h100_bf16(), 0.5}), 4.37723136e22);
}

TEST(LectureNapkin, Days) {
  const double flops = napkin::training_flops(70 * billion, 15 * trillion).approximate();
  EXPECT_NEAR(napkin::seconds_for(flops, {1024, h100_bf16(), 0.5}) / day, 143.93, 0.005);
}

TEST(LectureNapkin, DaysByTheShortRule) {
  EXPECT_NEAR(napkin::short_rule_seconds(70e9, 15e12, 1024, h100_bf16()) / day, 143.93, 0.005);
}

TEST(LectureNapkin, BytesOfAdamW) {
  EXPECT_EQ(napkin::bytes_per_parameter({}), 4 + 4 + (4 + 4));
  EXPECT_EQ(napkin::bytes_per_parameter(napkin::mixed_precision()), 2 + 2 + 4 + (4 + 4));
}

TEST(LectureNapkin, LargestModelOnEightH100) {
  const double memory = hardware_named("h100-sxm").memory;
  EXPECT_EQ(memory, 80e9);
  EXPECT_DOUBLE_EQ(napkin::largest_model(8, memory, 16), 4.0e10);
}

TEST(LectureNapkin, Gpt3) {
  // 174.6e9 parameters, 300e9 tokens (Brown et al. 2020, table D.1).
  EXPECT_NEAR(
      napkin::training_flops(Count(std::int64_t{174'600'000'000}), 300 * billion).approximate(),
      3.14e23, 0.005e23);
}

TEST(LectureNapkin, Gpt4) {
  // The speculated 2e25, on the fleet above: about 457 days.
  EXPECT_NEAR(napkin::seconds_for(2e25, {1024, h100_bf16(), 0.5}) / day, 2e25 / 4.37723136e22,
              1e-6);
}

// The text says two weeks, the code multiplies seven days; both at the full peak.
TEST(LectureNapkin, EightH100ForTwoWeeks) {
  const napkin::Fleet fleet{8, h100_bf16(), 1};
  EXPECT_DOUBLE_EQ(napkin::flops_in(7 * day, fleet), 4.7875968e21);
  EXPECT_DOUBLE_EQ(napkin::flops_in(14 * day, fleet), 9.5751936e21);
}

TEST(LectureNapkin, ParametersOfATransformer) {
  const napkin::Transformer gpt3{
      .layers = 96, .width = 12288, .heads = 96, .vocab = 50257, .context = 2048};
  EXPECT_EQ(napkin::estimated_parameters(gpt3), Count(std::int64_t{12} * 12288 * 12288 * 96));
  EXPECT_NEAR(napkin::estimated_parameters(gpt3).approximate(), 1.74e11, 0.005e11);
  EXPECT_NEAR(napkin::parameters(gpt3).total().approximate(), 174.6e9, 0.05e9);
}

// --- memory ---

TEST(LectureMemory, ZerosOf4By8) {
  const std::size_t before = memory_allocated();
  const Tensor x = zeros({4, 8});
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.numel(), 32);
  EXPECT_EQ(static_cast<std::size_t>(x.numel()) * size_of(x.dtype()), 128u);
  EXPECT_EQ(memory_allocated() - before, 128u);
}

TEST(LectureMemory, AMatrixOfGpt3) {
  const std::int64_t elements = checked_numel({12288 * 4, 12288}, size_of(DType::f32));
  EXPECT_EQ(elements * static_cast<std::int64_t>(size_of(DType::f32)),
            std::int64_t{2304} * 1024 * 1024);
}

TEST(LectureMemory, SizesOfElements) {
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::f8e4m3), 1u);
  EXPECT_EQ(size_of(DType::f8e5m2), 1u);
}

TEST(LectureMemory, TwoTensorsGrowTheCountBy8192Bytes) {
  const std::size_t before = memory_allocated();
  const Tensor x = zeros({32, 32}), y = zeros({32, 32});
  EXPECT_EQ(memory_allocated() - before, 8192u);
}

// --- FLOPs ---

Count einsum_flops(const char* pattern, const std::vector<Shape>& shapes) {
  return cost(graph_of(Operation::einsum, runtime(pattern), shapes)).model;
}

TEST(LectureFlops, AMultiplyAddIsTwo) {
  EXPECT_EQ(einsum_flops("k, k ->", {{5}, {5}}), Count(2 * 5));
}

TEST(LectureFlops, AddingMatricesIsOneForEachElement) {
  CostScope scope;
  const Tensor x = zeros({3, 7}), y = zeros({3, 7});
  const Count before = scope.total().model;
  const Tensor sum = x + y;
  EXPECT_EQ(scope.total().model - before, Count(3 * 7));
}

TEST(LectureFlops, ALinearLayer) {
  EXPECT_EQ(einsum_flops("b d, d k -> b k", {{1024, 256}, {256, 64}}), Count(33'554'432));
}

TEST(LectureFlops, ALargeLinearLayer) {
  EXPECT_EQ(einsum_flops("b d, d k -> b k", {{16384, 32768}, {32768, 8192}}),
            Count(std::int64_t{8'796'093'022'208}));
}

// x (b d) · w1 (d d) · w2 (d k), B 1024, D 256, K 64; the backward pass as the products that it is
// made of.
const Shape x{1024, 256}, w1{256, 256}, w2{256, 64}, h1{1024, 256}, h2{1024, 64};
Count forward() {
  return einsum_flops("b d, d e -> b e", {x, w1}) + einsum_flops("b d, d k -> b k", {h1, w2});
}
Count weight_gradients() {
  return einsum_flops("b d, b k -> d k", {h1, h2}) + einsum_flops("b d, b e -> d e", {x, h1});
}
Count gradient_of_h1() { return einsum_flops("b k, d k -> b d", {h2, w2}); }
Count gradient_of_x() { return einsum_flops("b e, d e -> b d", {h1, w1}); }

TEST(LectureFlops, TwoLayersForward) { EXPECT_EQ(forward(), Count(167'772'160)); }

TEST(LectureFlops, TwoLayersBackwardModelCount) {
  EXPECT_EQ(weight_gradients() + gradient_of_h1() + gradient_of_x(), Count(335'544'320));
}

TEST(LectureFlops, TwoLayersBackwardAsExecutedWhenTheInputNeedsNoGradient) {
  EXPECT_EQ(weight_gradients() + gradient_of_h1(), Count(201'326'592));
}

TEST(LectureFlops, SixForEachDataPointAndParameter) {
  const Count parameters = 256 * 256 + 256 * 64, points = 1024;
  EXPECT_EQ(forward(), Count(2) * points * parameters);
  EXPECT_EQ(weight_gradients() + gradient_of_h1() + gradient_of_x(),
            Count(4) * points * parameters);
  EXPECT_EQ(napkin::training_flops(parameters, points), Count(6) * points * parameters);
}

TEST(LectureFlops, ModelFlopsUtilisation) {
  // The large layer in 0.1 s on an H100 in bf16.
  EXPECT_DOUBLE_EQ(mfu(8'796'093'022'208, 0.1, h100_bf16()), 87.96093022208e12 / 989.5e12);
  EXPECT_EQ(mfu(h100_bf16() / 2, 1, h100_bf16()), 0.5);
}

TEST(LectureFlops, Promised) {
  for (const char* a100 : {"a100-40gb", "a100-pcie-80gb", "a100-sxm-80gb"}) {
    EXPECT_EQ(hardware_named(a100).peak(DType::f32), 19.5e12);
    EXPECT_EQ(hardware_named(a100).peak(DType::bf16), 312e12);
    EXPECT_EQ(hardware_named(a100).peak(DType::f16), 312e12);
  }
  Hardware h100 = hardware_named("h100-sxm");
  EXPECT_EQ(h100.peak(DType::bf16), 1979e12 / 2);
  EXPECT_EQ(h100.peak(DType::f16), 1979e12 / 2);
  // The lecture has 67.5e12, the datasheet 67e12. Whoever wants the former says so.
  EXPECT_EQ(h100.peak(DType::f32), 67e12);
  h100.set_peak(DType::f32, TensorCores::no, 67.5e12);
  EXPECT_EQ(h100.peak(DType::f32), 67.5e12);
}

// A network of two linear layers of 4 and one to 1, batch 2: 36 parameters, AdaGrad in f32.
TEST(LectureFlops, ATrainingStepOfASmallNetwork) {
  const Count parameters = 2 * 4 * 4 + 4;
  const Count activations = 2 * 4 * 2;
  EXPECT_EQ(parameters, Count(36));
  EXPECT_EQ(napkin::training_flops(parameters, 2), Count(432));
  const Count held =
      parameters * Count(napkin::bytes_per_parameter(
                       {napkin::Optimizer::adagrad, DType::f32, DType::f32, DType::f32, false}));
  EXPECT_EQ(held + Count(4) * activations, Count(496));
}

}  // namespace
}  // namespace ein
