// map: functions of elements that meet by the names of axes, and reductions of them. Values are
// compared with plain loops in double precision, gradients with those of the same calls written out
// with rearrange.
#include <ein/map.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/parallel.hpp>
#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {

using namespace literals;

namespace {

using test::expect_error;
using test::get_values;
using Values = std::vector<double>;

const auto squared_distance = [](const auto& a, const auto& b) {
  const auto d = a - b;
  return d * d;
};

/// A function of two elements, of numbers as of tensors.
struct Function {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> of_tensors;
  std::function<double(double, double)> of_numbers;
};
template <class F>
Function function(const char* name, const F& f) {
  return {name, f, f};
}
std::vector<Function> functions() {
  using std::exp, std::tanh;
  return {function("a + b", [](const auto& a, const auto& b) { return a + b; }),
          function("(a - b)²", squared_distance),
          function("a · b + b", [](const auto& a, const auto& b) { return a * b + b; }),
          function("exp(-a²) · b", [](const auto& a, const auto& b) { return exp(-(a * a)) * b; }),
          function("tanh(a)", [](const auto& a, const auto&) { return tanh(a); }),
          function("b", [](const auto&, const auto& b) { return b; })};
}

double reduced(Reduction reduction, const Values& values) {
  const auto n = static_cast<double>(values.size());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  switch (reduction) {
    case Reduction::sum:
      return sum;
    case Reduction::mean:
      return sum / n;
    case Reduction::max:
      return *std::max_element(values.begin(), values.end());
    case Reduction::min:
      return *std::min_element(values.begin(), values.end());
    case Reduction::prod:
      return std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<>());
    case Reduction::logsumexp: {
      double total = 0;
      for (const double value : values) total += std::exp(value);
      return std::log(total);
    }
    default: {
      double squares = 0;
      for (const double value : values) squares += (value - sum / n) * (value - sum / n);
      return squares / n;
    }
  }
}

/// Two operands over some of at most four axes, and a result over some of theirs.
struct RandomMap {
  std::vector<std::int64_t> sizes;
  std::vector<int> axes[2], result, all;  // `all`: as the function's operands have them
  std::string pattern;

  RandomMap(std::mt19937& random, std::int64_t most, bool keeps_all) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int a = 0; a < 4; ++a) sizes.push_back(1 + below(static_cast<int>(most)));
    std::vector<int> used;
    for (auto& of : axes) {
      for (int a = 0; a < 4; ++a) {
        if (below(3) > 0) of.push_back(a);
      }
      std::shuffle(of.begin(), of.end(), random);
      for (const int a : of) {
        if (std::find(used.begin(), used.end(), a) == used.end()) used.push_back(a);
      }
    }
    result = used;
    std::shuffle(result.begin(), result.end(), random);
    if (!keeps_all)
      result.resize(static_cast<std::size_t>(below(static_cast<int>(used.size()) + 1)));
    all = result;
    for (const int a : used) {
      if (std::find(all.begin(), all.end(), a) == all.end()) all.push_back(a);
    }
    pattern = text(axes[0]) + ", " + text(axes[1]) + " -> " + text(result);
  }

  static std::string text(const std::vector<int>& axes) {
    std::string text;
    for (const int a : axes) text += (text.empty() ? "" : " ") + std::string(1, "abcd"[a]);
    return text;
  }
  Shape shape(const std::vector<int>& axes) const {
    Shape shape;
    for (const int a : axes) shape.push_back(sizes[static_cast<std::size_t>(a)]);
    return shape;
  }
  /// As an operand's element lies: at the indices of all axes.
  std::size_t element(const std::vector<int>& axes, const std::vector<std::int64_t>& at) const {
    std::int64_t element = 0;
    for (const int a : axes)
      element = element * sizes[static_cast<std::size_t>(a)] + at[static_cast<std::size_t>(a)];
    return static_cast<std::size_t>(element);
  }

  Values want(const Values& x, const Values& y, const Function& f, Reduction reduction) const {
    std::vector<Values> of_result(static_cast<std::size_t>(numel(shape(result))));
    std::vector<std::int64_t> at(4, 0);
    for (bool is_there = true; is_there;) {
      of_result[element(result, at)].push_back(
          f.of_numbers(x[element(axes[0], at)], y[element(axes[1], at)]));
      is_there = false;
      for (std::size_t d = all.size(); d-- > 0 && !is_there;) {
        const auto a = static_cast<std::size_t>(all[d]);
        is_there = ++at[a] < sizes[a];
        if (!is_there) at[a] = 0;
      }
    }
    Values values;
    for (const Values& values_of_one : of_result)
      values.push_back(reduced(reduction, values_of_one));
    return values;
  }

  /// The same with rearrange and reduce, operation by operation.
  Tensor written_out(const Tensor& x, const Tensor& y, const Function& f,
                     Reduction reduction) const {
    const auto at_points = [&](const Tensor& operand, const std::vector<int>& of) {
      std::string to;
      for (const int a : all) {
        const bool has_it = std::find(of.begin(), of.end(), a) != of.end();
        to += (to.empty() ? "" : " ") + (has_it ? std::string(1, "abcd"[a]) : "1");
      }
      return rearrange(operand, runtime(text(of) + " -> " + to));
    };
    Tensor value = f.of_tensors(at_points(x, axes[0]), at_points(y, axes[1]));
    // Along each axis, also those that the function leaves out.
    value = value + zeros(shape(all), value.dtype());
    return reduce(value, runtime(text(all) + " -> " + text(result)), reduction);
  }
};

