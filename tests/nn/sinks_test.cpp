// What GPT-OSS has of its own, beside the same written out: sinks, clamped gates, biases of
// experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

namespace {

using namespace ein;
using namespace ein::literals;

void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LT(reduce(abs(a - b), "... ->", "max").item<float>(), 2e-6f);
}

/// Softmax over the scores and a column of the sink, which is dropped.
TEST(Sinks, AreAColumnOfTheScoresThatIsDropped) {
  manual_seed(5);
  const NoGrad no_grad;
  const nn::Attention attention(
      8, {.heads = 4, .key_heads = 2, .head_size = 3, .bias = true, .sinks = true});
  attention.sinks.copy_from(tensor({0.5f, -1.f, 2.f, 0.f}));
  const Tensor x = randn({2, 5, 8}), y = attention.c_attn(x);
  std::vector<Tensor> heads;
  for (std::int64_t h = 0; h < 4; ++h) {
    const auto part = [&](std::int64_t from) {
      return y.at({every, every, slice(from, from + 3)});
    };
    const Tensor q = part(3 * h), k = part(12 + 3 * (h / 2)), v = part(18 + 3 * (h / 2));
    const Tensor scores =
        tril(einsum(q, k, "b q d, b k d -> b q k") / std::sqrt(3.0), "b [q k]", 0, -INFINITY);
    const Tensor column =
        full({2, 5, 1}, attention.sinks.to_vector<float>()[static_cast<std::size_t>(h)]);
    const Tensor weights =
        softmax(rearrange(scores, column, "b q k, b q s -> b q (k + s)"), "b q [k]");
    heads.push_back(einsum(weights.at({every, every, slice(0, 5)}), v, "b q k, b k d -> b q d"));
  }
  const Tensor whole = attention(x);
  expect_near(whole, attention.c_proj(rearrange(heads, "h b q d -> b q (h d)")));
  nn::KVCache cache = attention.make_cache(2, 5);
  attention.forward(x.at({every, slice(0, 4)}), cache);
  expect_near(attention.forward(x.at({every, slice(4, 5)}), cache), whole.at({every, slice(4, 5)}));
}

TEST(Sinks, HaveGradients) {
  const nn::Attention attention(8, {.heads = 2, .sinks = true});
  reduce(attention(randn({1, 4, 8})), "... ->", "sum").backward();
  EXPECT_GT(reduce(abs(attention.sinks.grad()), "... ->", "sum").item<float>(), 0);
}

TEST(ClampedGate, OfEveryExpertWithItsBiases) {
  manual_seed(6);
  const NoGrad no_grad;
  const nn::MixtureConfig config{
      .experts = 3,
      .chosen = 2,
      .expert = {.activation = nn::Activation::silu, .gated = true, .width = 5, .limit = 0.5},
      .router_bias = true};
  const nn::Mixture mixture(4, config);
  for (const Tensor& bias : {mixture.c_fc_bias, mixture.c_gate_bias, mixture.c_proj_bias})
    bias.copy_from(randn(bias.shape()));
  mixture.router.bias->copy_from(randn({3}));
  const auto of_token = [&](const Tensor& x) {  // (c)
    const std::vector<float> scores =
        (einsum(x, mixture.router.weight, "c, c e -> e") + *mixture.router.bias).to_vector<float>();
    std::vector<std::int64_t> order{0, 1, 2};
    std::ranges::sort(order, [&](auto a, auto b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    Tensor sum = zeros({4});
    const float first = scores[static_cast<std::size_t>(order[0])],
                second = scores[static_cast<std::size_t>(order[1])];
    for (int i = 0; i < 2; ++i) {
      const std::int64_t e = order[static_cast<std::size_t>(i)];
      const auto through = [&](const Tensor& y, const Tensor& w, const Tensor& b) {
        return einsum(y, w.at({Size(e)}), "i, i o -> o") + b.at({Size(e)});
      };
      const Tensor g = minimum(through(x, mixture.c_gate, mixture.c_gate_bias), 0.5),
                   u = clamp(through(x, mixture.c_fc, mixture.c_fc_bias), -0.5, 0.5);
      const Tensor made =
          through((u + 1) * g * sigmoid(g * 1.702), mixture.c_proj, mixture.c_proj_bias);
      const double weight = 1 / (1 + std::exp(i == 0 ? second - first : first - second));
      sum = sum + made * weight;
    }
    return sum;
  };
  const Tensor x = randn({1, 6, 4});
  const Tensor many = mixture(x);  // by tables
  for (std::int64_t i = 0; i < 6; ++i) {
    const Tensor wanted = of_token(x.at({Size(0), Size(i)}));
    expect_near(many.at({Size(0), Size(i)}), wanted);
    const Tensor one = mixture(x.at({every, slice(i, i + 1)}));  // by rows
    expect_near(one.at({Size(0), Size(0)}), wanted);
  }
}

}  // namespace
