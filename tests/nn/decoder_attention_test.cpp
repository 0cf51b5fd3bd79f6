// Attention of every kind beside plain loops over doubles: grouped heads, windows, caps, norms of
// queries and keys; its cache; and what is kept of scores in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"
#include "support/row_code.hpp"
#include "support/slopes.hpp"

namespace {

using ein::ErrorKind;
using ein::Shape;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;
using Values = std::vector<double>;

void expect_near(const Values& a, const Values& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

/// Row-major (rows, in) times (in, out), plus a bias.
Values linear(const Values& x, const nn::Linear& layer) {
  const Values weight = layer.weight.to_vector<double>(),
               bias = layer.bias ? layer.bias->to_vector<double>() : Values();
  const auto in = static_cast<std::size_t>(std::int64_t{layer.weight.shape()[0]}),
             out = static_cast<std::size_t>(std::int64_t{layer.weight.shape()[1]});
  Values y(x.size() / in * out);
  for (std::size_t s = 0; s < x.size() / in; ++s) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (std::size_t i = 0; i < in; ++i) sum += x[s * in + i] * weight[i * out + o];
      y[s * out + o] = sum;
    }
  }
  return y;
}

/// A head, normed and turned as the config says.
Values prepared(Values head, const nn::AttentionConfig& c, std::size_t position) {
  if (c.query_key_norm) {
    double squares = 0;
    for (double v : head) squares += v * v / static_cast<double>(head.size());
    for (double& v : head) v /= std::sqrt(squares + c.query_key_norm->eps);
  }
  if (!c.rotary) return head;
  const std::size_t pairs = head.size() / 2;
  for (std::size_t k = 0; k < pairs; ++k) {
    const double angle =
        static_cast<double>(position) *
        std::pow(c.rotary->base, -static_cast<double>(k) / static_cast<double>(pairs));
    const double u = head[k], v = head[k + pairs];
    head[k] = u * std::cos(angle) - v * std::sin(angle);
    head[k + pairs] = v * std::cos(angle) + u * std::sin(angle);
  }
  return head;
}

/// Of one sequence (positions, width).
Values attention(const nn::Attention& layer, const Values& x, std::size_t width) {
  const nn::AttentionConfig& c = layer.config();
  const auto heads = static_cast<std::size_t>(c.heads),
             keys = static_cast<std::size_t>(c.key_heads),
             d = static_cast<std::size_t>(c.head_size), positions = x.size() / width;
  const Values qkv = linear(x, layer.c_attn);
  const std::size_t row = (heads + 2 * keys) * d;
  const auto head = [&](std::size_t s, std::size_t first) {
    const auto begin = qkv.begin() + static_cast<std::ptrdiff_t>(s * row + first * d);
    return Values(begin, begin + static_cast<std::ptrdiff_t>(d));
  };
  Values mixed(positions * heads * d);
  for (std::size_t h = 0; h < heads; ++h) {
    const std::size_t g = h / (heads / keys);
    for (std::size_t s = 0; s < positions; ++s) {
      const Values q = prepared(head(s, h), c, s);
      const std::size_t first = c.window > 0 && s + 1 > static_cast<std::size_t>(c.window)
                                    ? s + 1 - static_cast<std::size_t>(c.window)
                                    : 0;
      double sum = 0;
      Values out(d);
      for (std::size_t t = first; t <= s; ++t) {
        const Values k = prepared(head(t, heads + g), c, t), v = head(t, heads + keys + g);
        double score = 0;
        for (std::size_t i = 0; i < d; ++i) score += q[i] * k[i];
        score *= c.scale;
        if (c.soft_cap > 0) score = c.soft_cap * std::tanh(score / c.soft_cap);
        const double weight = std::exp(score);
        sum += weight;
        for (std::size_t i = 0; i < d; ++i) out[i] += weight * v[i];
      }
      for (std::size_t i = 0; i < d; ++i) mixed[(s * heads + h) * d + i] = out[i] / sum;
    }
  }
  return linear(mixed, layer.c_proj);
}

struct Case {
  const char* name;
  nn::AttentionConfig config;
};
const Case cases[] = {
    {"heads", {.heads = 3}},
    {"grouped", {.heads = 6, .key_heads = 2}},
    {"one key head", {.heads = 4, .key_heads = 1, .bias = false}},
    {"head size", {.heads = 2, .head_size = 5, .output_bias = false}},
    {"window", {.heads = 2, .window = 3}},
    {"window of one", {.heads = 2, .window = 1}},
    {"cap", {.heads = 2, .soft_cap = 0.5}},
    {"scale", {.heads = 2, .scale = 1}},
    {"norms",
     {.heads = 4,
      .key_heads = 2,
      .head_size = 6,
      .query_key_norm = nn::NormConfig{.kind = nn::NormConfig::Kind::rms, .eps = 1e-6}}},
    {"rotary", {.heads = 4, .key_heads = 2, .head_size = 6, .rotary = nn::Rotary{}}},
    {"all",
     {.heads = 4,
      .key_heads = 2,
      .head_size = 4,
      .window = 4,
      .soft_cap = 2,
      .scale = 0.7,
      .query_key_norm = nn::NormConfig{.kind = nn::NormConfig::Kind::rms, .eps = 1e-6},
      .rotary = nn::Rotary{.base = 100}}},
};
constexpr std::int64_t width = 12;