void expect_near(const Values& got, const Values& want, double relative, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], relative * std::max(1.0, std::abs(want[i])))
        << what << " at " << i;
}

constexpr Reduction reductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                    Reduction::min, Reduction::prod, Reduction::logsumexp,
                                    Reduction::var};

TEST(Map, OfRandomPatterns) {
  const std::vector<Function> all = functions();
  test::for_seeds(400, [&](unsigned seed) {
    std::mt19937 random(seed);
    const bool keeps_all = seed % 4 == 0;
    const RandomMap map(random, seed % 8 == 1 ? 40 : 6, keeps_all);
    const DType dtype = seed % 3 == 0 ? DType::f64 : DType::f32;
    const Tensor x = 0.5 * randn(map.shape(map.axes[0]), dtype),
                 y = 0.5 * randn(map.shape(map.axes[1]), dtype);
    const Function& f = all[random() % all.size()];
    const Reduction reduction = reductions[random() % std::size(reductions)];
    const std::string what = map.pattern + " " + f.name + " " + std::string(name(reduction));
    const Tensor got = keeps_all ? ein::map(x, y, runtime(map.pattern), f.of_tensors)
                                 : ein::map(x, y, runtime(map.pattern), f.of_tensors, reduction);
    ASSERT_EQ(got.shape(), map.shape(map.result)) << what;
    ASSERT_EQ(got.dtype(), dtype) << what;
    expect_near(get_values(got),
                map.want(get_values(x), get_values(y), f, keeps_all ? Reduction::sum : reduction),
                dtype == DType::f64 ? 1e-11 : 2e-4, what);
    auto compiled = compile([&](const Tensor& a, const Tensor& b) {
      return keeps_all ? ein::map(a, b, runtime(map.pattern), f.of_tensors)
                       : ein::map(a, b, runtime(map.pattern), f.of_tensors, reduction);
    });
    expect_near(get_values(compiled(x, y)), get_values(got), dtype == DType::f64 ? 1e-12 : 1e-5,
                what);
  });
}

TEST(Map, HasTheGradientsOfTheCallsOneByOne) {
  const std::vector<Function> all = functions();
  test::for_seeds(200, [&](unsigned seed) {
    std::mt19937 random(seed);
    const RandomMap map(random, 5, false);
    const Tensor x = randn(map.shape(map.axes[0]), DType::f64),
                 y = randn(map.shape(map.axes[1]), DType::f64);
    const Function& f = all[random() % all.size()];
    const Reduction reduction = reductions[random() % std::size(reductions)];
    const std::string what = map.pattern + " " + f.name + " " + std::string(name(reduction));
    x.requires_grad(true);
    y.requires_grad(true);
    const auto gradients_of = [&](const Tensor& value, bool again) {
      const Tensor loss = reduce(value * value * value, "... ->", "sum");
      return loss.requires_grad() ? gradients(loss, std::array{x, y}, again)
                                  : std::vector<Tensor>{};
    };
    const auto second = [&](const std::vector<Tensor>& first) {
      const Tensor sum = reduce(first[0], "... ->", "sum") + reduce(first[1] * y, "... ->", "sum");
      return gradients(sum, std::array{x, y});
    };
    const auto got =
        gradients_of(ein::map(x, y, runtime(map.pattern), f.of_tensors, reduction), seed % 4 == 0);
    const auto want = gradients_of(map.written_out(x, y, f, reduction), seed % 4 == 0);
    for (std::size_t i = 0; i < want.size(); ++i)
      expect_near(get_values(got[i]), get_values(want[i]), 1e-8, what);
    if (seed % 4 != 0 || !(want[0].requires_grad() && want[1].requires_grad())) return;
    const auto again = second(got), wanted = second(want);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      expect_near(get_values(again[i]), get_values(wanted[i]), 1e-7, what + " again");
  });
}

