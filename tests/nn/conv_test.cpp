// Conv, ConvTranspose and Pool: their patterns, values and gradients against plain loops, sizes,
// first weights, compiled functions, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace {

using namespace ein::literals;
using ein::DType;
using ein::ErrorKind;
using ein::PerAxis;
using ein::Reduction;
using ein::Shape;
using ein::Tensor;
using ein::test::expect_error;
using ein::test::get_values;
using ein::test::make_tensor;
namespace nn = ein::nn;
using Values = std::vector<double>;
using Numbers = std::vector<std::int64_t>;

PerAxis per_axis(const Numbers& numbers) {
  return std::vector<ein::Size>(numbers.begin(), numbers.end());
}

/// Windows along some axes, and the sizes of a batch. The wide side is what the windows lie in.
struct Sample {
  std::size_t axes = 1;
  std::int64_t batch = 1, groups = 1, wide_channels = 1, narrow_channels = 1;  // of a group
  Numbers wide, narrow, kernel, stride, padding, more, dilation;
  bool channels_first = false;

  explicit Sample(std::mt19937& random) {
    const auto below = [&](int n) { return static_cast<std::int64_t>(random() % unsigned(n)); };
    axes = 1 + random() % 3;
    batch = 1 + below(2);
    groups = 1 + below(3);
    wide_channels = 1 + below(3);
    narrow_channels = 1 + below(3);
    channels_first = below(2) == 0;
    while (wide.size() < axes) {
      const std::int64_t n = 1 + below(axes == 1 ? 20 : 6), k = 1 + below(4), s = 1 + below(3),
                         d = 1 + below(3), reach = d * (k - 1), p = std::min(reach, below(3));
      if (n + 2 * p - reach - 1 < 0) continue;
      wide.push_back(n);
      kernel.push_back(k);
      stride.push_back(s);
      padding.push_back(p);
      dilation.push_back(d);
      narrow.push_back((n + 2 * p - reach - 1) / s + 1);
      // The last elements that no window reaches.
      more.push_back(n - ((narrow.back() - 1) * s - 2 * p + reach + 1));
      if (more.back() < std::max(s, d)) continue;
      for (Numbers* numbers : {&wide, &kernel, &stride, &padding, &dilation, &narrow, &more})
        numbers->pop_back();
    }
  }
  std::string text() const {
    const std::string along = std::string("[") + std::vector{"x", "y x", "z y x"}[axes - 1] + "]";
    return channels_first ? "b c " + along : "b " + along + " c";
  }
  std::string shown() const {
    const auto list = [](const Numbers& numbers) {
      std::string text;
      for (const std::int64_t n : numbers) text += " " + std::to_string(n);
      return text;
    };
    return text() + ", groups " + std::to_string(groups) + ", wide" + list(wide) + ", kernel" +
           list(kernel) + ", stride" + list(stride) + ", padding" + list(padding) + ", dilation" +
           list(dilation) + ", narrow" + list(narrow);
  }
  Shape shape(bool is_wide) const {
    const std::int64_t channels = groups * (is_wide ? wide_channels : narrow_channels);
    Shape shape{batch};
    if (channels_first) shape.push_back(channels);
    for (const std::int64_t n : is_wide ? wide : narrow) shape.push_back(n);
    if (!channels_first) shape.push_back(channels);
    return shape;
  }
  std::size_t place(bool is_wide, std::int64_t b, std::int64_t channel, const Numbers& at) const {
    const std::int64_t channels = groups * (is_wide ? wide_channels : narrow_channels);
    std::int64_t place = channels_first ? b * channels + channel : b;
    for (std::size_t d = 0; d < axes; ++d) place = place * (is_wide ? wide : narrow)[d] + at[d];
    return static_cast<std::size_t>(channels_first ? place : place * channels + channel);
  }

