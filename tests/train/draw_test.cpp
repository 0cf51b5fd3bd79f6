// Which token is drawn: the filters by their definitions, in their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "train/draw.hpp"

namespace ein::training {
namespace {

using Probabilities = std::map<std::int32_t, double>;

/// What is left of all tokens, by the definitions: filter after filter, each renormalised.
Probabilities left(const std::vector<float>& logits, const DrawFilters& f) {
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < logits.size(); ++i) order.push_back(static_cast<std::int32_t>(i));
  const auto logit = [&](std::int32_t i) { return double{logits[static_cast<std::size_t>(i)]}; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logit(a) > logit(b); });
  const auto softmax = [&] {
    std::vector<double> p;
    double sum = 0;
    for (const std::int32_t i : order) sum += std::exp(logit(i) / f.temperature);
    for (const std::int32_t i : order) p.push_back(std::exp(logit(i) / f.temperature) / sum);
    return p;
  };
  if (f.top_k > 0 && order.size() > static_cast<std::size_t>(f.top_k))
    order.resize(static_cast<std::size_t>(f.top_k));
  std::vector<double> p = softmax();
  for (std::size_t n = 1; n <= p.size(); ++n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += p[i];
    if (sum < f.top_p && n < p.size()) continue;
    if (f.top_p < 1) order.resize(n);
    break;
  }
  p = softmax();
  std::size_t n = 0;
  while (n < p.size() && p[n] >= f.min_p * p[0]) ++n;
  order.resize(n);
  p = softmax();
  Probabilities result;
  for (std::size_t i = 0; i < n; ++i) result[order[i]] = p[i];
  return result;
}

TEST(Draw, DrawsWhatTheDefinitionsLeaveAsOftenAsTheySay) {
  test::for_seeds(40, [](unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<float> logits(1 + random() % 12);
    for (float& x : logits) x = static_cast<float>(6 * uniform(random) - 3);
    const auto maybe = [&](double value, double otherwise) {
      return random() % 2 ? value : otherwise;
    };
    DrawFilters f;
    f.temperature = 0.3 + 2 * uniform(random);
    f.top_k = static_cast<std::int64_t>(random() % (logits.size() + 3));
    f.top_p = maybe(0.01 + 0.98 * uniform(random), 1);
    f.min_p = maybe(0.9 * uniform(random), 0);
    const Probabilities expected = left(logits, f);
    std::map<std::int32_t, double> drawn;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) drawn[draw(logits, f, (i + 0.5) / draws)] += 1.0 / draws;
    for (const auto& [token, p] : expected) EXPECT_NEAR(drawn[token], p, 2.0 / draws) << token;
    for (const auto& [token, p] : drawn) EXPECT_TRUE(expected.contains(token)) << "seed " << seed;
  });
}

TEST(Draw, TheOrderOfFiltersIsTemperatureTopKTopPMinP) {
  // Probabilities .4 .3 .2 .1.
  const std::vector<float> logits{std::log(.1F), std::log(.4F), std::log(.2F), std::log(.3F)};
  const auto tokens = [&](const DrawFilters& f) {
    std::vector<std::int32_t> all;
    for (int i = 0; i < 1000; ++i) all.push_back(draw(logits, f, i / 1000.0));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(tokens({.temperature = 1}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(tokens({.temperature = 1, .top_p = 0.65}), (Ids{1, 3}));  // .7 >= .65
  // After top k 2 the probabilities are 4/7 and 3/7, so that 0.5 needs the first alone.
  EXPECT_EQ(tokens({.temperature = 1, .top_p = 0.5}), (Ids{1, 3}));
  EXPECT_EQ(tokens({.temperature = 1, .top_k = 2, .top_p = 0.5}), (Ids{1}));
  // A high temperature acts first: .29 .27 .24 .20 at 3.
  EXPECT_EQ(tokens({.temperature = 3, .top_p = 0.65}), (Ids{1, 2, 3}));
  EXPECT_EQ(tokens({.temperature = 1, .min_p = 0.6}), (Ids{1, 3}));
  EXPECT_EQ(tokens({.temperature = 1, .top_p = 1e-9}), (Ids{1}));
  EXPECT_EQ(tokens({.temperature = 1, .min_p = 1}), (Ids{1}));
  EXPECT_EQ(tokens({.temperature = 0, .top_k = 3}), (Ids{1}));
}

TEST(Draw, LogitsThatAreNotFinite) {
  const float inf = INFINITY, nan = NAN;
  EXPECT_EQ(draw(std::vector{-inf, 1.F, -inf}, {}, 0.99), 1);
  for (const std::vector<float>& logits : {std::vector{1.F, nan}, std::vector{nan, 1.F},
                                           std::vector{inf, 1.F}, std::vector{-inf, -inf}}) {
    test::expect_error([&] { draw(logits, {}, 0.5); }, ErrorKind::value, {"not finite"});
  }
}

}  // namespace
}  // namespace ein::training