/// Σ or max over k of a function of a_ik and b_kj, in tiles of all sizes.
TEST(Map, OfAllPairsInTiles) {
  const std::vector<Function> all = functions();
  test::for_seeds(120, [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<std::int64_t>(random()) % n; };
    const std::int64_t i = 14 + below(30), j = 14 + below(90), k = 7 + below(90), n = 1 + below(3);
    const DType dtype = seed % 5 == 0   ? DType::f64
                        : seed % 5 == 1 ? DType::bf16
                        : seed % 5 == 2 ? DType::f16
                                        : DType::f32;
    const bool is_wide = dtype == DType::f32 || dtype == DType::f64;
    const Tensor a = (0.3 * randn({n, i, k})).to(dtype), b = (0.3 * randn({k, j})).to(dtype),
                 turned = rearrange(b, "k j -> j k").contiguous();
    const Function& f = all[random() % 4];
    const Reduction reduction = seed % 3 == 0   ? Reduction::max
                                : seed % 3 == 1 ? Reduction::sum
                                                : Reduction::mean;
    const Tensor got = seed % 2 == 0
                           ? ein::map(a, b, "n i k, k j -> n i j", f.of_tensors, reduction)
                           : ein::map(a, turned, "n i k, j k -> n i j", f.of_tensors, reduction);
    const Values x = get_values(a), y = get_values(b), values = get_values(got);
    for (std::int64_t r = 0; r < n * i; ++r) {
      for (std::int64_t c = 0; c < j; ++c) {
        Values all_k;
        for (std::int64_t d = 0; d < k; ++d)
          all_k.push_back(f.of_numbers(x[static_cast<std::size_t>(r * k + d)],
                                       y[static_cast<std::size_t>(d * j + c)]));
        const double want = reduced(reduction, all_k);
        const double scale = (reduction == Reduction::sum ? static_cast<double>(k) : 1.0) *
                             std::max(1.0, std::abs(want));
        ASSERT_NEAR(values[static_cast<std::size_t>(r * j + c)], want,
                    (dtype == DType::f64   ? 1e-12
                     : dtype == DType::f32 ? 1e-5
                                           : 0.02) *
                        scale)
            << f.name << " " << name(reduction) << " " << name(dtype) << " at " << r << ", " << c
            << " of " << n << " x " << i << " x " << j << " x " << k << (is_wide ? "" : ", narrow");
      }
    }
    // Same bits for any number of threads.
    const int usual = num_threads();
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      const Tensor again =
          seed % 2 == 0 ? ein::map(a, b, "n i k, k j -> n i j", f.of_tensors, reduction)
                        : ein::map(a, turned, "n i k, j k -> n i j", f.of_tensors, reduction);
      EXPECT_EQ(get_values(again), values);
    }
    set_num_threads(usual);
  });
}

TEST(Map, KeepsNaNOfExtremes) {
  const Tensor a = randn({40, 50}), b = randn({50, 70});
  a.at({3, 7}).fill(std::numeric_limits<double>::quiet_NaN());
  b.at({49, 69}).fill(std::numeric_limits<double>::quiet_NaN());
  b.at({10, 5}).fill(std::numeric_limits<double>::infinity());
  for (const char* how : {"max", "min"}) {
    const Values got = get_values(ein::map(a, b, "i k, k j -> i j", fn::add, runtime(how)));
    for (std::size_t i = 0; i < 40; ++i) {
      for (std::size_t j = 0; j < 70; ++j)
        EXPECT_EQ(std::isnan(got[i * 70 + j]), i == 3 || j == 69) << how << i << ", " << j;
    }
    if (how == std::string("max")) {
      EXPECT_EQ(got[5], std::numeric_limits<double>::infinity());
    }
  }
}

