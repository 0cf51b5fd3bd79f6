// "PyTorch, resource accounting" (Stanford CS336, lecture 2): its figures on gradients, optimizers
// and training, a test a row.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/checkpoint_files.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/memory.hpp>
#include <ein/named.hpp>
#include <ein/nn.hpp>
#include <ein/ops.hpp>
#include <ein/optim.hpp>

#include "support/scratch.hpp"

namespace ein {
namespace {

using Values = std::vector<double>;

Values values(const Tensor& x) { return x.to_vector<double>(); }
Tensor mean(const Tensor& x) { return reduce(x, "... ->", Reduction::mean); }

// --- gradients ---

TEST(LectureGradients, OfAProduct) {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3});
  const Tensor w = from_vector(std::vector<float>{1, 1, 1}).requires_grad(true);
  const Tensor prediction = einsum(x, w, "i, i ->");
  const Tensor loss = 0.5 * pow(prediction - 5, 2);
  loss.backward();
  EXPECT_EQ(loss.item(), 0.5);
  EXPECT_EQ(values(w.grad()), (Values{1, 2, 3}));
  for (const Tensor& t : {x, prediction, loss}) EXPECT_FALSE(t.has_grad());
}

TEST(LectureGradients, OfTwoLayersHaveTheShapesOfTheirTensors) {
  manual_seed(0);
  const Tensor x = randn({1024, 256});
  const Tensor w1 = randn({256, 256}).requires_grad(true),
               w2 = randn({256, 64}).requires_grad(true);
  const Tensor h1 = einsum(x, w1, "b d, d e -> b e"), h2 = einsum(h1, w2, "b e, e k -> b k");
  h1.retain_grad();
  h2.retain_grad();
  const Tensor loss = mean(h2 * h2);
  loss.backward();
  for (const Tensor& t : {w1, w2, h1, h2}) EXPECT_EQ(t.grad().shape(), t.shape());
  EXPECT_FALSE(x.has_grad());
  EXPECT_TRUE(all_close(h2.grad(), h2.detach() * (2.0 / (1024 * 64)), 1e-6));
}

// --- optimizers ---

TEST(LectureOptimizers, SGD) {
  const Tensor p = from_vector(Values{1, -2}).requires_grad(true);
  optim::SGD optimizer({p}, {.learning_rate = 0.25});
  p.set_grad(from_vector(Values{4, 8}));
  optimizer.step();
  EXPECT_EQ(values(p), (Values{1 - 0.25 * 4, -2 - 0.25 * 8}));
}

TEST(LectureOptimizers, AdaGradHasEpsilonInsideTheRoot) {
  const Tensor p = from_vector(Values{1, -2}).requires_grad(true);
  optim::AdaGrad optimizer({p}, {.learning_rate = 0.01, .eps = 1e-5, .eps_inside_root = true});
  Values expected{1, -2}, sum{0, 0};
  for (const Values& g : {Values{0.5, 0}, Values{-3, 0.002}}) {
    p.set_grad(from_vector(g));
    optimizer.step();
    for (std::size_t i = 0; i < 2; ++i) {
      sum[i] += g[i] * g[i];
      expected[i] -= 0.01 * g[i] / std::sqrt(sum[i] + 1e-5);
      EXPECT_NEAR(values(p)[i], expected[i], 1e-15);
    }
  }
}

optim::AdaGrad adagrad_for(const nn::Cruncher& model) {
  return optim::AdaGrad(model.parameters(),
                        {.learning_rate = 0.01, .eps = 1e-5, .eps_inside_root = true});
}

// What is really allocated, at the moment when all of it is there.
TEST(LectureOptimizers, BytesOfASmallTrainingStep) {
  const Tensor x = ones({2, 4});
  std::size_t before = memory_allocated();
  const auto grown = [&] {
    const std::size_t now = memory_allocated(), by = now - before;
    before = now;
    return by;
  };
  const nn::Cruncher model(4, 2);
  EXPECT_EQ(model.parameter_count(), 36);
  const std::size_t parameters = grown();
  optim::AdaGrad optimizer = adagrad_for(model);
  const std::size_t counters = optimizer.state_dict().at("step").nbytes() +
                               optimizer.state_dict().at("learning_rate").nbytes();
  const std::size_t state = grown() - counters;
  Tensor loss = mean(model(x));
  const std::size_t activations = grown() - loss.nbytes();
  loss.backward();
  loss = Tensor();
  before -= activations + sizeof(float);  // let go of with the loss
  const std::size_t gradients = grown();
  EXPECT_EQ(parameters, 4u * 36);
  EXPECT_EQ(activations, 4u * 16);
  EXPECT_EQ(gradients, 4u * 36);
  EXPECT_EQ(state, 4u * 36);
  EXPECT_EQ(parameters + activations + gradients + state, 496u);
  optimizer.zero_grad();
  EXPECT_EQ(before - memory_allocated(), gradients);
}