  /// Calls f(place in the wide side, in the weight of a Conv, in that of a ConvTranspose, in the
  /// narrow side) for every product.
  template <class F>
  void for_each_product(F&& f) const {
    Numbers at(axes, 0), k(axes, 0), from(axes);
    const auto next = [&](Numbers& index, const Numbers& sizes) {
      std::size_t d = axes;
      while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
      return d > 0;
    };
    do {
      do {
        bool is_inside = true;
        std::int64_t w = 0;
        for (std::size_t d = 0; d < axes; ++d) {
          from[d] = stride[d] * at[d] + dilation[d] * k[d] - padding[d];
          is_inside &= from[d] >= 0 && from[d] < wide[d];
          w = w * kernel[d] + k[d];
        }
        if (!is_inside) continue;
        for (std::int64_t b = 0; b < batch; ++b) {
          for (std::int64_t g = 0; g < groups; ++g) {
            for (std::int64_t i = 0; i < wide_channels; ++i) {
              for (std::int64_t o = 0; o < narrow_channels; ++o) {
                const std::int64_t to = g * narrow_channels + o;
                const auto weight = (w * wide_channels + i) * groups * narrow_channels + to,
                           turned = (w * groups * narrow_channels + to) * wide_channels + i;
                f(place(true, b, g * wide_channels + i, from), static_cast<std::size_t>(weight),
                  static_cast<std::size_t>(turned), place(false, b, to, at));
              }
            }
          }
        }
      } while (next(k, kernel));
    } while (next(at, narrow));
  }
};

Values numbers(std::mt19937& random, std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(static_cast<int>(random() % 7) - 3));
  return values;
}

/// Sums of products of small whole numbers, which are exact, call by call and compiled; and those
/// of its gradients, with respect to x and the weight.
void expect_sums(const nn::ConvLayer& layer, const Sample& sample, bool is_transposed,
                 std::mt19937& random) {
  const Shape in = sample.shape(!is_transposed), out = sample.shape(is_transposed);
  const Values x = numbers(random, ein::numel(in)),
               w = numbers(random, ein::numel(layer.weight.shape())),
               seeds = numbers(random, ein::numel(out));
  Values y(seeds.size(), 0.0), dx(x.size(), 0.0), dw(w.size(), 0.0);
  sample.for_each_product(
      [&](std::size_t wide, std::size_t plain, std::size_t turned, std::size_t narrow) {
        const std::size_t from = is_transposed ? narrow : wide, to = is_transposed ? wide : narrow,
                          k = is_transposed ? turned : plain;
        y[to] += x[from] * w[k];
        dx[from] += seeds[to] * w[k];
        dw[k] += seeds[to] * x[from];
      });
  {
    const ein::NoGrad no_grad;
    layer.weight.copy_from(make_tensor(w, layer.weight.shape()));
  }
  const Tensor given = make_tensor(x, in).requires_grad(true);
  const Tensor made = layer(given);
  EXPECT_EQ(made.shape(), out) << layer.pattern();
  EXPECT_EQ(get_values(made), y) << layer.pattern();
  const std::vector<Tensor> found = ein::gradients(
      ein::einsum(made, make_tensor(seeds, out), "..., ... ->"), std::array{given, layer.weight});
  EXPECT_EQ(get_values(found[0]), dx) << layer.pattern();
  EXPECT_EQ(get_values(found[1]), dw) << layer.pattern();
  auto compiled = ein::compile([&](const Tensor& argument) { return layer(argument); });
  EXPECT_EQ(get_values(compiled(make_tensor(x, in))), y) << layer.pattern();
}

template <class F>
void for_each_sample(unsigned count, F&& f) {
  ein::test::for_seeds(count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Sample sample(random);
    SCOPED_TRACE(sample.shown());
    f(sample, random);
  });
}

TEST(Conv, IsOnePattern) {
  EXPECT_EQ(nn::Conv("b [y x] c", 3, 64, 7, {.stride = 2, .padding = 3}).pattern(),
            "b {2*y + ky - 3} {2*x + kx - 3} c, ky kx c o -> b y x o");
  EXPECT_EQ(nn::Conv("b c [t]", 4, 6, 3, {.dilation = 2, .groups = 2}).pattern(),
            "b (g=2 c) {t + 2*kt}, kt c (g o) -> b (g o) t");
  EXPECT_EQ(nn::Conv("... [z y x] i", 1, 1, {1, 2, 3}, {.stride = {1, 2, 3}}).pattern(),
            "... {z + kz} {2*y + ky} {3*x + kx} i, kz ky kx i o -> ... z y x o");
  EXPECT_EQ(nn::ConvTranspose("b [y x] c", 64, 3, 4, {.stride = 2, .padding = 1}).pattern(),
            "b y x c, ky kx c o -> b {2*y + ky - 1} {2*x + kx - 1} o");
  EXPECT_EQ(nn::ConvTranspose("b [t] c", 4, 6, 3, {.stride = 2, .output_padding = 1, .groups = 2})
                .pattern(),
            "b t (g=2 c), kt (g c) o -> b {2*t + kt : nt} (g o)");
  EXPECT_EQ(nn::Pool("b [y x] c", "max", 3, {.stride = 2, .padding = 1}).pattern(),
            "b {2*y + ky - 1} {2*x + kx - 1} c -> b y x c");
  EXPECT_EQ(nn::Pool("b c [y x]", "mean", 2).pattern(), "b c {2*y + ky} {2*x + kx} -> b c y x");
  // Names that the caller has are left to it.
  EXPECT_EQ(nn::Conv("o [k kk] g", 2, 2, 1, {.groups = 2}).pattern(),
            "o {k + kk2} {kk + kkk} (g2=2 g), kk2 kkk g (g2 o2) -> o k kk (g2 o2)");
}

