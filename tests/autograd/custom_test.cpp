// Functions with a gradient of one's own.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

using test::expect_error;
using Values = std::vector<double>;

Tensor leaf(const std::vector<double>& values) {
  Tensor x = from_vector(values);
  x.requires_grad(true);
  return x;
}

/// The identity, whose gradient is cut off.
auto clipped() {
  return custom([](const Tensor& x) { return x; },
                [](const Tensor& g, const Tensor&, const Tensor&) { return clamp(g, -1, 1); });
}

/// exp, by its result.
auto own_exp() {
  return custom([](const Tensor& x) { return exp(x); },
                [](const Tensor& g, const Tensor& y, const Tensor&) { return g * y; });
}

TEST(Custom, TheVjpIsUsedInPlaceOfTheFunctionsOwn) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = clipped()(x);
  EXPECT_EQ(y.to_vector<double>(), (Values{1, 2, 3}));
  EXPECT_TRUE(y.requires_grad());
  reduce(y * from_vector(Values{5, -0.5, -7}), "i ->", "sum").backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{1, -0.5, -1}));
}

TEST(Custom, TheArgumentsHandleKeepsItsOwnHistory) {
  const Tensor x = leaf({2});
  const Tensor y = clipped()(x);
  reduce(x * 3.0, "i ->", "sum").backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{3}));
  EXPECT_TRUE(y.same_storage(x));
}

TEST(Custom, SeveralArgumentsAndResults) {
  const auto sum_and_product = custom(
      [](const Tensor& a, const Tensor& b) {
        return std::array{a + b, a * b};
      },
      [](const std::array<Tensor, 2>& g, const std::array<Tensor, 2>&, const Tensor& a,
         const Tensor& b) {
        return std::array{g[0] + g[1] * b, g[0] + g[1] * a};
      });
  const Tensor a = leaf({2, 3}), b = leaf({5, 7});
  const auto [sum, product] = sum_and_product(a, b);
  EXPECT_EQ(sum.to_vector<double>(), (Values{7, 10}));
  reduce(sum + 2.0 * product, "i ->", "sum").backward();
  EXPECT_EQ(a.grad().to_vector<double>(), (Values{11, 15}));
  EXPECT_EQ(b.grad().to_vector<double>(), (Values{5, 7}));
  // One of the results alone: the cotangent of the other is 0.
  a.zero_grad();
  reduce(sum_and_product(a, b)[1], "i ->", "sum").backward();
  EXPECT_EQ(a.grad().to_vector<double>(), (Values{5, 7}));
}

TEST(Custom, ArgumentsThatTakeNoGradient) {
  const auto scaled =
      custom([](const Tensor& x, const Tensor& by) { return x * by.to(DType::f64); },
             [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& by) {
               return std::array{g * by.to(DType::f64), Tensor()};
             });
  const Tensor x = leaf({1, 2}), by = tensor({3, 4});
  reduce(scaled(x, by), "i ->", "sum").backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{3, 4}));
  EXPECT_FALSE(scaled(x.detach(), by).requires_grad());
  const NoGrad none;
  EXPECT_FALSE(scaled(x, by).requires_grad());
}

TEST(Custom, GradientsOfGradients) {
  const Tensor x = leaf({0.5, -1});
  const auto f = [](const Tensor& v) { return reduce(own_exp()(v * v), "i ->", "sum"); };
  const auto expected = [](const Tensor& v) { return reduce(exp(v * v), "i ->", "sum"); };
  const auto twice = [&](const auto& of) {
    return grad([&](const Tensor& v) { return reduce(grad(of)(v), "i ->", "sum"); })(x)
        .template to_vector<double>();
  };
  const Values mine = twice(f), theirs = twice(expected);
  for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_NEAR(mine[i], theirs[i], 1e-13);
}

TEST(Custom, CompiledAsEager) {
  const auto step = [](const Tensor& x) {
    const Tensor v = x.detach();
    v.requires_grad(true);
    reduce(own_exp()(clipped()(v * 4.0)), "i ->", "sum").backward();
    return v.grad();
  };
  auto compiled = compile(step);
  const Tensor x = from_vector(Values{0.1, -0.2, 0.3});
  EXPECT_EQ(compiled(x).to_vector<double>(), step(x).to_vector<double>());
}

TEST(Custom, NothingIsKeptWhenItsResultIsLetGo) {
  const auto watched = std::make_shared<int>(0);
  const Tensor x = leaf({1});
  {
    const auto f = custom([watched](const Tensor& v) { return v * 2.0; },
                          [](const Tensor& g, const Tensor&, const Tensor&) { return g * 2.0; });
    const Tensor y = f(x);
    EXPECT_GT(watched.use_count(), 1);
  }
  EXPECT_EQ(watched.use_count(), 1) << "a result and its call hold each other";
}

TEST(Custom, InsideOfACheckpoint) {
  const Tensor x = leaf({0.5, 1});
  reduce(checkpoint([](const Tensor& v) { return own_exp()(v); }, x), "i ->", "sum").backward();
  EXPECT_EQ(x.grad().to_vector<double>(), exp(x.detach()).to_vector<double>());
}

/// 4 x², whose vjp reads what `keep` leaves of 2 x.
template <class Keep>
auto square_of_double(Keep keep) {
  const auto kept = std::make_shared<Tensor>();
  return custom(
      [=](const Tensor& x) {
        const Tensor twice = x * 2.0;
        *kept = keep(twice);
        return twice * twice;
      },
      [=](const Tensor& g, const Tensor&, const Tensor&) { return g * *kept * 4.0; });
}
template <class F>
auto summed(F f) {
  return [f](const Tensor& x) { return reduce(f(x), "i ->", "sum"); };
}

