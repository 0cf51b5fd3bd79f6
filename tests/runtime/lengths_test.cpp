// Compiled functions for any length: one trace, and the same results as eager calls.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/typed.hpp>
#include "size/size_scope.hpp"
#include "support/functions_of_lengths.hpp"

namespace ein {
namespace {

using namespace literals;

/// Whether two tensors have equal shapes and bits.
void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape().to_string(), b.shape().to_string());
  EXPECT_EQ(a.to_vector<double>(), b.to_vector<double>());
}

/// Whether they are equal but for the order in which a few numbers were added.
void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape().to_string(), b.shape().to_string());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], 4e-6 * std::max(1.0, std::abs(y[i])));
}

/// A compiled function with so many traces so far.
template <class F>
struct Counted {
  int traces = 0;
  F f;
  auto compiled(std::initializer_list<std::string_view> types) {
    return compile(
        [this](const Tensor& x) {
          ++traces;
          return f(x);
        },
        types);
  }
};

TEST(Sizes, GuardsAreWhatWasAsked) {
  const Size s = Size::named("s"), t = Size::named("t");
  const auto guards_of = [&](const auto& ask) {
    SizeScope scope({{s, 7}, {t, 5}});
    ask();
    return scope.guards();
  };
  const auto ranges = [](const SizeGuards& guards) {
    return std::vector<std::int64_t>{guards.ranges[0].low, guards.ranges[0].high};
  };
  using Range = std::vector<std::int64_t>;
  EXPECT_EQ(ranges(guards_of([&] { EXPECT_FALSE(s == 0); })), (Range{1, INT64_MAX}));
  EXPECT_EQ(ranges(guards_of([&] { EXPECT_TRUE(s == 7); })), (Range{7, 7}));
  EXPECT_EQ(ranges(guards_of([&] { EXPECT_TRUE(2 * s < 20); })), (Range{0, 9}));
  EXPECT_EQ(ranges(guards_of([&] { EXPECT_FALSE(3 * s + 1 < 20); })), (Range{7, INT64_MAX}));
  EXPECT_EQ(ranges(guards_of([&] { EXPECT_TRUE(20 - 2 * s >= 6); })), (Range{0, 7}));
  EXPECT_EQ(ranges(guards_of([&] {
              EXPECT_TRUE(s >= 0 && s + 1 > 0 && s < INT64_MAX && s - 1 < INT64_MAX);
              EXPECT_TRUE(s == s && s != s + 1);
            })),
            (Range{0, INT64_MAX}));
  const SizeGuards guards = guards_of([&] {
    EXPECT_TRUE(t < s);
    EXPECT_TRUE(s % 2 == 1);
  });
  EXPECT_TRUE(guards.hold({{s, 9}, {t, 8}}));
  EXPECT_FALSE(guards.hold({{s, 9}, {t, 9}}));
  EXPECT_FALSE(guards.hold({{s, 10}, {t, 9}}));
  EXPECT_TRUE(guards_of([&] {
                const SizeScopePause pause;
                EXPECT_TRUE(t < s);
              }).negative.empty());
}

TEST(Lengths, OneTraceForAll) {
  Counted softmax_of_scores{0, [](const Tensor& x) {
                              const Tensor scores = einsum(x, x, "b s c, b t c -> b s t");
                              return softmax(scores * 0.5, "b s [t]");
                            }};
  auto f = softmax_of_scores.compiled({"b=2 s c"});
  for (std::int64_t s = 1; s < 60; s += 7) {
    const Tensor x = randn({2, s, 5});
    expect_close(f(x), softmax_of_scores.f(x));
  }
  EXPECT_EQ(softmax_of_scores.traces, 1);
}

TEST(Sizes, NumbersAreNoFormulas) {
  const std::int64_t low = -(std::int64_t{1} << 62);
  for (std::int64_t n : {INT64_MIN, -INT64_MAX, low - 1, low, low + 5, INT64_MAX - 1, INT64_MAX}) {
    EXPECT_TRUE(Size(n).is_number()) << n;
    EXPECT_LE(Size(n), n);
  }
  EXPECT_THROW(arange(4).at({slice(0)}).at({INT64_MIN}), Error);
  EXPECT_EQ(arange(4).at({slice(INT64_MIN, INT64_MAX)}).numel(), 4);
}

