// cross_entropy, mse_loss, dropout and clip_grad_norm.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();

// Expected figures: PyTorch 2 in f64.
TEST(LossTest, CrossEntropy) {
  const Values values{0.5, -1.25, 2.0, 0.0, 3.0, 2.5, -2.0, 1.0, -0.75, 100.0, 99.0, -100.0};
  const Tensor logits = make_tensor(values, {3, 4}, DType::f64);
  const Tensor targets = from_vector<std::int64_t>({2, 0, 1}, {3});
  EXPECT_EQ(cross_entropy(logits, targets, "n [v], n").shape(), Shape{});
  EXPECT_NEAR(cross_entropy(logits, targets, "n [v], n").item(), 0.40219266416378946, 1e-14);
  EXPECT_NEAR(cross_entropy(logits, targets, "n [v], n ->").item(), 0.40219266416378946, 1e-14);
  EXPECT_NEAR(cross_entropy(logits, targets, "... [v], ...").item(), 0.40219266416378946, 1e-14);
  const Values each = get_values(cross_entropy(logits, targets, "n [v], n -> n"));
  const Values expected{0.33449861260366254, 0.558817692369483, 0.31326168751822286};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(each[i], expected[i], 1e-14);
}

TEST(LossTest, CrossEntropyOfMaskedLogits) {
  const Tensor logits = make_tensor({3.0, 2.5, -inf, 1.0}, {4});
  EXPECT_EQ(cross_entropy(logits, full({}, 2, DType::i64), "[v],").item(), inf);
  EXPECT_NEAR(cross_entropy(logits, full({}, 1, DType::i64), "[v],").item(), 1.0549569196419906,
              1e-6);
}

TEST(LossTest, CrossEntropyAgreesWithPlainLoops) {
  const unsigned seed = 20255;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (int round = 0; round < 30; ++round) {
      const auto b = static_cast<std::int64_t>(1 + random() % 5),
                 s = static_cast<std::int64_t>(1 + random() % 6);
      const auto v = static_cast<std::int64_t>(1 + random() % 50);
      const Tensor logits = test::scattered_tensor({v, b, s}, dtype, {false, false, false}, random);
      Values in(static_cast<std::size_t>(v * b * s));
      for (double& value : in) value = std::uniform_real_distribution<>(-30, 30)(random);
      test::set_values(logits, in);
      in = get_values(logits);
      std::vector<std::int32_t> picked(static_cast<std::size_t>(b * s));
      for (auto& target : picked)
        target = static_cast<std::int32_t>(random() % static_cast<unsigned>(v));
      const Tensor targets = from_vector(picked, {b, s});
      Values losses, of_batch(static_cast<std::size_t>(b), 0.0);
      double mean = 0;
      for (std::int64_t i = 0; i < b * s; ++i) {
        const auto at = [&](std::int64_t k) { return in[static_cast<std::size_t>(k * b * s + i)]; };
        double most = -inf, sum = 0;
        for (std::int64_t k = 0; k < v; ++k) most = std::max(most, at(k));
        for (std::int64_t k = 0; k < v; ++k) sum += std::exp(at(k) - most);
        losses.push_back(most + std::log(sum) - at(picked[static_cast<std::size_t>(i)]));
        mean += losses.back() / static_cast<double>(b * s);
        of_batch[static_cast<std::size_t>(i / s)] += losses.back() / static_cast<double>(s);
      }
      SCOPED_TRACE(name(dtype));
      const double eps = dtype == DType::f64 ? 1e-13 : finfo(dtype).eps + 1e-6;
      const Tensor result = cross_entropy(logits, targets, "[v] b s, b s");
      EXPECT_EQ(result.dtype(), dtype);
      EXPECT_NEAR(result.item(), mean, eps * (1 + mean));
      const Values each = get_values(cross_entropy(logits, targets, "[v] b s, b s -> s b"));
      const Values batch = get_values(cross_entropy(logits, targets, "[v] b s, b s -> b"));
      for (std::int64_t i = 0; i < b * s; ++i) {
        const double expected = losses[static_cast<std::size_t>(i)];
        EXPECT_NEAR(each[static_cast<std::size_t>(i % s * b + i / s)], expected,
                    eps * (1 + expected));
      }
      for (std::size_t i = 0; i < batch.size(); ++i)
        EXPECT_NEAR(batch[i], of_batch[i], eps * (1 + of_batch[i]));
    }
  }
}

TEST(LossTest, CrossEntropyOfNothing) {
  const Tensor none = zeros({0}, DType::i64);
  EXPECT_TRUE(std::isnan(cross_entropy(zeros({0, 4}), none, "n [v], n").item()));
  EXPECT_EQ(cross_entropy(zeros({0, 4}), none, "n [v], n -> n").shape(), (Shape{0}));
  EXPECT_THROW(cross_entropy(zeros({2, 0}), zeros({2}, DType::i64), "n [v], n"), Error);
  EXPECT_THROW(cross_entropy(zeros({2, 4}), full({2}, 4, DType::i64), "n [v], n"), Error);
}

TEST(LossTest, MeanSquareError) {
  const Tensor a = make_tensor({1, 2, 3.5}, {3}), b = make_tensor({0, 2.5, -1}, {3});
  EXPECT_NEAR(mse_loss(a, b).item(), 7.166666666666667, 1e-6);
  EXPECT_EQ(mse_loss(a.to(DType::bf16), b.to(DType::bf16)).dtype(), DType::bf16);
  EXPECT_NEAR(mse_loss(a.to(DType::i32), b.to(DType::i32)).item(), 17.0 / 3, 1e-6);
  EXPECT_THROW(mse_loss(a, zeros({1})), Error);
  EXPECT_TRUE(std::isnan(mse_loss(zeros({0}), zeros({0})).item()));
}

