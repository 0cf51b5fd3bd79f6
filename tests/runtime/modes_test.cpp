// What a compiled function read besides tensors while it was traced: when that changes, the next
// call gets a program for it, and the earlier ones are kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

using Values = std::vector<double>;
Values values(const Tensor& x) { return x.to_vector<double>(); }

struct Model : nn::Layer {
  Model() {
    add_module("dropout", dropout);
    add_module("linear", linear);
  }
  Tensor forward(const Tensor& x) const override { return dropout(x) + linear(x) * 0.0; }
  nn::Dropout dropout{0.5};
  nn::Linear linear{64, 64};
};

bool has_zeros(const Tensor& y) {
  const Values all = values(y);
  return std::find(all.begin(), all.end(), 0.0) != all.end();
}

TEST(Modes, TrainingAndEvaluation) {
  Model model;
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return model(x);
  });
  const Tensor x = ones({4, 64});
  for (int i = 0; i < 3; ++i) {
    model.train();
    EXPECT_TRUE(has_zeros(f(x))) << i;
    model.eval();
    EXPECT_FALSE(has_zeros(f(x))) << i;
  }
  EXPECT_EQ(traces, 2);
  model.dropout.train();  // of one module
  EXPECT_TRUE(has_zeros(f(x)));
  EXPECT_EQ(traces, 2);
}

TEST(Modes, OfLengths) {
  Model model;
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return model(x);
      },
      {"b c=64"});
  for (const std::int64_t rows : {3, 5}) {
    model.train();
    EXPECT_TRUE(has_zeros(f(ones({rows, 64}))));
    model.eval();
    EXPECT_FALSE(has_zeros(f(ones({rows, 64}))));
  }
  EXPECT_EQ(traces, 2);
}

TEST(Modes, WhatAFunctionSetsItselfIsItsOwn) {
  Model model;
  int traces = 0;
  auto evaluate = compile([&](const Tensor& x) {
    ++traces;
    model.eval();
    const Tensor y = model(x);
    model.train();
    return y;
  });
  const Tensor x = ones({4, 64});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(has_zeros(evaluate(x)));
  EXPECT_EQ(traces, 1);
  EXPECT_TRUE(model.is_training());
}

TEST(Modes, OfAModelThatIsGone) {
  auto model = std::make_unique<Model>();
  auto f = compile([&](const Tensor& x) { return (*model)(x); });
  const Tensor x = ones({4, 64});
  model->eval();
  f(x);
  model.reset();
  EXPECT_FALSE(has_zeros(f(x)));  // nothing can change it any more
}

TEST(Modes, WhetherAParameterRequiresItsGradient) {
  const Tensor a = ones({2}).requires_grad(true), b = ones({2}).requires_grad(true);
  optim::SGD optimizer({a, b}, {.learning_rate = 0.5});
  int traces = 0;
  auto step = compile([&] {
    ++traces;
    optimizer.zero_grad();
    reduce(a * b, "i ->", "sum").backward();
    optimizer.step();
  });
  step();
  EXPECT_EQ(values(a), (Values{0.5, 0.5}));
  EXPECT_EQ(values(b), (Values{0.5, 0.5}));
  a.requires_grad(false);  // frozen
  step();
  EXPECT_EQ(values(a), (Values{0.5, 0.5}));
  EXPECT_EQ(values(b), (Values{0.25, 0.25}));
  a.requires_grad(true);
  step();
  EXPECT_EQ(values(a), (Values{0.375, 0.375}));
  EXPECT_EQ(values(b), (Values{0, 0}));
  EXPECT_EQ(traces, 2);
}

TEST(Modes, NoGradAndAutocastAroundTheCall) {
  const Tensor w = full({2, 2}, 1 + 1.0 / 1024).requires_grad(true);
  auto product = compile([&](const Tensor& x) { return einsum(x, w, "i j, j k -> i k"); });
  const Tensor x = ones({2, 2});
  const Values exact = values(product(x));
  {
    const Autocast scope(DType::bf16);
    EXPECT_NE(values(product(x).to(DType::f32)), exact);
  }
  EXPECT_EQ(values(product(x)), exact);
  auto flows = compile([&](const Tensor& t) {
    const Tensor y = t * w;
    return full({}, y.requires_grad(), DType::boolean);
  });
  EXPECT_TRUE(flows(x).item<bool>());
  {
    const NoGrad scope;
    EXPECT_FALSE(flows(x).item<bool>());
  }
  EXPECT_TRUE(flows(x).item<bool>());
}

TEST(Modes, TheLearningRateAndTheSeedAreOfEachRun) {
  const Tensor p = ones({2}).requires_grad(true);
  optim::SGD optimizer({p}, {.learning_rate = 1});
  int traces = 0;
  auto step = compile([&] {
    ++traces;
    optimizer.zero_grad();
    reduce(p, "i ->", "sum").backward();
    optimizer.step();
  });
  step();
  optimizer.set_learning_rate(0.25);
  step();
  EXPECT_EQ(values(p), (Values{-0.25, -0.25}));
  auto draw = compile([&] {
    ++traces;
    return rand({4});
  });
  manual_seed(7);
  const Values eager = values(rand({4}));
  manual_seed(8);
  EXPECT_NE(values(draw()), eager);
  manual_seed(7);
  EXPECT_EQ(values(draw()), eager);
  EXPECT_EQ(traces, 2);
}

TEST(Modes, ParametersAndStateThatAreMovedLater) {
  const Mesh mesh({{"data", 2}});
  nn::Linear layer(4, 4, false);
  auto forward = compile([&](const Tensor& x) { return layer(x); });
  const Tensor x = ones({2, 4});
  forward(x);
  layer.place(mesh, [](const std::string&, const Tensor&) { return std::string("i o@data"); });
  {
    const NoGrad scope;
    layer.weight.fill(1);
  }
  const Tensor y = forward(x);
  const Tensor whole = y.is_placed() ? reshard(y, "b o@data -> b o") : y;
  EXPECT_EQ(values(whole.is_placed() ? whole.local() : whole), Values(8, 4));

  const Tensor p = ones({2, 2}).requires_grad(true);
  optim::Adam optimizer({p}, {.learning_rate = 1});
  auto step = compile([&] {
    optimizer.zero_grad();
    reduce(p * p, "i j ->", "sum").backward();
    optimizer.step();
  });
  step();
  optimizer.shard(mesh, "data");
  step();
  EXPECT_EQ(optimizer.state_dict().at("step").item(), 2);
  EXPECT_NE(values(optimizer.state_dict().at("0.exp_avg").local(1)), (Values{0.2, 0.2}))
      << "the state that is sharded was not written";
}

TEST(Modes, ACheckpointThatRunsAgainInAnotherModeIsAnError) {
  Model model;
  const Tensor x = ones({4, 64}).requires_grad(true);
  const auto f = [&](const Tensor& a) { return model(a); };
  const Tensor y = checkpoint(f, x);
  model.eval();
  test::expect_error([&] { reduce(y, "... ->", "sum").backward(); }, ErrorKind::value,
                     {"module in another mode", "train() or eval()"});
  model.train();
  reduce(y, "... ->", "sum").backward();
  EXPECT_EQ(values(x.grad()), values(y));  // of a sum of dropout of ones
}

}  // namespace
}  // namespace ein