TEST(Sizes, Formulas) {
  const Size s = Size::named("s"), c = Size::named("c");
  EXPECT_EQ(to_string(64 * s + 1), "64·s + 1");
  EXPECT_EQ(((s + 1) * (s - 1) - s * s + 1).word(), 0);
  EXPECT_EQ((64 * s * c / (s * 8)).word(), (8 * c).word());
  EXPECT_EQ(to_string((s + 1) / 2), "(s + 1) / (2)");
  EXPECT_EQ(((s - s) + 3).word(), 3);
  EXPECT_EQ((s * 6 % 3).word(), 0);
  EXPECT_THROW((void)(s < c), Error);
  EXPECT_THROW((void)static_cast<std::int64_t>(s), Error);
}

TEST(Lengths, OnePlanHoldsForARangeOfThem) {
  auto f = compile(
      [](const Tensor& x) {
        return softmax(einsum(x, x, "b s c, b t c -> b s t") * 0.125, "b s [t]");
      },
      {"b=2 s c=64"});
  std::set<std::string> plans;
  for (std::int64_t s = 128; s <= 512; s += 3) {
    f(randn({2, s, 64}));
    plans.insert(f.text());
  }
  EXPECT_LE(plans.size(), 4u);
  EXPECT_NE(plans.begin()->find("for lengths where"), std::string::npos) << *plans.begin();
}

TEST(Lengths, FormulasOfCostAndMemory) {
  auto f = compile(
      [](const Tensor& x) {
        const Tensor scores = einsum(x, x, "b s c, b t c -> b s t") * 0.125;
        return einsum(softmax(scores, "b s [t]"), x, "b s t, b t c -> b s c");
      },
      {"b s c=64"});
  f(randn({2, 150, 64}));
  CostOfLengths cost = f.cost_formula();
  MemoryFormula memory = f.memory_formula();
  std::string plan = f.text();
  std::set<std::string> plans{plan};
  // Two products, and of each score the scale, the maximum, a difference, an exponential, a sum and
  // a quotient.
  EXPECT_EQ(to_string(cost.matmul_only), "256·b·s·s");
  EXPECT_EQ(to_string(cost.model), "262·b·s·s");
  EXPECT_EQ(to_string(memory.results), "256·b·s");
  for (std::int64_t n = 0; n < 100; ++n) {
    const std::int64_t b = 1 + n % 4, s = 129 + n;
    const std::initializer_list<AxisSize> at{{"b", b}, {"s", s}};
    const auto count = [&](Size formula) { return Count(value_at(formula, at)); };
    f(randn({b, s, 64}));
    if (f.text() != plan) {
      plan = f.text(), cost = f.cost_formula(), memory = f.memory_formula();
      plans.insert(plan);
    }
    EXPECT_EQ(count(cost.model), f.cost().model);
    EXPECT_EQ(count(cost.matmul_only), f.cost().matmul_only);
    EXPECT_EQ(count(cost.strict()), f.cost().strict());
    EXPECT_EQ(count(cost.bytes_read), f.cost().bytes_read);
    EXPECT_EQ(count(cost.bytes_written), f.cost().bytes_written);
    EXPECT_EQ(count(memory.arguments), Count(f.memory().arguments));
    EXPECT_EQ(count(memory.results), Count(f.memory().results));
    EXPECT_EQ(count(memory.arena), Count(f.memory().arena));
    EXPECT_EQ(count(memory.unshared), Count(f.memory().unshared));
  }
  EXPECT_LE(plans.size(), 10u);
  EXPECT_THROW(value_at(cost.model, {{"b", 2}}), Error);
}

TEST(Lengths, EveryOperation) {
  for (const auto& [name, function] : test::functions_of_lengths()) {
    SCOPED_TRACE(name);
    int traces = 0;
    auto f = compile(
        [&](const Tensor& x) {
          ++traces;
          return function(x);
        },
        {"b s c=3"});
    for (std::int64_t s : {5, 2, 9, 64, 33, 7, 1}) {
      const Tensor x = randn({2, s, 3});
      // By numbers alone, as eager calls do not know "s".
      const std::string type = "b=2 s=" + std::to_string(s) + " c=3";
      auto exact = compile(function, {type});
      // A plan for all lengths may add up a short axis in another order.
      const Tensor want = exact(x);
      exact.cost().model > 0 ? expect_close(f(x), want) : expect_same(f(x), want);
    }
    EXPECT_LE(traces, 2);  // maybe one more for 1
  }
}

