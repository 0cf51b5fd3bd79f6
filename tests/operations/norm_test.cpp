// layer_norm and rms_norm.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <ein/ein.hpp>
#include "support/marked_axes.hpp"

namespace ein {
namespace {

using test::get_values;
using test::make_tensor;
using test::rows_along;
using Values = std::vector<double>;

void expect_near(const Tensor& x, const Values& expected, double absolute) {
  const Values values = get_values(x);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], absolute) << "element " << i;
}

const Values values{1, 2, 4, -3, 0.5, 1000, 1, 1, 1, 0.25, -0.5, 8};

// Expected figures: PyTorch 2 in f64.
TEST(NormTest, KnownAnswers) {
  const Tensor x = make_tensor(values, {2, 2, 3}, DType::f64);
  const Tensor weight = make_tensor({1.5, -2, 0.5}, {3}, DType::f64),
               bias = make_tensor({0.25, 1, -1}, {3}, DType::f64);
  expect_near(layer_norm(x, weight, bias, "b s [c]"),
              {-1.3535622971754466, 1.5345207657251492, -0.3318490428435641, -0.816216800064905,
               2.4067917640200633, -0.29289645897334915, 0.25, 1.0, -1.0, -0.6608933116499887,
               2.6049072633833132, -0.2951420802708423},
              1e-13);
  expect_near(layer_norm(x, "b s [c]"),
              {-1.0690415314502977, -0.26726038286257453, 1.3363019143128718, -0.71081120004327,
               -0.7033958820100317, 1.4142070820533017, 0.0, 0.0, 0.0, -0.6072622077666591,
               -0.8024536316916566, 1.4097158394583154},
              1e-13);
  const Tensor weights = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3}, DType::f64);
  const Tensor biases = make_tensor({0, 0.25, 0.5, 0.75, 1, 1.25}, {2, 3}, DType::f64);
  const Values both{-0.44693798554456166, -0.638504658293395,  -0.8166430490529075,
                    -1.0807224445440733,  -1.2414040687174686, 14.666196535530442,
                    -0.2797272406948073,  -0.3094544813896146, -0.33918172208442193,
                    -1.428927980149025,   -3.0486837468985266, 14.411902799008299};
  expect_near(layer_norm(x, weights, biases, "b [s c]", 1e-3), both, 1e-12);
  expect_near(layer_norm(x, weights, biases, "b [...]", 1e-3), both, 1e-12);
  expect_near(rms_norm(x, weight, "b s [c]"),
              {0.5669466690176516, -1.5118577840470708, 0.7559288920235354, -0.007794192585990907,
               -0.0017320427968868684, 0.8660213984434342, 1.4999992500005623, -1.99999900000075,
               0.4999997500001875, 0.08099238518437063, 0.21597969382498833, 0.8639187752999533},
              1e-13);
  expect_near(rms_norm(x, "b [s c]", 0.5),
              {0.0024494490210317, 0.0048988980420634, 0.0097977960841268, -0.0073483470630951,
               0.00122472451051585, 2.4494490210317, 0.2921186973360886, 0.2921186973360886,
               0.2921186973360886, 0.07302967433402215, -0.1460593486680443, 2.3369495786887087},
              1e-13);
}

// A mean of 2^20 leaves 4 of the 24 digits of an f32 to the deviations: they are exact here.
TEST(NormTest, LargeMeanCostsNoDigits) {
  const double large = 1 << 20;
  const Tensor x = make_tensor({large - 3, large - 1, large + 1, large + 3}, {4});
  const double root = std::sqrt(5.0);
  expect_near(layer_norm(x, "[n]", 0), {-3 / root, -1 / root, 1 / root, 3 / root}, 1e-6);
}

TEST(NormTest, AgreesWithPlainLoops) {
  const unsigned seed = 20252;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Shape shape, weight_shape;
    std::vector<bool> marked;
    std::string pattern;
    for (const char* axis : {"a", "b", "c"}) {
      shape.push_back(2 + static_cast<std::int64_t>(random() % 7));
      marked.push_back(random() % 2 == 0 || (axis[0] == 'c' && weight_shape.rank() == 0));
      if (marked.back()) weight_shape.push_back(shape.back());
      pattern += marked.back() ? std::string(" [") + axis + "]" : std::string(" ") + axis;
    }
    constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
    const DType dtype = dtypes[random() % 4];
    const Tensor x = test::scattered_values(shape, dtype, random);
    const Tensor weight = test::scattered_values(weight_shape, dtype, random);
    const Tensor bias = test::scattered_values(weight_shape, dtype, random);
    const Values in = get_values(x), w = get_values(weight), b = get_values(bias);
    Values layer(in.size()), rms(in.size());
    for (const auto& row : rows_along(shape, marked)) {
      const auto n = static_cast<double>(row.size());
      double sum = 0, squares = 0, deviations = 0;
      for (std::size_t i : row) sum += in[i];
      for (std::size_t i : row) squares += in[i] * in[i];
      for (std::size_t i : row) deviations += (in[i] - sum / n) * (in[i] - sum / n);
      for (std::size_t k = 0; k < row.size(); ++k) {
        layer[row[k]] = (in[row[k]] - sum / n) / std::sqrt(deviations / n + 1e-5) * w[k] + b[k];
        rms[row[k]] = in[row[k]] / std::sqrt(squares / n + 1e-6) * w[k];
      }
    }
    SCOPED_TRACE(pattern + " " + shape.to_string() + " " + std::string(name(dtype)));
    // Rounding errors grow by the weight and by 1/σ.
    const double allowed = dtype == DType::f64 ? 1e-11 : 16 * test::tolerance(dtype);
    expect_near(layer_norm(x, weight, bias, runtime(pattern)), layer, allowed);
    expect_near(rms_norm(x, weight, runtime(pattern)), rms, allowed);
  }
}

TEST(NormTest, WeightsOfAnotherDtype) {
  const Tensor x = make_tensor({1, 2, 4, 8}, {4}, DType::bf16);
  const Tensor weight = make_tensor({1.001, 1, 1, 1}, {4}), bias = make_tensor({0, 0, 0, 0}, {4});
  EXPECT_EQ(layer_norm(x, weight, bias, "[c]").dtype(), DType::bf16);
  EXPECT_THROW(layer_norm(x, weight.to(DType::f64), bias, "[c]"), Error);
  EXPECT_THROW(layer_norm(x, weight, bias.to(DType::i64), "[c]"), Error);
}

}  // namespace
}  // namespace ein