TEST(Map, ReadsAsEinsumDoes) {
  const Tensor x = arange(24).view({2, 3, 4}), y = arange(4), square = arange(9).view({3, 3});
  EXPECT_EQ(get_values(ein::map(y, "c -> c", [](const auto& a) { return a + a; })),
            get_values(y + y));
  EXPECT_EQ(get_values(ein::map(x, y, "b (h) c, c -> c b h", fn::add)),
            get_values(rearrange(x + y, "b h c -> c b h")));
  EXPECT_EQ(get_values(ein::map(x, y, "... c, c -> ... c", fn::mul)), get_values(x * y));
  EXPECT_EQ(get_values(ein::map(x, y, "b h c, c -> b (h c)", fn::sub)),
            get_values(rearrange(x - y, "b h c -> b (h c)")));
  EXPECT_EQ(get_values(ein::map(square, arange(3), "i i, i -> i", fn::add)), (Values{0, 5, 10}));
  EXPECT_EQ(get_values(ein::map(x, y, "b h (p q), (p q) -> b h p q", fn::add, "q"_a = 2)),
            get_values(x + y));
  EXPECT_EQ(get_values(ein::map(arange(2), arange(3), "i, j -> i 2 j", fn::add)),
            (Values{0, 1, 2, 0, 1, 2, 1, 2, 3, 1, 2, 3}));
  const Tensor many[] = {arange(2), arange(3), arange(4)};
  const auto sum = [](std::span<const Tensor> all) { return all[0] + all[1] * all[2]; };
  EXPECT_EQ(get_values(ein::map(many, "i, j, k -> i k", sum, "sum")),
            (Values{0, 3, 6, 9, 3, 6, 9, 12}));
  // A sum of integers is exact, in i64.
  const Tensor big = full({1, 3}, std::int64_t{1} << 53, DType::i64);
  EXPECT_EQ(ein::map(big, arange(3), "i k, k -> i", fn::add, "sum").item<std::int64_t>(),
            3 * (std::int64_t{1} << 53) + 3);
}

TEST(Map, DtypesPromoteAndResultsMayHaveAnother) {
  const Tensor x = arange(6).view({2, 3}).to(DType::i32), y = 0.5 + arange(3).to(DType::f32);
  EXPECT_EQ(ein::map(x, y, "i k, k -> i k", fn::mul).dtype(), DType::f32);
  EXPECT_EQ(ein::map(x, y, "i k, k -> i k", fn::mul, as(DType::f64)).dtype(), DType::f64);
  EXPECT_EQ(ein::map(x, x, "i k, j k -> i j", fn::mul, "sum").dtype(), DType::i64);
  EXPECT_EQ(ein::map(x, x, "i k, j k -> i j", fn::less, "any").dtype(), DType::boolean);
  EXPECT_EQ(ein::map(x, y, "i k, k -> i", fn::mul, "sum", as(DType::f64)).dtype(), DType::f64);
  const Tensor z = ein::complex(y, y);
  EXPECT_EQ(get_values(ein::map(z, y, "k, j -> k j", fn::mul)),
            get_values(rearrange(z, "k -> k 1") * y));
  EXPECT_EQ(get_values(ein::map(z, y, "k, j -> j", fn::mul, "sum")),
            get_values(reduce(rearrange(z, "k -> k 1") * y, "k j -> j", "sum")));
}

TEST(Map, WhatTheFunctionUsesFromOutsideTakesPart) {
  const Tensor x = randn({3, 4}, DType::f64), w = randn({}, DType::f64),
               y = randn({5, 4}, DType::f64);
  w.requires_grad(true);
  const auto f = [&](const Tensor& a, const Tensor& b) { return tanh(w * a * b); };
  const Tensor got = ein::map(x, y, "i k, j k -> i j", f, "sum");
  const Tensor want = reduce(tanh(w * rearrange(x, "i k -> i 1 k") * y), "i j k -> i j", "sum");
  EXPECT_TRUE(all_close(got.detach(), want.detach(), 1e-12, 1e-12));
  const Tensor g = gradients(reduce(got, "... ->", "sum"), std::array{w})[0],
               h = gradients(reduce(want, "... ->", "sum"), std::array{w})[0];
  EXPECT_TRUE(all_close(g, h, 1e-10, 1e-10));
  // A constant to the derivative.
  x.requires_grad(true);
  const auto constant = [](const Tensor& a, const Tensor& b) { return a.detach() * b * a; };
  const Tensor slope =
      gradients(reduce(ein::map(x, y, "i k, j k -> i j", constant, "sum"), "... ->", "sum"),
                std::array{x})[0];
  const Tensor by_hand = x.detach() * reduce(y, "j k -> k", "sum");
  EXPECT_TRUE(all_close(slope, by_hand, 1e-10, 1e-10));
  // And to the derivative of the derivative: of Σ c · a² only one factor of 2 a is left.
  const auto square = [](const Tensor& a, const Tensor& b) { return a.detach() * a * a * b; };
  const Tensor first =
      gradients(reduce(ein::map(x, y, "i k, j k -> i j", square, "sum"), "... ->", "sum"),
                std::array{x}, true)[0];
  const Tensor second = gradients(reduce(first, "... ->", "sum"), std::array{x})[0];
  EXPECT_TRUE(all_close(second, 2 * by_hand, 1e-10, 1e-10));
}

