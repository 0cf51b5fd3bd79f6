// EIN_MODULES, prefixes of states, weights (out, in), and checkpoints of a stack of layers.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"

namespace {

using ein::ErrorKind;
using ein::StateDict;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) names.push_back(name);
  return names;
}
using Names = std::vector<std::string>;

struct SwiGLU : nn::Layer {
  SwiGLU(std::int64_t dim, std::int64_t inner)
      : w1(dim, inner, false), w2(inner, dim, false), w3(dim, inner, false) {}
  Tensor forward(const Tensor& x) const override { return w2(silu(w1(x)) * w3(x)); }

  nn::Linear w1, w2, w3;
  EIN_MODULES(w1, w2, w3);
};

/// Modules, lists and a tensor, over several lines.
struct Model : nn::Layer {
  explicit Model(std::int64_t dim) : scale(ein::ones({dim})), ffn(dim, 2 * dim) {
    for (int i = 0; i < 2; ++i) layers.emplace_back(dim, dim);
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = ffn(x) * scale;
    for (const nn::Linear& layer : layers) y = layer(y);
    return y;
  }

  Tensor scale;
  SwiGLU ffn;
  nn::ModuleList<nn::Linear> layers;
  EIN_MODULES(ffn, scale, layers);
};

template <class Inner>
struct Wrapped : nn::Module {
  Inner inner{4, 8};
  EIN_MODULES(inner);
};

struct Twice : nn::Module {
  nn::Linear a{2, 2};
  EIN_MODULES(a, a);
};

struct Derived : SwiGLU {
  Derived() : SwiGLU(4, 8), norm(4) {}
  nn::RMSNorm norm;
  EIN_MODULES(norm);
};

TEST(Members, AreRegisteredByTheirNamesInTheirOrder) {
  EXPECT_EQ(names_of(SwiGLU(4, 8)), (Names{"w1.weight", "w2.weight", "w3.weight"}));
  const Model model(4);
  EXPECT_EQ(names_of(model),
            (Names{"scale", "ffn.w1.weight", "ffn.w2.weight", "ffn.w3.weight", "layers.0.weight",
                   "layers.0.bias", "layers.1.weight", "layers.1.bias"}));
  EXPECT_TRUE(model.scale.requires_grad());
  EXPECT_EQ(names_of(Wrapped<SwiGLU>()),
            (Names{"inner.w1.weight", "inner.w2.weight", "inner.w3.weight"}));
  EXPECT_EQ(names_of(Derived()), (Names{"w1.weight", "w2.weight", "w3.weight", "norm.weight"}));
  reduce(model(ein::ones({3, 4})), "b c ->", ein::Reduction::sum).backward();
  for (const Tensor& parameter : model.parameters()) EXPECT_TRUE(parameter.has_grad());
}

TEST(Members, ANameComesOnce) {
  expect_error([] { Twice(); }, ErrorKind::value, {"'a'"});
}

TEST(StatePrefix, NamesBeginWithIt) {
  const SwiGLU from(4, 8), to(4, 8);
  StateDict state = from.state_dict("model.");
  EXPECT_TRUE(state.contains("model.w1.weight"));
  EXPECT_EQ(state.size(), 3u);
  state.emplace("optimizer.step", ein::ones({}));  // another's
  const nn::LoadedState left = to.load_state_dict(state, {.prefix = "model."});
  EXPECT_TRUE(left.missing.empty() && left.unexpected.empty());
  EXPECT_EQ(to.w2.weight.to_vector<float>(), from.w2.weight.to_vector<float>());
  expect_error([&] { to.load_state_dict(state); }, ErrorKind::value,
               {"missing: w1.weight", "unexpected: model.w1.weight", "optimizer.step"});
  state.erase("model.w3.weight");
  state.emplace("model.w4.weight", ein::ones({1}));
  expect_error([&] { to.load_state_dict(state, {.prefix = "model."}); }, ErrorKind::value,
               {"missing: model.w3.weight\n", "unexpected: model.w4.weight"});
}