TEST(Conv, EqualsPlainLoops) {
  for_each_sample(150, [](const Sample& s, std::mt19937& random) {
    const nn::Conv conv(s.text(), s.groups * s.wide_channels, s.groups * s.narrow_channels,
                        per_axis(s.kernel),
                        {.stride = per_axis(s.stride),
                         .padding = per_axis(s.padding),
                         .dilation = per_axis(s.dilation),
                         .groups = s.groups,
                         .with_bias = false});
    expect_sums(conv, s, false, random);
  });
}

TEST(Conv, TransposeEqualsPlainLoops) {
  for_each_sample(150, [](const Sample& s, std::mt19937& random) {
    const nn::ConvTranspose conv(s.text(), s.groups * s.narrow_channels, s.groups * s.wide_channels,
                                 per_axis(s.kernel),
                                 {.stride = per_axis(s.stride),
                                  .padding = per_axis(s.padding),
                                  .output_padding = per_axis(s.more),
                                  .dilation = per_axis(s.dilation),
                                  .groups = s.groups,
                                  .with_bias = false});
    expect_sums(conv, s, true, random);
  });
}

TEST(Conv, PoolEqualsPlainLoops) {
  for_each_sample(150, [](const Sample& given, std::mt19937& random) {
    Sample s = given;
    s.groups = s.wide_channels = s.narrow_channels = 1;
    constexpr Reduction reductions[] = {Reduction::max, Reduction::mean, Reduction::sum};
    const Reduction reduction = reductions[random() % 3];
    std::vector<Values> taken(static_cast<std::size_t>(ein::numel(s.shape(false))));
    const Values x = numbers(random, ein::numel(s.shape(true)));
    s.for_each_product([&](std::size_t wide, std::size_t, std::size_t, std::size_t narrow) {
      taken[narrow].push_back(x[wide]);
    });
    const bool has_empty = std::any_of(taken.begin(), taken.end(),
                                       [](const Values& values) { return values.empty(); });
    const nn::Pool pool(s.text(), reduction, per_axis(s.kernel),
                        {.stride = per_axis(s.stride),
                         .padding = per_axis(s.padding),
                         .dilation = per_axis(s.dilation)});
    if (has_empty && reduction == Reduction::max) {
      expect_error([&] { pool(make_tensor(x, s.shape(true))); }, ErrorKind::reduction,
                   {"wholly outside"});
      return;
    }
    const Tensor made = pool(make_tensor(x, s.shape(true), DType::f64));
    ASSERT_EQ(made.shape(), s.shape(false));
    const Values values = get_values(made);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      double want = reduction == Reduction::max ? -std::numeric_limits<double>::infinity() : 0;
      for (const double v : taken[i])
        want = reduction == Reduction::max ? std::max(want, v) : want + v;
      if (reduction == Reduction::mean) want /= static_cast<double>(taken[i].size());
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(values[i]));
      else
        EXPECT_NEAR(values[i], want, 1e-14 * std::abs(want)) << name(reduction) << " at " << i;
    }
  });
}

TEST(Conv, AddsABiasToEachChannel) {
  for (const char* axes : {"b [y x] c", "b c [y x]", "b [y] c [x]"}) {
    const nn::Conv conv(axes, 3, 2, 3, {.padding = 1});
    const Tensor x = ein::randn({3, 3, 3, 3});
    const Tensor without = ein::einsum(x, conv.weight, ein::runtime(conv.pattern()));
    const Values made = get_values(conv(x) - without), bias = get_values(*conv.bias);
    const std::string text(axes);
    const std::size_t behind = text == "b [y x] c" ? 1 : text == "b c [y x]" ? 9 : 3;
    for (std::size_t i = 0; i < made.size(); ++i)
      EXPECT_NEAR(made[i], bias[i / behind % 2], 1e-6) << text << " at " << i;
  }
}