/// The Error of a call.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Lengths, ThatMakeNoSenseAreErrorsWithCarets) {
  int runs = 0;
  auto halves = compile(
      [&](const Tensor& x) {
        ++runs;
        return rearrange(x, "b (g t) c -> b g t c", "g"_a = 2);
      },
      {"b s c"});
  EXPECT_EQ(halves(ones({2, 6, 3})).shape(), (Shape{2, 2, 3, 3}));
  EXPECT_EQ(halves(ones({2, 8, 3})).shape(), (Shape{2, 2, 4, 3}));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(error_of([&] {
              halves(ones({2, 7, 3}));
            }),
            "rearrange: axis '(g t)' of size s = 7 in operand 1 cannot be split: 2 does not divide "
            "it (g = 2 in the call)\n"
            "  b (g t) c -> b g t c\n"
            "    ^^^^^\n"
            "    s = 7\n"
            "  operand 1: (b = 2, s = 7, c = 3)");
  EXPECT_EQ(halves(ones({2, 4, 3})).shape(), (Shape{2, 2, 2, 3}));
  EXPECT_EQ(runs, 2);  // and the one that failed

  auto product =
      compile([](const Tensor& x, const Tensor& y) { return einsum(x, y, "i k, k j -> i j"); },
              {"i k", "l j"});
  EXPECT_EQ(product(ones({2, 3}), ones({3, 4})).shape(), (Shape{2, 4}));
  EXPECT_EQ(product(ones({5, 6}), ones({6, 7})).shape(), (Shape{5, 7}));
  EXPECT_EQ(error_of([&] {
              product(ones({2, 3}), ones({4, 4}));
            }),
            "einsum: axis 'k' has two sizes: k = 3 in operand 1, l = 4 in operand 2\n"
            "  i k, k j -> i j\n"
            "    ^  ^\n"
            "  k = 3\n"
            "     l = 4\n"
            "  operand 1: (i = 2, k = 3)   operand 2: (l = 4, j = 4)");
}

TEST(Lengths, OfTypesThatDoNotFit) {
  auto f = compile([](const Tensor& x, const Tensor& y) { return x + y; }, {"b=2 s", "b=2 s"});
  f(ones({2, 5}), ones({2, 5}));
  EXPECT_EQ(error_of([&] {
              f(ones({2, 5}), ones({2, 6}));
            }),
            "type: axis 's' has two sizes: 5 before in this scope, 6 in the tensor\n"
            "  b=2 s\n"
            "      ^\n"
            "      6\n"
            "  tensor: (2, 6)");
  EXPECT_EQ(error_of([&] {
              f(ones({3, 5}), ones({3, 5}));
            }),
            "type: axis 'b=2' is 2 by its type, 3 in the tensor\n"
            "  b=2 s\n"
            "  ^^^\n"
            "   3\n"
            "  tensor: (3, 5)");
  EXPECT_NE(error_of([&] { f(ones({2}), ones({2, 5})); }), "");
  EXPECT_NE(error_of([] {
              compile([](const Tensor& x) { return x; }, {"b s="})(ones({2, 2}));
            }),
            "");
}

TEST(Lengths, EmptyAndSingle) {
  auto mean = compile([](const Tensor& x) { return reduce(x, "b s -> b", "mean"); }, {"b s"});
  auto most = compile([](const Tensor& x) { return reduce(x, "b s -> b", "max"); }, {"b s"});
  EXPECT_EQ(most(ones({2, 3})).to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(mean(ones({2, 1})).to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(error_of([&] {
              most(ones({2, 0}));
            }),
            "reduce: max over no elements is not defined: axis 's' has size 0\n"
            "  b s -> b\n"
            "    ^\n"
            "    0\n"
            "  operand 1: (b = 2, s = 0)");
  EXPECT_EQ(most(ones({0, 3})).numel(), 0);
  EXPECT_TRUE(std::isnan(mean(ones({1, 0})).item<double>()));
}

TEST(Lengths, OffsetsOfAnySize) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t offset : {most, most - 1, -most, std::int64_t{1} << 62}) {
    auto f = compile([=](const Tensor& x) { return diagonal(x, "[a b]", offset) + 0; }, {"m n"});
    EXPECT_EQ(f(ones({2, 3})).shape(), Shape{0}) << offset;
    EXPECT_EQ(f(ones({4, 1})).shape(), Shape{0}) << offset;
  }
}