TEST(DecoderAttention, EqualsPlainLoops) {
  for (const Case& of : cases) {
    SCOPED_TRACE(of.name);
    ein::manual_seed(31);
    const nn::Attention layer(width, of.config);
    const Tensor x = ein::randn({2, 9, width});
    const Tensor y = layer(x);
    for (std::int64_t b = 0; b < 2; ++b)
      expect_near(y[b].to_vector<double>(),
                  attention(layer, x[b].to_vector<double>(), static_cast<std::size_t>(width)),
                  5e-6);
  }
}

TEST(DecoderAttention, CacheGivesWhatAllPositionsAtOnceDo) {
  for (const Case& of : cases) {
    for (const std::int64_t room : {11, 9}) {
      SCOPED_TRACE(std::string(of.name) + ", room " + std::to_string(room));
      ein::manual_seed(32);
      const nn::Attention layer(width, of.config);
      const Tensor x = ein::randn({2, 9, width});
      const Values whole = layer(x).detach().to_vector<double>();
      nn::KVCache cache = layer.make_cache(2, room);
      const nn::KVCache held = layer.make_cache(2, room);
      if (of.config.window > 0) {
        EXPECT_EQ(cache.keys.shape()[2], of.config.window);
      }
      std::int64_t at = 0;
      for (const std::int64_t count : {5, 1, 2, 1}) {
        const Tensor part = x.at({ein::every, ein::slice(at, at + count)});
        const Values wanted = ein::from_vector(whole, {2, 9, width})
                                  .at({ein::every, ein::slice(at, at + count)})
                                  .to_vector<double>();
        expect_near(layer.forward(part, cache).to_vector<double>(), wanted, 1e-5);
        expect_near(
            layer.forward(part, held, ein::full({}, at, ein::DType::i64)).to_vector<double>(),
            wanted, 1e-5);
        at += count;
        EXPECT_EQ(cache.length, at);
      }
    }
  }
}

TEST(DecoderAttention, AWindowGoesOnForAnyNumberOfPositions) {
  ein::manual_seed(33);
  const nn::Attention layer(width, {.heads = 2, .window = 4, .rotary = nn::Rotary{}});
  const Tensor x = ein::randn({1, 40, width});
  const Tensor whole = layer(x).detach();
  nn::KVCache cache = layer.make_cache(1, 10);  // of which a window takes 4
  for (std::int64_t at = 0; at < 40; ++at) {
    const Tensor next = layer.forward(x.at({ein::every, ein::slice(at, at + 1)}), cache);
    expect_near(next.to_vector<double>(),
                whole.at({ein::every, ein::slice(at, at + 1)}).to_vector<double>(), 1e-5);
  }
  // With less room than a window it is no window's.
  nn::KVCache little = layer.make_cache(1, 3);
  layer.forward(x.at({ein::every, ein::slice(0, 3)}), little);
  expect_error(
      [&] {
        layer.forward(x.at({ein::every, ein::slice(3, 4)}), little);
      },
      ErrorKind::shape, {"behind 3 positions"});
}

TEST(DecoderAttention, OneProgramServesACacheOfAnyLength) {
  ein::manual_seed(34);
  nn::DecoderConfig config = nn::llama_form();
  config.vocabulary = 11;
  config.positions = 16;
  config.width = width;
  config.layers = 2;
  config.attention.heads = 2;
  config.feed_forward.width = 16;
  nn::add_windows(config, 3, 2);
  const nn::Decoder model(config);
  const Tensor tokens = (ein::rand({1, 12}) * 11).to(ein::DType::i64);
  const Tensor whole = model(tokens).detach();
  const std::vector<nn::KVCache> kept = model.make_cache();
  auto next = ein::compile(
      [&](const Tensor& before, const Tensor& fresh) {
        std::vector<nn::KVCache> cache = kept;
        for (nn::KVCache& layer : cache) layer.length = ein::size_of(before, "p");
        return model.next_logits(fresh, cache);
      },
      {"p", "b=1 n"});
  std::int64_t at = 0;
  for (const std::int64_t count : {4, 1, 1, 1, 1, 1, 1, 1, 1}) {
    const Tensor logits =
        next(ein::zeros({at}), tokens.at({ein::every, ein::slice(at, at + count)}));
    at += count;
    expect_near(logits.to_vector<double>(), whole.at({0, at - 1}).to_vector<double>(), 1e-5);
  }
}

