// Attention, its cache, and the Transformer against plain loops over doubles.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/slopes.hpp"

namespace {

using ein::Error;
using ein::ErrorKind;
using ein::Shape;
using ein::StateDict;
using ein::Tensor;
namespace nn = ein::nn;
using Values = std::vector<double>;

// --- the reference: one sequence, row-major (positions, features) ---

/// Parameters of one module in a state dict.
class Weights {
 public:
  Weights(const StateDict& state, std::string prefix) : state_(state), prefix_(std::move(prefix)) {}
  Weights operator/(const std::string& name) const { return {state_, prefix_ + name + "."}; }
  Values operator[](const std::string& name) const {
    const auto found = state_.find(prefix_ + name);
    return found == state_.end() ? Values() : found->second.to_vector<double>();
  }

 private:
  const StateDict& state_;
  std::string prefix_;
};

Values linear(const Weights& w, const Values& x, std::size_t in) {
  const Values weight = w["weight"], bias = w["bias"];
  const std::size_t out = weight.size() / in;
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

Values norm(const Weights& w, const Values& x) {
  const Values weight = w["weight"], bias = w["bias"];
  const std::size_t dim = weight.size();
  Values y(x.size());
  for (std::size_t s = 0; s < x.size() / dim; ++s) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < dim; ++c) mean += x[s * dim + c] / static_cast<double>(dim);
    for (std::size_t c = 0; c < dim; ++c)
      variance += std::pow(x[s * dim + c] - mean, 2) / static_cast<double>(dim);
    for (std::size_t c = 0; c < dim; ++c) {
      y[s * dim + c] = (x[s * dim + c] - mean) / std::sqrt(variance + 1e-5) * weight[c] +
                       (bias.empty() ? 0 : bias[c]);
    }
  }
  return y;
}

Values attention(const Weights& w, const Values& x, std::size_t dim, std::size_t heads) {
  const std::size_t positions = x.size() / dim, size = dim / heads;
  const Values qkv = linear(w / "c_attn", x, dim);
  const auto at = [&](std::size_t which, std::size_t s, std::size_t c) {
    return qkv[s * 3 * dim + which * dim + c];
  };
  Values mixed(x.size());
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t s = 0; s < positions; ++s) {
      Values weight(s + 1);
      double sum = 0;
      for (std::size_t t = 0; t <= s; ++t) {
        double score = 0;
        for (std::size_t c = h * size; c < (h + 1) * size; ++c) score += at(0, s, c) * at(1, t, c);
        sum += weight[t] = std::exp(score / std::sqrt(static_cast<double>(size)));
      }
      for (std::size_t c = h * size; c < (h + 1) * size; ++c) {
        for (std::size_t t = 0; t <= s; ++t) mixed[s * dim + c] += weight[t] / sum * at(2, t, c);
      }
    }
  }
  return linear(w / "c_proj", mixed, dim);
}

Values sum(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Values transformer(const StateDict& state, const std::vector<std::int64_t>& tokens,
                   const nn::TransformerConfig& config) {
  const Weights w = Weights(state, "") / "transformer";
  const auto dim = static_cast<std::size_t>(config.n_embd);
  const Values wte = (w / "wte")["weight"], wpe = (w / "wpe")["weight"];
  Values x;
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    for (std::size_t c = 0; c < dim; ++c)
      x.push_back(wte[static_cast<std::size_t>(tokens[s]) * dim + c] + wpe[s * dim + c]);
  }
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    const Weights block = w / "h" / std::to_string(i);
    x = sum(x, attention(block / "attn", norm(block / "ln_1", x), dim,
                         static_cast<std::size_t>(config.n_head)));
    Values inside = linear(block / "mlp" / "c_fc", norm(block / "ln_2", x), dim);
    for (double& v : inside) v = v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
    x = sum(x, linear(block / "mlp" / "c_proj", inside, 4 * dim));
  }
  x = norm(w / "ln_f", x);
  Values logits;
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    for (std::size_t v = 0; v < static_cast<std::size_t>(config.vocab_size); ++v) {
      double dot = 0;
      for (std::size_t c = 0; c < dim; ++c) dot += x[s * dim + c] * wte[v * dim + c];
      logits.push_back(dot);
    }
  }
  return logits;
}

// --- tests ---