TEST(Custom, TensorsFromOutsideThatRequireAGradient) {
  const Tensor w = leaf({3, 5}), x = leaf({2, 1});
  const auto times = [](const Tensor& by) {
    return custom([by](const Tensor& t) { return t * by; },
                  [by](const Tensor& g, const Tensor&, const Tensor&) { return g * by; });
  };
  const auto refused = [&](const auto& call) {
    expect_error(call, ErrorKind::value,
                 {"custom: operand 2 of mul, a tensor of shape (2,) that requires a gradient",
                  "make it an argument; or use its detach()"});
  };
  refused([&] { times(w)(x); });
  refused([&] { times(w)(x.detach()); });  // the only one that wants a gradient
  refused([&] { times(x)(x); });           // an argument as well
  refused([&] { times(w * 1.0)(x); });
  refused([&] { compile([&](const Tensor& t) { return times(w)(t); })(x.detach()); });
  EXPECT_EQ(times(w.detach())(x).to_vector<double>(), (Values{6, 5}));
  const NoGrad none;
  EXPECT_EQ(times(w)(x).to_vector<double>(), (Values{6, 5}));
}

TEST(Custom, WhatTheFunctionKept) {
  const auto as_it_is = [](const Tensor& t) { return t; };
  const auto part = [](const Tensor& t) { return t.at({slice(0, 1)}); };
  const auto constant = [](const Tensor& t) { return t.detach(); };
  const Tensor x = from_vector(Values{3});
  const auto twice = [](const auto& f) {
    return [f](const Tensor& t) { return grad(summed(grad(summed(f))))(t); };
  };
  const std::initializer_list<std::string> texts{
      "a tensor of shape (1,) that a custom function computed from its arguments",
      "return it from the function"};
  const auto f = square_of_double(as_it_is);
  EXPECT_EQ(grad(summed(f))(x).item(), 24);
  expect_error([&] { twice(f)(x); }, ErrorKind::value, texts);
  expect_error([&] { compile(twice(f))(x); }, ErrorKind::value, texts);
  expect_error([&] { twice(square_of_double(part))(x); }, ErrorKind::value, texts);
  EXPECT_EQ(twice(square_of_double(constant))(x).item(), 0);
}

TEST(Custom, WhatTheFunctionKeptOfItsResultOrArgument) {
  const Tensor x = from_vector(Values{0.5});
  for (const bool keeps_argument : {false, true}) {
    const auto kept = std::make_shared<Tensor>();
    const auto square = custom(
        [=](const Tensor& t) {
          const Tensor result = keeps_argument ? t * t : exp(t);
          *kept = keeps_argument ? t : result;
          return result;
        },
        [=](const Tensor& g, const Tensor&, const Tensor&) { return g * *kept; });
    EXPECT_NO_THROW(grad(summed(square))(x));
    expect_error([&] { grad(summed(grad(summed(square))))(x); }, ErrorKind::value,
                 {"computed from its arguments and kept"});
  }
}

TEST(Custom, WhatTheFunctionReturnsBesides) {
  // (2 x)², 2 x: the second result is there for the vjp.
  const auto f = custom(
      [](const Tensor& x) {
        const Tensor twice = x * 2.0;
        return std::array{twice * twice, twice};
      },
      [](const std::array<Tensor, 2>& g, const std::array<Tensor, 2>& y, const Tensor&) {
        return g[0] * y[1] * 4.0 + g[1] * 2.0;
      });
  const auto square = [&](const Tensor& x) { return f(x)[0]; };
  EXPECT_EQ(grad(summed(grad(summed(square))))(from_vector(Values{3})).item(), 8);
}

TEST(Custom, GradientsThatTheFunctionComputes) {
  // The slope of a potential, by its gradient.
  const auto force = custom(
      [](const Tensor& x) { return grad(summed([](const Tensor& t) { return t * t * t; }))(x); },
      [](const Tensor& g, const Tensor&, const Tensor& x) { return g * x * 6.0; });
  EXPECT_EQ(grad(summed(force))(from_vector(Values{2})).item(), 12);
}

TEST(Custom, NothingThatCameBeforeIsKept) {
  const auto kept = std::make_shared<Tensor>();
  const auto f = custom([=](const Tensor& x) { return *kept = x * 2.0; },
                        [](const Tensor& g, const Tensor&, const Tensor&) { return g * 2.0; });
  std::weak_ptr<Storage> before;
  {
    const Tensor x = exp(leaf({1, 2}));
    before = x.storage();
    f(x);
  }
  EXPECT_TRUE(before.expired()) << "what a function keeps holds the history of its arguments";
}

TEST(Custom, WrongCotangents) {
  const auto with = [](auto vjp) {
    return custom([](const Tensor& x, const Tensor& y) { return x * y; }, vjp);
  };
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  const auto run = [&](const auto& f) {
    return [&, f] { reduce(f(x, y), "i ->", "sum").backward(); };
  };
  expect_error(
      run(with([](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) { return g; })),
      ErrorKind::value, {"returned 1 cotangents for 2 arguments"});
  expect_error(run(with([](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) {
                 return std::array{g, reduce(g, "i ->", "sum")};
               })),
               ErrorKind::shape, {"a cotangent of f64 () for argument 2, which is f64 (2,)"});
  expect_error(run(with([](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) {
                 return std::array{g.to(DType::f32), g};
               })),
               ErrorKind::dtype, {"f32 (2,) for argument 1, which is f64 (2,)"});
}

TEST(Custom, ArgumentsThatWereWrittenToSince) {
  const Tensor x = leaf({1, 2});
  const Tensor y = reduce(own_exp()(x), "i ->", "sum");
  {
    const NoGrad none;
    x.fill(0);
  }
  expect_error([&] { y.backward(); }, ErrorKind::value, {"was written to since the call"});
}

}  // namespace
}  // namespace ein
