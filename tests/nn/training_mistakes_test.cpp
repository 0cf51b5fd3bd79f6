// Mistakes of a training loop that would train nothing, or always the same: each is an Error that
// says what to do.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

using test::expect_error;

struct Loop {
  const nn::Linear layer{4, 4};
  optim::SGD optimizer{layer.parameters(), {.learning_rate = 0.1}};
  const Tensor x = ones({8, 4});
  Tensor loss(const Tensor& inputs) const { return mse_loss(layer(inputs), zeros({8, 4})); }
};

TEST(TrainingMistakes, AStepWithoutAnyGradient) {
  Loop loop;
  expect_error([&] { loop.optimizer.step(); }, ErrorKind::value,
               {"SGD: step: none of its parameters has a gradient", "call backward() before it"});
  expect_error([&] { compile([&] { loop.optimizer.step(); })(); }, ErrorKind::value,
               {"none of its parameters has a gradient"});
  EXPECT_EQ(loop.optimizer.state_dict().at("step").item(), 0);
  // Of some parameters is enough.
  loop.layer.weight.set_grad(ones({4, 4}));
  loop.optimizer.step();
  EXPECT_EQ(loop.optimizer.state_dict().at("step").item(), 1);
}

TEST(TrainingMistakes, GradientsLeftInATrace) {
  Loop loop;
  auto backward = compile([&](const Tensor& x) {
    loop.optimizer.zero_grad();
    const Tensor loss = loop.loss(x);
    loss.backward();
    return loss;
  });
  expect_error([&] { backward(loop.x); }, ErrorKind::value,
               {"compile: the function leaves gradients", "(4,)", "optimizer's step inside"});
  EXPECT_FALSE(loop.layer.weight.has_grad());
  // Those of some parameters may be left: an optimizer of the head alone trains it.
  optim::SGD of_bias({*loop.layer.bias});
  auto step = compile([&](const Tensor& x) {
    loop.optimizer.zero_grad();
    loop.loss(x).backward();
    of_bias.step();
  });
  step(loop.x);
  EXPECT_EQ(of_bias.state_dict().at("step").item(), 1);
  // And a gradient that is a result is used.
  auto gradient = compile([&](const Tensor& x) {
    loop.layer.zero_grad();
    loop.loss(x).backward();
    return loop.layer.weight.grad();
  });
  loop.layer.weight.set_grad(gradient(loop.x));
  loop.optimizer.step();
  loop.layer.zero_grad();
}

TEST(TrainingMistakes, AGradientFromOutsideOfATrace) {
  Loop loop;
  loop.loss(loop.x).backward();
  auto step = compile([&] { loop.optimizer.step(); });
  expect_error([&] { step(); }, ErrorKind::value,
               {"grad: the gradient of shape", "left outside", "backward() inside"});
  auto again = compile([&](const Tensor& x) {
    loop.loss(x).backward();  // without zero_grad(): adds to what is there
    loop.optimizer.step();
  });
  expect_error([&] { again(loop.x); }, ErrorKind::value,
               {"backward: the gradient of shape", "zero_grad()"});
}

TEST(TrainingMistakes, TheBackwardPassOfACompiledResult) {
  Loop loop;
  auto forward = compile([&](const Tensor& x) { return loop.layer(x); });
  expect_error([&] { mse_loss(forward(loop.x), loop.x).backward(); }, ErrorKind::value,
               {"requires a gradient", "ein::compile", "call backward() inside of that function"});
}

struct Forgetful : nn::Module {
  nn::Linear layer{4, 4};
};

TEST(TrainingMistakes, AModuleThatWasNotRegistered) {
  const Forgetful model;
  expect_error([&] { optim::AdamW optimizer(model.parameters()); }, ErrorKind::value,
               {"AdamW: there are no parameters", "add_module(\"name\", member)"});
}

TEST(TrainingMistakes, TheLearningRateInATrace) {
  Loop loop;
  const auto traced = [&](auto&& f) {
    return [&] {
      compile([&](const Tensor& x) {
        f();
        return x + 1.0;
      })(loop.x);
    };
  };
  expect_error(traced([&] { loop.optimizer.set_learning_rate(0.5); }), ErrorKind::value,
               {"set_learning_rate: inside", "before each run"});
  expect_error(traced([&] { loop.optimizer.learning_rate(); }), ErrorKind::value,
               {"learning_rate: inside", "outside of the function"});
  EXPECT_EQ(loop.optimizer.learning_rate(), 0.1);
}

TEST(TrainingMistakes, BatchesAndSeedsInATrace) {
  const Tokens tokens(arange(100));
  std::uint64_t n = 0;
  BatchSampler sampler(tokens, 1, 3, 7);
  Prefetcher prefetcher(sampler);
  const auto traced = [](auto&& f) {
    return [f] { compile([f](const Tensor& x) { return f() + x; })(zeros({}, DType::i64)); };
  };
  expect_error(traced([&] { return get_batch(tokens, 1, 3, 1, n++).x; }), ErrorKind::value,
               {"get_batch: inside", "x and y as arguments"});
  expect_error(traced([&] { return sampler.next().x; }), ErrorKind::value, {"get_batch: inside"});
  expect_error(traced([&] { return prefetcher.next().x; }), ErrorKind::value,
               {"Prefetcher::next: inside"});
  expect_error(traced([] {
                 manual_seed(1);
                 return zeros({}, DType::i64);
               }),
               ErrorKind::value, {"manual_seed", "before a run"});
  EXPECT_EQ(sampler.position(), 0u);
  EXPECT_EQ(prefetcher.position(), 0u);
}

}  // namespace
}  // namespace ein