TEST(Map, KeepsNoValueOfAllPoints) {
  const Tensor x = randn({300, 40}), y = randn({200, 40});
  const auto f = [](const Tensor& a, const Tensor& b) {
    return reduce(ein::map(a, b, "i d, j d -> i j", squared_distance, "logsumexp"), "i j ->",
                  "sum");
  };
  auto step = compile([&](const Tensor& a, const Tensor& b) { return grad(f)(a, b); });
  const auto want = grad(f)(x, y);
  const auto got = step(x, y);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(all_close(got[i], want[i], 1e-4, 1e-4)) << i;
  EXPECT_LT(step.memory().arena, 8 * 300 * 200 * 4);
  auto forward = compile([](const Tensor& a, const Tensor& b) {
    return ein::map(a, b, "i d, j d -> i j", squared_distance, "sum");
  });
  forward(x, y);
  EXPECT_EQ(forward.memory().arena, 0);
  // Two operations and an addition at each point.
  EXPECT_EQ(forward.cost().model, Count(3 * 300 * 200 * 40));
}

/// A sum over three coordinates is a formula of them: a function of it over all pairs of points
/// reaches no memory, forward or backward.
TEST(Map, KernelSumsReachNoMemory) {
  const Tensor x = randn({400, 3}), y = randn({300, 3}), v = randn({300});
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor distances = ein::map(a, b, "i d, j d -> i j", squared_distance, "sum");
    const auto kernel = [](const Tensor& d, const Tensor& w) { return exp(-d) * w; };
    return reduce(ein::map(distances, c, "i j, j -> i", kernel, "sum"), "i ->", "sum");
  };
  auto step =
      compile([&](const Tensor& a, const Tensor& b, const Tensor& c) { return grad(f)(a, b, c); });
  const auto got = step(x, y, v), want = grad(f)(x, y, v);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(all_close(got[i], want[i], 1e-4, 1e-4)) << i;
  EXPECT_LT(step.memory().arena, 100 * 700);
}

TEST(Map, HasTypes) {
  const Float<"i d"> x = randn({3, 4});
  const Float<"j d=4"> y = randn({5, 4});
  const Long<"j"> ids = arange(5);
  const auto near = ein::map(x, y, "i d, j d -> i j"_p, squared_distance, "sum");
  static_assert(std::is_same_v<decltype(near), const Float<"i j">>);
  const auto same = ein::map<"i d, j d -> j i d">(x, y, fn::less);
  static_assert(std::is_same_v<decltype(same), const Bool<"j i d=4">>);
  const auto sums = ein::map<"j, i d -> i d">(ids, x, fn::add, "sum");
  static_assert(std::is_same_v<decltype(sums), const Float<"i d">>);
  const auto whole = ein::map<"j, k -> k">(ids, Long<"k">(arange(2)), fn::mul, "sum");
  // What a sum makes of integers is no part of its type, as with reduce.
  static_assert(std::is_same_v<decltype(whole), const Tensor>);
  const auto narrow = ein::map(x, y, "i d, j d -> i j"_p, fn::mul, "max", as<DType::f64>());
  static_assert(std::is_same_v<decltype(narrow), const Double<"i j">>);
  // A function of plain tensors does not say its dtype.
  const auto plain = ein::map(
      x, y, "i d, j d -> i j"_p, [](const Tensor& a, const Tensor& b) { return a * b; }, "sum");
  static_assert(std::is_same_v<decltype(plain), const Tensor>);
  EXPECT_TRUE(all_close(near, reduce(squared_distance(rearrange(x, "i d -> i 1 d"), Tensor(y)),
                                     "i j d -> i j", "sum")));
}

