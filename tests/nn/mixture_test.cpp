// Feed-forward networks and mixtures of experts beside plain loops over doubles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

#include "support/expect_error.hpp"
#include "support/slopes.hpp"

namespace {

using ein::ErrorKind;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;
using Values = std::vector<double>;

constexpr std::size_t width = 6, inner = 5;

void expect_near(const Values& a, const Values& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

double act(double x, nn::Activation activation) {
  switch (activation) {
    case nn::Activation::gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case nn::Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case nn::Activation::silu:
      return x / (1 + std::exp(-x));
    case nn::Activation::relu:
      return std::max(x, 0.0);
  }
  return NAN;
}

/// x (in) times weight (in, out), from an element of a tensor on.
Values times(const Values& x, const Values& weight, std::size_t from, std::size_t out) {
  Values y(out);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t o = 0; o < out; ++o) y[o] += x[i] * weight[from + i * out + o];
  }
  return y;
}

TEST(FeedForward, EqualsPlainLoops) {
  using nn::Activation;
  for (const auto activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::relu}) {
    for (const bool gated : {false, true}) {
      ein::manual_seed(41);
      const nn::MLP layer(
          width, {.activation = activation, .gated = gated, .width = inner, .bias = false});
      const Tensor x = ein::randn({width}) * 2;
      const Values in = x.to_vector<double>();
      const Values up = times(in, layer.c_fc.weight.to_vector<double>(), 0, inner);
      Values hidden(inner);
      const Values gate =
          gated ? times(in, layer.c_gate->weight.to_vector<double>(), 0, inner) : up;
      for (std::size_t i = 0; i < inner; ++i)
        hidden[i] = act(gate[i], activation) * (gated ? up[i] : 1);
      expect_near(layer(x).to_vector<double>(),
                  times(hidden, layer.c_proj.weight.to_vector<double>(), 0, width), 1e-5);
    }
  }
}

TEST(FeedForward, RoundsItsWidth) {
  const auto of = [](std::int64_t dim, double ratio, std::int64_t multiple) {
    return nn::inner_width({.ratio = ratio, .multiple = multiple}, dim);
  };
  // CS336: the nearest multiple of 64 to 8/3 of the width.
  for (const auto& [dim, wanted] :
       {std::pair(512, 1344), {768, 2048}, {1024, 2752}, {1280, 3392}, {1600, 4288}})
    EXPECT_EQ(of(dim, 8.0 / 3, 64), wanted);
  EXPECT_EQ(of(768, 4, 1), 3072);
  EXPECT_EQ(nn::inner_width({.width = 7}, 768), 7);
  expect_error([&] { of(8, 0, 1); }, ErrorKind::value, {"ratio is 0"});
  expect_error([&] { of(8, 2, 0); }, ErrorKind::value, {"multiple is 0"});
  expect_error([&] { of(8, 2, 64); }, ErrorKind::value, {"is no size"});
  expect_error([] { nn::inner_width({.width = -1}, 8); }, ErrorKind::value, {"width is -1"});
}

struct Router {
  const char* name;
  bool softmax_over_chosen, normalised;
};
constexpr Router routers[] = {{"softmax over the chosen", true, true},
                              {"softmax over all", false, false},
                              {"softmax over all, normalised", false, true}};

nn::MixtureConfig config_of(const Router& router, std::int64_t shared = 0) {
  return {
      .experts = 4,
      .chosen = 2,
      .expert = {.activation = nn::Activation::silu, .gated = true, .width = inner, .bias = false},
      .softmax_over_chosen = router.softmax_over_chosen,
      .normalised = router.normalised,
      .shared_width = shared};
}

