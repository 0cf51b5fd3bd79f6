// Modules: names, state, the layers' values, and the lecture's model.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"

namespace {

using namespace ein::literals;
using ein::ErrorKind;
using ein::Shape;
using ein::StateDict;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;
using Values = std::vector<double>;

std::vector<std::string> names(const nn::Module& module) {
  std::vector<std::string> all;
  for (const auto& [name, parameter] : module.named_parameters()) all.push_back(name);
  return all;
}

struct Pair : nn::Module {
  Pair() : a(2, 3), b(3, 2, false), scale(ein::ones({2})) {
    add_parameter("scale", scale);
    add_module("a", a);
    add_module("b", b);
  }
  nn::Linear a, b;
  Tensor scale;
};

TEST(Module, NamesParametersInOrderOfRegistration) {
  const Pair model;
  EXPECT_EQ(names(model), (std::vector<std::string>{"scale", "a.weight", "a.bias", "b.weight"}));
  EXPECT_EQ(model.parameter_count(), 2 + 6 + 3 + 6);
  for (const Tensor& parameter : model.parameters()) EXPECT_TRUE(parameter.requires_grad());
}

TEST(Module, SharedParameterComesOnce) {
  struct Tied : nn::Module {
    Tied() : first(2, 2, false), second(2, 2, false) {
      add_module("first", first);
      add_module("second", second);
      second.weight = first.weight;
    }
    nn::Linear first, second;
  };
  const Tied model;
  EXPECT_EQ(names(model), std::vector<std::string>{"first.weight"});
  EXPECT_EQ(model.parameter_count(), 4);
  EXPECT_EQ(model.state_dict().size(), 1u);
}

TEST(Module, StateDictSharesStorageAndLoads) {
  const Pair from, to;
  const StateDict state = from.state_dict();
  ASSERT_EQ(state.size(), 4u);
  EXPECT_TRUE(state.at("a.weight").same_storage(from.a.weight));
  EXPECT_FALSE(state.at("a.weight").requires_grad());
  const Tensor before = to.a.weight;
  to.load_state_dict(state);
  EXPECT_TRUE(before.same_storage(to.a.weight));
  EXPECT_FALSE(to.a.weight.same_storage(from.a.weight));
  EXPECT_EQ(to.a.weight.to_vector<double>(), from.a.weight.to_vector<double>());
  EXPECT_TRUE(to.a.weight.requires_grad());
}

TEST(Module, LoadListsAllThatDoesNotFitAndCopiesNothing) {
  const Pair model;
  const Values before = model.scale.to_vector<double>();
  StateDict state = model.state_dict();
  state.erase("a.bias");
  state.erase("b.weight");
  state.insert_or_assign("a.weight", ein::zeros({3, 2}));
  state.insert_or_assign("scale", ein::full({2}, 7));
  state.emplace("lm_head.weight", ein::zeros({1}));
  state.emplace("extra", ein::zeros({1}));
  expect_error([&] { model.load_state_dict(state); }, ErrorKind::value,
               {"missing: a.bias, b.weight", "unexpected: extra, lm_head.weight",
                "of another shape: a.weight (3, 2) for (2, 3)"});
  state = model.state_dict();
  state.insert_or_assign("scale", ein::full({2}, 7));
  state.insert_or_assign("b.weight", model.state_dict().at("b.weight").to(ein::DType::c64));
  expect_error([&] { model.load_state_dict(state); }, ErrorKind::value, {"complex", ": b.weight"});
  EXPECT_EQ(model.scale.to_vector<double>(), before);
}

TEST(Module, LoadOfSomeNamesSaysWhichItLeftAlone) {
  const Pair model;
  const Values bias = model.a.state_dict().at("bias").to_vector<double>();
  StateDict state = model.state_dict();
  state.erase("a.bias");
  state.insert_or_assign("scale", ein::full({2}, 7));
  state.emplace("lm_head.weight", ein::zeros({1}));
  const nn::LoadedState left = model.load_state_dict(state, {.strict = false});
  EXPECT_EQ(left.missing, std::vector<std::string>{"a.bias"});
  EXPECT_EQ(left.unexpected, std::vector<std::string>{"lm_head.weight"});
  EXPECT_EQ(model.scale.to_vector<double>(), (Values{7, 7}));
  EXPECT_EQ(model.a.state_dict().at("bias").to_vector<double>(), bias);
  const nn::LoadedState all = model.load_state_dict(model.state_dict());
  EXPECT_TRUE(all.missing.empty() && all.unexpected.empty());
  // Another shape is a mistake all the same.
  state.insert_or_assign("scale", ein::full({3}, 8));
  expect_error([&] { model.load_state_dict(state, {.strict = false}); }, ErrorKind::value,
               {"of another shape: scale (3,) for (2,)"});
  EXPECT_EQ(model.scale.to_vector<double>(), (Values{7, 7}));
}

TEST(Module, LoadConverts) {
  const nn::Linear model(2, 1, false);
  model.load_state_dict(
      {{"weight", ein::from_vector<double>({0.5, -2}, {2, 1}).to(ein::DType::bf16)}});
  EXPECT_EQ(model.weight.dtype(), ein::DType::f32);
  EXPECT_EQ(model.weight.to_vector<double>(), (Values{0.5, -2}));
}

TEST(Module, TrainReachesChildrenAndZeroGradDropsGradients) {
  Pair model;
  EXPECT_TRUE(model.is_training());
  model.eval();
  EXPECT_FALSE(model.is_training());
  EXPECT_FALSE(model.a.is_training());
  model.train();
  EXPECT_TRUE(model.b.is_training());
  reduce(model.a(ein::ones({4, 2})), "b o ->", "sum").backward();
  EXPECT_EQ(model.a.bias->grad().to_vector<double>(), (Values{4, 4, 4}));
  model.zero_grad();
  EXPECT_FALSE(model.a.bias->has_grad());
}

TEST(Module, RefusesNames) {
  struct Named : nn::Module {
    explicit Named(const std::string& name) : x(ein::ones({1})), y(ein::ones({1})) {
      add_parameter("x", x);
      add_parameter(name, y);
    }
    Tensor x, y;
  };
  EXPECT_NO_THROW(Named("y"));
  expect_error([] { Named("x"); }, ErrorKind::value, {"'x'", "taken"});
  expect_error([] { Named(""); }, ErrorKind::value, {"empty"});
  expect_error([] { Named("a.b"); }, ErrorKind::value, {"'a.b'", "dot"});
  struct Loop : nn::Module {
    Loop() { add_module("self", *this); }
  };
  expect_error([] { Loop(); }, ErrorKind::value, {"inside itself"});
}

TEST(Linear, MultipliesByTheWeightAndAddsTheBias) {
  const nn::Linear layer(3, 2);
  layer.load_state_dict({{"weight", ein::from_vector<float>({1, 2, 3, 4, 5, 6}, {3, 2})},
                         {"bias", ein::from_vector<float>({10, 20})}});
  const Tensor x = ein::from_vector<float>({1, 0, 0, 0, 1, 1}, {2, 1, 3});
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(y.to_vector<double>(), (Values{11, 22, 18, 30}));
  expect_error([&] { layer(ein::ones({2, 4})); }, ErrorKind::size, {"3", "4"});
  expect_error([] { nn::Linear(0, 2); }, ErrorKind::value, {"Linear", "in is 0"});
}

TEST(Embedding, LooksUpRowsAndScattersGradients) {
  const nn::Embedding layer(3, 2);
  layer.load_state_dict({{"weight", ein::from_vector<float>({0, 1, 2, 3, 4, 5}, {3, 2})}});
  const Tensor y = layer(ein::from_vector<std::int64_t>({2, 0, 2, 1}, {2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.to_vector<double>(), (Values{4, 5, 0, 1, 4, 5, 2, 3}));
  reduce(y, "b s d ->", "sum").backward();
  EXPECT_EQ(layer.weight.grad().to_vector<double>(), (Values{1, 1, 1, 1, 2, 2}));
}

TEST(LayerNorm, WithAndWithoutBias) {
  // mean 2.5, variance 1.25
  const Tensor x = ein::from_vector<float>({1, 2, 3, 4}, {1, 4});
  const Tensor weight = ein::from_vector<float>({1, 2, 1, 2}),
               bias = ein::from_vector<float>({0, 0, 10, 10});
  const nn::LayerNorm with(4), without(4, false);
  EXPECT_EQ(names(with), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(names(without), std::vector<std::string>{"weight"});
  with.load_state_dict({{"weight", weight}, {"bias", bias}});
  without.load_state_dict({{"weight", weight}});
  const double r = 1 / std::sqrt(1.25 + 1e-5);
  const Values plain{-1.5 * r, -1.0 * r, 0.5 * r, 3.0 * r};
  const Values a = with(x).to_vector<double>(), b = without(x).to_vector<double>();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(a[i], plain[i] + (i < 2 ? 0 : 10), 1e-6);
    EXPECT_NEAR(b[i], plain[i], 1e-6);
  }
}

TEST(LayerNorm, HasItsWidthAndKeepsTheDtype) {
  for (const bool with_bias : {true, false}) {
    const nn::LayerNorm one(1, with_bias), three(3, with_bias);
    expect_error([&] { one(ein::ones({2, 3})); }, ErrorKind::shape, {"3"});
    expect_error([&] { three(ein::ones({2, 1})); }, ErrorKind::shape, {"3"});
    for (const ein::DType dtype : {ein::DType::bf16, ein::DType::f16, ein::DType::f64})
      EXPECT_EQ(three(ein::ones({2, 3}, dtype)).dtype(), dtype) << with_bias;
  }
}

TEST(MLP, WidthsAreNoOverflow) {
  constexpr std::int64_t large = INT64_MAX / 2 - 1;
  expect_error([] { nn::MLP{large}; }, ErrorKind::value, {"MLP: dim is", "4 times", "2^63 - 1"});
  expect_error([] { nn::Attention(large, 1); }, ErrorKind::value, {"Attention: dim is", "3 times"});
}

TEST(RMSNorm, DividesByTheRootOfTheMeanSquare) {
  const nn::RMSNorm layer(2, 0);
  layer.load_state_dict({{"weight", ein::from_vector<float>({1, 10})}});
  const Values y = layer(ein::from_vector<float>({3, 4}, {1, 2})).to_vector<double>();
  EXPECT_NEAR(y[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y[1], 40 / std::sqrt(12.5), 1e-5);
}

TEST(Dropout, ActsInTrainingOnly) {
  ein::manual_seed(3);
  nn::Dropout layer(0.25);
  const Tensor x = ein::ones({10000});
  const Values kept = layer(x).to_vector<double>();
  int zeros = 0;
  for (double v : kept) {
    if (v == 0)
      ++zeros;
    else
      EXPECT_NEAR(v, 4.0 / 3, 1e-6);
  }
  EXPECT_NEAR(zeros, 2500, 5 * std::sqrt(10000 * 0.25 * 0.75)) << "seed 3";
  layer.eval();
  EXPECT_EQ(layer(x).to_vector<double>(), Values(10000, 1));
  expect_error([] { nn::Dropout(1); }, ErrorKind::value, {"Dropout"});
}

TEST(Sequential, RunsLayersInOrder) {
  nn::Sequential model;
  const nn::Linear& first = model.add<nn::Linear>(2, 2, false);
  model.add<nn::Function>(ein::relu);
  model.add<nn::Rearrange>("b (h w) -> b h w"_p, "h"_a = 1);
  model.add<nn::Reduce>("b h w -> b h"_p, ein::Reduction::sum);
  EXPECT_EQ(names(model), std::vector<std::string>{"0.weight"});
  EXPECT_EQ(model.size(), 4u);
  first.load_state_dict({{"weight", ein::from_vector<float>({1, -1, 2, 1}, {2, 2})}});
  const Tensor y = model(ein::from_vector<float>({1, 1, 1, 0}, {2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 1}));
  EXPECT_EQ(y.to_vector<double>(), (Values{3, 1}));
}

TEST(PatternLayer, KeepsWhatItWasGiven) {
  const nn::Rearrange split = [] {
    const std::string text = "b (h w) -> b h w", axis = "h";
    return nn::Rearrange(ein::runtime(text), ein::axis(axis, 3));
  }();
  EXPECT_EQ(split(ein::ones({2, 6})).shape(), (Shape{2, 3, 2}));
  expect_error([&] { split(ein::ones({2, 5})); }, ErrorKind::divisibility, {"h"});
  const nn::Reduce pool("(h 2) (w 2) -> h w", "max");
  EXPECT_EQ(pool(ein::arange(16).view({4, 4})).to_vector<double>(), (Values{5, 7, 13, 15}));
}

// --- the lecture's table: "Parameters, models" ---

TEST(Cruncher, IsTheLectures) {
  const nn::Cruncher model(64, 2);
  const StateDict state = model.state_dict();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state.at("layers.0.weight").numel(), 4096);
  EXPECT_EQ(state.at("layers.1.weight").numel(), 4096);
  EXPECT_EQ(state.at("final.weight").numel(), 64);
  EXPECT_EQ(model.parameter_count(), 8256);
  EXPECT_EQ(model(ein::randn({8, 64})).shape(), Shape{8});
  EXPECT_EQ(nn::Cruncher(64, 3).parameter_count(), 12352);
  EXPECT_EQ(nn::Cruncher(4, 2).parameter_count(), 36);
  EXPECT_EQ(nn::Cruncher(16, 0).parameter_count(), 16);
}

TEST(Cruncher, ComputesAProductOfMatrices) {
  const nn::Cruncher model(2, 1);
  model.load_state_dict({{"layers.0.weight", ein::from_vector<float>({1, 2, 3, 4}, {2, 2})},
                         {"final.weight", ein::from_vector<float>({1, 10}, {2, 1})}});
  const Tensor y = model(ein::from_vector<float>({1, 0, 1, 1}, {2, 2}));
  EXPECT_EQ(y.to_vector<double>(), (Values{21, 64}));
  reduce(y, "b ->", "sum").backward();
  // d/dW = Σ_b x_b ⊗ final
  EXPECT_EQ(model.layers[0].weight.grad().to_vector<double>(), (Values{2, 20, 1, 10}));
}

}  // namespace
