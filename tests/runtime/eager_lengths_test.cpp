// Eager calls of many shapes: their bits are those of the shape alone, whatever was called before.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <random>
#include <thread>

#include <ein/autograd.hpp>
#include <ein/call.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "runtime/range_plan.hpp"
#include "support/seeds.hpp"
namespace ein {
namespace {

using namespace ein::literals;

using Call = std::function<Tensor(const Tensor&, const Tensor&)>;

struct Family {
  std::string name;
  Call call;  // of x with axes b s c, and positions with axes b s
  /// Whether a plan of a range gives the bits of one of numbers, for it adds up nothing but
  /// products.
  bool is_of_any_plan;
  /// Several calls may round what one program of them does not.
  bool is_as_compiled = true;
};

Call gradient_of(const Call& call) {
  return [call](const Tensor& x, const Tensor& positions) {
    const Tensor of = x.detach().requires_grad(true), y = call(of, positions);
    return gradients(y, y.detach(), {&of, 1})[0];
  };
}

std::vector<Family> families() {
  using X = const Tensor&;
  const Call softmax_of = [](X x, X) { return softmax(x, "b s [c]"); },
             norm = [](X x, X) { return layer_norm(x, "b s [c]"); },
             loss = [](X x, X p) { return cross_entropy(x, p, "b s [c], b s"); };
  return {
      {"map", [](X x, X) { return x * 0.5 + x; }, true},
      {"transposition", [](X x, X) { return rearrange(x, "b s c -> b c s").clone(); }, true},
      {"function", [](X x, X) { return exp(x); }, true},
      {"function of a view", [](X x, X) { return tanh(rearrange(x, "b s c -> c s b")); }, false},
      {"gather", [](X x, X p) { return gather(x, p, "b s [c], b s -> b s"); }, true},
      {"scores", [](X x, X) { return einsum(x, x, "b s c, b t c -> b s t"); }, true},
      {"product of views",
       [](X x, X) { return einsum(rearrange(x, "b s c -> c b s"), x, "c b s, b s d -> b d c"); },
       true},
      {"sum with a row",
       [](X x, X) {
         return x + rearrange(x.at({every, 0}), "b c -> b 1 c");
       },
       true},
      {"heads", [](X x, X) { return rearrange(x, "b s (h c) -> b h s c", "h"_a = 1).clone(); },
       true},
      {"repetition", [](X x, X) { return repeat(x, "b s c -> (b r) s c", "r"_a = 3); }, true},
      {"sum of rows", [](X x, X) { return reduce(x, "b s c -> b s", "sum"); }, false},
      {"sum of columns", [](X x, X) { return reduce(x, "b s c -> b c", "sum"); }, false},
      {"softmax", softmax_of, false},
      {"layer norm", norm, false},
      {"cross entropy", loss, false},
      {"gradient of softmax", gradient_of(softmax_of), false},
      {"gradient of layer norm", gradient_of(norm), false},
      {"gradient of cross entropy", gradient_of(loss), false, false},
      {"gradient of a norm's weight",
       [](X x, X) {
         const Tensor weight = ones({x.shape()[2]}).requires_grad(true);
         const Tensor y = layer_norm(x, weight, weight.detach(), "b s [c]");
         return gradients(y, y.detach(), {&weight, 1})[0];
       },
       false},
  };
}

/// Operands of a random shape.
std::pair<Tensor, Tensor> any_operands(std::mt19937& random) {
  const auto size = [&] {
    const std::int64_t most[] = {4, 70, 300, 300, 300};
    return std::int64_t{1} + random() % most[random() % std::size(most)];
  };
  const std::int64_t b = 1 + random() % 4, s = size(), c = size();
  return {randn({b, s, c}), (rand({b, s}) * double(c)).to(DType::i64)};
}

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(EagerLengths, AsAlone) {
  const unsigned seed = 20261123 + test::first_seed();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  for (const auto& [name, call, is_of_any_plan, is_as_compiled] : families()) {
    SCOPED_TRACE(name);
    auto of_any_length = compile(call, {"b s c", "b s"});
    int others = 0;
    for (unsigned i = 0; i < test::seeds_or(200); ++i) {
      const auto [x, positions] = any_operands(random);
      SCOPED_TRACE(x.shape().to_string());
      const std::vector<double> result = values(call(x, positions));
      auto alone = compile(call);
      if (is_as_compiled) {
        ASSERT_EQ(result, values(alone(x, positions)));
      }
      others += result != values(of_any_length(x, positions));
    }
    EXPECT_TRUE(others == 0 || !is_of_any_plan);
    std::cout << "of " << test::seeds_or(200) << " shapes a plan of a range gives other bits for "
              << others << ": " << name << '\n';
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.kind())) + error.what();
  }
  return "none";
}