TEST(Conv, WindowsWhollyOutsideReadZero) {
  const nn::Conv conv("[t] c", 1, 1, 1, {.padding = 2});
  const nn::ConvTranspose cut("[t] c", 1, 1, 1, {.padding = 2});
  {
    const ein::NoGrad no_grad;
    conv.weight.fill(3);
    conv.bias->fill(10);
  }
  cut.load_state_dict(conv.state_dict());
  const Tensor x = make_tensor({1, 2, 3, 4, 5}, {5, 1});
  EXPECT_EQ(get_values(conv(x)), (Values{10, 10, 13, 16, 19, 22, 25, 10, 10}));
  EXPECT_EQ(get_values(cut(x)), (Values{19}));
}

TEST(Conv, BeginsAsPyTorchs) {
  ein::manual_seed(5);
  const nn::Conv conv("b [y x] c", 8, 32, {3, 5}, {.groups = 2});
  EXPECT_EQ(conv.weight.shape(), (Shape{3, 5, 4, 32}));
  EXPECT_EQ(conv.bias->shape(), (Shape{32}));
  const nn::ConvTranspose up("b [y x] c", 8, 32, {3, 5}, {.groups = 2});
  EXPECT_EQ(up.weight.shape(), (Shape{3, 5, 8, 16}));
  const auto expect_bound = [](const nn::ConvLayer& layer, double products) {
    const double bound = 1 / std::sqrt(products);
    for (const auto& [name, parameter] : layer.named_parameters()) {
      const Values values = get_values(parameter);
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      EXPECT_GE(*least, -bound) << name << " seed 5";
      EXPECT_LE(*most, bound) << name << " seed 5";
      EXPECT_LT(*least, -0.8 * bound) << name << " seed 5";
      EXPECT_GT(*most, 0.8 * bound) << name << " seed 5";
    }
  };
  expect_bound(conv, 3 * 5 * 4);
  expect_bound(up, 3 * 5 * 16);
  EXPECT_EQ(conv.named_parameters()[0].first, "weight");
  EXPECT_EQ(conv.named_parameters()[1].first, "bias");
  EXPECT_EQ(nn::Conv("[t] c", 1, 1, 1, {.with_bias = false}).named_parameters().size(), 1u);
  EXPECT_TRUE(nn::Pool("[t] c", "max", 2).named_parameters().empty());
}

/// One trace for all lengths, also where the size of the result follows from that of x.
TEST(Conv, OfAnyLength) {
  nn::Sequential model;
  model.add<nn::Conv>("b [t] c", 4, 6, 5, nn::ConvOptions{.stride = 2, .padding = 2});
  model.add<nn::Pool>("b [t] c", Reduction::max, 3,
                      nn::PoolOptions{.stride = PerAxis(1), .padding = 1});
  model.add<nn::ConvTranspose>(
      "b [t] c", 6, 4, 3, nn::ConvTransposeOptions{.stride = 2, .padding = 1, .output_padding = 1});
  int traces = 0;
  auto f = ein::compile(
      [&](const Tensor& x) {
        ++traces;
        return model(x);
      },
      {"b=2 t c=4"});
  for (const std::int64_t length : {8, 10, 64, 6, 34, 7}) {
    const Tensor x = ein::randn({2, length, 4}), want = model(x);
    EXPECT_EQ(want.shape(), (Shape{2, (length + 1) / 2 * 2, 4}));
    EXPECT_TRUE(all_close(f(x), want, 1e-5, 1e-5)) << length;
  }
  EXPECT_EQ(traces, 1);
}

TEST(Conv, ComputesAsAutocastSays) {
  const nn::Conv conv("b [t] c", 4, 6, 3);
  const Tensor x = ein::randn({2, 9, 4}), want = conv(x);
  const ein::Autocast in_bf16(DType::bf16);
  const Tensor made = conv(x);
  EXPECT_EQ(made.dtype(), DType::bf16);
  EXPECT_TRUE(all_close(made.to(DType::f32), want, 0.05, 0.05));
}

