// EinMix: values against plain loops, shapes, initial bounds, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include <ein/nn.hpp>

namespace {

using namespace ein::literals;
using ein::Error;
using ein::ErrorKind;
using ein::Shape;
using ein::Tensor;
using ein::nn::EinMix;
using Values = std::vector<double>;

Tensor numbers(const Shape& shape, double step = 1) {
  return (ein::arange(ein::numel(shape)).to(ein::DType::f32) * step).view(shape);
}

TEST(EinMix, IsALinearLayer) {
  const EinMix mix("... i -> ... o", "i o", "o", "i"_a = 3, "o"_a = 2);
  const ein::nn::Linear linear(3, 2);
  linear.load_state_dict(mix.state_dict());
  ein::manual_seed(31);
  const Tensor x = ein::randn({4, 5, 3});
  EXPECT_TRUE(all_close(mix(x), linear(x), 1e-5, 1e-6)) << "seed 31";
  EXPECT_EQ(mix(ein::ones({3})).shape(), Shape{2});
}

TEST(EinMix, SplitsInputAndMergesOutput) {
  // Each head with a matrix of its own; the bias in another order than the output's.
  const EinMix mix("b s (h c) -> b (h d) s", "d h c", "d h", "h"_a = 2, "c"_a = 3, "d"_a = 4);
  EXPECT_EQ(mix.weight.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(mix.bias->shape(), (Shape{4, 2}));
  mix.load_state_dict({{"weight", numbers({4, 2, 3}, 0.5)}, {"bias", numbers({4, 2}, 100)}});
  const Tensor x = numbers({2, 5, 6});
  const Tensor y = mix(x);
  ASSERT_EQ(y.shape(), (Shape{2, 8, 5}));
  const Values got = y.to_vector<double>();
  std::size_t i = 0;
  for (int b = 0; b < 2; ++b) {
    for (int h = 0; h < 2; ++h) {
      for (int d = 0; d < 4; ++d) {
        for (int s = 0; s < 5; ++s) {
          double sum = 100 * (d * 2 + h);
          for (int c = 0; c < 3; ++c)
            sum += ((b * 5 + s) * 6 + h * 3 + c) * 0.5 * ((d * 2 + h) * 3 + c);
          EXPECT_EQ(got[i++], sum) << b << h << d << s;
        }
      }
    }
  }
}

TEST(EinMix, WeightCanScaleAndRepeat) {
  // No sum: a gain for each channel; and an axis that only the weight and the output have.
  const EinMix gain("b c s -> b c s", "c", "", "c"_a = 2);
  EXPECT_FALSE(gain.bias.has_value());
  EXPECT_EQ(gain.parameter_count(), 2);
  gain.load_state_dict({{"weight", ein::from_vector<float>({2, 3})}});
  EXPECT_EQ(gain(ein::ones({1, 2, 2})).to_vector<double>(), (Values{2, 2, 3, 3}));
  const EinMix fan("b -> b k", "k", "k", "k"_a = 2);
  fan.load_state_dict(
      {{"weight", ein::from_vector<float>({1, 2})}, {"bias", ein::from_vector<float>({10, 20})}});
  EXPECT_EQ(fan(ein::from_vector<float>({1, 5})).to_vector<double>(), (Values{11, 22, 15, 30}));
  // An axis of the input that neither the weight nor the output has is summed.
  const EinMix pool("b s c -> b d", "c d", "", "c"_a = 1, "d"_a = 1);
  pool.load_state_dict({{"weight", ein::full({1, 1}, 2)}});
  EXPECT_EQ(pool(ein::ones({1, 3, 1})).to_vector<double>(), (Values{6}));
}

TEST(EinMix, BeginsUniformWithinItsBounds) {
  ein::manual_seed(32);
  const EinMix mix("b s (h c) -> b s h d", "h c d", "h d", "h"_a = 16, "c"_a = 48, "d"_a = 50);
  const auto check = [](const Tensor& x, double bound) {
    double squares = 0, most = 0;
    for (double v : x.to_vector<double>()) {
      squares += v * v;
      most = std::max(most, std::abs(v));
    }
    const auto n = static_cast<double>(x.numel());
    EXPECT_LE(most, bound * (1 + 1e-6));
    EXPECT_NEAR(squares / n / (bound * bound / 3), 1, 5 * std::sqrt(0.8 / n));
  };
  SCOPED_TRACE("seed 32");
  check(mix.weight, std::sqrt(3.0 / 48));
  check(*mix.bias, 1 / std::sqrt(48.0));
}

TEST(EinMix, GradientsReachWeightAndBias) {
  const EinMix mix("b i -> b (o p)", "i o p", "p", "i"_a = 1, "o"_a = 2, "p"_a = 1);
  reduce(mix(ein::from_vector<float>({3, 4}, {2, 1})), "b o ->", "sum").backward();
  EXPECT_EQ(mix.weight.grad().to_vector<double>(), (Values{7, 7}));
  EXPECT_EQ(mix.bias->grad().to_vector<double>(), (Values{4}));
}

TEST(EinMix, GathersParametersThatAreSplit) {
  const ein::Mesh mesh({{"data", 2}}, "loop");
  EinMix mix("b (h c) -> b (h d)", "h c d", "h d", "h"_a = 2, "c"_a = 3, "d"_a = 4);
  const Tensor x = numbers({4, 6});
  const Values wanted = mix(x).to_vector<double>();
  mix.shard(mesh, "data");
  const Tensor y = mix(place(x, mesh, "b@data c"));
  EXPECT_EQ(ein::gather_over(y, "data").to_vector<double>(), wanted);
  reduce(y, "b d ->", "sum").backward();
  EXPECT_TRUE(mix.weight.has_grad() && mix.bias->has_grad());
}

TEST(EinMix, Refuses) {
  const auto expect_error = [](const std::function<void()>& call, ErrorKind kind,
                               const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  const auto i = "i"_a = 2;
  const auto o = "o"_a = 3;
  expect_error([&] { EinMix("b i) -> b o", "i o", "", i, o); }, ErrorKind::syntax, "b i) -> b o");
  expect_error([&] { EinMix("b i", "i o", "", i, o); }, ErrorKind::pattern, "'->'");
  expect_error([&] { EinMix("b i, b -> b o", "i o", "", i, o); }, ErrorKind::pattern, "one input");
  expect_error([&] { EinMix("b i -> b o", "", "", i, o); }, ErrorKind::pattern, "no axes");
  expect_error([&] { EinMix("b i -> b o", "(i o)", "", i, o); }, ErrorKind::pattern,
               "names of axes");
  expect_error([&] { EinMix("b i -> b o", "i i", "", i, o); }, ErrorKind::pattern, "'i' twice");
  expect_error([&] { EinMix("b i -> b o", "i k", "", i, "k"_a = 2); }, ErrorKind::pattern,
               "'k' is in neither side");
  expect_error([&] { EinMix("b i -> b o", "i o", "i", i, o); }, ErrorKind::pattern,
               "lacks the bias's axis 'i'");
  expect_error([&] { EinMix("o i ... -> o ...", "i", "o", i, o); }, ErrorKind::pattern,
               "before the output's '...'");
  expect_error([&] { EinMix("b i -> b o", "i o", "", i); }, ErrorKind::axis_argument,
               "the size of 'o' is not given");
  expect_error([&] { EinMix("b i -> b o", "i o", "", i, o, "q"_a = 1); }, ErrorKind::axis_argument,
               "no axis 'q'");
  expect_error([&] { EinMix("b i -> b o", "i o", "", "i"_a = 0, o); }, ErrorKind::value, "i is 0");
  const EinMix lost("b i -> b o k", "i o", "", i, o);
  expect_error([&] { lost(ein::ones({1, 2})); }, ErrorKind::pattern, "k");
  const EinMix fits("b i -> b o", "i o", "", i, o);
  expect_error([&] { fits(ein::ones({1, 5})); }, ErrorKind::size, "5");
}

}  // namespace