TEST(LectureOptimizers, FlopsOfASmallTrainingStep) {
  const nn::Cruncher model(4, 2);
  const auto flops = [&](const Tensor& x) {
    const CostScope scope;
    mean(model(x)).backward();
    return scope.total().matmul_only;
  };
  const Tensor x = ones({2, 4});
  // 6 · 2 · 36 is exact where the input needs a gradient, too.
  EXPECT_EQ(flops(x), Count(432 - 2 * 2 * 4 * 4));
  EXPECT_EQ(flops(x.requires_grad(true)), Count(432));
}

// --- training ---

struct Task {
  Tensor true_weights = arange(16).to(DType::f32);
  Tensor x, y;
  explicit Task(std::int64_t batch)
      : x(randn({batch, 16})), y(einsum(x, true_weights, "b d, d -> b")) {}
};

struct History {
  Values losses, weights;
};

History train(int steps, bool compiled, double learning_rate = 0.01) {
  manual_seed(42);
  const nn::Cruncher model(16, 0);
  optim::SGD optimizer(model.parameters(), {.learning_rate = learning_rate});
  const auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto program = compile(step);
  History history;
  for (int i = 0; i < steps; ++i) {
    const Task task(4);
    history.losses.push_back((compiled ? program(task.x, task.y) : step(task.x, task.y)).item());
  }
  history.weights = values(model.state_dict().at("final.weight"));
  return history;
}

TEST(LectureTraining, TenStepsAsWrittenOut) {
  const History history = train(10, false);
  // The same in plain loops.
  manual_seed(42);
  Values w = values(nn::Cruncher(16, 0).state_dict().at("final.weight"));
  for (int i = 0; i < 10; ++i) {
    const Task task(4);
    const Values x = values(task.x), y = values(task.y);
    Values gradient(16, 0.0);
    double loss = 0;
    for (std::size_t b = 0; b < 4; ++b) {
      double error = -y[b];
      for (std::size_t d = 0; d < 16; ++d) error += x[b * 16 + d] * w[d];
      loss += error * error / 4;
      for (std::size_t d = 0; d < 16; ++d) gradient[d] += 2 * error * x[b * 16 + d] / 4;
    }
    for (std::size_t d = 0; d < 16; ++d) w[d] -= 0.01 * gradient[d];
    EXPECT_NEAR(history.losses[static_cast<std::size_t>(i)], loss, 1e-5 * loss) << "step " << i;
  }
  for (std::size_t d = 0; d < 16; ++d) EXPECT_NEAR(history.weights[d], w[d], 1e-5 * 15);
}

TEST(LectureTraining, FindsTheTrueWeights) {
  const History history = train(1000, true, 0.05);
  EXPECT_LT(history.losses.back(), 1e-6 * history.losses.front());
  for (std::size_t d = 0; d < 16; ++d)
    EXPECT_NEAR(history.weights[d], static_cast<double>(d), 1e-3);
}

TEST(LectureTraining, SameSeedSameRun) {
  for (const bool compiled : {false, true}) {
    const History once = train(10, compiled), again = train(10, compiled);
    EXPECT_EQ(once.losses, again.losses);
    EXPECT_EQ(once.weights, again.weights);
  }
}

TEST(LectureTraining, CompiledAgreesWithEager) {
  const History eager = train(10, false), compiled = train(10, true);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(compiled.losses[i], eager.losses[i], 1e-5 * eager.losses[i]);
}

// --- checkpoint ---

TEST(LectureTraining, CheckpointOfModelAndOptimizer) {
  manual_seed(1);
  const test::ScratchDirectory directory;
  const Tensor x = randn({8, 64}), y = randn({8});
  const auto take_steps = [&](const nn::Cruncher& model, optim::AdaGrad& optimizer) {
    for (int i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      mse_loss(model(x), y).backward();
      optimizer.step();
    }
  };
  const nn::Cruncher model(64, 3);
  EXPECT_EQ(model.parameter_count(), 12352);
  optim::AdaGrad optimizer = adagrad_for(model);
  take_steps(model, optimizer);
  StateDict saved;
  for (const auto& [name, tensor] : model.state_dict()) saved.emplace("model." + name, tensor);
  for (const auto& [name, tensor] : optimizer.state_dict())
    saved.emplace("optimizer." + name, tensor);
  save_checkpoint(directory.path().string(), 3, saved);
  take_steps(model, optimizer);

  const Checkpoint loaded = load_checkpoint(directory.path().string());
  StateDict of_model, of_optimizer;
  for (const auto& [name, tensor] : loaded.tensors) {
    const std::size_t dot = name.find('.');
    (name.substr(0, dot) == "model" ? of_model : of_optimizer)
        .emplace(name.substr(dot + 1), tensor);
  }
  const nn::Cruncher other(64, 3);
  optim::AdaGrad other_optimizer = adagrad_for(other);
  other.load_state_dict(of_model);
  other_optimizer.load_state_dict(of_optimizer);
  take_steps(other, other_optimizer);
  for (const auto& [name, tensor] : model.state_dict())
    EXPECT_EQ(values(tensor), values(other.state_dict().at(name))) << name;
  for (const auto& [name, tensor] : optimizer.state_dict()) {
    EXPECT_EQ(values(tensor), values(other_optimizer.state_dict().at(name))) << name;
  }
}

}  // namespace
}  // namespace ein
