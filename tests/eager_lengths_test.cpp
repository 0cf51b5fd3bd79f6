// Eager calls of many shapes: their bits are those of the shape alone, whatever was called before.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <random>
#include <thread>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

namespace ein {
namespace {

using Call = std::function<Tensor(const Tensor&, const Tensor&)>;

struct Family {
  std::string name;
  Call call;  // of x with axes b s c, and positions with axes b s
  /// Whether a plan of a range gives the bits of one of numbers, for it adds up nothing but
  /// products.
  bool is_of_any_plan;
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
      {"gather", [](X x, X p) { return gather(x, p, "b s [c], b s -> b s"); }, true},
      {"scores", [](X x, X) { return einsum(x, x, "b s c, b t c -> b s t"); }, true},
      {"sum of rows", [](X x, X) { return reduce(x, "b s c -> b s", "sum"); }, false},
      {"sum of columns", [](X x, X) { return reduce(x, "b s c -> b c", "sum"); }, false},
      {"softmax", softmax_of, false},
      {"layer norm", norm, false},
      {"cross entropy", loss, false},
      {"gradient of softmax", gradient_of(softmax_of), false},
      {"gradient of layer norm", gradient_of(norm), false},
      {"gradient of cross entropy", gradient_of(loss), false},
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
  const auto size = [&] { return std::int64_t{1} + random() % (random() % 3 == 0 ? 70 : 300); };
  const std::int64_t b = 1 + random() % 4, s = size(), c = size();
  return {randn({b, s, c}), (rand({b, s}) * double(c)).to(DType::i64)};
}

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(EagerLengths, AsAlone) {
  constexpr unsigned seed = 20261123;
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  for (const auto& [name, call, is_of_any_plan] : families()) {
    SCOPED_TRACE(name);
    auto of_any_length = compile(call, {"b s c", "b s"});
    int others = 0;
    for (int i = 0; i < 200; ++i) {
      const auto [x, positions] = any_operands(random);
      SCOPED_TRACE(x.shape().to_string());
      const std::vector<double> result = values(call(x, positions));
      auto alone = compile(call);
      ASSERT_EQ(result, values(alone(x, positions)));
      others += result != values(of_any_length(x, positions));
    }
    EXPECT_TRUE(others == 0 || !is_of_any_plan);
    std::cout << "of 200 shapes a plan of a range gives other bits for " << others << ": " << name
              << '\n';
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