TEST(Map, ShortFormsTakeAPatternAtTheirEnd) {
  const Tensor scores = randn({2, 3, 4, 5}), mask = randn({4, 5}) > 0.0, bias = randn({3});
  EXPECT_EQ(get_values(where(mask, scores, -INFINITY, "q k, b h q k -> b h q k")),
            get_values(where(mask, scores, -INFINITY)));
  EXPECT_EQ(get_values(where(mask, 0, scores, "q k, b h q k -> b h q k")),
            get_values(where(mask, 0, scores)));
  EXPECT_EQ(get_values(add(scores, bias, "b h q k, h -> b h q k")),
            get_values(scores + rearrange(bias, "h -> h 1 1")));
  EXPECT_EQ(
      get_values(maximum(bias, scores, "h, b h q k -> h b q k")),
      get_values(rearrange(maximum(scores, rearrange(bias, "h -> h 1 1")), "b h q k -> h b q k")));
  const Float<"b h q k"> typed = scores;
  const Bool<"q k"> seen = mask;
  const auto hidden = where(seen, typed, -INFINITY, "q k, b h q k -> b h q k"_p);
  static_assert(std::is_same_v<decltype(hidden), const Float<"b h q k">>);
}

TEST(Map, FunctionsAreValues) {
  const std::function<Tensor(const Tensor&)> f = fn::exp;
  EXPECT_EQ(get_values(f(zeros({1}))), Values{1});
  EXPECT_EQ(get_values(fn::where(arange(2) > 0, 1.0, arange(2).to(DType::f32))), (Values{0, 1}));
}

/// Of few points the sum is a formula of them, where f at one of them depends on nothing else.
TEST(Map, SumsOfFewPointsAreSums) {
  for (const std::int64_t d : {2, 3, 4, 5, 6}) {
    const Tensor x = randn({2, d}, DType::f64), w = randn({d}, DType::f64);
    const auto expect_sum = [&](const auto& f) {
      const Tensor want = reduce(f(x), "i d -> i", "sum");
      EXPECT_TRUE(all_close(ein::map(x, "i d -> i", f, "sum"), want, 1e-12, 1e-12)) << d;
    };
    expect_sum([&](const Tensor& a) { return a * w; });
    expect_sum([](const Tensor& a) { return softmax(a, "i [d]") * a; });
    expect_sum([&](const Tensor& a) { return a * arange(d); });
    expect_sum([](const Tensor& a) { return a / a.shape()[1]; });
    expect_sum([&](const Tensor& a) { return flip(a, "i [d]") * a * w; });
    EXPECT_FALSE(std::signbit(
        ein::map(
            full({1, d}, -0.0, DType::f32), "i d -> i", [](const Tensor& a) { return a; }, "sum")
            .item()));
  }
}

TEST(Map, ConstantsToDifferentiationStaySo) {
  const Tensor x = arange(3).to(DType::f64), w = 1.0 + arange(3).to(DType::f64);
  x.requires_grad(true);
  w.requires_grad(true);
  const auto slope = [&](const auto& f, const Tensor& of) {
    return get_values(
        gradients(reduce(ein::map(x, "i -> i", f), "i ->", "sum"), std::array{of})[0]);
  };
  EXPECT_EQ(slope([&](const Tensor& a) { return a + w.detach() * w; }, w), (Values{1, 2, 3}));
  EXPECT_EQ(slope([&](const Tensor& a) { return a + w * w.detach(); }, w), (Values{1, 2, 3}));
  const auto constant = [](const Tensor& a) {
    const NoGrad scope;
    return a * a;
  };
  EXPECT_EQ(slope([&](const Tensor& a) { return constant(a) + a; }, x), (Values{1, 1, 1}));
  expect_error([&] { ein::map(x, "i -> i", grad([](const Tensor& a) { return a * a; })); },
               ErrorKind::value,
               {"inside of a function that map was given no gradients are taken"});
}

