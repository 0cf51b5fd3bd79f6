// What compiled functions return and write: of its own, or a view, as eager execution has it; and
// of which moment.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

#include "support/expect_error.hpp"

namespace ein {
namespace {

using F = std::function<Tensor(const Tensor& state, const Tensor& x)>;

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

/// Runs a function eagerly and compiled, twice each, on states and arguments of their own, and
/// compares results, states, and which memory a result shares.
void expect_same(const char* what, const F& f) {
  const auto run = [&](bool compiled, auto&& see) {
    const Tensor state = arange(6).to(DType::f32).reshape({2, 3}).clone(), x = full({2, 3}, 10.0);
    auto program = compile([&](const Tensor& a) { return f(state, a); });
    for (int i = 0; i < 2; ++i) {
      const Tensor y = compiled ? program(x) : f(state, x);
      see(y, state, x);
    }
  };
  struct Seen {
    std::vector<float> result, state;
    bool shares_state, shares_argument;
    Strides strides;
  };
  std::vector<Seen> eager;
  run(false, [&](const Tensor& y, const Tensor& state, const Tensor& x) {
    eager.push_back(
        {values(y), values(state), y.same_storage(state), y.same_storage(x), y.strides()});
  });
  std::size_t i = 0;
  run(true, [&](const Tensor& y, const Tensor& state, const Tensor& x) {
    EXPECT_EQ(values(y), eager[i].result) << what << ", run " << i;
    EXPECT_EQ(values(state), eager[i].state) << what << ", run " << i;
    EXPECT_EQ(y.same_storage(state), eager[i].shares_state) << what << ", run " << i;
    EXPECT_EQ(y.same_storage(x), eager[i].shares_argument) << what << ", run " << i;
    if (eager[i].shares_state || eager[i].shares_argument) {
      EXPECT_EQ(y.strides(), eager[i].strides) << what;
    }
    ++i;
  });
}

TEST(CompiledState, ResultsAreThoseOfEagerExecution) {
  const auto add_one = [](const Tensor& s) { s.copy_from(s + 1); };
  expect_same("clone, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s.clone();
    add_one(s);
    return o;
  });
  expect_same("s * 1, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s * 1.0;
    add_one(s);
    return o;
  });
  expect_same("s + 0, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s + 0.0;
    add_one(s);
    return o;
  });
  expect_same("s - 0, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s - 0.0;
    add_one(s);
    return o;
  });
  expect_same("write, then s", [&](const Tensor& s, const Tensor&) {
    add_one(s);
    return s;
  });
  expect_same("s, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s;
    add_one(s);
    return o;
  });
  expect_same("view, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = rearrange(s, "a b -> b a");
    add_one(s);
    return o;
  });
  expect_same("slice, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s.at({every, slice(1, 3)});
    add_one(s);
    return o;
  });
  expect_same("slice of a view, then write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s.transpose().at({1});
    add_one(s);
    return o;
  });
  expect_same("view used after a write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s.transpose();
    add_one(s);
    return o * 2.0;
  });
  expect_same("view used before and after a write", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s.transpose(), before = o * 2.0;
    add_one(s);
    return o + before;
  });
  expect_same("views after two writes", [&](const Tensor& s, const Tensor& x) {
    s.copy_from(s * 2.0);
    const Tensor o = s.at({1}), p = o.view({3, 1});
    s.copy_from(s + x);
    return rearrange(p, "a b -> b a") + o;
  });
  expect_same("a state that becomes its own transpose, seen through a view",
              [&](const Tensor& s, const Tensor&) {
                const Tensor turned = s.view({3, 2});
                s.copy_from(rearrange(turned, "a b -> b a"));
                const Tensor o = s.at({0});
                add_one(s);
                return o;
              });
  expect_same("argument", [&](const Tensor&, const Tensor& x) { return x; });
  expect_same("clone of the argument", [&](const Tensor&, const Tensor& x) { return x.clone(); });
  expect_same("view of the argument",
              [&](const Tensor&, const Tensor& x) { return rearrange(x, "a b -> b a"); });
  expect_same("copy of the argument by rearranging",
              [&](const Tensor&, const Tensor& x) { return rearrange(x, "a b -> (b a)"); });
  expect_same("argument written to the state", [&](const Tensor& s, const Tensor& x) {
    s.copy_from(x);
    return s;
  });
  expect_same("argument written to the state, which is returned times 2",
              [&](const Tensor& s, const Tensor& x) {
                s.copy_from(x + s);
                return s * 2.0;
              });
  expect_same("the value that is written", [&](const Tensor& s, const Tensor& x) {
    const Tensor o = s + x;
    s.copy_from(o);
    return o;
  });
  expect_same("fill", [&](const Tensor& s, const Tensor&) {
    const Tensor o = s.clone();
    s.fill(7);
    return o;
  });
  expect_same("where that keeps all", [&](const Tensor& s, const Tensor&) {
    const Tensor o = where(s > -1e9, s, 0.0);
    add_one(s);
    return o;
  });
}