TEST(LinearAxes, OutInIsTheTransposeOfInOut) {
  const nn::Linear plain(3, 5), turned(3, 5, true, nn::Linear::Axes::out_in);
  EXPECT_EQ(turned.weight.shape(), (ein::Shape{5, 3}));
  turned.weight.detach().copy_from(rearrange(plain.weight.detach(), "i o -> o i"));
  const Tensor x = ein::randn({2, 3});
  const auto a = plain(x).to_vector<float>(), b = turned(x).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  // Begun with the same deviation, 1/√in.
  const nn::Linear wide(100, 900, false, nn::Linear::Axes::out_in);
  double sum = 0;
  for (const double w : wide.weight.to_vector<double>()) sum += w * w;
  EXPECT_NEAR(std::sqrt(sum / 90000), 0.1, 0.002);
  expect_error([] { nn::Linear(0, 2, true, nn::Linear::Axes::out_in); }, ErrorKind::value,
               {"Linear: in is 0"});
}

/// A layer that counts how often it runs.
struct Counted : nn::Layer {
  explicit Counted(std::int64_t dim) : inner(dim, dim) {}
  Tensor forward(const Tensor& x) const override {
    ++runs;
    return x + tanh(inner(x));
  }
  nn::Linear inner;
  EIN_MODULES(inner);
  mutable int runs = 0;
};

TEST(Checkpointed, TheIntervalIsTheRootRoundedUp) {
  for (std::size_t n = 0; n < 2000; ++n) {
    const std::size_t r = nn::checkpoint_interval(n);
    EXPECT_TRUE(r * r >= n && (r == 0 || (r - 1) * (r - 1) < n)) << n;
  }
}

TEST(Checkpointed, GradientsAreTheSameForEveryInterval) {
  for (const std::size_t count : {0u, 1u, 7u, 9u}) {
    nn::ModuleList<Counted> layers;
    for (std::size_t i = 0; i < count; ++i) layers.emplace_back(4);
    const auto gradients = [&](auto&& forward) {
      layers.zero_grad();
      const Tensor x = ein::arange(8).to(ein::DType::f32).view({2, 4}).contiguous();
      const Tensor leaf = (x / 8).detach().requires_grad(true);
      const Tensor y = forward(leaf);
      reduce(y * y, "b c ->", ein::Reduction::sum).backward();
      std::vector<float> all = leaf.grad().to_vector<float>();
      for (const Tensor& p : layers.parameters()) {
        const auto g = p.grad().template to_vector<float>();
        all.insert(all.end(), g.begin(), g.end());
      }
      return all;
    };
    const auto plain = gradients([&](Tensor x) {
      for (const Counted& layer : layers) x = layer(x);
      return x;
    });
    for (const std::size_t each : {std::size_t{0}, std::size_t{1}, std::size_t{4}, SIZE_MAX}) {
      for (const Counted& layer : layers) layer.runs = 0;
      EXPECT_EQ(
          gradients([&](const Tensor& x) { return nn::through_checkpoints(layers, x, each); }),
          plain)
          << count << ' ' << each;
      // One forward pass more, whatever the interval: O(L).
      for (const Counted& layer : layers) EXPECT_EQ(layer.runs, 2);
    }
  }
}

// Memory of a compiled step: the lecture's O(√L).
TEST(Checkpointed, MemoryGrowsWithTheRoot) {
  const auto activations = [](std::size_t count, std::size_t each) {
    nn::ModuleList<Counted> layers;
    for (std::size_t i = 0; i < count; ++i) layers.emplace_back(16);
    auto step = ein::compile([&](const Tensor& x) {
      Tensor y = x;
      if (each == SIZE_MAX) {
        for (const Counted& layer : layers) y = layer(y);
      } else {
        y = nn::through_checkpoints(layers, x, each);
      }
      const Tensor loss = reduce(y * y, "b c ->", ein::Reduction::sum);
      layers.zero_grad();
      loss.backward();
      Tensor sum = ein::zeros({});
      for (const Tensor& p : layers.parameters())
        sum = sum + reduce(p.grad(), "... ->", ein::Reduction::sum);
      layers.zero_grad();
      return sum;
    });
    step.prepare(ein::empty({2048, 16}));
    return static_cast<double>(step.memory().arena) / (2048 * 16 * 4);  // in inputs of a layer
  };
  const double plain = activations(36, SIZE_MAX), root = activations(36, 0);
  std::cout << "36 layers: " << plain << " inputs without checkpoints, " << root
            << " with one every 6\n";
  EXPECT_LT(root, plain / 2);
  EXPECT_LT(activations(144, 0), 3 * root);  // 4 times as many layers, twice the memory
}

}  // namespace