TEST(Lengths, ANumberIsNotToBeHadWhileTracing) {
  auto f = compile(
      [](const Tensor& x) {
        const std::int64_t n = x.shape()[1];
        return x * static_cast<double>(n);
      },
      {"b s"});
  EXPECT_EQ(error_of([&] {
              f(ones({2, 5}));
            }),
            "the size s = 5 is known at a call only: the function is compiled for any length\n"
            "  help: ein::size_of gives it as a size that can be computed with");
  auto g = compile([](const Tensor& x) { return x * size_of(x, "t"); }, {"b s"});
  EXPECT_NE(error_of([&] { g(ones({2, 5})); }).find("has no axis 't'"), std::string::npos);
  EXPECT_NE(error_of([] {
              size_of(ones({2, 5}), "s");
            }).find("help: parse_shape"),
            std::string::npos);
}

TEST(Lengths, TypedArgumentsSayTheirAxes) {
  int traces = 0;
  auto f = compile([&](const Float<"b s c=4">& x) -> Tensor {
    ++traces;
    return einsum(x, x, "b s c, b t c -> b s t");
  });
  for (std::int64_t s : {3, 4, 8}) {
    const Float<"b s c=4"> x = randn({2, s, 4});
    EXPECT_EQ(f(x).shape(), (Shape{2, s, s}));
  }
  EXPECT_EQ(traces, 1);
}

TEST(Lengths, ArgumentsNeedNotBeContiguous) {
  int traces = 0;
  const auto doubled = [&](const Tensor& x) {
    ++traces;
    return reduce(x * 2.0, "b s -> s", "sum");
  };
  auto f = compile(doubled, {"b s"});
  for (std::int64_t s : {3, 5, 6}) {
    const Tensor x = randn({s, 7}).transpose();
    expect_same(f(x), compile(doubled)(x));
    const Tensor y = randn({4, 2 * s}).at({every, slice(0, 2 * s, 2)});
    expect_same(f(y), compile(doubled)(y));
  }
  EXPECT_EQ(traces, 6 + 1);  // of six for one length each, and of the one for all
}

TEST(Lengths, StateIsWrittenAtAPositionThatIsALength) {
  const Tensor cache = zeros({8, 2}), eager = zeros({8, 2});
  int traces = 0;
  auto f = compile(
      [&](const Tensor& seen, const Tensor& x) {
        ++traces;
        const Size p = size_of(seen, "p"), n = size_of(x, "n");
        cache.at({slice(p, p + n)}).copy_from(x);
        return reduce(cache.at({slice(0, p + n)}), "p c -> c", "sum");
      },
      {"p c=2", "n c=2"});
  std::int64_t p = 0;
  for (std::int64_t n : {2, 1, 3, 2}) {
    const Tensor x = randn({n, 2});
    const Tensor got = f(eager.at({slice(0, p)}).clone(), x);
    eager.at({slice(p, p + n)}).copy_from(x);
    p += n;
    expect_same(got, reduce(eager.at({slice(0, p)}), "p c -> c", "sum"));
    expect_same(cache, eager);
  }
  EXPECT_LE(traces, 4);
  EXPECT_THROW(f(ones({7, 2}), ones({2, 2})), Error);  // beyond the end
  expect_same(cache, eager);
}

TEST(Lengths, StateIsWrittenAtAPositionThatIsAValue) {
  const Tensor cache = zeros({8, 2}), eager = zeros({8, 2});
  int traces = 0;
  auto next = compile(
      [&](const Tensor& rows, const Tensor& position) {
        ++traces;
        cache.at({slice_of(position, size_of(rows, "n"))}).copy_from(rows);
        return reduce(cache, "p c -> c", "max");
      },
      {"n c=2", ""});
  std::int64_t p = 0;
  for (std::int64_t n : {2, 1, 3, 2}) {
    const Tensor rows = randn({n, 2});
    const Tensor got = next(rows, full({}, p, DType::i64));
    eager.at({slice(p, p + n)}).copy_from(rows);
    p += n;
    expect_same(got, reduce(eager, "p c -> c", "max"));
    expect_same(cache, eager);
  }
  EXPECT_LE(traces, 2);  // maybe one more for 1
  EXPECT_EQ(error_of([&] {
              next(ones({3, 2}), full({}, 6, DType::i64));
            }),
            "at: a slice of 3 from position 6 on is not inside an axis of size 8");
  expect_same(cache, eager);
}

