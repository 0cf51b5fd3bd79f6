// What CS336's first assignment says of optimizers: its fixtures, tables and formulas.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/npy.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>

#include "support/shared_data.hpp"

namespace ein::optim {
namespace {

Tensor fixture(const std::string& name) {
  return load_npy(test::shared_data("cs336/a1/" + name + ".npy"));
}

/// The weight (out, in) after 1,000 steps of the fixture.
std::vector<double> trained(DType dtype, bool eps_before_correction, bool decay_last) {
  const Tensor weight = fixture("inputs/adamw_weight0").to(dtype).requires_grad(true);
  const Tensor rows = fixture("inputs/adamw_x").to(dtype);
  AdamW optimizer({weight}, {.learning_rate = 1e-3,
                             .betas = {0.9, 0.999},
                             .eps = 1e-8,
                             .weight_decay = 0.01,
                             .eps_before_correction = eps_before_correction,
                             .decay_last = decay_last});
  const Tensor to = from_vector(std::vector<double>{1, 0, 1, 0, 0, -1}, {3, 2}).to(dtype);
  for (std::int64_t i = 0; i < 1000; ++i) {
    optimizer.zero_grad();
    const Tensor x = rows[i], wanted = einsum(x, to, "i, i o -> o");  // (x0 + x1, -x2)
    const Tensor off = einsum(x, weight, "i, o i -> o") - wanted;
    reduce(off * off, "o ->", Reduction::sum).backward();
    optimizer.step();
  }
  return weight.detach().to_vector<double>();
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(CourseAdamW, EveryFormIsWithinTheCoursesBound) {
  SKIP_WITHOUT_SHARED_DATA("cs336/a1/snapshots/adamw.npy");
  const std::vector<double> snapshot = fixture("snapshots/adamw").to_vector<double>();
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const bool before : {true, false}) {
      for (const bool last : {true, false}) {
        const double off = largest_difference(trained(dtype, before, last), snapshot);
        std::cout << name(dtype) << " eps " << (before ? "before" : "after") << ", decay "
                  << (last ? "last" : "first") << ": " << off << " from the course's\n";
        EXPECT_LT(off, 1e-5);  // the course allows 1e-4
      }
    }
  }
  // The forms are others, by more than f64 rounds.
  const std::vector<double> of_2026 = trained(DType::f64, true, false);
  EXPECT_NEAR(largest_difference(trained(DType::f64, true, true), of_2026), 2.757e-6, 1e-9);
  EXPECT_NEAR(largest_difference(trained(DType::f64, false, false), of_2026), 3.675e-9, 1e-11);
}

// One step by hand: m̂ = g, v̂ = g².
TEST(CourseAdamW, WhereEpsAndDecayStand) {
  const double g = 1e-3, lr = 0.1, eps = 0.01, decay = 0.5, p = 2, beta1 = 0.9, beta2 = 0.99;
  for (const bool before : {false, true}) {
    for (const bool last : {false, true}) {
      const Tensor weight = full({1}, p, DType::f64).requires_grad(true);
      AdamW optimizer({weight}, {.learning_rate = lr,
                                 .betas = {beta1, beta2},
                                 .eps = eps,
                                 .weight_decay = decay,
                                 .eps_before_correction = before,
                                 .decay_last = last});
      reduce(weight * g, "i ->", Reduction::sum).backward();
      optimizer.step();
      const double root = std::sqrt(1 - beta2);
      const double change = before ? lr * root * g / (root * g + eps) : lr * g / (g + eps);
      const double wanted = last ? (p - change) * (1 - lr * decay) : p * (1 - lr * decay) - change;
      EXPECT_NEAR(weight.detach().item<double>(), wanted, 1e-15) << before << last;
    }
  }
}

// Weights (10, 10), the mean of their squares, the rate lr / √(t + 1): loss t by the first loss.
TEST(CourseSGD, TheTableOfLearningRates) {
  struct Row {
    double learning_rate;
    std::array<double, 10> losses;
  };
  for (const Row& row :
       {Row{1, {1, .9604, .933428, .911996, .893847, .877929, .863651, .850643, .838656, .827511}},
        Row{10, {1, .64, .471781, .369118, .298986, .247893, .209065, .178652, .15428, .134395}},
        Row{100, {1, 1, .171573, .00410613, 0, 0, 0, 0, 0, 0}},
        Row{1000, {1, 361, 62350.4, 6.93581e6, 0, 0, 0, 0, 0, 9.26868e16}}}) {
    const Tensor weight = (randn({10, 10}, DType::f64) * 5).requires_grad(true);
    SGD optimizer({weight}, {.learning_rate = row.learning_rate});
    double first = 0, product = 1;
    for (std::size_t t = 0; t < 10; ++t) {
      optimizer.zero_grad();
      const Tensor loss = reduce(weight * weight, "i j ->", Reduction::mean);
      if (t == 0) first = loss.item<double>();
      const double ratio = loss.item<double>() / first;
      EXPECT_NEAR(ratio, product, 1e-12 * product + 1e-25) << row.learning_rate << ' ' << t;
      if (row.losses[t] != 0 || row.learning_rate == 100) {
        EXPECT_NEAR(ratio, row.losses[t], 1e-5 * row.losses[t] + 1e-25) << t;
      }
      loss.backward();
      const double rate = row.learning_rate / std::sqrt(static_cast<double>(t) + 1);
      optimizer.set_learning_rate(rate);
      optimizer.step();
      product *= (1 - 0.02 * rate) * (1 - 0.02 * rate);
    }
  }
}

TEST(CourseSGD, After99UpdatesAtOne) {
  const Tensor weight = randn({10, 10}, DType::f64).requires_grad(true);
  SGD optimizer({weight}, {.learning_rate = 1});
  const auto loss = [&] { return reduce(weight * weight, "i j ->", Reduction::mean); };
  const double first = loss().item<double>();
  for (int t = 0; t < 99; ++t) {
    optimizer.zero_grad();
    loss().backward();
    optimizer.set_learning_rate(1 / std::sqrt(t + 1.0));
    optimizer.step();
  }
  EXPECT_NEAR(loss().item<double>() / first, .476319, 1e-6);
}

TEST(CourseSchedule, CosineFromOneToATenth) {
  const CosineWithWarmup schedule{.learning_rate = 1,
                                  .min_learning_rate = 0.1,
                                  .warmup_steps = 7,
                                  .end = 21,
                                  .warm_up = WarmUp::at_zero};
  const std::array<double, 25> wanted{0,
                                      .14285714285714285,
                                      .2857142857142857,
                                      .42857142857142855,
                                      .5714285714285714,
                                      .7142857142857143,
                                      .8571428571428571,
                                      1,
                                      .9887175604818206,
                                      .9554359905560885,
                                      .9018241671106134,
                                      .8305704108364301,
                                      .7452476826029011,
                                      .6501344202803414,
                                      .55,
                                      .44986557971965857,
                                      .3547523173970989,
                                      .26942958916356996,
                                      .19817583288938662,
                                      .14456400944391146,
                                      .11128243951817937,
                                      .1,
                                      .1,
                                      .1,
                                      .1};
  for (std::size_t t = 0; t < wanted.size(); ++t)
    EXPECT_NEAR(schedule(static_cast<std::int64_t>(t)), wanted[t], 1e-15) << t;
}

TEST(CourseSchedule, BothWarmUpsEndAtTheRate) {
  for (const WarmUp warm_up : {WarmUp::above_zero, WarmUp::at_zero}) {
    const Constant constant{.learning_rate = 3, .warmup_steps = 4, .warm_up = warm_up};
    const Linear linear{.learning_rate = 3, .warmup_steps = 4, .end = 10, .warm_up = warm_up};
    const WSD wsd{
        .learning_rate = 3, .warmup_steps = 4, .decay_begin = 6, .end = 10, .warm_up = warm_up};
    const bool at_zero = warm_up == WarmUp::at_zero;
    for (const double rate : {constant(0), linear(0), wsd(0), linear(-5)})
      EXPECT_EQ(rate, at_zero ? 0 : 0.6);
    for (const double rate : {constant(3), linear(3), wsd(3)})
      EXPECT_EQ(rate, at_zero ? 2.25 : 2.4);
    for (const double rate : {constant(4), linear(4), wsd(4)}) EXPECT_EQ(rate, 3);
  }
}

// Six parameters of 5×5, one of them frozen, the loss the sum of all: norm √125.
TEST(CourseClipping, TheNormIsOfAllAndHasAMillionthAdded) {
  std::vector<Tensor> parameters;
  Tensor loss = zeros({});
  for (int i = 0; i < 6; ++i) {
    parameters.push_back(ones({5, 5}).requires_grad(i != 2));
    loss = loss + reduce(parameters.back(), "i j ->", Reduction::sum);
  }
  loss.backward();
  EXPECT_NEAR(clip_grad_norm(parameters, 0.01).item(), std::sqrt(125.0), 1e-5);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i == 2) {
      EXPECT_FALSE(parameters[i].has_grad());
      continue;
    }
    for (const double g : parameters[i].grad().to_vector<double>())
      EXPECT_NEAR(g, 0.01 / (std::sqrt(125.0) + 1e-6), 1e-9);
  }
  EXPECT_NEAR(clip_grad_norm(parameters, 1).item(), 0.01, 1e-6);  // below: nothing changes
}

}  // namespace
}  // namespace ein::optim