TEST(CompiledState, AResultThatIsHeldIsNotWrittenAgain) {
  const Tensor s = ones({4});
  auto f = compile([&] {
    const Tensor o = s.clone();
    s.copy_from(s + 1);
    return o;
  });
  const Tensor first = f(), second = f();
  EXPECT_EQ(values(first), std::vector<float>(4, 1));
  EXPECT_EQ(values(second), std::vector<float>(4, 2));
  EXPECT_EQ(values(s), std::vector<float>(4, 3));
}

TEST(CompiledState, ResultsShareStorageOnlyWhereTheyDoEagerly) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x * 2.0;
    return std::vector<Tensor>{y,         y.clone(), rearrange(y, "a b -> b a"),
                               x * 2.0,   y,         x,
                               x.clone(), x.clone(), x.transpose()};
  };
  const Tensor x = ones({2, 3});
  const std::vector<Tensor> eager = f(x), compiled = compile(f)(x);
  ASSERT_EQ(eager.size(), compiled.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    EXPECT_EQ(values(compiled[i]), values(eager[i])) << i;
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_EQ(compiled[i].same_storage(compiled[j]), eager[i].same_storage(eager[j]))
          << "results " << j << " and " << i;
    }
  }
}

TEST(CompiledState, StatesAreExchanged) {
  const Tensor a = full({4}, 1.0), b = full({4}, 2.0), c = full({4}, 3.0);
  compile([&] {
    const Tensor o = a.clone();
    a.copy_from(b);
    b.copy_from(c);
    c.copy_from(o);
  })();
  EXPECT_EQ(values(a)[0], 2);
  EXPECT_EQ(values(b)[0], 3);
  EXPECT_EQ(values(c)[0], 1);
}

TEST(CompiledState, OverlappingViewsOfWhatWasWrittenAreRefused) {
  const Tensor s = zeros({4, 4}), middle = s.at({slice(1, 3)});
  const Tensor x = ones({2, 4});
  test::expect_error(
      [&] {
        compile([&](const Tensor& a) {
          middle.copy_from(a);
          return s * 2.0;
        })(x);
      },
      ErrorKind::value, {"has written to a tensor of shape (2, 4)"});
  // Also where the other view was read before.
  test::expect_error(
      [&] {
        compile([&](const Tensor& a) {
          const Tensor before = s * 2.0;
          middle.copy_from(a);
          return s + before;
        })(x);
      },
      ErrorKind::value, {"has written to a tensor of shape (2, 4)"});
}

TEST(CompiledState, MemoryThatWasHandedOverTwiceIsTheSame) {
  std::vector<float> memory(12);
  const Tensor s = from_span(memory, {8}), same = from_span(memory, {8}),
               later = from_span(std::span(memory).subspan(4), {8});
  const Tensor x = ones({8});
  // What is written to is no argument at once.
  auto add = compile([&](const Tensor& a) {
    s.copy_from(s + a);
    return s * 2.0 + a;
  });
  add(x);
  for (const Tensor& argument : {s, same, later}) {
    test::expect_error([&] { add(argument); }, ErrorKind::value, {"shares memory"});
  }
  // After a write it is not read by another name.
  for (const Tensor& other : {same, later}) {
    test::expect_error(
        [&] {
          compile([&](const Tensor& a) {
            s.copy_from(a);
            return other * 2.0;
          })(x);
        },
        ErrorKind::value, {"has written to a tensor of shape (8,)"});
  }
  // A read before the write is of what was there.
  const auto read_first = [&](const Tensor& a) {
    const Tensor before = same * 2.0, after = later * 3.0;
    s.copy_from(a);
    return before + after + s;
  };
  const auto run = [&](bool compiled) {
    std::iota(memory.begin(), memory.end(), 0.0f);
    return values(compiled ? compile(read_first)(x) : read_first(x));
  };
  const std::vector<float> wanted{13, 18, 23, 28, 33, 38, 43, 48};  // 2 i + 3 (i + 4) + 1
  EXPECT_EQ(run(false), wanted);
  EXPECT_EQ(run(true), wanted);
  // Each element is read before another's result lies on it.
  std::iota(memory.begin(), memory.end(), 0.0f);
  compile([&](const Tensor& a) { later.copy_from(s + a); })(x);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(memory[4 + i], static_cast<float>(i + 1));
  // Neighbours share nothing.
  const Tensor head = from_span(std::span(memory).first(4), {4}),
               tail = from_span(std::span(memory).last(8), {8});
  auto move = compile([&](const Tensor& a) { tail.at({slice(0, 4)}).copy_from(a + 1.0); });
  move(head);
  EXPECT_EQ(memory[4], memory[0] + 1);
}

