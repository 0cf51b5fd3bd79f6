// Learning rates against bench/peers/optimizer_figures.py.
#include <gtest/gtest.h>

#include <ein/schedule.hpp>
#include "support/figures.hpp"

namespace ein::optim {
namespace {

using nlohmann::json;

double rate(const json& c, std::int64_t step) {
  const std::string kind = c.at("kind");
  const double lr = c.at("lr"), least = c.value("min_lr", 0.0);
  const std::int64_t warmup = c.at("warmup_iters"), end = c.value("decay_iters", std::int64_t{0});
  if (kind == "constant") return Constant{lr, warmup}(step);
  if (kind == "linear") return Linear{lr, least, warmup, end}(step);
  if (kind == "cosine") return CosineWithWarmup{lr, least, warmup, end}(step);
  return WSD{lr, least, warmup, c.at("decay_begin"), end}(step);
}

TEST(Schedule, Figures) {
  const json all = test::figures("optim/schedules.json");
  ASSERT_GE(all.at("cases").size(), 8u);
  for (const json& c : all.at("cases")) {
    for (std::size_t i = 0; i < c.at("steps").size(); ++i) {
      const std::int64_t step = c.at("steps")[i];
      const double expected = c.at("rates")[i];
      EXPECT_NEAR(rate(c, step), expected, 1e-15 + 1e-13 * expected)
          << c.dump() << " at step " << step;
    }
  }
}

TEST(Schedule, EveryStepHasARate) {
  const CosineWithWarmup none{
      .learning_rate = 1, .min_learning_rate = 0.5, .warmup_steps = 0, .end = 0};
  EXPECT_EQ(none(0), 0.5);
  const Linear warming{.learning_rate = 1, .warmup_steps = 3, .end = 2};
  EXPECT_EQ(warming(-1), 0.25);
  EXPECT_EQ(warming(2), 0.75);
  EXPECT_EQ(warming(3), 0);
  EXPECT_EQ(warming(INT64_MAX), 0);
  const WSD wsd{
      .learning_rate = 2, .min_learning_rate = 1, .warmup_steps = 0, .decay_begin = 10, .end = 12};
  EXPECT_EQ(wsd(9), 2);
  EXPECT_EQ(wsd(11), 1.5);
  EXPECT_EQ(wsd(12), 1);
}

}  // namespace
}  // namespace ein::optim
