// Latent attention and the router of DeepSeek-V3, beside the same written out.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"

namespace {

using namespace ein;

constexpr std::int64_t heads = 3, still = 4, turned = 2, value_size = 5, rank = 7, width = 16;

nn::AttentionConfig config(std::int64_t query_rank) {
  return {.heads = heads,
          .head_size = still + turned,
          .bias = false,
          .output_bias = false,
          .rotary = nn::Rotary{.layout = nn::Rotary::Layout::neighbours},
          .latent = nn::LatentConfig{
              .rank = rank, .query_rank = query_rank, .turned = turned, .value_size = value_size}};
}

/// As the paper has it, head by head, with keys and values written out.
Tensor written_out(const nn::Attention& a, const Tensor& x) {
  const nn::LatentConfig& l = *a.config().latent;
  const Tensor y = a.c_attn(x);
  const std::int64_t first = l.query_rank > 0 ? l.query_rank : heads * (still + turned);
  const auto part = [&](std::int64_t from, std::int64_t count) {
    return y.at({every, every, slice(from, from + count)});
  };
  const Tensor q =
      l.query_rank > 0 ? (*a.q_up)(rms_norm(part(0, first), "b s [c]", 1e-5)) : part(0, first);
  const Tensor kv = (*a.kv_up)(rms_norm(part(first, rank), "b s [c]", 1e-5));
  const auto by = nn::rotations(*a.config().rotary, turned, arange(x.shape()[1]));
  const auto layout = nn::Rotary::Layout::neighbours;
  const Tensor shared = rotated(part(first + rank, turned), by, layout);
  std::vector<Tensor> results;
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t at = h * (still + turned), kv_at = h * (still + value_size);
    const Tensor qn = q.at({every, every, slice(at, at + still)}),
                 qt = rotated(q.at({every, every, slice(at + still, at + still + turned)}), by,
                              layout),
                 kn = kv.at({every, every, slice(kv_at, kv_at + still)}),
                 v = kv.at({every, every, slice(kv_at + still, kv_at + still + value_size)});
    const Tensor scores =
        (einsum(qn, kn, "b q d, b k d -> b q k") + einsum(qt, shared, "b q d, b k d -> b q k")) /
        std::sqrt(6.0);
    const Tensor weights = softmax(tril(scores, "b [q k]", 0, -INFINITY), "b q [k]");
    results.push_back(einsum(weights, v, "b q k, b k d -> b q d"));
  }
  return a.c_proj(rearrange(results, "h b q d -> b q (h d)"));
}

void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LT(reduce(abs(a - b), "... ->", "max").item<float>(), 2e-6f);
}

TEST(LatentAttention, IsThatOfThePaper) {
  manual_seed(3);
  for (const std::int64_t query_rank : {0, 9}) {
    const nn::Attention attention(width, config(query_rank));
    const Tensor x = randn({2, 6, width});
    expect_near(attention(x), written_out(attention, x));
  }
}

TEST(LatentAttention, CacheHoldsRowsOfLowRank) {
  manual_seed(4);
  const nn::Attention attention(width, config(9));
  const Tensor x = randn({2, 6, width});
  nn::KVCache cache = attention.make_cache(2, 8);
  EXPECT_EQ(cache.keys.shape(), (Shape{2, 1, 8, turned}));
  EXPECT_EQ(cache.values.shape(), (Shape{2, 1, 8, rank}));
  const NoGrad no_grad;
  const Tensor whole = attention(x);
  expect_near(attention.forward(x.at({every, slice(0, 4)}), cache), whole.at({every, slice(0, 4)}));
  expect_near(attention.forward(x.at({every, slice(4, 5)}), cache), whole.at({every, slice(4, 5)}));
  const Tensor position = full({1}, 5, DType::i64);
  expect_near(attention.forward(x.at({every, slice(5, 6)}), cache, position),
              whole.at({every, slice(5, 6)}));
}

TEST(LatentAttention, GradientsReachEachWeight) {
  const nn::Attention attention(width, config(9));
  reduce(attention(randn({1, 4, width})), "... ->", "sum").backward();
  for (const auto& [name, parameter] : attention.named_parameters()) {
    ASSERT_TRUE(parameter.has_grad()) << name;
    EXPECT_GT(reduce(abs(parameter.grad()), "... ->", "sum").item<float>(), 0) << name;
  }
}

TEST(LatentAttention, NumbersOutsideTheirDomains) {
  using test::expect_error;
  nn::AttentionConfig c = config(0);
  c.latent->turned = 6;
  expect_error([&] { nn::Attention(width, c); }, ErrorKind::value, {"latent attention", "6"});
  c = config(0);
  c.window = 4;
  expect_error([&] { nn::Attention(width, c); }, ErrorKind::value, {"no window"});
  c = config(0);
  c.latent->rank = 0;
  expect_error([&] { nn::Attention(width, c); }, ErrorKind::value, {"latent.rank is 0"});
}

// Sizes and cost are known of its config; weights are refused before memory is asked for.
TEST(LatentAttention, WeightsOfFilesAreRefused) {
  const test::ScratchDirectory directory;
  std::ofstream(directory.path("config.json")) << R"({"model_type": "deepseek_v3"})";
  EXPECT_EQ(nn::read_decoder_config(directory.path()).config.attention.latent->rank, 512);
  test::expect_error([&] { nn::load_decoder(directory.path()); }, ErrorKind::file,
                     {"config.json", "weights ein does not read"});
}

// Six experts in three groups of two, of which two groups; the correction moves the choice and no
// weight.
TEST(SigmoidRouter, ChoosesGroupsThenExperts) {
  const NoGrad no_grad;
  const nn::MixtureConfig config{
      .experts = 6,
      .chosen = 2,
      .expert = {.activation = nn::Activation::relu, .width = 1, .bias = false},
      .sigmoid = true,
      .groups = 3,
      .chosen_groups = 2,
      .scaling = 2.5};
  nn::Mixture mixture(6, config);
  // x is a row of scores; expert e gives 10^e of each.
  mixture.router.weight.copy_from(eye(6));
  mixture.c_fc.copy_from(ones({6, 6, 1}));
  std::vector<float> gives;
  for (int e = 0; e < 6; ++e) gives.insert(gives.end(), 6, std::pow(10.f, static_cast<float>(e)));
  mixture.c_proj.copy_from(from_vector(gives, {6, 1, 6}));
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto expect_mix = [&](const std::vector<float>& x, int a, int b) {
    const double sa = sigmoid_of(x[static_cast<std::size_t>(a)]),
                 sb = sigmoid_of(x[static_cast<std::size_t>(b)]);
    double inner = 0;
    for (const float v : x) inner += v;
    const double wanted = 2.5 * inner * (sa * std::pow(10, a) + sb * std::pow(10, b)) / (sa + sb);
    const float made = mixture(from_vector(x, {1, 1, 6})).to_vector<float>()[0];
    EXPECT_NEAR(made / wanted, 1, 1e-5);
  };
  // Expert 0 has the best score; its group's sum is the least of the three.
  expect_mix({3, -9, 2, 1.5f, 1, 2.5f}, 5, 2);
  mixture.correction.copy_from(from_vector(std::vector<float>{0, 1, 0, 0, 0, 0}, {6}));
  expect_mix({3, -9, 2, 1.5f, 1, 2.5f}, 0, 1);
}

}  // namespace
