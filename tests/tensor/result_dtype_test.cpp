// The dtype of results: what sums integers gives i64, and a call may say another dtype.
#include <gtest/gtest.h>

#include <ein/autograd.hpp>
#include <ein/call.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

namespace ein {
namespace {

using namespace literals;

constexpr DType integers[] = {DType::boolean, DType::u8,  DType::u16, DType::u32, DType::u64,
                              DType::i8,      DType::i16, DType::i32, DType::i64};

TEST(ResultDType, WhatSumsIntegersIsI64) {
  for (DType dtype : integers) {
    const Tensor x = ones({300, 2}, dtype);
    const Tensor y = ones({2, 3}, dtype);
    const auto expect = [&](const Tensor& got, std::int64_t value, const char* what) {
      EXPECT_EQ(got.dtype(), dtype == DType::u64 ? dtype : DType::i64)
          << what << " of " << name(dtype);
      EXPECT_EQ(got.to_vector<std::int64_t>().back(), value) << what << " of " << name(dtype);
    };
    expect(reduce(x, "n k -> k", "sum"), 300, "sum");
    expect(reduce(x, "n k -> ", "sum"), 600, "sum of all");
    expect(reduce(x, "n k -> n k", "sum"), 1, "sum of nothing");
    expect(reduce(x, "n k -> k", "prod"), 1, "prod");
    expect(einsum(x, "n k -> k"), 300, "einsum of one");
    expect(einsum(x, y, "n k, k m -> n m"), 2, "einsum of two");
    expect(einsum(x, y, y, "_ k, k m, k m -> m"), 600, "einsum of three");
    expect(cumsum(x, "[n] k"), 300, "cumsum");
    expect(cumprod(x, "[n] k"), 1, "cumprod");
    expect(scatter_prod(x, zeros({300}, DType::i64), "n k, n -> [v] k", "v"_a = 1), 1,
           "scatter_prod");
    expect(scatter_add(x, zeros({300}, DType::i64), "n k, n -> [v] k", "v"_a = 1), 300,
           "scatter_add");
  }
}

TEST(ResultDType, AComparisonCanBeCounted) {
  const Tensor x = arange(1000);
  EXPECT_EQ(reduce(x > 99, "n -> ", "sum").item<std::int64_t>(), 900);
}

TEST(ResultDType, WhatAddsNothingKeepsItsDType) {
  for (DType dtype : integers) {
    const Tensor x = ones({3, 2}, dtype);
    for (const Tensor& y :
         {reduce(x, "a b -> a", "max"), reduce(x, "a b -> a", "any"), rearrange(x, "a b -> b a"),
          repeat(x, "a b -> a b 2"), einsum(x, "a b -> b a"), einsum(x, x, "a b, c d -> a b c d"),
          cummax(x, "a [b]"), cummin(x, "a [b]"),
          scatter_max(x, zeros({3}, DType::u8), "a b, a -> [v] b", "v"_a = 2)}) {
      EXPECT_EQ(y.dtype(), dtype);
    }
  }
}

TEST(ResultDType, TheSameInsideACompiledFunction) {
  const Tensor x = full({300}, 255, DType::u8);
  auto f = compile([](const Tensor& a) { return einsum(a, a, "n, n -> "); });
  EXPECT_EQ(f(x).dtype(), DType::i64);
  EXPECT_EQ(f(x).item<std::int64_t>(), 300 * 255 * 255);
}

TEST(ResultDType, IsSaidByTheCall) {
  const Tensor x = full({300, 4}, 100, DType::u8), y = full({300, 4}, 0.5);
  for (const Tensor& got :
       {reduce(x, "n k -> k", "sum", as(DType::i32)), einsum(x, "n k -> k", as(DType::i32))}) {
    EXPECT_EQ(got.dtype(), DType::i32);
    EXPECT_EQ(got.to_vector<int>(), std::vector<int>(4, 30000));
  }
  EXPECT_EQ(reduce(x, "n k -> k", "sum", as(DType::u8)).to_vector<int>(),
            std::vector<int>(4, 30000 % 256));
  EXPECT_EQ(einsum(x, x, "n k, n k -> k", as(DType::f32)).to_vector<float>(),
            std::vector<float>(4, 3e6f));
  EXPECT_EQ(einsum(y, y, "n k, n k -> k", as(DType::i32)).to_vector<int>(),
            std::vector<int>(4, 75));
  EXPECT_EQ(reduce(y, "n (k two) -> n k", "mean", as(DType::f64), "two"_a = 2).dtype(), DType::f64);
  EXPECT_EQ(reduce(y, "n (k two) -> n k", "mean", "two"_a = 2, as(DType::bf16)).dtype(),
            DType::bf16);
  EXPECT_EQ(rearrange(x, "n k -> k n", as(DType::f32)).dtype(), DType::f32);
  EXPECT_EQ(repeat(x, "n k -> n k 2", as(DType::i64)).dtype(), DType::i64);
  EXPECT_EQ(cumsum(x, "[n] k", as(DType::i32)).to_vector<int>().back(), 30000);
  const Tensor sums =
      scatter_add(x, zeros({300}, DType::i64), "n k, n -> [v] k", "v"_a = 1, as(DType::i32));
  EXPECT_EQ(sums.to_vector<int>(), std::vector<int>(4, 30000));
}

TEST(ResultDType, ASumOfSmallFloatsIsRoundedOnceToIt) {
  // 1 + 2^-6 needs more digits than f8 has, and just those of bf16.
  const Tensor x = from_vector<float>({1, 0.125f}).to(DType::f8e4m3);
  const Tensor y = from_vector<float>({1, 0.125f}).to(DType::f8e4m3);
  EXPECT_EQ(einsum(x, y, "k, k -> ", as(DType::bf16)).item<float>(), 1.015625f);
  EXPECT_EQ(einsum(x, y, "k, k -> ").item<float>(), 1.0f);
}

TEST(ResultDType, ASumOfF32SaidToBeF64HasItsDigits) {
  const Tensor x = from_vector<float>({1, 1e-9f}), one = ones({2});
  EXPECT_EQ(einsum(x, one, "k, k -> ", as(DType::f64)).item<double>(), 1 + double{1e-9f});
  EXPECT_EQ(reduce(x, "k -> ", "sum", as(DType::f64)).item<double>(), 1 + double{1e-9f});
}

TEST(ResultDType, GradientsFlowThroughIt) {
  const Tensor x = ones({3, 4}).requires_grad(true), y = full({4, 2}, 2.0).requires_grad(true);
  const Tensor z = einsum(x, y, "a b, b c -> a c", as(DType::f64));
  reduce(z, "a c -> ", "sum", as(DType::f32)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(12, 4));
  EXPECT_EQ(y.grad().to_vector<float>(), std::vector<float>(8, 3));
  EXPECT_EQ(x.grad().dtype(), DType::f32);
}

TEST(ResultDType, IsPartOfATypedResult) {
  const Int<"b s"> x = ones({2, 3}, DType::i32);
  const auto sums = einsum(x, "b s -> b"_p);
  static_assert(std::is_same_v<decltype(sums), const Long<"b">>);
  const auto same = einsum(x, "b s -> s b"_p);
  static_assert(std::is_same_v<decltype(same), const Int<"s b">>);
  const auto said = einsum(x, x, "b s, b s -> b"_p, as<DType::f32>());
  static_assert(std::is_same_v<decltype(said), const Float<"b">>);
  const auto reduced = reduce<"b s -> b">(x, "sum", as<DType::i32>());
  static_assert(std::is_same_v<decltype(reduced), const Int<"b">>);
  EXPECT_EQ(sums.to_vector<int>(), std::vector<int>(2, 3));
  EXPECT_EQ(said.to_vector<int>(), std::vector<int>(2, 3));
  EXPECT_EQ(reduced.to_vector<int>(), std::vector<int>(2, 3));
  // What a reduction makes of integers depends on the reduction, a value: the result says no type
  // of its own.
  const Long<"b"> total = reduce(x, "b s -> b"_p, "sum");
  const Int<"b"> most = reduce(x, "b s -> b"_p, "max");
  EXPECT_EQ(total.to_vector<int>(), std::vector<int>(2, 3));
  EXPECT_EQ(most.to_vector<int>(), std::vector<int>(2, 1));
}

TEST(ResultDType, OfAGraphWithoutTensors) {
  const Graph by_itself =
      graph_of(Operation::reduce, runtime("n k -> k"), {{3, 4}},
               {.dtype = DType::u8, .sizes = {}, .packed_shapes = {}, .result = {}});
  EXPECT_EQ(by_itself.op(by_itself.outputs[0]).dtype, DType::i64);
  const Graph said =
      graph_of(Operation::reduce, runtime("n k -> k"), {{3, 4}},
               {.dtype = DType::u8, .sizes = {}, .packed_shapes = {}, .result = DType::i32});
  EXPECT_EQ(said.op(said.outputs[0]).dtype, DType::i32);
}

}  // namespace
}  // namespace ein