TEST(LossTest, MeanSquareErrorOfIntegersIsExact) {
  const auto loss = [](std::int64_t a, std::int64_t b, DType dtype) {
    return mse_loss(full({1}, a, dtype), full({1}, b, dtype)).item();
  };
  EXPECT_EQ(loss(16777217, 16777216, DType::i64), 1);
  EXPECT_EQ(loss(16777216, 16777217, DType::i64), 1);
  EXPECT_EQ(loss(3, 255, DType::u8), 252 * 252);
  EXPECT_EQ(loss(1, 0, DType::boolean), 1);
  EXPECT_EQ(loss(INT64_MAX, INT64_MIN, DType::i64), static_cast<float>(0x1p128));
  const Tensor zero = zeros({1}, DType::u64), most = from_vector<std::uint64_t>({UINT64_MAX}, {1});
  EXPECT_EQ(mse_loss(zero, most).item(), static_cast<float>(0x1p128));
  EXPECT_EQ(mse_loss(zeros({1}, DType::u8), full({1}, -3, DType::i32)).item(), 9);
  auto compiled = compile([](const Tensor& a, const Tensor& b) { return mse_loss(a, b); });
  EXPECT_EQ(compiled(full({1}, 16777217, DType::i64), full({1}, 16777216, DType::i64)).item(), 1);
  EXPECT_EQ(mse_loss(zeros({2}, DType::i64), zeros({2}, DType::i64)).dtype(), DType::f32);
}

TEST(LossTest, NamesTargetsThatAreNoClass) {
  const auto call = [](const Tensor& logits, const Tensor& targets) {
    return cross_entropy(logits, targets, "b [v], b");
  };
  for (const std::int64_t target : {3, -1}) {
    for (const std::int64_t rows : {1, 5}) {
      const std::string text =
          "cross_entropy: target " + std::to_string(target) + " is none of the 3 classes, 0 to 2";
      const Tensor logits = ones({rows, 3}), targets = full({rows}, target, DType::i64);
      test::expect_error([&] { call(logits, targets); }, ErrorKind::value, {text});
      auto compiled = compile(call);
      test::expect_error([&] { compiled(logits, targets); }, ErrorKind::value, {text});
    }
  }
}

TEST(DropoutTest, KeepsTheMean) {
  manual_seed(11);
  constexpr std::int64_t n = 100'000;
  for (double p : {0.1, 0.5, 0.9}) {
    const Values kept = get_values(dropout(ones({n}), p));
    std::int64_t zeros = 0;
    for (double value : kept) {
      if (value == 0) {
        ++zeros;
      } else {
        ASSERT_NEAR(value, 1 / (1 - p), 1e-5);
      }
    }
    // Five standard deviations of a binomial distribution.
    EXPECT_NEAR(static_cast<double>(zeros), n * p, 5 * std::sqrt(n * p * (1 - p))) << p;
  }
}

TEST(DropoutTest, SeedsAndLimits) {
  const Tensor x = ones({1000});
  manual_seed(3);
  const Values first = get_values(dropout(x, 0.5)), second = get_values(dropout(x, 0.5));
  EXPECT_NE(first, second);
  manual_seed(3);
  EXPECT_EQ(get_values(dropout(x, 0.5)), first);
  EXPECT_TRUE(dropout(x, 0).same_storage(x));
  EXPECT_EQ(dropout(x.to(DType::bf16), 0.5).dtype(), DType::bf16);
  for (double p : {-0.1, 1.0, std::nan("")}) EXPECT_THROW(dropout(x, p), Error);
  EXPECT_THROW(dropout(ones({2}, DType::i64), 0.5), Error);
}

// Expected figures: torch.nn.utils.clip_grad_norm_ of PyTorch 2.
TEST(ClipGradNormTest, ScalesAllGradients) {
  const std::vector<Tensor> parameters{zeros({2}), zeros({3, 1}), zeros({4})};
  for (const Tensor& parameter : parameters) parameter.requires_grad(true);
  const auto set = [&] {
    parameters[0].set_grad(make_tensor({3, -4}, {2}));
    parameters[1].set_grad(make_tensor({1, 2, -2}, {3, 1}));
  };
  set();
  EXPECT_FLOAT_EQ(static_cast<float>(clip_grad_norm(parameters, 2).item()), 5.830951690673828f);
  const Values expected{1.028991460800171, -1.3719885349273682, 0.34299713373184204,
                        0.6859942674636841, -0.6859942674636841};
  Values clipped = get_values(parameters[0].grad());
  for (double value : get_values(parameters[1].grad())) clipped.push_back(value);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(clipped[i], expected[i], 1e-6);
  EXPECT_FALSE(parameters[2].has_grad());
  set();
  clip_grad_norm(parameters, 100);
  EXPECT_EQ(get_values(parameters[0].grad()), (Values{3, -4}));
  EXPECT_THROW(clip_grad_norm(parameters, -1), Error);
  const std::vector<Tensor> complex{
      from_vector(std::vector<std::complex<float>>{{3, 4}}, {1}).requires_grad(true)};
  complex[0].set_grad(complex[0].detach());
  test::expect_error([&] { clip_grad_norm(complex, 1); }, ErrorKind::dtype,
                     {"clip_grad_norm: a gradient of shape (1,) is c64"});
  EXPECT_EQ(clip_grad_norm({}, 1).item(), 0);
}

}  // namespace
}  // namespace ein
