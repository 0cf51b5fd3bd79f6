// Values of bf16 and f16 that fusion does not store: rounded all the same, so that a compiled
// program gives the bits that its calls give one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include "support/tensor_values.hpp"

namespace ein::test {
namespace {

void expect_same_bits(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  const std::vector<double> a = get_values(got), b = get_values(want);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    const bool same = std::isnan(b[i]) ? std::isnan(a[i])
                                       : a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
    if (same) continue;
    ++wrong;
    first = i;
  }
  EXPECT_EQ(wrong, 0u) << "of " << a.size() << "; element " << first << " is " << a[first]
                       << ", without compile " << b[first];
}

/// The compiled function.
template <class F, class... X>
Compiled<F> expect_bits_of_eager(const F& f, const X&... x) {
  Compiled<F> compiled = compile(f);
  expect_same_bits(compiled(x...), f(x...));
  return compiled;
}

std::size_t operations_in(const Graph& graph) {
  return static_cast<std::size_t>(std::count_if(
      graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.kind != OpKind::input; }));
}

class Rounding : public testing::TestWithParam<DType> {
 protected:
  /// Numbers of the dtype.
  static Tensor some(const Shape& shape) { return randn(shape).to(GetParam()); }
  static std::string conversion() { return "as_" + std::string(name(GetParam())); }
};

struct Sizes {
  std::int64_t b, s, i, o;
};

/// Products of one row and of few, ragged ones, of many tiles, of no depth, and with more terms
/// than a result in bf16 may have.
constexpr Sizes layers[] = {{2, 3, 5, 7},     {1, 1, 64, 33},   {2, 5, 64, 300}, {3, 50, 40, 96},
                            {1, 131, 70, 65}, {4, 40, 256, 12}, {1, 3, 0, 4},    {2, 300, 33, 130},
                            {1, 9, 3000, 70}, {1, 70, 3000, 37}};

TEST_P(Rounding, BiasAndGeluOfALayerAreItsProductsEpilogue) {
  for (const auto& [b, s, i, o] : layers) {
    SCOPED_TRACE(testing::Message() << b << ' ' << s << ' ' << i << ' ' << o);
    const Tensor x = some({b, s, i}), w = some({i, o}), turned = some({o, i}), bias = some({o}),
                 residual = some({b, s, o});
    const auto layer = [](const Tensor& a, const Tensor& c, const Tensor& d) {
      return gelu(einsum(a, c, "b s i, i o -> b s o") + d);
    };
    const std::string text = expect_bits_of_eager(layer, x, w, bias).text();
    if (i > 1) {
      EXPECT_NE(text.find(", then "), text.npos) << text;
      EXPECT_NE(text.find(conversion()), text.npos) << text;
    }
    expect_bits_of_eager(
        [](const Tensor& a, const Tensor& c, const Tensor& d, const Tensor& e) {
          return e + gelu(einsum(a, c, "b s i, o i -> b s o") + d);
        },
        x, turned, bias, residual);
    expect_bits_of_eager(
        [](const Tensor& a, const Tensor& c) {
          return silu(einsum(a, c, "b s i, o i -> b s o") * 0.5);
        },
        x, turned);
  }
}

/// Whether a function takes its short form is decided by the call, and not by what is fused.
TEST_P(Rounding, ShortForms) {
  for (const std::int64_t n : {7, 5000}) {
    const Tensor x = (randn({n}) * 3).to(GetParam()), g = some({n});
    expect_bits_of_eager([](const Tensor& a) { return gelu(a); }, x);
    expect_bits_of_eager([](const Tensor& a) { return gelu(a.to(DType::f32)).to(a.dtype()); }, x);
    expect_bits_of_eager([](const Tensor& a) { return gelu(a) - gelu(a.to(DType::f32)); }, x);
    expect_bits_of_eager([](const Tensor& a) { return gelu(gelu(a) * 2) + gelu(a); }, x);
    expect_bits_of_eager(grad([g](const Tensor& a) { return einsum(gelu(a) * g, "n ->"); }), x);
  }
}

TEST_P(Rounding, TransposedResults) {
  for (const auto& [b, s, i, o] : layers) {
    SCOPED_TRACE(testing::Message() << b << ' ' << s << ' ' << i << ' ' << o);
    const Tensor x = some({b, s, i}), w = some({i, o}), bias = some({s}), deep = some({b, i, o});
    expect_bits_of_eager(
        [](const Tensor& a, const Tensor& c, const Tensor& d) {
          return gelu(einsum(a, c, "b s i, i o -> b o s") + d);
        },
        x, w, bias);
    expect_bits_of_eager(
        [](const Tensor& a, const Tensor& c) {
          return tanh(einsum(a, c, "b s i, i o -> o b s")) * 3;
        },
        x, w);
    expect_bits_of_eager(
        [](const Tensor& a, const Tensor& c, const Tensor& d) {
          return einsum(a, c, "b s i, b i o -> o s b") - rearrange(d, "s -> s 1");
        },
        x, deep, bias);
  }
}

TEST_P(Rounding, CastsAroundAProduct) {
  for (const auto& [b, s, i, o] : layers) {
    SCOPED_TRACE(testing::Message() << b << ' ' << s << ' ' << i << ' ' << o);
    const DType dtype = GetParam();
    const Tensor x = randn({b, s, i}), w = randn({i, o}), bias = some({o});
    expect_bits_of_eager(
        [=](const Tensor& a, const Tensor& c, const Tensor& d) {
          return gelu(einsum(a, c, "b s i, i o -> b s o").to(dtype) + d);
        },
        x, w, bias);
    expect_bits_of_eager(
        [=](const Tensor& a, const Tensor& c, const Tensor& d) {
          const Tensor y = einsum(a.to(dtype), c.to(dtype), "b s i, i o -> b s o") + d;
          return y.to(DType::f32) * 2 + 1;
        },
        x, w, bias);
  }
}