TEST(CompiledState, AWriteToWhatHasNoMemoryIsNamed) {
  test::expect_error(
      [&] {
        compile([&](const Tensor& a) {
          const Tensor y = zeros({2, 4});
          y.copy_from(a);
          return y;
        })(ones({2, 4}));
      },
      ErrorKind::value, {"copy_from: a value of shape (2, 4)"});
}

TEST(CompiledState, ASliceOfAnEmptyValueIsEmpty) {
  const auto f = [](const Tensor& x) { return (x * 2.0).at({slice(7)}); };
  EXPECT_EQ(compile(f)(zeros({24, 0})).shape(), f(zeros({24, 0})).shape());
  const auto g = [](const Tensor& x) { return einsum((x + 1.0).at({slice(2, 4)}), "a b -> a"); };
  EXPECT_EQ(values(compile(g)(zeros({24, 0}))), values(g(zeros({24, 0}))));
}

TEST(CompiledState, ATracedViewOfAnArgumentLiesAsTheArgumentDoes) {
  const Tensor x = arange(6).to(DType::f32).view({2, 3}).transpose();
  const auto f = [](const Tensor& a) { return a.contiguous(); };
  EXPECT_FALSE(f(x).same_storage(x));
  EXPECT_FALSE(compile(f)(x).same_storage(x));
  EXPECT_EQ(compile(f)(x).strides(), f(x).strides());
}

TEST(LostGradients, ACopyFromWhatHasThemIsAnError) {
  const Tensor a = ones({2}).requires_grad(true), p = zeros({4});
  test::expect_error([&] { p.at({slice(0, 2)}).copy_from(a); }, ErrorKind::value,
                     {"gradients flow through the source of shape (2,)"});
  test::expect_error([&] { p.at({slice(0, 2)}).copy_from(a * 2.0); }, ErrorKind::value,
                     {"gradients flow through the source"});
  p.at({slice(0, 2)}).copy_from(a.detach());
  const NoGrad no_grad;
  p.at({slice(2, 4)}).copy_from(a);
  EXPECT_EQ(values(p), std::vector<float>(4, 1));
}

TEST(LostGradients, AStridedTensorOfTheSameStorageIsAnError) {
  const Tensor x = ones({4}).requires_grad(true);
  const auto strided = [](const Tensor& t) { return Tensor(t.storage(), DType::f32, {2}, {2}); };
  test::expect_error([&] { strided(x); }, ErrorKind::value, {"gradients flow through the storage"});
  const Tensor y = x * 2.0;
  test::expect_error([&] { strided(y); }, ErrorKind::value, {"gradients flow through the storage"});
  {
    const NoGrad no_grad;
    EXPECT_EQ(strided(x).numel(), 2);
  }
  const Tensor z = ones({4});
  EXPECT_EQ(strided(z).numel(), 2);
  z.requires_grad(true);
  test::expect_error([&] { strided(z); }, ErrorKind::value, {"gradients flow through the storage"});
  z.requires_grad(false);
  EXPECT_EQ(strided(z).numel(), 2);
  // Views keep gradients, and may be made of what is detached.
  EXPECT_TRUE(x.at({slice(0, 2)}).requires_grad());
  EXPECT_FALSE(x.detach().at({slice(0, 2)}).requires_grad());
}

}  // namespace
}  // namespace ein
