// softmax and log_softmax.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include <ein/ein.hpp>
#include "support/marked_axes.hpp"

namespace ein {
namespace {

using namespace literals;
using test::get_values;
using test::make_tensor;
using test::rows_along;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();

void expect_near(const Tensor& x, const Values& expected, double relative) {
  const Values values = get_values(x);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], relative * std::max(1e-300, std::abs(expected[i])))
          << "element " << i;
    }
  }
}

// Expected figures: PyTorch 2 in f64.
TEST(SoftmaxTest, KnownAnswers) {
  const Tensor x = make_tensor(
      {0.5, -1.25, 2.0, 0.0, 3.0, 2.5, -inf, 1.0, -0.75, 100.0, 99.0, -100.0}, {3, 4}, DType::f64);
  expect_near(
      softmax(x, "b [k]"),
      {0.15969355003210822, 0.027750577932680404, 0.7156968377823844, 0.09685903425282705,
       0.5740969929676946, 0.3482074278837349, 0.0, 0.0776955791485706, 1.2846449853963305e-44,
       0.7310585786300049, 0.26894142136999516, 1.0117094278071598e-87},
      1e-13);
  expect_near(softmax(x, "[b] k"),
              {0.07424456843449029, 1.065819611814323e-44, 7.47197233734299e-43, 0.2689414213699951,
               0.9044840065682136, 4.5319803111231915e-43, 0.0, 0.7310585786300049,
               0.021271424997296118, 1.0, 1.0, 1.0004825205954154e-44},
              1e-13);
  const Values all{4.483851577616752e-44,
                   7.791765704889626e-45,
                   2.0095228608423086e-43,
                   2.719593455425421e-44,
                   5.4624494765006825e-43,
                   3.313143084628888e-43,
                   0.0,
                   7.392621470679065e-44,
                   1.2846449853963305e-44,
                   0.7310585786300049,
                   0.26894142136999516,
                   1.0117094278071598e-87};
  expect_near(softmax(x, "[b k]"), all, 1e-13);
  expect_near(softmax(x, "[b] [k]"), all, 1e-13);
  expect_near(softmax(x, "[...]"), all, 1e-13);
  expect_near(log_softmax(x, "b [k]"),
              {-1.8344986126036624, -3.5844986126036624, -0.33449861260366254, -2.3344986126036624,
               -0.5549569196419906, -1.0549569196419906, -inf, -2.554956919641991,
               -101.06326168751822, -0.31326168751822286, -1.3132616875182228, -200.31326168751824},
              1e-13);
}

TEST(SoftmaxTest, RowsWithoutFiniteMaximum) {
  const double nan = std::nan("");
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    SCOPED_TRACE(name(dtype));
    const Tensor none = make_tensor({-inf, -inf, 0, -inf}, {2, 2}, dtype);
    expect_near(softmax(none, "a [b]"), {nan, nan, 1, 0}, 0);
    expect_near(log_softmax(none, "a [b]"), {nan, nan, 0, -inf}, 0);
    expect_near(softmax(make_tensor({inf, 0}, {2}, dtype), "[a]"), {nan, nan}, 0);
    expect_near(softmax(make_tensor({nan, 0}, {2}, dtype), "[a]"), {nan, nan}, 0);
  }
}

TEST(SoftmaxTest, Shapes) {
  EXPECT_EQ(softmax(zeros({2, 0}), "a [b]").shape(), (Shape{2, 0}));
  EXPECT_EQ(softmax(zeros({0, 3}), "a [b]").shape(), (Shape{0, 3}));
  EXPECT_EQ(log_softmax(zeros({2, 0}), "a [b]").shape(), (Shape{2, 0}));
  EXPECT_EQ(get_values(softmax(zeros({1, 4}), "1 [4]")), (Values{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(get_values(softmax(zeros({}), "[...]")), (Values{1}));
  EXPECT_EQ(get_values(softmax(zeros({2, 3}), "[...] b")), Values(6, 0.5));
  const Float<"batch keys=2"> typed = zeros({3, 2});
  EXPECT_EQ(get_values(softmax(typed, "b [k]")), Values(6, 0.5));
}

TEST(SoftmaxTest, AgreesWithPlainLoops) {
  const unsigned seed = 20251;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    std::vector<bool> marked;
    std::string pattern;
    bool some = false;
    for (const char* axis : {"a", "b", "c", "d"}) {
      shape.push_back(1 + static_cast<std::int64_t>(random() % 7));
      marked.push_back(random() % 2 == 0);
      some |= marked.back();
      pattern += marked.back() ? std::string(" [") + axis + "]" : std::string(" ") + axis;
    }
    if (!some) continue;
    constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
    const DType dtype = dtypes[random() % 4];
    const Tensor x = test::scattered_values(shape, dtype, random);
    const Values in = get_values(x);
    Values probabilities(in.size()), logs(in.size());
    for (const auto& row : rows_along(shape, marked)) {
      double sum = 0;
      for (std::size_t i : row) sum += std::exp(in[i]);
      for (std::size_t i : row) probabilities[i] = std::exp(in[i]) / sum;
      for (std::size_t i : row) logs[i] = in[i] - std::log(sum);
    }
    SCOPED_TRACE(pattern + " " + shape.to_string() + " " + std::string(name(dtype)));
    const Values got = get_values(softmax(x, runtime(pattern))),
                 got_logs = get_values(log_softmax(x, runtime(pattern)));
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_NEAR(got[i], probabilities[i],
                  test::tolerance(dtype) * std::max(probabilities[i], 1e-3))
          << i;
      ASSERT_NEAR(got_logs[i], logs[i], test::tolerance(dtype) * 16) << i;
    }
  }
}

}  // namespace
}  // namespace ein
