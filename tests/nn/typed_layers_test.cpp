// Layers on typed tensors: the types of their results, and what is wrong with them at run time.
#include <ein/nn/typed_layers.hpp>

#include <gtest/gtest.h>

#include <type_traits>

#include <ein/autocast.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;
using test::expect_error;
using test::get_values;

template <class Expected, class Made>
void expect_same(const Made& made, const Tensor& want) {
  static_assert(std::is_same_v<Made, Expected>);
  EXPECT_EQ(made.shape(), want.shape());
  EXPECT_EQ(get_values(made), get_values(want));
}
Tensor plain(const Tensor& x) { return x; }

TEST(TypedLayers, KeepTheAxesOfTheirInput) {
  const Float<"batch seq dim=8"> x = randn({2, 3, 8});
  const nn::LayerNorm norm(8);
  const nn::RMSNorm rms(8);
  nn::Block block(8, 2);
  expect_same<Float<"batch seq dim=8">>(norm(x), norm(plain(x)));
  expect_same<Float<"batch seq dim=8">>(rms(x), rms(plain(x)));
  expect_same<Float<"batch seq dim=8">>(block(x), block(plain(x)));
  expect_same<Float<"batch seq dim=8">>(block.attn(x), block.attn(plain(x)));
  expect_same<Float<"batch seq dim=8">>((*block.mlp)(x), (*block.mlp)(plain(x)));
  nn::Dropout dropout(0.5);
  dropout.eval();
  expect_same<Float<"batch seq dim=8">>(dropout(x), x);
}

TEST(TypedLayers, SayTheAxesOfTheirResult) {
  const nn::Named<nn::Embedding, "... -> ... dim"> words(10, 8);
  const nn::Named<nn::Linear, "... dim -> ... wide"> up(8, 16);
  const Long<"batch seq"> tokens = arange(6).view({2, 3});
  const auto x = words(tokens);
  expect_same<Float<"batch seq dim">>(x, words(plain(tokens)));
  const auto y = up(x);
  expect_same<Float<"batch seq wide">>(y, up(plain(x)));
  // A name of the caller's stays; a size that the pattern says is checked, and said.
  const nn::Named<nn::Linear, "... i=8 -> ... o=4"> down(8, 4);
  const Float<"seq features"> rows = randn({3, 8});
  expect_same<Float<"seq o=4">>(down(rows), down(plain(rows)));
}

TEST(TypedLayers, OfAPatternAreMadeWithoutIt) {
  const nn::Named<nn::EinMix, "b s (h c) -> b h s d"> mix("h c d", "h d", "h"_a = 2, "c"_a = 4,
                                                          "d"_a = 5);
  const nn::Named<nn::Rearrange, "b (h w) -> b h w"> split("h"_a = 2);
  const nn::Named<nn::Reduce, "b s (h c) -> b h"> most(Reduction::max, "h"_a = 2);
  const Float<"batch seq hidden"> x = randn({2, 3, 8});
  expect_same<Float<"batch h seq d">>(mix(x), mix(plain(x)));
  const Float<"batch hidden"> rows = randn({3, 8});
  expect_same<Float<"batch h w">>(split(rows), split(plain(rows)));
  expect_same<Float<"batch h">>(most(x), most(plain(x)));
}

TEST(TypedLayers, AreModules) {
  struct Model : nn::Module {
    Model() {
      add_module("up", up);
      add_module("layers", layers);
      layers.add<nn::Linear>(6, 6);
      layers.add<nn::Function>(gelu);
    }
    nn::Named<nn::Linear, "... dim -> ... wide"> up{4, 6};
    nn::Named<nn::Sequential, "... wide -> ... wide"> layers;
    Float<"batch wide"> operator()(const Float<"batch dim">& x) const { return layers(up(x)); }
  };
  const Model model;
  EXPECT_EQ(model.parameter_count(), 4 * 6 + 6 + 6 * 6 + 6);
  const Float<"batch dim"> x = randn({5, 4});
  auto compiled = compile([&](const Float<"batch dim">& of) { return model(of); });
  expect_same<Float<"batch wide">>(compiled(x), model(x));
  EXPECT_EQ(model(x).shape(), (Shape{5, 6}));
}

TEST(TypedLayers, AreCalledAsWhatTheyAre) {
  struct Doubled : nn::Named<nn::Linear, "... i -> ... o"> {
    using nn::Named<nn::Linear, "... i -> ... o">::Named;
    Tensor forward(const Tensor& x) const override { return 2.0 * nn::Linear::forward(x); }
  };
  const Doubled doubled(4, 3);
  const Float<"n i"> x = randn({2, 4});
  expect_same<Float<"n o">>(doubled(x), static_cast<const nn::Layer&>(doubled)(x));
}

TEST(TypedLayers, KeepTheDtypeUnderAutocast) {
  const nn::Named<nn::Linear, "... i -> ... o"> linear(4, 3);
  const Float<"n i"> x = randn({2, 4});
  const Autocast scope(DType::bf16);
  EXPECT_EQ(linear(plain(x)).dtype(), DType::bf16);
  EXPECT_EQ(linear(x).dtype(), DType::f32);
}

TEST(TypedLayers, WhoseResultIsAnotherAreErrors) {
  const Float<"batch dim"> x = randn({5, 4});
  const nn::Named<nn::Linear, "... i -> ... o=7"> of_another_size(4, 6);
  expect_error([&] { of_another_size(x); }, ErrorKind::size, {"o", "7", "6"});
  const nn::Named<nn::Linear, "b i -> b"> of_another_rank(4, 6);
  expect_error([&] { of_another_rank(x); }, ErrorKind::rank, {});
  const nn::Named<nn::Linear, "b i -> i b"> of_another_order(4, 5);
  expect_error([&] { of_another_order(x); }, ErrorKind::size, {});
  const nn::Named<nn::Linear, "b i -> b o", double> of_another_dtype(4, 6);
  expect_error([&] { of_another_dtype(x); }, ErrorKind::dtype, {"f32", "f64"});
}

}  // namespace
}  // namespace ein