TEST(Lengths, GradientsOfBatchesThatAreNotFull) {
  const Tensor w = randn({3, 2}), w_eager = w.clone();
  for (const Tensor* t : {&w, &w_eager}) t->requires_grad(true);
  const auto loss_of = [](const Tensor& weight, const Tensor& x, const Tensor& y) {
    const Tensor z = einsum(x, weight, "b s c, c v -> b s v");
    Tensor loss = cross_entropy(z, y, "b s [v], b s");
    loss = reduce(loss, "... ->", "mean");
    weight.zero_grad();
    loss.backward();
    const NoGrad no_grad;
    weight.copy_from(weight - weight.grad() * 0.1);
    return loss;
  };
  int traces = 0;
  auto step = compile(
      [&](const Tensor& x, const Tensor& y) {
        ++traces;
        return loss_of(w, x, y);
      },
      {"b s c=3", "b s"});
  for (const auto& [b, s] : {std::pair{4, 8}, {4, 5}, {2, 7}, {3, 8}}) {
    const Tensor x = randn({b, s, 3}), y = zeros({b, s}, DType::i64);
    expect_same(step(x, y), loss_of(w_eager, x, y));
    expect_same(w.detach(), w_eager.detach());
  }
  EXPECT_EQ(traces, 1);
}

TEST(Lengths, ProgramsAreLimited) {
  auto f = compile([](const Tensor& x) { return exp(x) * 2.0 + x; }, {"n"});
  const Tensor x = randn({4096});
  for (std::int64_t n = 1; n <= 200; ++n) f(x.at({slice(0, n)}));
  const std::size_t before = memory_allocated();
  for (std::int64_t n = 1; n <= 200; ++n) f(x.at({slice(0, n)}));
  EXPECT_EQ(memory_allocated(), before);

  int traces = 0;
  auto of_shapes = compile([&](const Tensor& x) {
    ++traces;
    return x + 1.0;
  });
  const auto call_all = [&] {
    const int first = traces;
    for (std::int64_t n = 1; n <= 3; ++n) of_shapes(x.at({slice(0, n)}));
    return traces - first;
  };
  EXPECT_EQ(call_all(), 3);
  EXPECT_EQ(call_all(), 0);
  of_shapes.keep_at_most(2);
  EXPECT_EQ(call_all(), 3);
  of_shapes.keep_at_most(3);
  EXPECT_EQ(call_all(), 1);
  EXPECT_EQ(call_all(), 0);
  EXPECT_THROW(of_shapes.keep_at_most(0), Error);
}

// A size that only a sum or product of a type has follows from the others, in one trace, whichever
// argument has them.
TEST(Lengths, OfSizesWithinProducts) {
  int traces = 0;
  auto f = compile([&](const Float<"h">& s, const Float<"b h*d_k">& x) {
    ++traces;
    return einsum(s, x, "h, b (h d) -> b h d"_p);
  });
  auto of_texts = compile(
      [&](const Tensor& x, const Tensor& s) {
        ++traces;
        return einsum(s, x, "h, b (h d) -> b h d");
      },
      {"b k*d", "k*1"});
  for (std::int64_t b = 1; b < 3; ++b) {
    for (std::int64_t d = 2; d < 6; ++d) {
      const Scope names;
      const Float<"h"> s(arange(3).to(DType::f32));
      const Float<"b h*d_k"> x(ones({b, 3 * d}));
      const Tensor wanted = einsum(s, x, "h, b (h d) -> b h d"_p);
      expect_same(f(s, x), wanted);
      expect_same(of_texts(x, s), wanted);
    }
  }
  EXPECT_EQ(traces, 2);
  EXPECT_THROW(of_texts(ones({2, 7}), ones({3})), Error);
}

// In a trace a name that a type has only within a product is what eager calls make of it, not the
// argument's size of this name.
TEST(Lengths, NamesWithinProductsAreThoseOfTheirType) {
  const auto halves = [](const Float<"n b">& x) -> Tensor {
    const Float<"2*n c"> pairs = rearrange(x, "n b -> b n");
    return pairs * 2;
  };
  auto compiled = compile(halves);
  const Float<"n b"> x(ones({3, 8}));
  expect_same(compiled(x), halves(x));
}

}  // namespace
}  // namespace ein
