// checkpoint: the same numbers as without, less memory, the function run again.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <deque>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace ein {
namespace {

using Values = std::vector<double>;

Tensor numbers(const Shape& shape, double scale = 1, DType dtype = DType::f32) {
  return (randn(shape) * scale).to(dtype).detach();
}
Tensor sum(const Tensor& x) { return reduce(x, "... ->", Reduction::sum); }
Values values(const Tensor& x) { return x.to_vector<double>(); }

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

/// f(x...) or checkpoint(f, x...).
template <class F, class... X>
auto maybe(bool checkpointed, const F& f, const X&... x) {
  return checkpointed ? checkpoint(f, x...) : f(x...);
}

// --- eagerly ---

/// Layers with dropout whose weights come from outside.
struct Stack {
  std::vector<Tensor> weights;
  Tensor x;
  explicit Stack(int layers, std::int64_t width = 16, std::int64_t rows = 32) {
    manual_seed(5);
    for (int i = 0; i < layers; ++i)
      weights.push_back(numbers({width, 4 * width}, 0.2).requires_grad(true));
    x = numbers({rows, width}).requires_grad(true);
  }
  Tensor loss(bool checkpointed, const Tensor& input) const {
    Tensor h = input;
    for (const Tensor& w : weights) {
      const auto layer = [w](const Tensor& a) {
        const Tensor wide = dropout(gelu(einsum(a, w, "b d, d h -> b h")), 0.25);
        return a + einsum(wide, w, "b h, d h -> b d");
      };
      h = maybe(checkpointed, layer, h);
    }
    return reduce(h * h, "... ->", Reduction::mean);
  }
  std::vector<Values> gradients_of(bool checkpointed) const {
    manual_seed(11);
    loss(checkpointed, x).backward();
    std::vector<Values> all{values(x.grad())};
    x.zero_grad();
    for (const Tensor& w : weights) {
      all.push_back(values(w.grad()));
      w.zero_grad();
    }
    return all;
  }
};

TEST(Recompute, GradientsAreThoseWithout) {
  const Stack stack(3);
  EXPECT_EQ(stack.gradients_of(true), stack.gradients_of(false));
}

TEST(Recompute, KeepsOnlyTheArguments) {
  const Stack stack(4);
  const auto kept = [&](bool checkpointed) {
    const std::size_t before = memory_allocated();
    const Tensor loss = stack.loss(checkpointed, stack.x);
    return memory_allocated() - before;
  };
  const std::size_t plain = kept(false), checkpointed = kept(true);
  // The results of four layers, the loss and the numbers that it reads.
  EXPECT_LE(checkpointed, 6u * 32 * 16 * 4 + 64);
  EXPECT_GT(plain, 4 * checkpointed);

  const auto peak = [&](bool with) {
    const std::size_t before = memory_allocated();
    reset_max_memory_allocated();
    stack.gradients_of(with);
    return max_memory_allocated() - before;
  };
  EXPECT_LT(peak(true), peak(false));
}

TEST(Recompute, RunsTheFunctionOnceMoreForEachBackward) {
  int runs = 0;
  const Tensor x = ones({3}).requires_grad(true);
  const auto f = [&](const Tensor& a) {
    ++runs;
    return exp(a);
  };
  const Tensor y = checkpoint(f, x);
  EXPECT_EQ(runs, 1);
  sum(y).backward();
  EXPECT_EQ(runs, 2);
  sum(y).backward();  // another time: gradients add up
  EXPECT_EQ(runs, 3);
  EXPECT_NEAR(values(x.grad())[0], 2 * std::exp(1.0), 1e-6);

  const NoGrad no_grad;
  EXPECT_FALSE(checkpoint(f, x).requires_grad());
  EXPECT_EQ(runs, 4);
}

TEST(Recompute, ExecutesTheForwardTwice) {
  const Tensor x = numbers({8, 8}).requires_grad(true), w = numbers({8, 8}).requires_grad(true);
  const auto f = [&](const Tensor& a) { return exp(einsum(a, w, "i j, j k -> i k")); };
  const auto cost = [&](bool checkpointed) {
    const CostScope scope;
    sum(maybe(checkpointed, f, x)).backward();
    return scope.total();
  };
  const Cost plain = cost(false), twice = cost(true);
  EXPECT_EQ(plain.matmul_only, Count(3 * 2 * 512));
  EXPECT_EQ(twice.matmul_only, Count(4 * 2 * 512));
  EXPECT_EQ(twice.count(ScalarOp::exp), plain.count(ScalarOp::exp) + Count(64));
}

TEST(Recompute, TensorsFromOutsideReceiveTheirGradientOnce) {
  // v is computed from w, and f reads both.
  const auto gradient = [](bool checkpointed) {
    const Tensor w = from_vector(Values{2}).requires_grad(true);
    const Tensor v = w * w;
    const auto f = [&](const Tensor& a) { return a * v * w; };
    const Tensor x = from_vector(Values{3}).requires_grad(true);
    sum(maybe(checkpointed, f, x) + v).backward();  // x w³ + w²
    return Values{w.grad().item(), x.grad().item()};
  };
  EXPECT_EQ(gradient(true), (Values{3 * 3 * 4 + 2 * 2, 8}));
  EXPECT_EQ(gradient(false), gradient(true));
}

TEST(Recompute, ArgumentsThatRequireNoGradient) {
  const Tensor w = from_vector(Values{1, 2}).requires_grad(true);
  const Tensor x = from_vector(Values{3, 4});
  sum(checkpoint([&](const Tensor& a) { return a * w; }, x)).backward();
  EXPECT_EQ(values(w.grad()), (Values{3, 4}));
  EXPECT_FALSE(x.requires_grad());
  EXPECT_FALSE(checkpoint([](const Tensor& a) { return a * 2; }, x).requires_grad());
  const Tensor y = checkpoint([&] { return exp(w); });  // no arguments at all
  w.zero_grad();
  sum(y).backward();
  EXPECT_EQ(values(w.grad()), values(y));
}

TEST(Recompute, ATensorGivenTwiceAndReturnedAsItIs) {
  const Tensor x = from_vector(Values{3}).requires_grad(true);
  const auto f = [](const Tensor& a, const Tensor& b) { return std::vector<Tensor>{a * b, a}; };
  const std::vector<Tensor> y = checkpoint(f, x, x);
  EXPECT_TRUE(y[1].same_storage(x));
  sum(y[0] + 10 * y[1]).backward();
  EXPECT_EQ(x.grad().item(), 16);
}

TEST(Recompute, SeveralResults) {
  const Tensor x = from_vector(Values{2, 3}).requires_grad(true);
  const auto f = [](const Tensor& a) {
    return std::array<Tensor, 4>{a * a, argmax(a, "[i]"), ones({2}, DType::f64), exp(a)};
  };
  const std::array<Tensor, 4> y = checkpoint(f, x);
  EXPECT_TRUE(y[0].requires_grad());
  EXPECT_FALSE(y[1].requires_grad());
  EXPECT_FALSE(y[2].requires_grad());
  EXPECT_EQ(y[1].item<std::int64_t>(), 1);
  sum(y[0]).backward();  // nothing comes through y[3]
  EXPECT_EQ(values(x.grad()), (Values{4, 6}));
}

TEST(Recompute, Nested) {
  int inner_runs = 0;
  const Tensor w = from_vector(Values{0.5, -1}).requires_grad(true),
               x = from_vector(Values{1, 2}).requires_grad(true);
  const auto inner = [&](const Tensor& a) {
    ++inner_runs;
    return dropout(tanh(a * w), 0.5);
  };
  const auto outer = [&](bool checkpointed) {
    manual_seed(2);
    const auto f = [&](const Tensor& a) {
      const Tensor b = maybe(checkpointed, inner, dropout(a, 0.5));
      return maybe(checkpointed, inner, b + w) + b;
    };
    sum(maybe(checkpointed, f, x)).backward();
    const std::array<Values, 2> found{values(w.grad()), values(x.grad())};
    w.zero_grad();
    x.zero_grad();
    return found;
  };
  const auto nested = outer(true);
  EXPECT_EQ(inner_runs, 2 + 2 + 2);
  EXPECT_EQ(nested, outer(false));
}

TEST(Recompute, SecondDerivatives) {
  const Tensor x = from_vector(Values{0.3, -0.7}).requires_grad(true),
               w = from_vector(Values{1.5, 0.2}).requires_grad(true);
  const auto find = [&](bool checkpointed) {
    const auto f = [&](const Tensor& a) { return tanh(a * w) * a; };
    const std::array<Tensor, 2> inputs{x, w};
    const std::vector<Tensor> first = gradients(sum(maybe(checkpointed, f, x)), inputs, true);
    const std::vector<Tensor> second = gradients(sum(first[0] * first[1]), inputs);
    return std::vector<Values>{values(first[0]), values(first[1]), values(second[0]),
                               values(second[1])};
  };
  EXPECT_EQ(find(true), find(false));
  EXPECT_FALSE(x.has_grad());

  const auto cube = [](const Tensor& a) {
    return sum(checkpoint([](const Tensor& b) { return b * b * b; }, a));
  };
  const auto slope = [&](const Tensor& a) { return sum(grad(cube)(a)); };
  EXPECT_EQ(values(grad(slope)(from_vector(Values{2}))), Values{12});
}

TEST(Recompute, GradientsTakenInsideOfIt) {
  const auto f = [](const Tensor& a) {
    return grad([](const Tensor& b) { return sum(b * b * b); })(a);
  };
  const Tensor x = from_vector(Values{2}).requires_grad(true);
  sum(checkpoint(f, x)).backward();
  EXPECT_EQ(x.grad().item(), 12);
}

TEST(Recompute, OnlyWantedGradients) {
  const Tensor w = ones({2}).requires_grad(true), x = ones({2}).requires_grad(true);
  const Tensor y = sum(checkpoint([&](const Tensor& a) { return a * w; }, x));
  EXPECT_EQ(values(gradients(y, {&x, 1}).front()), (Values{1, 1}));
  EXPECT_FALSE(w.has_grad());
}

TEST(Recompute, RandomNumbersGoOnAfterwards) {
  const Tensor x = ones({64}).requires_grad(true);
  const auto next = [&](bool checkpointed) {
    manual_seed(9);
    const Tensor y = maybe(
        checkpointed, [](const Tensor& a) { return dropout(a, 0.5) + randn({64}); }, x);
    const Tensor between = randn({4});
    sum(y).backward();
    return std::vector<Values>{values(between), values(randn({4}))};
  };
  EXPECT_EQ(next(true), next(false));
}

TEST(Recompute, SameAutocastAgain) {
  const Tensor x = numbers({8, 8}).requires_grad(true), w = numbers({8, 8}).requires_grad(true);
  const auto gradient = [&](bool checkpointed) {
    Tensor loss;
    {
      const Autocast bf16(DType::bf16);
      loss = sum(maybe(
          checkpointed, [&](const Tensor& a) { return exp(einsum(a, w, "i j, j k -> i k")); }, x));
    }
    loss.backward();
    const std::array<Values, 2> found{values(x.grad()), values(w.grad())};
    x.zero_grad();
    w.zero_grad();
    return found;
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(Recompute, WritesSinceTheCallAreErrors) {
  const Tensor w = ones({2}).requires_grad(true), scale = ones({3, 2});
  const auto f = [&](const Tensor& a) { return a * w * scale; };
  const auto overwrite = [](const Tensor& x) {
    const NoGrad no_grad;
    x.fill(2);
  };
  {
    const Tensor x = ones({3, 2}).requires_grad(true);
    const Tensor y = sum(checkpoint(f, x));
    overwrite(x);
    expect_error(ErrorKind::value,
                 "operand 1 of checkpoint, a tensor of shape (3, 2), was written to",
                 [&] { y.backward(); });
  }
  for (const Tensor& outside : {w, scale}) {
    const Tensor y = sum(checkpoint(f, ones({3, 2})));
    overwrite(outside);
    expect_error(
        ErrorKind::value,
        outside.shape().to_string() + " that the function of a checkpoint reads was written to",
        [&] { y.backward(); });
  }
  // What becomes of the result matters to nobody.
  const Tensor x = ones({2}).requires_grad(true);
  const Tensor y = checkpoint([](const Tensor& a) { return exp(a); }, x);
  const Tensor loss = sum(y);
  overwrite(y);
  EXPECT_NO_THROW(loss.backward());
}

TEST(Recompute, AFunctionThatChangesIsAnError) {
  int run = 0;
  const Tensor x = ones({2, 2}).requires_grad(true);
  const Tensor y = checkpoint(
      [&](const Tensor& a) { return run++ == 0 ? a * 2 : reduce(a, "i j -> i", Reduction::sum); },
      x);
  expect_error(ErrorKind::value, "made other results", [&] { sum(y).backward(); });
}

// --- compiled ---

TEST(Recompute, CompiledStepTakesLessMemoryAndMoreOperations) {
  const Stack stack(8, 32, 64);
  struct Found {
    std::vector<Values> gradients;
    std::size_t arena;
    Cost cost;
  };
  const auto run = [&](bool checkpointed) {
    manual_seed(11);
    auto step = compile([&](const Tensor& x) {
      std::vector<Tensor> inputs = stack.weights;
      return gradients(stack.loss(checkpointed, x), inputs);
    });
    Found found;
    for (const Tensor& gradient : step(stack.x.detach()))
      found.gradients.push_back(values(gradient));
    found.arena = step.memory().arena;
    found.cost = step.cost();
    return found;
  };
  const Found plain = run(false), checkpointed = run(true);
  EXPECT_EQ(checkpointed.gradients, plain.gradients);
  // Kept: the input of each layer, a sixteenth of what eight layers compute; and one layer's
  // values.
  EXPECT_LT(checkpointed.arena * 2, plain.arena);
  const Count product = 2 * 64 * 32 * 128;  // FLOPs of one contraction
  // 2 forward and 4 backward in each layer, less the gradient of the data; the first of the two
  // again, the second's result being read by nobody. The random numbers, too.
  EXPECT_EQ(plain.cost.matmul_only, product * Count(6 * 8 - 1));
  EXPECT_EQ(checkpointed.cost.matmul_only, product * Count(7 * 8 - 1));
  EXPECT_EQ(checkpointed.cost.count(ScalarOp::gelu),
            plain.cost.count(ScalarOp::gelu) + Count(64 * 128 * 8));
}

TEST(Recompute, CompiledTrainingOfTransformerBlocks) {
  struct Found {
    Values losses;
    MemoryPlan memory;
  };
  const auto run = [&](bool checkpointed) {
    manual_seed(4);
    std::deque<nn::Block> blocks;
    for (int i = 0; i < 6; ++i) blocks.emplace_back(32, 2, true, 0.1);
    std::vector<Tensor> parameters;
    for (const nn::Block& block : blocks) {
      for (const auto& [name, parameter] : block.named_parameters())
        parameters.push_back(parameter);
    }
    optim::AdamW optimizer(parameters, {.learning_rate = 0.01});
    const Tensor x = randn({4, 32, 32}), y = randn({4, 32, 32});
    auto step = compile([&](const Tensor& given, const Tensor& wanted) {
      optimizer.zero_grad();
      Tensor h = given;
      for (const nn::Block& block : blocks)
        h = maybe(
            checkpointed, [&](const Tensor& a) { return block(a); }, h);
      const Tensor loss = mse_loss(h, wanted);
      loss.backward();
      optimizer.step();
      return loss;
    });
    Found found;
    for (int i = 0; i < 4; ++i) found.losses.push_back(step(x, y).item());
    found.memory = step.memory();
    return found;
  };
  const Found plain = run(false), checkpointed = run(true);
  for (std::size_t i = 0; i < plain.losses.size(); ++i)
    EXPECT_NEAR(checkpointed.losses[i], plain.losses[i], 1e-6 * plain.losses[i]) << "step " << i;
  EXPECT_LT(plain.losses.back(), plain.losses.front());
  EXPECT_LT(checkpointed.memory.arena * 2, plain.memory.arena);
  EXPECT_EQ(checkpointed.memory.state, plain.memory.state);
}

}  // namespace
}  // namespace ein