TEST(Map, TypedTensorsFromOutsideMeetByName) {
  const Float<"i d"> x = randn({3, 3});
  const Float<"d"> columns = randn({3});
  const Float<"i"> rows = randn({3});
  const auto f = [&](const auto& a) { return a * rows - columns; };
  const auto got = ein::map<"i d -> i d">(x, f);
  static_assert(std::is_same_v<decltype(got), const Float<"i d">>);
  EXPECT_EQ(get_values(got), get_values(f(x)));
  const auto sums = ein::map<"i d, j d -> i j">(
      x, Float<"j d">(randn({2, 3})), [&](const auto& a, const auto& b) { return a * b * columns; },
      "sum");
  static_assert(std::is_same_v<decltype(sums), const Float<"i j">>);
}

TEST(Map, MistakesAreExplained) {
  const Tensor x = randn({3, 4}), y = randn({5, 4}), z = randn({5, 3});
  expect_error([&] { ein::map(x, z, "i d, j d -> i j", fn::add, "sum"); }, ErrorKind::size,
               {"map: axis 'd' has two sizes: 4 in operand 1, 3 in operand 2", "i d, j d -> i j"});
  expect_error([&] { ein::map(x, y, runtime("i d, j d -> i j"), fn::add); }, ErrorKind::pattern,
               {"map: axis 'd' is lost: the output lacks it", "\"sum\""});
  expect_error([&] { ein::map(x, y, runtime("i d -> i d"), fn::add); }, ErrorKind::arity,
               {"map: the pattern describes 1 operand, the call has 2"});
  expect_error([&] { ein::map(x, y, "i d, j d -> i j", fn::add, runtime("most")); },
               ErrorKind::reduction, {"most"});
  const auto transposes = [](const Tensor& a, const Tensor&) {
    return rearrange(a, "i 1 d -> d 1 i");
  };
  expect_error(
      [&] {
        ein::map(zeros({3, 9}), zeros({5, 9}), "i d, j d -> i j", transposes, "sum");
      },
      ErrorKind::shape, {"the function makes shape (9, 1, 3)", "(3, 5, 9) along \"i j d\""});
  const auto draws = [](const Tensor& a, const Tensor&) { return a * rand({1}); };
  expect_error([&] { ein::map(x, y, "i d, j d -> i j", draws, "sum"); }, ErrorKind::value,
               {"draws random numbers"});
  const Tensor outside = zeros({1});
  const auto writes = [&](const Tensor& a, const Tensor&) {
    outside.fill(1);
    return a;
  };
  expect_error([&] { ein::map(x, y, "i d, j d -> i j", writes, "sum"); }, ErrorKind::value, {});
  const auto reads = [](const Tensor& a, const Tensor& b) {
    return a * b.at({Index(0), Index(0), Index(0)}).item();
  };
  expect_error([&] { ein::map(x, y, "i d, j d -> i j", reads, "sum"); }, ErrorKind::value,
               {"a value of a function that ein::map traces"});
  const auto counts = [](const Tensor& a, const Tensor&) { return nonzero(a)[0]; };
  expect_error([&] { ein::map(x, y, "i d, j d -> i j", counts, "sum"); }, ErrorKind::value,
               {"nonzero", "which a function that ein::map traces does not have"});
  const auto own = custom([](const Tensor& a) { return a; },
                          [](const Tensor& g, const Tensor&, const Tensor&) { return g; });
  const auto calls_custom = [&](const Tensor& a, const Tensor&) { return own(a); };
  expect_error([&] { ein::map(x, y, "i d, j d -> i j", calls_custom, "sum"); }, ErrorKind::value,
               {"custom: inside of a function"});
  expect_error(
      [&] { ein::map(x.to(DType::i32), y.to(DType::i32), "i d, j d -> i j", fn::add, "mean"); },
      ErrorKind::dtype, {"mean"});
  expect_error(
      [&] {
        ein::map(zeros({3, 0}), zeros({5, 0}), "i d, j d -> i j", fn::add, "max");
      },
      ErrorKind::reduction, {"no elements"});
  EXPECT_EQ(get_values(ein::map(zeros({1, 0}), zeros({1, 0}), "i d, j d -> i j", fn::add, "sum")),
            Values{0});
}

TEST(Map, SumsOfFewValuesAreRoundedOnce) {
  const Tensor x = tensor({256.0, 1.0, 1.0, 0.0}).to(DType::bf16), one = ones({}, DType::bf16);
  EXPECT_EQ(map(x, one, "a, ->", fn::mul, "sum").to(DType::f64).item<double>(), 258);
}

}  // namespace
}  // namespace ein