void expect_error(const std::function<void()>& call, ErrorKind kind, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

void expect_near(const Values& a, const Values& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

/// Weights of scale 1, so that every term matters.
void enlarge(const nn::Module& model) {
  const ein::NoGrad no_grad;
  for (const auto& [name, parameter] : model.named_parameters()) {
    parameter.copy_from(parameter +
                        ein::randn(parameter.shape()) * (parameter.rank() == 1 ? 0.5 : 0.3));
  }
}

constexpr nn::TransformerConfig small{
    .vocab_size = 11, .block_size = 9, .n_layer = 2, .n_head = 2, .n_embd = 8};

Tensor some_tokens(std::int64_t batch, std::int64_t positions) {
  return (ein::rand({batch, positions}) * 11).to(ein::DType::i64);
}

TEST(Attention, EqualsPlainLoops) {
  for (const auto& [dim, heads, bias] :
       {std::tuple{8, 2, true}, {6, 3, false}, {4, 4, true}, {5, 1, true}}) {
    SCOPED_TRACE("seed 11, dim " + std::to_string(dim) + ", heads " + std::to_string(heads));
    ein::manual_seed(11);
    const nn::Attention layer(dim, heads, bias);
    enlarge(layer);
    const Tensor x = ein::randn({3, 7, dim});
    const Tensor y = layer(x);
    ASSERT_EQ(y.shape(), (Shape{3, 7, dim}));
    const StateDict state = layer.state_dict();
    EXPECT_EQ(state.size(), bias ? 4u : 2u);
    for (std::int64_t b = 0; b < 3; ++b) {
      expect_near(y[b].to_vector<double>(),
                  attention(Weights(state, ""), x[b].to_vector<double>(),
                            static_cast<std::size_t>(dim), static_cast<std::size_t>(heads)),
                  2e-5);
    }
  }
}

TEST(Attention, LaterPositionsDoNotMatter) {
  ein::manual_seed(12);
  const nn::Attention layer(8, 2);
  const Tensor x = ein::randn({1, 6, 8});
  const Values before = layer(x).at({0, ein::slice(0, 4)}).to_vector<double>();
  x.at({0, ein::slice(4)}).fill(100);
  EXPECT_EQ(layer(x).at({0, ein::slice(0, 4)}).to_vector<double>(), before) << "seed 12";
}

TEST(Attention, RefusesHeadsThatDoNotDivide) {
  expect_error([] { nn::Attention(8, 3); }, ErrorKind::value, "3 heads do not divide dim 8");
  expect_error([] { nn::Attention(8, 0); }, ErrorKind::value, "heads is 0");
  expect_error([] { nn::Attention(8, 2, true, 1.5); }, ErrorKind::value, "1.5");
}

TEST(KVCache, GivesWhatAllPositionsAtOnceDo) {
  ein::manual_seed(13);
  const nn::Attention layer(8, 2);
  enlarge(layer);
  const Tensor x = ein::randn({2, 7, 8});
  const Tensor whole = layer(x).detach();
  nn::KVCache cache = layer.make_cache(2, 7);
  std::int64_t at = 0;
  for (std::int64_t step : {3, 1, 2, 1}) {
    const Tensor part = layer.forward(x.at({ein::every, ein::slice(at, at + step)}), cache);
    EXPECT_FALSE(part.requires_grad());
    expect_near(part.to_vector<double>(),
                whole.at({ein::every, ein::slice(at, at + step)}).to_vector<double>(), 1e-5);
    at += step;
    EXPECT_EQ(cache.length, at);
  }
  expect_error(
      [&] {
        layer.forward(ein::ones({2, 1, 8}), cache);
      },
      ErrorKind::shape, "behind 7 positions");
  nn::KVCache other = layer.make_cache(1, 7), none;
  expect_error(
      [&] {
        layer.forward(ein::ones({2, 1, 8}), other);
      },
      ErrorKind::shape, "(1, 2, 7, 4)");
  expect_error([&] { layer.forward(ein::ones({2, 1, 8}), none); }, ErrorKind::shape, "do not fit");
}

TEST(KVCache, TakesAPositionThatIsATensor) {
  ein::manual_seed(13);
  const nn::Attention layer(8, 2);
  enlarge(layer);
  const Tensor x = ein::randn({2, 7, 8});
  const Tensor whole = layer(x).detach();
  const nn::KVCache cache = layer.make_cache(2, 7);
  std::int64_t at = 0;
  for (std::int64_t step : {3, 1, 2, 1}) {
    const Tensor position = ein::full({1}, at, ein::DType::i32);
    const Tensor part =
        layer.forward(x.at({ein::every, ein::slice(at, at + step)}), cache, position);
    expect_near(part.to_vector<double>(),
                whole.at({ein::every, ein::slice(at, at + step)}).to_vector<double>(), 1e-5);
    at += step;
  }
  EXPECT_EQ(cache.length, 0);
  expect_error(
      [&] {
        layer.forward(ein::ones({2, 1, 8}), cache, ein::full({}, 7, ein::DType::i64));
      },
      ErrorKind::value, "position 7 is outside an axis of size 7");
  expect_error(
      [&] {
        layer.forward(ein::ones({1, 1, 8}), cache, ein::full({}, 0, ein::DType::i64));
      },
      ErrorKind::shape, "(1, 2, 1, 4)");
}

TEST(Transformer, HasTheNamesOfGpt2) {
  const nn::Transformer with(small);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : with.named_parameters()) names.push_back(name);
  std::vector<std::string> wanted{"transformer.wte.weight", "transformer.wpe.weight"};
  for (const std::string block : {"transformer.h.0.", "transformer.h.1."}) {
    for (const char* name :
         {"ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
          "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",
          "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"}) {
      wanted.push_back(block + name);
    }
  }
  wanted.insert(wanted.end(), {"transformer.ln_f.weight", "transformer.ln_f.bias"});
  EXPECT_EQ(names, wanted);
  nn::TransformerConfig config = small;
  config.bias = false;
  EXPECT_EQ(nn::Transformer(config).state_dict().size(), 2u + 2 * 6 + 1);
  // nanoGPT prints 0.80M for its small character model, without the 64·128 of wpe.
  const nn::Transformer characters({.vocab_size = 65,
                                    .block_size = 64,
                                    .n_layer = 4,
                                    .n_head = 4,
                                    .n_embd = 128,
                                    .bias = false});
  EXPECT_EQ(characters.parameter_count(),
            65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128);
}

TEST(Transformer, EqualsPlainLoops) {
  for (bool bias : {true, false}) {
    SCOPED_TRACE("seed 14");
    ein::manual_seed(14);
    nn::TransformerConfig config = small;
    config.bias = bias;
    const nn::Transformer model(config);
    enlarge(model);
    const Tensor tokens = some_tokens(2, 7);
    const Tensor logits = model(tokens);
    ASSERT_EQ(logits.shape(), (Shape{2, 7, 11}));
    for (std::int64_t b = 0; b < 2; ++b) {
      expect_near(logits[b].to_vector<double>(),
                  transformer(model.state_dict(), tokens[b].to_vector<std::int64_t>(), config),
                  2e-4);
    }
  }
}

TEST(Transformer, BeginsAsGpt2) {
  ein::manual_seed(15);
  const nn::Transformer model(
      {.vocab_size = 500, .block_size = 64, .n_layer = 8, .n_head = 2, .n_embd = 64});
  for (const auto& [name, parameter] : model.named_parameters()) {
    const Values values = parameter.to_vector<double>();
    if (parameter.rank() == 1) {
      const double wanted = name.ends_with("bias") ? 0 : 1;
      EXPECT_EQ(values, Values(values.size(), wanted)) << name;
      continue;
    }
    double squares = 0;
    for (double v : values) squares += v * v;
    const auto n = static_cast<double>(values.size());
    const double std = name.ends_with("c_proj.weight") ? 0.02 / 4 : 0.02;
    // The standard deviation of a sample of n normal numbers has the relative error 1/√(2n).
    EXPECT_NEAR(std::sqrt(squares / n) / std, 1, 5 / std::sqrt(2 * n)) << name << ", seed 15";
  }
  // Almost uniform: the loss is near log 500.
  const auto random = [] { return (ein::rand({4, 64}) * 500).to(ein::DType::i64); };
  EXPECT_NEAR(cross_entropy(model(random()), random(), "b s [v], b s").item(), std::log(500.0), 0.1)
      << "seed 15";
}

TEST(Transformer, GradientsAreSlopes) {
  ein::manual_seed(16);
  const nn::Transformer model(small);
  enlarge(model);
  const Tensor tokens = some_tokens(2, 9), targets = some_tokens(2, 9);
  const auto loss = [&] { return cross_entropy(model(tokens), targets, "b s [v], b s"); };
  SCOPED_TRACE("seed 16");
  ein::test::expect_gradients_are_slopes(model, loss, 2e-3);
}

TEST(Transformer, CompiledGradientsAreTheSame) {
  ein::manual_seed(18);
  const nn::Transformer model(small);
  enlarge(model);
  const Tensor tokens = some_tokens(2, 9), targets = some_tokens(2, 9);
  const auto gradients = [&](const Tensor& x, const Tensor& y) {
    model.zero_grad();
    cross_entropy(model(x), y, "b s [v], b s").backward();
    std::vector<Tensor> all;
    for (const Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
    return all;
  };
  const std::vector<Tensor> traced = ein::compile(gradients)(tokens, targets),
                            eager = gradients(tokens, targets);
  ASSERT_EQ(traced.size(), eager.size());
  for (std::size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(all_close(traced[i], eager[i], 1e-4, 1e-5)) << i << ", seed 18";
}

TEST(Transformer, NextLogitsEqualTheWhole) {
  ein::manual_seed(17);
  nn::Transformer model(small);
  enlarge(model);
  model.eval();
  const Tensor tokens = some_tokens(2, 9);
  const Tensor whole = model(tokens).detach();
  std::vector<nn::KVCache> cache = model.make_cache(2);
  std::int64_t at = 0;
  for (std::int64_t step : {4, 1, 1, 2, 1}) {
    const Tensor next =
        model.next_logits(tokens.at({ein::every, ein::slice(at, at + step)}), cache);
    at += step;
    ASSERT_EQ(next.shape(), (Shape{2, 11}));
    expect_near(next.to_vector<double>(), whole.at({ein::every, at - 1}).to_vector<double>(), 1e-4);
  }
  expect_error(
      [&] {
        model.next_logits(tokens.at({ein::every, ein::slice(0, 1)}), cache);
      },
      ErrorKind::shape, "10 positions are more than the 9 that are learned");
  std::vector<nn::KVCache> fresh = model.make_cache(2), none;
  expect_error(
      [&] {
        model.next_logits(tokens.at({ein::every, ein::slice(0, 0)}), fresh);
      },
      ErrorKind::shape, "at least one token");
  expect_error([&] { model.next_logits(tokens, none); }, ErrorKind::shape, "0 layers");
}

TEST(Transformer, OneCompiledFunctionDecodesTokenAfterToken) {
  ein::manual_seed(17);
  nn::Transformer model(small);
  enlarge(model);
  model.eval();
  const Tensor tokens = some_tokens(2, 9), position = ein::zeros({}, ein::DType::i64);
  const Tensor whole = model(tokens).detach();
  const std::vector<nn::KVCache> cache = model.make_cache(2);
  auto step = ein::compile([&](const Tensor& token) {
    const Tensor logits = model.next_logits(token, cache, position);
    position.copy_from(position + token.shape()[1]);
    return logits;
  });
  std::int64_t at = 0;
  for (std::int64_t count : {4, 1, 1, 1, 1, 1}) {
    const Tensor next = step(tokens.at({ein::every, ein::slice(at, at + count)}).clone());
    at += count;
    expect_near(next.to_vector<double>(), whole.at({ein::every, at - 1}).to_vector<double>(), 1e-4);
    EXPECT_EQ(position.item<std::int64_t>(), at);
  }
  const Tensor seen = cache[0].keys.clone();
  expect_error(
      [&] {
        step(tokens.at({ein::every, ein::slice(0, 1)}).clone());
      },
      ErrorKind::value, "position 9 is outside an axis of size 9");
  EXPECT_EQ(cache[0].keys.to_vector<float>(), seen.to_vector<float>());
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  const nn::Transformer model(small);
  expect_error(
      [&] {
        model(ein::zeros({1, 10}, ein::DType::i64));
      },
      ErrorKind::shape, "10 positions are more than the 9 that are learned");
  expect_error([&] { model(ein::zeros({10}, ein::DType::i64)); }, ErrorKind::rank, "(10,)");
  expect_error([&] { model(ein::full({1, 2}, 11, ein::DType::i64)); }, ErrorKind::value, "11");
  nn::TransformerConfig config = small;
  config.n_layer = 0;
  expect_error([&] { nn::Transformer{config}; }, ErrorKind::value, "layers is 0");
}

TEST(Triangle, TakesAnotherValueThanZero) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = ein::ones({2, 3}).requires_grad(true);
  const Tensor y = tril(x, "... [i j]", 1, -inf);
  EXPECT_EQ(y.to_vector<double>(), (Values{1, 1, -inf, 1, 1, 1}));
  EXPECT_EQ(triu(x.detach(), "... [i j]", 1, 5).to_vector<double>(), (Values{5, 1, 1, 5, 5, 1}));
  y.backward(ein::full({2, 3}, 2));
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{2, 2, 0, 2, 2, 2}));
  EXPECT_EQ(tril(ein::arange(4).view({2, 2}), "... [i j]", 0, -1).to_vector<double>(),
            (Values{0, -1, 2, 3}));
  expect_error(
      [] {
        tril(ein::arange(4).view({2, 2}), "... [i j]", 0, 0.5);
      },
      ErrorKind::dtype, "i64 cannot hold 0.5");
}

}  // namespace