TEST(DecoderAttention, GradientsAreSlopes) {
  ein::manual_seed(35);
  const nn::Attention layer(width, cases[std::size(cases) - 1].config);
  const Tensor x = ein::randn({2, 6, width}), g = ein::randn({2, 6, width});
  const auto value = [&] { return reduce(layer(x) * g, "... ->", "sum"); };
  ein::test::expect_gradients_are_slopes(layer, value, 5e-3);
}

// Causal attention is computed without its matrix of scores, in training too, whatever heads share
// keys; with rotary positions and norms of queries and keys as well.
TEST(DecoderAttention, KeepsNoMatrixOfScores) {
  SKIP_WITHOUT_ROW_CODE;
  const std::int64_t s = 512, heads = 4, d = 16, dim = 64;
  const std::size_t matrix = static_cast<std::size_t>(heads * s * s) * 4;
  const nn::NormConfig rms{.kind = nn::NormConfig::Kind::rms, .eps = 1e-6};
  for (const nn::AttentionConfig& config :
       {nn::AttentionConfig{.heads = heads},
        nn::AttentionConfig{.heads = heads, .rotary = nn::Rotary{}},
        nn::AttentionConfig{.heads = heads, .query_key_norm = rms, .rotary = nn::Rotary{}},
        nn::AttentionConfig{.heads = heads, .key_heads = 2, .rotary = nn::Rotary{}},
        nn::AttentionConfig{.heads = heads, .key_heads = 1, .bias = false},
        nn::AttentionConfig{.heads = heads, .window = 100},
        nn::AttentionConfig{.heads = heads, .key_heads = 2, .soft_cap = 30},
        nn::AttentionConfig{
            .heads = heads, .window = 64, .soft_cap = 50, .rotary = nn::Rotary{}}}) {
    SCOPED_TRACE(std::to_string(config.key_heads) + (config.rotary ? " rotary" : "") +
                 (config.query_key_norm ? " norms" : "") + " window " +
                 std::to_string(config.window) + " cap " + std::to_string(config.soft_cap));
    const nn::Attention layer(dim, config);
    ASSERT_EQ(layer.config().head_size, d);
    const Tensor x = ein::randn({1, s, dim});
    auto forward = ein::compile([&](const Tensor& a) {
      const ein::NoGrad no_grad;
      return layer(a);
    });
    forward(x);
    EXPECT_NE(forward.text().find("attention"), std::string::npos);
    EXPECT_LT(forward.memory().arena, matrix / 2);
    auto step = ein::compile([&](const Tensor& a) {
      layer.zero_grad();
      reduce(layer(a) * a, "... ->", "sum").backward();
      std::vector<Tensor> all;
      for (const Tensor& parameter : layer.parameters()) all.push_back(parameter.grad());
      return all;
    });
    step(x);
    EXPECT_NE(step.text().find("as the gradients of attention"), std::string::npos);
    EXPECT_LT(step.memory().arena, matrix);
  }
}

TEST(DecoderAttention, RefusesSizesThatDoNotFit) {
  using Config = nn::AttentionConfig;
  expect_error([] { nn::Attention(8, Config{.heads = 4, .key_heads = 3}); }, ErrorKind::value,
               {"3 heads of keys do not divide 4 heads"});
  expect_error([] { nn::Attention(8, Config{.heads = 3}); }, ErrorKind::value,
               {"3 heads do not divide dim 8"});
  expect_error([] { nn::Attention(8, Config{.heads = 0}); }, ErrorKind::value, {"heads is 0"});
  expect_error([] { nn::Attention(8, Config{.heads = 4, .key_heads = -1}); }, ErrorKind::value,
               {"key_heads is -1"});
  expect_error([] { nn::Attention(8, Config{.heads = 4, .head_size = -1}); }, ErrorKind::value,
               {"head_size is -1"});
  expect_error([] { nn::Attention(8, Config{.heads = 1, .head_size = INT64_MAX / 2}); },
               ErrorKind::value, {"head_size is", "exceeds 2^63 - 1"});
  expect_error([] { nn::Attention(8, Config{.heads = 4, .window = -1}); }, ErrorKind::value,
               {"window is -1"});
  expect_error([] { nn::Attention(8, Config{.heads = 4, .soft_cap = -1}); }, ErrorKind::value,
               {"soft_cap is -1"});
  expect_error([] { nn::Attention(8, Config{.heads = 4, .scale = NAN}); }, ErrorKind::value,
               {"scale is nan"});
  expect_error([] { nn::Attention(12, Config{.heads = 4, .rotary = nn::Rotary{}}); },
               ErrorKind::value, {"3 of the 3 elements"});
}

}  // namespace
