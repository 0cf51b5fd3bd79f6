// Calls where the calling thread rounds otherwise, or takes subnormal numbers for 0: all threads of
// a call do as the caller does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include "machine/float_mode.hpp"
#include "machine/parallel.hpp"
#include "support/float_modes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ein {
namespace {

using test::all_float_modes;
using test::NamedMode;

struct Call {
  const char* name;
  std::function<Tensor()> run;
};

/// Calls on numbers that are rounded, or subnormal, or become so: each engine, large enough for
/// several threads.
std::vector<Call> calls() {
  const InFloatMode usual{FloatMode()};
  manual_seed(1);
  const Tensor tiny = rand({300, 1024}) * 1e-37 * 1e-2, x = randn({300, 1024});
  const Tensor w = randn({1024, 200}), few = randn({4, 1024});
  const Tensor x64 = x.to(DType::f64), tiny64 = tiny.to(DType::f64) * 1e-270;
  const Tensor x16 = x.to(DType::bf16), w16 = w.to(DType::bf16), tiny16 = tiny.to(DType::bf16);
  const Tensor w64 = w.to(DType::f64), where = arange(300) / 3;
  return {
      {"add", [=] { return tiny + tiny; }},
      {"multiply", [=] { return x * 1e-38; }},
      {"divide", [=] { return x / 3.0; }},
      {"add f64", [=] { return x64 / 3.0 + tiny64; }},
      {"multiply f64", [=] { return tiny64 * 1e-10; }},
      {"add bf16", [=] { return x16 * 0.1 + tiny16; }},
      {"functions", [=] { return exp(x) + sin(x) * tanh(x); }},
      {"functions f64", [=] { return erf(x64) + log(abs(x64)) + pow(abs(x64), 0.3); }},
      {"convert", [=] { return x64.to(DType::f32); }},
      {"sum of rows", [=] { return reduce(tiny, "a b -> a", "sum"); }},
      {"sum of columns", [=] { return reduce(x, "a b -> b", "sum"); }},
      {"sum of all", [=] { return reduce(tiny, "a b ->", "sum"); }},
      {"sum f64", [=] { return reduce(x64, "a b ->", "sum"); }},
      {"mean bf16", [=] { return reduce(x16, "a b -> b", "mean"); }},
      {"product", [=] { return matmul(x, w); }},
      {"product of tiny", [=] { return matmul(tiny, w); }},
      {"product f64", [=] { return matmul(x64, w64); }},
      {"product bf16", [=] { return matmul(x16, w16); }},
      {"few rows", [=] { return einsum(few, w, "b i, i o -> b o"); }},
      {"few rows bf16", [=] { return einsum(few.to(DType::bf16), w16, "b i, i o -> b o"); }},
      {"softmax", [=] { return softmax(x * 20.0, "b [s]"); }},
      {"layer norm", [=] { return layer_norm(x, "b [s]"); }},
      {"cumulative sum", [=] { return cumsum(x, "b [s]"); }},
      {"scatter",
       [=] {
         using namespace ein::literals;
         return scatter_add(x, where.to(DType::i64), "i s, i -> [n] s", "n"_a = 100);
       }},
      {"complex", [=] { return view_as_real(complex(x, tiny) * complex(x, x)); }},
      {"inverse",
       [=] { return inverse(einsum(w, w, "i a, i b -> a b") + eye(200) * 100.0, "[r c]"); }},
      {"random",
       [=] {
         manual_seed(3);
         return randn({300, 1024});
       }},
      {"gradient",
       [=] {
         const Tensor leaf = w.detach().requires_grad(true);
         reduce(softmax(matmul(x, leaf), "b [s]") * 1e-37, "b s ->", "sum").backward();
         return leaf.grad();
       }},
      {"compiled",
       [=] {
         auto f = compile([](const Tensor& a, const Tensor& b) {
           return softmax(matmul(a, b) * 0.1, "b [s]") / 3.0;
         });
         return f(x, w);
       }},
  };
}

std::string bits(const Tensor& x) {
  const Tensor whole = x.contiguous();
  const std::size_t bytes = static_cast<std::size_t>(whole.numel()) * size_of(whole.dtype());
  return {reinterpret_cast<const char*>(whole.raw_data()), bytes};
}

/// Restores the number of threads, and the mode.
class FloatModeTest : public testing::Test {
 protected:
  ~FloatModeTest() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
  InFloatMode restored_{FloatMode::of_this_thread()};
};

TEST_F(FloatModeTest, AllThreadsHaveTheCallersMode) {
  const std::vector<Call> calls = ein::calls();
  for (const NamedMode& named : all_float_modes()) {
    for (const Call& call : calls) {
      SCOPED_TRACE(std::string(call.name) + ", " + named.name);
      FloatMode().use();
      set_num_threads(1);
      named.mode.use();
      const std::string of_one = bits(call.run());
      FloatMode().use();
      set_num_threads(2);
      ones({1 << 20}) + 1.0;  // the pool begins in the usual mode
      named.mode.use();
      EXPECT_EQ(FloatMode::of_this_thread(), named.mode);
      for (int again = 0; again < 2; ++again) EXPECT_TRUE(bits(call.run()) == of_one);
      EXPECT_EQ(FloatMode::of_this_thread(), named.mode) << "the caller has it as before";
    }
  }
}

TEST_F(FloatModeTest, APoolThatBeganInAnotherMode) {
  const std::vector<Call> calls = ein::calls();
  set_num_threads(1);
  std::vector<std::string> wanted;
  for (const Call& call : calls) wanted.push_back(bits(call.run()));
  for (const NamedMode& named : all_float_modes()) {
    named.mode.use();
    set_num_threads(2);
    ones({1 << 20}) + 1.0;
    FloatMode().use();
    for (std::size_t i = 0; i < calls.size(); ++i)
      EXPECT_TRUE(bits(calls[i].run()) == wanted[i]) << calls[i].name << " after " << named.name;
  }
}

/// A mode does something, where results can differ.
TEST_F(FloatModeTest, ModesDiffer) {
  const Tensor thirds = ones({1 << 18});
  set_num_threads(2);
  std::set<std::string> results;
  for (const NamedMode& named : all_float_modes()) {
    named.mode.use();
    results.insert(bits(thirds / 3.0) + bits(-thirds / 3.0));
  }
  EXPECT_EQ(results.size(), 4u) << "towards zero is upward of one and downward of the other";
#if defined(__SSE2__)
  FloatMode().use();
  const Tensor tiny = full({1 << 18}, 1e-40);
  _mm_setcsr(_mm_getcsr() | 0x8040u);
  EXPECT_EQ(reduce((tiny + tiny) * 1e38, "n ->", "sum").item(), 0);
#endif
}

/// Numbers that a plan, machine code or a compiled function holds are of the mode of the call.
TEST_F(FloatModeTest, WhatIsKeptOfACallIsOfItsMode) {
  const auto body = [](const Tensor& x) { return x * (full({1}, 1.0) / 3.0).item() + x / 7.0; };
  const auto folding = [](const Tensor& x) { return x + ones({1 << 18}) / 3.0; };
  const Tensor x = rand({1 << 18});
  for (int order = 0; order < 2; ++order) {
    auto compiled = compile(folding);
    std::vector<NamedMode> modes = all_float_modes();
    if (order == 1) std::reverse(modes.begin(), modes.end());
    for (int round = 0; round < 2; ++round) {
      for (const NamedMode& named : modes) {
        named.mode.use();
        EXPECT_TRUE(bits(compiled(x)) == bits(folding(x))) << named.name;
        EXPECT_TRUE(bits(body(x)) == bits(body(x))) << named.name;
      }
    }
  }
}

/// Functions are less exact where steps of them are not rounded to nearest, but no others.
TEST_F(FloatModeTest, FunctionsHoldInAnyMode) {
  const Tensor x32 = rand({20000}) * 40.0 - 20.0;
  const Tensor sizes = rand({20000}) * 5.0;
  for (const Tensor& x : {x32, sizes, x32.to(DType::f64), sizes.to(DType::f64)}) {
    const auto functions = [&] {
      return std::vector<Tensor>{
          exp(x), sin(x),  cos(x),       tanh(x),          sigmoid(x),    silu(x),  log(abs(x)),
          erf(x), gelu(x), sqrt(abs(x)), pow(abs(x), 0.3), log1p(abs(x)), expm1(x), erf(x * 0.01)};
    };
    const std::vector<Tensor> wanted = functions();
    for (const NamedMode& named : all_float_modes()) {
      named.mode.use();
      const std::vector<Tensor> got = functions();
      FloatMode().use();
      for (std::size_t f = 0; f < got.size(); ++f) {
        const Tensor error = abs(got[f] - wanted[f]) / (abs(wanted[f]) + 0.1);
        const double bound = x.dtype() == DType::f32 ? 1e-4 : 1e-9;
        EXPECT_LT(reduce(error, "n ->", "max").item(), bound)
            << "function " << f << ", " << named.name;
      }
    }
  }
}

TEST_F(FloatModeTest, AnErrorLeavesTheMode) {
  set_num_threads(2);
  for (const NamedMode& named : all_float_modes()) {
    named.mode.use();
    EXPECT_THROW(rearrange(ones({2, 3}), runtime("a b -> a c")), Error);
    EXPECT_THROW(host::parallel_for(100, [](std::int64_t) { throw std::logic_error("each"); }),
                 std::logic_error);
    const Tensor positions = full({1 << 16}, 5, DType::i64);
    EXPECT_THROW(gather(arange(3.0), positions, "[n], i -> i"), Error);
    EXPECT_EQ(FloatMode::of_this_thread(), named.mode);
  }
}

}  // namespace
}  // namespace ein
