// Mixed precision: which dtypes an autocast scope gives, and the loss scaler.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/grad_scaler.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace {

using ein::Autocast;
using ein::DType;
using ein::Error;
using ein::ErrorKind;
using ein::Tensor;
using Values = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity();

void expect_error(const std::function<void()>& call, ErrorKind kind, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// --- the scope ---

TEST(Autocast, ContractionsAreNarrow) {
  const Tensor x = ein::full({2, 3}, 1.001), w = ein::ones({3, 2});
  const Tensor whole = ein::ones({3, 2}, DType::i32), wide = ein::ones({3, 2}, DType::f64);
  for (DType dtype : {DType::bf16, DType::f16}) {
    const Autocast scope(dtype);
    EXPECT_EQ(ein::autocast_dtype(), dtype);
    const Tensor y = einsum(x, w, "b i, i o -> b o");
    EXPECT_EQ(y.dtype(), dtype);
    const double rounded = x.to(dtype).to_vector<double>()[0];
    EXPECT_EQ(y.to_vector<double>(), ein::full({2, 2}, 3 * rounded).to(dtype).to_vector<double>());
    EXPECT_EQ(matmul(x, w).dtype(), dtype);
    EXPECT_EQ(matmul(x.to(DType::f16), w).dtype(), dtype);
    EXPECT_EQ(einsum(x.to(DType::bf16), w.to(DType::f16), "b i, i o -> b o").dtype(), dtype);
    EXPECT_EQ(einsum(x, "b i -> b").dtype(), DType::f32);
    EXPECT_EQ(einsum(wide, wide, "i o, i o -> o").dtype(), DType::f64);
    EXPECT_EQ(einsum(whole, whole, "i o, i o -> o").dtype(), DType::i64);
  }
  EXPECT_EQ(ein::autocast_dtype(), std::nullopt);
  EXPECT_EQ(einsum(x, w, "b i, i o -> b o").dtype(), DType::f32);
  expect_error([&] { matmul(x, w.to(DType::f16)); }, ErrorKind::dtype, "f16");
}

TEST(Autocast, AccumulatesInF32) {
  // In bf16, adding 1 to 256 changes nothing.
  const Tensor x = ein::ones({1, 4096});
  const Autocast scope(DType::bf16);
  EXPECT_EQ(einsum(x, x, "b i, b i -> b").item(), 4096);
  EXPECT_EQ(reduce(x.to(DType::bf16) * 1, "b i -> b", "sum").item(), 4096);
}

TEST(Autocast, WhatAddsUpIsWide) {
  const Tensor x = ein::full({2, 4}, 0.3).to(DType::bf16), one = ein::ones({4});
  const Tensor targets = ein::zeros({2}, DType::i64);
  const auto dtypes = [&] {
    return std::vector<DType>{softmax(x, "b [k]").dtype(),
                              log_softmax(x, "b [k]").dtype(),
                              layer_norm(x, one.to(x.dtype()), one.to(x.dtype()), "b [c]").dtype(),
                              rms_norm(x, "b [c]").dtype(),
                              cumsum(x, "b [k]").dtype(),
                              cross_entropy(x, targets, "b [k], b").dtype(),
                              mse_loss(x, x).dtype(),
                              reduce(x, "b k -> b", "sum").dtype(),
                              reduce(x, "b k -> b", "mean").dtype(),
                              reduce(x, "b k -> b", "prod").dtype(),
                              reduce(x, "b k -> b", "var").dtype(),
                              reduce(x, "b k -> b", "logsumexp").dtype()};
  };
  EXPECT_EQ(dtypes(), std::vector<DType>(12, DType::bf16));
  const Autocast scope(DType::bf16);
  EXPECT_EQ(dtypes(), std::vector<DType>(12, DType::f32));
  EXPECT_EQ(layer_norm(x, one, one, "b [c]").dtype(), DType::f32);
  EXPECT_EQ(softmax(x.to(DType::f64), "b [k]").dtype(), DType::f64);
  // The rest is as always.
  EXPECT_EQ((x + x).dtype(), DType::bf16);
  EXPECT_EQ(gelu(x).dtype(), DType::bf16);
  EXPECT_EQ(reduce(x, "b k -> b", "max").dtype(), DType::bf16);
  EXPECT_EQ(rearrange(x, "b k -> k b").dtype(), DType::bf16);
  EXPECT_EQ(dropout(x, 0.5).dtype(), DType::bf16);
}

TEST(Autocast, ScopesNestAndBelongToTheirThread) {
  const Tensor x = ein::ones({2, 2});
  const auto product = [&] { return einsum(x, x, "i k, k j -> i j").dtype(); };
  const Autocast scope(DType::bf16);
  {
    const Autocast inner(DType::f16);
    EXPECT_EQ(product(), DType::f16);
    const Autocast off(DType::f32);
    EXPECT_EQ(product(), DType::f32);
    EXPECT_EQ(reduce(x.to(DType::f16), "i j -> i", "sum").dtype(), DType::f16);
  }
  EXPECT_EQ(product(), DType::bf16);
  DType elsewhere = DType::bf16;
  std::thread([&] { elsewhere = product(); }).join();
  EXPECT_EQ(elsewhere, DType::f32);
  for (DType dtype : {DType::f64, DType::f8e4m3, DType::i32}) {
    expect_error([&] { Autocast wrong(dtype); }, ErrorKind::dtype, std::string(name(dtype)));
  }
  EXPECT_EQ(product(), DType::bf16);
}

TEST(Autocast, TypedResultsKeepTheirTypes) {
  using namespace ein::literals;
  const ein::Float<"b i"> x = ein::ones({2, 3});
  const Autocast scope(DType::bf16);
  const auto y = einsum(x, x, "b i, c i -> b c"_p);
  EXPECT_EQ(y.dtype(), DType::f32);
  EXPECT_EQ(y.to_vector<double>(), (Values{3, 3, 3, 3}));
}

TEST(Autocast, GradientsOfParametersAreF32) {
  const Tensor w = ein::full({3, 1}, 0.1).requires_grad(true);
  const Tensor x = ein::from_vector<float>({1, 2, 3}, {1, 3});
  const Autocast scope(DType::bf16);
  const Tensor loss = mse_loss(einsum(x, w, "b i, i o -> b o"), ein::zeros({1, 1}));
  EXPECT_EQ(loss.dtype(), DType::f32);
  loss.backward();
  EXPECT_EQ(w.dtype(), DType::f32);
  EXPECT_EQ(w.grad().dtype(), DType::f32);
  // bf16(0.1) = 0.10009765625, six of it 0.6005859375, which bf16 rounds to 0.6015625; twice that
  // is 1.203125.
  EXPECT_NEAR(loss.item(), 0.6015625 * 0.6015625, 1e-7);
  EXPECT_EQ(w.grad().to_vector<double>(), (Values{1.203125, 2.40625, 3.609375}));
}

// The lecture's "Mixed precision": the forward pass in bf16; parameters and gradients in f32;
// gradients close to f32's.
TEST(Autocast, TransformerTrainsInBf16) {
  ein::manual_seed(41);
  const ein::nn::Transformer model(
      {.vocab_size = 20, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 16});
  const auto random = [] { return (ein::rand({4, 8}) * 20).to(DType::i64); };
  const Tensor tokens = random(), targets = random();
  const auto gradients = [&] {
    model.zero_grad();
    const Tensor logits = model(tokens);
    EXPECT_EQ(logits.dtype(), ein::autocast_dtype().value_or(DType::f32));
    const Tensor loss = cross_entropy(logits, targets, "b s [v], b s");
    EXPECT_EQ(loss.dtype(), DType::f32);
    loss.backward();
    std::vector<Values> all{{loss.item()}};
    for (const Tensor& parameter : model.parameters()) {
      EXPECT_EQ(parameter.grad().dtype(), DType::f32);
      all.push_back(parameter.grad().to_vector<double>());
    }
    return all;
  };
  const auto exact = gradients();
  const Autocast scope(DType::bf16);
  const auto narrow = gradients();
  EXPECT_NEAR(narrow[0][0], exact[0][0], 0.01);
  double difference = 0, size = 0;
  for (std::size_t p = 1; p < exact.size(); ++p) {
    for (std::size_t i = 0; i < exact[p].size(); ++i) {
      difference += std::pow(narrow[p][i] - exact[p][i], 2);
      size += std::pow(exact[p][i], 2);
    }
  }
  EXPECT_LT(std::sqrt(difference / size), 0.02) << "seed 41";
  EXPECT_GT(difference, 0);
}

// --- the scaler ---

/// A parameter whose gradient times 65536 is `scaled`.
struct Step {
  explicit Step(ein::GradScalerOptions options = {})
      : scaler(options), optimizer({parameter}, {.learning_rate = 1}) {}
  void take(double gradient) {
    optimizer.zero_grad();
    scaler.scale(reduce(parameter * gradient, "i ->", "sum")).backward();
    scaler.unscale(optimizer.parameters());
    scaler.step(optimizer);
    scaler.update();
  }
  Tensor parameter = ein::zeros({2}).requires_grad(true);
  ein::GradScaler scaler;
  ein::optim::SGD optimizer;
};

TEST(GradScaler, BeginsWithPyTorchsConstants) {
  Step step;
  EXPECT_EQ(step.scaler.current_scale(), 65536);
  const Tensor loss = ein::full({}, 1.5);
  EXPECT_EQ(step.scaler.scale(loss).item(), 98304);
  for (int i = 0; i < 1999; ++i) step.take(0);
  EXPECT_EQ(step.scaler.current_scale(), 65536);
  step.take(0);
  EXPECT_EQ(step.scaler.current_scale(), 131072);
}

TEST(GradScaler, UnscalesExactly) {
  Step step;
  step.take(0.3);
  const double g = static_cast<float>(0.3);
  EXPECT_EQ(step.parameter.grad().to_vector<double>(), (Values{g, g}));
  EXPECT_EQ(step.parameter.to_vector<double>(), (Values{-g, -g}));
}

TEST(GradScaler, SkipsStepsWithInfiniteGradients) {
  Step step({.interval = 3});
  step.take(1);
  for (double bad : {inf, -inf, std::nan(""), 1e36}) {  // 1e36 · 65536 overflows
    const Values before = step.parameter.to_vector<double>();
    const double scale = step.scaler.current_scale();
    step.take(bad);
    EXPECT_EQ(step.parameter.to_vector<double>(), before) << bad;
    EXPECT_EQ(step.scaler.current_scale(), scale / 2) << bad;
  }
  // The count of clean steps began anew.
  for (int i = 0; i < 2; ++i) step.take(1);
  EXPECT_EQ(step.scaler.current_scale(), 4096);
  step.take(1);
  EXPECT_EQ(step.scaler.current_scale(), 8192);
  EXPECT_EQ(step.parameter.to_vector<double>(), (Values{-4, -4}));
}

TEST(GradScaler, StaysFinite) {
  Step step({.scale = 0x1p127, .interval = 1});
  step.take(0);
  EXPECT_EQ(step.scaler.current_scale(), 0x1p127);
}

TEST(GradScaler, BacksOffToTheLeastNormalNumber) {
  Step step({.scale = 0x1p-125, .interval = 1});
  for (int i = 0; i < 3; ++i) step.take(inf);
  EXPECT_EQ(step.scaler.current_scale(), 0x1p-126);
  step.take(0);
  EXPECT_EQ(step.scaler.current_scale(), 0x1p-125);
}

TEST(GradScaler, RefusesComplexGradients) {
  const Tensor z = ein::ones({2}, DType::c64).requires_grad(true);
  z.set_grad(ein::ones({2}, DType::c64));
  ein::GradScaler scaler;
  expect_error([&] { scaler.unscale(std::span(&z, 1)); }, ErrorKind::dtype,
               "GradScaler: a gradient of shape (2,) is c64");
}

TEST(GradScaler, OneInfiniteElementAmongParametersIsEnough) {
  const Tensor a = ein::ones({3}).requires_grad(true), b = ein::ones({2, 2}).requires_grad(true),
               unused = ein::ones({}).requires_grad(true);
  ein::GradScaler scaler({.scale = 4});
  a.set_grad(ein::from_vector<float>({8, 4, 0}));
  b.set_grad(ein::from_vector<float>({1, 1, static_cast<float>(inf), 1}, {2, 2}));
  const std::vector<Tensor> parameters{a, b, unused};
  scaler.unscale(parameters);
  EXPECT_TRUE(scaler.found_infinite().item<bool>());
  EXPECT_EQ(a.grad().to_vector<double>(), (Values{2, 1, 0}));
  EXPECT_FALSE(unused.has_grad());
}

TEST(GradScaler, SavesItsState) {
  Step step({.interval = 3}), other({.interval = 3});
  step.take(inf);
  step.take(1);
  step.take(1);
  other.scaler.load_state_dict(step.scaler.state_dict());
  EXPECT_EQ(other.scaler.current_scale(), 32768);
  other.take(1);
  EXPECT_EQ(other.scaler.current_scale(), 65536);
  EXPECT_EQ(step.scaler.current_scale(), 32768);
  for (double wrong : {0.0, -1.0, inf, std::nan("")}) {
    const Tensor scale = ein::full({}, wrong);
    expect_error(
        [&] {
          other.scaler.load_state_dict({{"scale", scale}, {"clean_steps", ein::ones({})}});
        },
        ErrorKind::value, "a positive normal number");
  }
  expect_error([&] { other.scaler.load_state_dict({}); }, ErrorKind::value, "clean_steps");
  expect_error(
      [&] {
        other.scaler.load_state_dict({{"scale", ein::ones({2})}, {"clean_steps", ein::ones({})}});
      },
      ErrorKind::shape, "scale");
}

TEST(GradScaler, RefusesAnotherOrder) {
  Step step;
  expect_error([&] { step.scaler.step(step.optimizer); }, ErrorKind::value, "unscale");
  expect_error([&] { step.scaler.update(); }, ErrorKind::value, "unscale");
  step.scaler.unscale(step.optimizer.parameters());
  expect_error([&] { step.scaler.unscale(step.optimizer.parameters()); }, ErrorKind::value,
               "already");
  expect_error([] { ein::GradScaler({.scale = 0}); }, ErrorKind::value,
               "scale is 0, a positive normal number of f32 is wanted");
  expect_error([] { ein::GradScaler({.scale = 1e-60}); }, ErrorKind::value, "1e-60");
  expect_error([] { ein::GradScaler({.scale = 1e-39}); }, ErrorKind::value, "1e-39");
  expect_error([] { ein::GradScaler({.backoff = 1}); }, ErrorKind::value, "backoff");
}

TEST(GradScaler, CompiledStepsAreTheSame) {
  Step eager({.interval = 2}), traced({.interval = 2});
  const auto take = [](Step& step) {
    return [&step](const Tensor& gradient) {
      step.optimizer.zero_grad();
      const Autocast scope(DType::f16);
      step.scaler.scale(reduce(einsum(step.parameter, gradient, "i, i -> i"), "i ->", "sum"))
          .backward();
      step.scaler.unscale(step.optimizer.parameters());
      step.scaler.step(step.optimizer);
      step.scaler.update();
    };
  };
  const auto run = take(eager);
  auto program = ein::compile(take(traced));
  const double infinite_in_f16 = 1e5;
  for (double gradient : {1.0, 2.0, infinite_in_f16, 0.5, -1.0, 3.0}) {
    run(ein::full({2}, gradient));
    program(ein::full({2}, gradient));
    EXPECT_EQ(eager.parameter.to_vector<double>(), traced.parameter.to_vector<double>())
        << gradient;
    EXPECT_EQ(eager.scaler.current_scale(), traced.scaler.current_scale()) << gradient;
  }
  EXPECT_NE(eager.parameter.to_vector<double>(), (Values{0, 0}));
}

// Small gradients that f16 rounds to 0 come through when the loss is scaled.
TEST(GradScaler, SavesSmallGradientsOfF16) {
  const Tensor w = ein::ones({1, 1}).requires_grad(true), x = ein::full({1, 1}, 1e-4);
  const auto gradient = [&](const ein::GradScaler* scaler) {
    w.zero_grad();
    const Autocast scope(DType::f16);
    const Tensor loss =
        reduce(einsum(x, w, "b i, i o -> b o").to(DType::f32) * 1e-4, "b o ->", "sum");
    (scaler ? scaler->scale(loss) : loss).backward();
    return w.grad().item();
  };
  EXPECT_EQ(gradient(nullptr), 0);
  ein::GradScaler scaler;
  EXPECT_NEAR(gradient(&scaler) / 65536, 1e-8, 1e-10);
}

}  // namespace