TEST_P(Rounding, ChainsOfMaps) {
  const DType dtype = GetParam(), other = dtype == DType::bf16 ? DType::f16 : DType::bf16;
  for (const Shape& shape : {Shape{3}, Shape{7, 65}, Shape{40, 200}, Shape{3, 1, 1025}}) {
    const Tensor x = some(shape), y = some(shape), z = randn(shape);
    const auto chain = expect_bits_of_eager(
        [](const Tensor& a, const Tensor& b) { return gelu(a * b + a) - b / 3; }, x, y);
    EXPECT_EQ(operations_in(chain.graph()), 1u) << chain.text();
    expect_bits_of_eager(
        [=](const Tensor& a, const Tensor& b, const Tensor& c) {
          const Tensor narrow = ((c * 1.7).to(dtype) * a).to(other) + b.to(other);
          return narrow.to(DType::f32).to(dtype) * silu(b);
        },
        x, y, z);
    expect_bits_of_eager(
        [=](const Tensor& a, const Tensor& b) { return where(a < b, exp(a * 0.1), b * a) * a; }, x,
        y);
  }
  // Numbers that do not round to what they are: too large ones, subnormal ones, none.
  const double infinity = INFINITY;
  const Tensor odd = make_tensor({3e38, -3e38, 1e-40, -1e-45, NAN, infinity, 65519, 65520, 5e-8,
                                  -0.0, 1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-11},
                                 {13});
  expect_bits_of_eager([=](const Tensor& a) { return a.to(dtype) * 1.5 - 0.25; }, odd);
  expect_bits_of_eager([=](const Tensor& a) { return a.to(dtype).to(DType::f32); }, odd);
}

TEST_P(Rounding, SumsOfMapsAndMapsOfSums) {
  for (const Shape& shape : {Shape{3, 5}, Shape{40, 65}, Shape{7, 2000}}) {
    const Tensor x = some(shape), y = some(shape);
    expect_bits_of_eager(
        [](const Tensor& a, const Tensor& b) { return reduce(a * b, "s k -> s", "sum"); }, x, y);
    expect_bits_of_eager(
        [](const Tensor& a) { return gelu(reduce(a, "s k -> k", "sum") * 0.1) + 1; }, x);
    expect_bits_of_eager([](const Tensor& a) { return exp(-reduce(a, "s k -> s", "max")); }, x);
  }
}

TEST_P(Rounding, ATrainingStep) {
  for (const auto& [b, s, i, o] : {Sizes{2, 3, 5, 7}, Sizes{2, 70, 33, 65}}) {
    const Tensor w = randn({i, o}).requires_grad(true), bias = randn({o}).requires_grad(true),
                 back = randn({o, i}).requires_grad(true), x = randn({b, s, i});
    const DType dtype = GetParam();
    const auto step = [&](const Tensor& in) {
      for (const Tensor& p : {w, bias, back}) p.zero_grad();
      const Tensor h =
          gelu(einsum(in.to(dtype), w.to(dtype), "b s i, i o -> b s o") + bias.to(dtype));
      const Tensor y = einsum(h, back.to(dtype), "b s o, o i -> b s i").to(DType::f32);
      reduce((y - in) * (y - in), "b s i ->", "mean").backward();
      return std::vector<Tensor>{w.grad(), bias.grad(), back.grad()};
    };
    std::vector<Tensor> want;
    for (const Tensor& g : step(x)) want.push_back(g.clone());
    auto compiled = compile(step);
    const std::vector<Tensor> got = compiled(x);
    for (std::size_t g = 0; g < want.size(); ++g) {
      const std::vector<double> a = get_values(got[g]), e = get_values(want[g]);
      for (std::size_t n = 0; n < a.size(); ++n)
        ASSERT_NEAR(a[n], e[n], 0.01 * (std::abs(e[n]) + 0.1)) << "gradient " << g;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Rounding, testing::Values(DType::bf16, DType::f16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(RoundingCosts, NoOperationsAndFewerBytes) {
  const Tensor x = randn({6, 8}).to(DType::bf16), w = randn({8, 16}).to(DType::bf16),
               bias = randn({16}).to(DType::bf16);
  const auto layer = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return einsum(a, b, "s i, i o -> s o") + c;
  };
  const CostScope scope;
  layer(x, w, bias);
  const Cost eager = scope.total();
  auto compiled = compile(layer);
  compiled(x, w, bias);
  Cost cost = compiled.cost();
  // The product is neither written nor read again.
  EXPECT_EQ(cost.bytes() + Count(2 * 2 * 6 * 16), eager.bytes());
  cost.bytes_read = eager.bytes_read;
  cost.bytes_written = eager.bytes_written;
  EXPECT_EQ(cost, eager);
}

TEST(RoundingCosts, WhatIsRoundedIsKeptForSeveralReaders) {
  // Its operand takes twice the memory.
  const Tensor x = randn({64, 64});
  auto f = compile([](const Tensor& a) {
    const Tensor narrow = a.to(DType::bf16);
    return std::vector<Tensor>{narrow * 2, narrow + 1};
  });
  f(x);
  std::size_t casts = 0;
  for (const Op& op : f.graph().ops)
    casts += op.kind == OpKind::map && op.dtype == DType::bf16 && op.expr.is_input();
  EXPECT_EQ(casts, 1u);
}

}  // namespace
}  // namespace ein::test