/// Of one token; `chosen` gets the experts, and `p` the softmax over all.
Values mixed(const nn::Mixture& layer, const nn::MixtureConfig& c, const Values& in,
             std::vector<std::size_t>& chosen, Values& p) {
  const auto experts = static_cast<std::size_t>(c.experts), k = static_cast<std::size_t>(c.chosen);
  const Values scores = times(in, layer.router.weight.to_vector<double>(), 0, experts);
  double sum = 0;
  p.clear();
  for (double s : scores) sum += std::exp(s);
  for (double s : scores) p.push_back(std::exp(s) / sum);
  chosen.resize(experts);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  std::sort(chosen.begin(), chosen.end(),
            [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  chosen.resize(k);
  double of_chosen = 0;
  for (std::size_t e : chosen) of_chosen += p[e];
  const bool divides = c.softmax_over_chosen || c.normalised;
  Values out(width);
  for (std::size_t e : chosen) {
    const Values up = times(in, layer.c_fc.to_vector<double>(), e * width * inner, inner),
                 gate = times(in, layer.c_gate.to_vector<double>(), e * width * inner, inner);
    Values hidden(inner);
    for (std::size_t i = 0; i < inner; ++i) hidden[i] = act(gate[i], nn::Activation::silu) * up[i];
    const Values made = times(hidden, layer.c_proj.to_vector<double>(), e * inner * width, width);
    for (std::size_t i = 0; i < width; ++i) out[i] += made[i] * p[e] / (divides ? of_chosen : 1);
  }
  return out;
}

TEST(Mixture, EqualsPlainLoops) {
  for (const Router& router : routers) {
    SCOPED_TRACE(router.name);
    ein::manual_seed(42);
    const nn::MixtureConfig config = config_of(router);
    const nn::Mixture layer(width, config);
    const Tensor x = ein::randn({2, 7, width});
    Tensor balance = ein::zeros({});
    const Tensor y = layer.forward(x, &balance);
    const Values rows = x.to_vector<double>();
    Values wanted, counts(4), means(4);
    for (std::size_t n = 0; n < 14; ++n) {
      std::vector<std::size_t> chosen;
      Values p;
      const Values in(rows.begin() + static_cast<std::ptrdiff_t>(n * width),
                      rows.begin() + static_cast<std::ptrdiff_t>((n + 1) * width));
      const Values out = mixed(layer, config, in, chosen, p);
      wanted.insert(wanted.end(), out.begin(), out.end());
      for (std::size_t e : chosen) counts[e] += 1.0 / 28;
      for (std::size_t e = 0; e < 4; ++e) means[e] += p[e] / 14;
    }
    expect_near(y.to_vector<double>(), wanted, 1e-5);
    double loss = 0;
    for (std::size_t e = 0; e < 4; ++e) loss += 4 * counts[e] * means[e];
    EXPECT_NEAR(balance.item(), loss, 1e-5);
    // A program cannot know how many choose an expert, and gives the same.
    auto compiled = ein::compile([&](const Tensor& a) { return layer(a); });
    EXPECT_TRUE(all_close(compiled(x), y, 1e-5, 1e-6));
  }
}

TEST(Mixture, FewTokensTakeTheWeightsOfTheirExperts) {
  ein::manual_seed(46);
  const nn::MixtureConfig config = config_of(routers[0]);
  const nn::Mixture layer(width, config);
  const Tensor x = ein::randn({1, 9, width});
  const Tensor whole = layer(x);
  for (const std::int64_t count :
       {1, 2, 3}) {  // 2 tokens have as many choices as there are experts
    const Tensor part = x.at({ein::every, ein::slice(0, count)});
    EXPECT_TRUE(all_close(layer(part), whole.at({ein::every, ein::slice(0, count)}), 1e-5, 1e-6));
  }
  const ein::ShapesOnly shapes;
  const nn::Mixture of_shapes(width, config);
  const ein::Cost cost = shapes.cost(of_shapes(ein::empty({1, 1, width})));
  EXPECT_EQ(cost.matmul_only, ein::Count(2 * (width * 4 + 2 * 3 * width * inner)));
}

TEST(Mixture, TrainsUnderAutocast) {
  ein::manual_seed(47);
  const nn::Mixture layer(width, config_of(routers[0], 3));
  const Tensor x = ein::randn({1, 9, width});
  const Tensor wide = layer(x);
  const ein::Autocast autocast(ein::DType::bf16);
  const Tensor y = layer(x);
  EXPECT_TRUE(all_close(y.to(ein::DType::f32), wide, 0.1, 0.05));
  reduce(y, "... ->", "sum").backward();
  EXPECT_EQ(layer.c_fc.grad().dtype(), ein::DType::f32);
}

TEST(Mixture, SharedExpertSeesAllTokens) {
  ein::manual_seed(43);
  const nn::Mixture layer(width, config_of(routers[0], 3));
  ASSERT_TRUE(layer.shared);
  EXPECT_EQ(layer.shared->c_fc.weight.shape(), (ein::Shape{width, 3}));
  const nn::Mixture without(width, config_of(routers[0]));
  without.load_state_dict(layer.state_dict(), {.strict = false});
  const Tensor x = ein::randn({1, 5, width});
  EXPECT_TRUE(all_close(layer(x), without(x) + layer.shared->forward(x), 1e-5, 1e-6));
}

TEST(Mixture, GradientsAreSlopes) {
  ein::manual_seed(44);
  const nn::Mixture layer(width, config_of(routers[2]));
  const Tensor x = ein::randn({1, 6, width}), g = ein::randn({1, 6, width});
  const auto value = [&] {
    Tensor balance = ein::zeros({});
    const Tensor y = layer.forward(x, &balance);
    return reduce(y * g, "... ->", "sum") + balance;
  };
  ein::test::expect_gradients_are_slopes(layer, value, 5e-3);
}

TEST(Mixture, DropsWhatIsBeyondItsCapacity) {
  ein::manual_seed(45);
  nn::MixtureConfig config = config_of(routers[0]);
  config.chosen = 1;
  config.capacity = 1;  // 8 tokens over 4 experts: two each
  const nn::Mixture layer(width, config);
  const Tensor row = ein::randn({1, 1, width});
  const Tensor y = layer(repeat(row, "b 1 c -> b s c", ein::axis("s", 8)));
  const Values values = y.to_vector<double>();
  for (std::size_t s = 0; s < 8; ++s) {
    for (std::size_t i = 0; i < width; ++i) {
      if (s < 2)
        EXPECT_NE(values[s * width + i], 0);
      else
        EXPECT_EQ(values[s * width + i], 0);
    }
  }
}

TEST(Mixture, RefusesSizesThatDoNotFit) {
  const auto with = [](auto change) {
    return [=] {
      nn::MixtureConfig config = config_of(routers[0]);
      change(config);
      nn::Mixture(width, config);
    };
  };
  expect_error(with([](auto& c) { c.experts = 0; }), ErrorKind::value, {"experts is 0"});
  expect_error(with([](auto& c) { c.chosen = 0; }), ErrorKind::value, {"chosen is 0"});
  expect_error(with([](auto& c) { c.chosen = 5; }), ErrorKind::value, {"5 of 4 experts"});
  expect_error(with([](auto& c) { c.capacity = -1; }), ErrorKind::value, {"capacity is -1"});
  expect_error(with([](auto& c) { c.shared_width = -1; }), ErrorKind::value,
               {"shared_width is -1"});
}

}  // namespace