TEST(Conv, HasTypedResults) {
  const nn::Named<nn::Conv, "b h w c -> b h2 w2 o"> conv("b [h w] c", 3, 5, 3,
                                                         nn::ConvOptions{.stride = 2});
  const ein::Float<"batch height width rgb"> images = ein::randn({2, 9, 7, 3});
  const auto y = conv(images);
  static_assert(std::is_same_v<decltype(y), const ein::Float<"batch h2 w2 o">>);
  EXPECT_EQ(y.shape(), (Shape{2, 4, 3, 5}));
}

TEST(Conv, BadInput) {
  const auto conv = [](const char* axes, std::int64_t in = 4, std::int64_t out = 4,
                       const PerAxis& kernel = 3, const nn::ConvOptions& options = {}) {
    return nn::Conv(axes, in, out, kernel, options);
  };
  expect_error([&] { conv("b [y c"); }, ErrorKind::syntax, {"Conv", "b [y c"});
  expect_error([&] { conv("b y x c"); }, ErrorKind::pattern, {"no axis is in brackets"});
  expect_error([&] { conv("... [y x]"); }, ErrorKind::pattern, {"channels are wanted"});
  expect_error([&] { conv("b [y] c -> b"); }, ErrorKind::pattern, {"the axes of the input alone"});
  expect_error([&] { conv("b [y y] c"); }, ErrorKind::pattern, {"'y' stands twice"});
  expect_error([&] { conv("b [y] (c d)"); }, ErrorKind::pattern, {"names of axes", "^"});
  expect_error([&] { conv("b [{y + k}] c"); }, ErrorKind::syntax, {"Conv"});
  expect_error([&] { conv("[y] ... c"); }, ErrorKind::pattern, {"'...' stands before all"});
  expect_error([&] { conv("b [y x] c", 0); }, ErrorKind::value, {"Conv: in is 0, at least 1"});
  expect_error(
      [&] {
        conv("b [y x] c", 4, 4, {1, 2, 3});
      },
      ErrorKind::arity, {"3 numbers are given as kernel, for 2 axes"});
  expect_error([&] { conv("b [y x] c", 4, 4, 0); }, ErrorKind::value,
               {"kernel along 'y' is 0, at least 1"});
  expect_error(
      [&] {
        conv("b [y x] c", 4, 4, 3, {.stride = {1, 0}});
      },
      ErrorKind::value, {"stride along 'x' is 0, at least 1"});
  expect_error([&] { conv("b [y x] c", 4, 4, 3, {.padding = -1}); }, ErrorKind::value,
               {"padding along 'y' is -1, at least 0"});
  expect_error([&] { conv("b [y x] c", 4, 4, 3, {.dilation = 0}); }, ErrorKind::value,
               {"dilation along 'y' is 0"});
  expect_error([&] { conv("b [y x] c", 4, 4, 3, {.dilation = std::int64_t{1} << 40}); },
               ErrorKind::overflow, {"dilation along 'y' is 1099511627776, at most"});
  expect_error([&] { conv("b [y x] c", 4, 6, 3, {.groups = 4}); }, ErrorKind::value,
               {"4 groups do not divide out 6"});
  expect_error([&] { conv("b [y x] c", 6, 4, 3, {.groups = 4}); }, ErrorKind::value,
               {"4 groups do not divide in 6"});
  expect_error([&] { conv("b [y x] c", 6, 4, 3, {.groups = 0}); }, ErrorKind::value,
               {"groups is 0"});
  expect_error([&] { nn::ConvTranspose("b [y x] c", 4, 4, 3, {.stride = 2, .output_padding = 2}); },
               ErrorKind::value, {"output_padding along 'y' is 2, less than stride or dilation"});
  expect_error([&] { nn::Pool("b [y x] c", "max", 2, {.padding = 2}); }, ErrorKind::value,
               {"padding along 'y' is 2", "wholly outside"});

  const nn::Conv layer("b [y x] c", 4, 6, 3, {.groups = 2});
  expect_error([&] { layer(ein::ones({2, 5, 5, 8})); }, ErrorKind::size, {"(g=2 c)"});
  expect_error([&] { layer(ein::ones({2, 5, 4})); }, ErrorKind::rank, {"{y + ky}"});
  expect_error([&] { layer(ein::ones({2, 5, 2, 4})); }, ErrorKind::size, {"reads nothing"});
  const nn::ConvTranspose up("b [y x] c", 4, 6, 3, {.stride = 2, .output_padding = 1});
  expect_error([&] { up(ein::ones({5})); }, ErrorKind::rank, {"b y x c"});
}

}  // namespace