TEST(EagerLengths, ErrorsAreThoseOfNumbers) {
  const std::function<void()> calls[] = {
      [] {
        zeros({3, 5}) + zeros({3, 7});
      },
      [] {
        einsum(zeros({3, 5}), zeros({6, 7}), "m k, k n -> m n");
      },
      [] {
        rearrange(zeros({3, 5}), "b (h c) -> h b c", "h"_a = 2);
      },
      [] {
        gather(zeros({3, 5}), full({3}, 5, DType::i64), "b [s], b -> b");
      },
      [] {
        repeat(zeros({3, 5}), "b c -> b c r", "r"_a = std::int64_t{1} << 62);
      },
  };
  std::vector<std::string> before;
  for (const auto& call : calls) before.push_back(error_of(call));
  for (std::int64_t n = 2; n < 40; ++n) {
    const Tensor x = zeros({n, 2 * n + 6});
    x + x;
    einsum(x, zeros({2 * n + 6, 3}), "m k, k n -> m n");
    rearrange(x, "b (h c) -> h b c", "h"_a = 2);
    gather(x, zeros({n}, DType::i64), "b [s], b -> b");
    error_of([&] { repeat(x, "b c -> b c r", "r"_a = std::int64_t{1} << 62); });
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(before[i], "none");
    EXPECT_EQ(error_of(calls[i]), before[i]);
  }
}

/// How many plans of ranges are tried for 200 shapes of a call.
int attempts(const std::function<Graph(const Shape&)>& build) {
  engine::RangePlans plans;
  int count = 0;
  const engine::MakePlan make = [&](engine::Operands like) {
    count += SizeScope::active() != nullptr;
    return std::make_shared<const engine::Plan>("call", build(like[0]->shape()), like,
                                                OrderOptions{});
  };
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const auto size = [&](std::int64_t least) { return least + std::int64_t(random() % 100); };
    const Tensor x = zeros({2, size(3), size(200)});
    const Tensor* const operand = &x;
    engine::PlanKey key;
    engine::OpenSizes open;
    EXPECT_TRUE(open.add(key, {&operand, 1}));
    const auto plan = plans.plan(open, {&operand, 1}, make);
    if (i == 0) {
      EXPECT_EQ(count, 0);
    }
    if (plan) {
      EXPECT_EQ(plan->graph().ops[0].shape, x.shape());
    }
  }
  return count;
}

TEST(EagerLengths, FewPlansOfRanges) {
  const auto moved = [](const Shape& shape) {
    return graph_of(Operation::rearrange, runtime("b s c -> c b s"), {shape});
  };
  EXPECT_EQ(attempts(moved), 1);
  EXPECT_EQ(attempts([&](const Shape& shape) {
              const std::int64_t size = shape[2];  // so that the plan is for this size alone
              return size > 0 ? moved(shape) : Graph();
            }),
            8);
  // Of sums their numbers say that there are none.
  EXPECT_EQ(attempts([](const Shape& shape) {
              return graph_of(Operation::reduce, runtime("b s c -> b c"), {shape});
            }),
            0);
}

TEST(EagerLengths, GradientsOfPlansOfRanges) {
  for (std::int64_t n = 2; n < 12; ++n) {
    const Tensor x = randn({n, n + 3});
    const auto of = [](const Tensor& x) { return exp(x) * x; };
    of(x);  // its plan is there without a graph
    const Tensor leaf = x.detach().requires_grad(true), y = of(leaf);
    auto alone = compile([&](const Tensor& x) {
      const Tensor leaf = x.detach().requires_grad(true), y = of(leaf);
      return gradients(y, y.detach(), {&leaf, 1})[0];
    });
    EXPECT_EQ(values(gradients(y, y.detach(), {&leaf, 1})[0]), values(alone(x)));
  }
}

TEST(EagerLengths, Threads) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    std::vector<std::pair<Tensor, Tensor>> operands;
    std::mt19937 random(7);
    for (int i = 0; i < 40; ++i) operands.push_back(any_operands(random));
    std::vector<Tensor> results(operands.size());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < operands.size(); i += 4)
          results[i] = family.call(operands[i].first, operands[i].second);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < operands.size(); ++i)
      EXPECT_EQ(values(results[i]), values(family.call(operands[i].first, operands[i].second)));
  }
}

}  // namespace
}  // namespace ein
