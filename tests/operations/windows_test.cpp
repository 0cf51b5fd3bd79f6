// Braces: dimensions at functions of indices, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "oracle/interpret.hpp"
#include "support/expect_error.hpp"
#include "support/random_windows.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;

using test::expect_error;
using test::get_values;
using test::make_tensor;
using test::WindowCase;
using test::WindowDim;
using Values = std::vector<double>;

Shape shape_of(const std::vector<WindowDim>& dims) {
  Shape shape;
  for (const WindowDim& dim : dims) shape.push_back(dim.size);
  return shape;
}

/// A random case, its operands of small whole numbers, so that all sums are exact.
struct Sample {
  WindowCase windows;
  std::string text;
  std::vector<std::pair<std::string, std::int64_t>> named;
  std::vector<Values> inputs;
  Values seeds;  // the cotangent

  Sample(std::mt19937& random, std::size_t operands, bool is_sum)
      : windows(test::random_windows(random, operands, is_sum)),
        text(windows.text()),
        named(windows.named_sizes()) {
    const auto numbers = [&](std::int64_t count) {
      Values values;
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<double>(static_cast<int>(random() % 7) - 3));
      return values;
    };
    for (const auto& dims : windows.inputs) inputs.push_back(numbers(WindowCase::elements(dims)));
    seeds = numbers(WindowCase::elements(windows.output));
  }
  std::vector<AxisSize> sizes() const {
    std::vector<AxisSize> sizes;
    for (const auto& [name, size] : named) sizes.push_back({name, size});
    return sizes;
  }
  std::vector<Tensor> tensors(DType dtype = DType::f64) const {
    std::vector<Tensor> made;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      made.push_back(make_tensor(inputs[k], shape_of(windows.inputs[k]), dtype));
    return made;
  }
  std::string shown() const {
    std::string shown = text;
    for (const auto& [name, size] : named) shown += ", " + name + " = " + std::to_string(size);
    for (const auto& dims : windows.inputs) shown += "  " + shape_of(dims).to_string();
    return shown;
  }

  Tensor call(const std::vector<Tensor>& operands, Reduction reduction = Reduction::sum,
              Operation op = Operation::einsum) const {
    std::vector<const Tensor*> all;
    for (const Tensor& operand : operands) all.push_back(&operand);
    const std::vector<AxisSize> given = sizes();
    return detail::run_one({op, detail::PatternArgument(text), all, given, reduction});
  }

  Values wanted() const {
    Values result(seeds.size(), 0.0);
    windows.for_each_tuple([&](const std::vector<std::int64_t>& from, std::int64_t to) {
      double product = 1;
      for (std::size_t k = 0; k < from.size(); ++k)
        product *= inputs[k][static_cast<std::size_t>(from[k])];
      result[static_cast<std::size_t>(to)] += product;
    });
    return result;
  }
  Values gradient(std::size_t of) const {
    Values result(inputs[of].size(), 0.0);
    windows.for_each_tuple([&](const std::vector<std::int64_t>& from, std::int64_t to) {
      double product = seeds[static_cast<std::size_t>(to)];
      for (std::size_t k = 0; k < from.size(); ++k)
        product *= k == of ? 1.0 : inputs[k][static_cast<std::size_t>(from[k])];
      result[static_cast<std::size_t>(from[of])] += product;
    });
    return result;
  }
};

template <class F>
void for_each_sample(unsigned count, std::size_t most_operands, bool is_sum, F&& f) {
  test::for_seeds(count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Sample sample(random, 1 + seed % most_operands, is_sum);
    SCOPED_TRACE(sample.shown());
    f(sample, random);
  });
}

TEST(Windows, KnownAnswers) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5}, {5}), k = make_tensor({1, 10, 100}, {3});
  EXPECT_EQ(get_values(einsum(x, k, "{y + k}, k -> y")), (Values{321, 432, 543}));
  EXPECT_EQ(get_values(einsum(x, k, "{y + k - 1}, k -> y")), (Values{210, 321, 432, 543, 54}));
  EXPECT_EQ(get_values(einsum(x, k, "{2*y + k - 1}, k -> y")), (Values{210, 432, 54}));
  EXPECT_EQ(get_values(einsum(x, k, "{y + 2*k}, k -> y")), (Values{531}));
  EXPECT_EQ(get_values(einsum(k, k, "a, b -> {a + b}")), (Values{1, 20, 300, 2000, 10000}));
  EXPECT_EQ(get_values(einsum(k, "{-a} -> a")), (Values{100, 10, 1}));
  EXPECT_EQ(get_values(einsum(k, x, "a, b -> {7*a + b - 1 : n}", "n"_a = 12)),
            (Values{2, 3, 4, 5, 0, 0, 10, 20, 30, 40, 50, 0}));
  EXPECT_EQ(get_values(reduce(x, "{2*y + k} -> y", "max", "k"_a = 3)), (Values{3, 5}));
  EXPECT_EQ(get_values(reduce(x, "{2*y + k - 1} -> y", "mean", "k"_a = 3)), (Values{1.5, 3, 4.5}));
  EXPECT_EQ(get_values(rearrange(x, "{t + w} -> t w", "w"_a = 3)),
            (Values{1, 2, 3, 2, 3, 4, 3, 4, 5}));
}

TEST(Windows, EqualPlainLoops) {
  for_each_sample(600, 3, true, [](const Sample& sample, std::mt19937&) {
    EXPECT_EQ(get_values(sample.call(sample.tensors())), sample.wanted());
  });
}

/// The text with a name in the place of each number in braces, and these numbers.
std::string with_names(const std::string& text, std::vector<RuntimeAxisSize>& numbers) {
  std::string named;
  bool in_brace = false;
  for (std::size_t i = 0; i < text.size();) {
    in_brace = text[i] == '{' || (in_brace && text[i] != '}' && text[i] != ':');
    if (!in_brace || text[i] < '0' || text[i] > '9') {
      named += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const std::string name = "number" + std::to_string(numbers.size());
    numbers.push_back(number(name, std::stoll(text.substr(i, end - i))));
    named += name;
    i = end;
  }
  return named;
}

TEST(Windows, NumbersMayComeByName) {
  for_each_sample(300, 3, true, [](const Sample& sample, std::mt19937&) {
    std::vector<RuntimeAxisSize> numbers;
    const std::string text = with_names(sample.text, numbers);
    std::vector<AxisSize> given = sample.sizes();
    given.insert(given.end(), numbers.begin(), numbers.end());
    const std::vector<Tensor> operands = sample.tensors();
    std::vector<const Tensor*> all;
    for (const Tensor& operand : operands) all.push_back(&operand);
    EXPECT_EQ(
        get_values(detail::run_one({Operation::einsum, detail::PatternArgument(text), all, given})),
        sample.wanted())
        << text;
  });
  const Tensor x = make_tensor({1, 2, 3, 4, 5}, {5}), k = make_tensor({1, 10, 100}, {3});
  for (const int stride : {1, 2, 3}) {
    for (const int pad : {0, 1, -1}) {
      const std::string shift = pad == 1 ? " - 1" : pad == -1 ? " + 1" : "";
      const std::string text = "{" + std::to_string(stride) + "*y + k" + shift + "}, k -> y";
      const Tensor wanted = einsum(x, k, runtime(text));
      EXPECT_EQ(get_values(einsum(x, k, "{stride*y + k - pad}, k -> y", "stride"_n = stride,
                                  "pad"_n = pad)),
                get_values(wanted))
          << stride << " " << pad;
    }
  }
  EXPECT_EQ(get_values(reduce(x, "{s*y + k} -> y", "max", "k"_a = 3, "s"_n = 2)), (Values{3, 5}));
  EXPECT_EQ(get_values(einsum(k, "{s*a} -> a", "s"_n = -1)), (Values{100, 10, 1}));
  EXPECT_EQ(get_values(map(x, k, "{s*y + k}, k -> y", fn::mul, "sum", "s"_n = 2)),
            (Values{321, 543}));
  const Typed<float, "n=5"> typed(x);
  const auto strided = einsum(typed, k, "{s*y + k}, k -> y"_p, "s"_n = 2);
  EXPECT_EQ(strided.shape(), (Shape{2}));
  const Typed<float, "n=5"> a(x);
  const Typed<float, "k=3"> b(k);
  const auto known = einsum(a, b, "{s*y + k}, k -> y"_p, "s"_n = size_c<2>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(known)>, Typed<float, "y=2">>);
}

TEST(Windows, WrongNumbers) {
  const Tensor x = ones({5}), k = ones({3});
  expect_error([&] { einsum(x, k, "{s*y + k}, k -> y", "s"_n = 0); }, ErrorKind::syntax,
               {"a coefficient of 0"});
  expect_error([&] { einsum(x, k, runtime("{s*y + k}, k -> y")); }, ErrorKind::axis_argument,
               {"number 's' needs a value"});
  expect_error([&] { einsum(x, k, runtime("{y + k}, k -> y"), number("y", 2)); },
               ErrorKind::axis_argument, {"'y' is given as a number"});
  expect_error([&] { einsum(x, k, runtime("{y + k}, k -> y"), number("s", 2)); },
               ErrorKind::axis_argument, {"number 's' is given, which no braces"});
  expect_error([&] { einsum(x, k, "{s*y + k}, k -> y", "s"_n = INT64_MAX); }, ErrorKind::overflow,
               {"too large"});
}

TEST(Windows, AreWhatTheInterpreterComputes) {
  for_each_sample(300, 3, true, [](const Sample& sample, std::mt19937&) {
    std::vector<OperandType> types;
    for (const auto& dims : sample.windows.inputs) types.push_back({shape_of(dims), DType::f64});
    const std::vector<AxisSize> sizes = sample.sizes();
    const grammar::Reading reading = grammar::parse_pattern(sample.text);
    const Graph graph = build_graph(
        {.op = Operation::einsum, .pattern = reading.buffer.pattern(sample.text), .sizes = sizes},
        types);
    EXPECT_EQ(Interpreter<double>::run(graph, sample.inputs)[0], sample.wanted());
  });
}

TEST(Windows, GradientsEqualPlainLoops) {
  for_each_sample(300, 3, true, [](const Sample& sample, std::mt19937&) {
    std::vector<Tensor> operands = sample.tensors();
    for (Tensor& operand : operands) operand.requires_grad(true);
    const Tensor seeds = make_tensor(sample.seeds, shape_of(sample.windows.output), DType::f64);
    const Tensor loss = reduce(sample.call(operands) * seeds, "... ->", "sum");
    const std::vector<Tensor> made = gradients(loss, operands);
    for (std::size_t k = 0; k < operands.size(); ++k)
      EXPECT_EQ(get_values(made[k]), sample.gradient(k)) << "of operand " << k + 1;
  });
}

/// Of Σ gradient of operand j · v with respect to operand i, a sum as well.
TEST(Windows, SecondGradientsEqualPlainLoops) {
  for_each_sample(100, 3, true, [](const Sample& sample, std::mt19937& random) {
    if (sample.inputs.size() < 2) return;
    const std::size_t j = random() % sample.inputs.size(), i = (j + 1) % sample.inputs.size();
    std::vector<Tensor> operands = sample.tensors();
    for (Tensor& operand : operands) operand.requires_grad(true);
    const Tensor seeds = make_tensor(sample.seeds, shape_of(sample.windows.output), DType::f64);
    const Tensor loss = reduce(sample.call(operands) * seeds, "... ->", "sum");
    Values v;
    for (std::size_t e = 0; e < sample.inputs[j].size(); ++e)
      v.push_back(static_cast<double>(random() % 5) - 2);
    const Tensor first = gradients(loss, operands, true)[j];
    const Tensor sum = reduce(
        first * make_tensor(v, shape_of(sample.windows.inputs[j]), DType::f64), "... ->", "sum");
    Sample changed = sample;
    changed.inputs[j] = v;
    EXPECT_EQ(get_values(gradients(sum, std::array{operands[i]})[0]), changed.gradient(i))
        << "of operand " << j + 1 << ", then " << i + 1;
  });
}

TEST(Windows, HaveTheTypesOfTheirOperands) {
  for_each_sample(200, 2, true, [](const Sample& sample, std::mt19937& random) {
    constexpr DType dtypes[] = {DType::f32, DType::bf16, DType::f16,
                                DType::i32, DType::i64,  DType::c64};
    const DType dtype = dtypes[random() % std::size(dtypes)];
    std::vector<Tensor> operands;
    for (const Tensor& x : sample.tensors()) operands.push_back(x.to(dtype));
    Tensor made = sample.call(operands);
    if (dtype == DType::c64) made = real(made);
    const Values values = get_values(made.to(DType::f64)), wanted = sample.wanted();
    ASSERT_EQ(values.size(), wanted.size());
    const double exact = dtype == DType::bf16 ? 256 : dtype == DType::f16 ? 2048 : 1e6;
    for (std::size_t e = 0; e < values.size(); ++e) {
      if (std::abs(wanted[e]) > exact) continue;

      EXPECT_EQ(values[e], wanted[e]) << name(dtype) << " at " << e;
    }
  });
}

TEST(Windows, CostCountsTheTuplesInside) {
  for_each_sample(300, 3, true, [](const Sample& sample, std::mt19937&) {
    std::vector<OperandType> types;
    for (const auto& dims : sample.windows.inputs) types.push_back({shape_of(dims), DType::f64});
    const std::vector<AxisSize> sizes = sample.sizes();
    const grammar::Reading reading = grammar::parse_pattern(sample.text);
    const Cost cost = ein::cost(build_graph(
        {.op = Operation::einsum, .pattern = reading.buffer.pattern(sample.text), .sizes = sizes},
        types));
    std::int64_t tuples = 0;
    sample.windows.for_each_tuple([&](const auto&, std::int64_t) { ++tuples; });
    const auto factors = static_cast<std::int64_t>(sample.inputs.size());
    EXPECT_EQ(cost.mul, Count(tuples * (factors - 1)));
  });
}

TEST(Windows, Compile) {
  for_each_sample(120, 2, true, [](const Sample& sample, std::mt19937&) {
    std::vector<Tensor> operands = sample.tensors();
    auto f = compile([&](const Tensor& x, const Tensor& y) {
      return sample.call(operands.size() == 1 ? std::vector{x} : std::vector{x, y}) * 2;
    });
    Values wanted = sample.wanted();
    for (double& value : wanted) value *= 2;
    EXPECT_EQ(get_values(f(operands.front(), operands.back())), wanted);
  });
}

TEST(Windows, ReduceEqualsPlainLoops) {
  for_each_sample(400, 1, false, [](const Sample& sample, std::mt19937& random) {
    constexpr Reduction reductions[] = {Reduction::sum,  Reduction::max,  Reduction::min,
                                        Reduction::mean, Reduction::prod, Reduction::any,
                                        Reduction::all};
    const Reduction reduction = reductions[random() % 7];
    std::vector<Values> taken(sample.seeds.size());
    sample.windows.for_each_tuple([&](const std::vector<std::int64_t>& from, std::int64_t to) {
      taken[static_cast<std::size_t>(to)].push_back(
          sample.inputs[0][static_cast<std::size_t>(from[0])]);
    });
    const bool is_extreme = reduction == Reduction::max || reduction == Reduction::min;
    const bool has_empty = std::any_of(taken.begin(), taken.end(),
                                       [](const Values& values) { return values.empty(); });
    const auto call = [&] { return sample.call(sample.tensors(), reduction, Operation::reduce); };
    if (is_extreme && has_empty) {
      expect_error(call, ErrorKind::reduction, {"wholly outside"});
      return;
    }
    const Values made = get_values(call());
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const Values& values = taken[i];
      double want = 0;
      for (const double v : values) want += v;
      if (reduction == Reduction::mean) want /= static_cast<double>(values.size());
      if (reduction == Reduction::max) want = *std::max_element(values.begin(), values.end());
      if (reduction == Reduction::min) want = *std::min_element(values.begin(), values.end());
      if (reduction == Reduction::prod) {
        want = 1;
        for (const double v : values) want *= v;
      }
      const auto is_zero = [](double v) { return v == 0; };
      if (reduction == Reduction::any) want = !std::all_of(values.begin(), values.end(), is_zero);
      if (reduction == Reduction::all) want = std::none_of(values.begin(), values.end(), is_zero);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(made[i]));
      else
        EXPECT_NEAR(made[i], want, 1e-12 * std::abs(want)) << name(reduction) << " at " << i;
    }
  });
}

/// The elements differ and none is 0, so that a greatest one is one alone.
TEST(Windows, GradientsOfReductionsEqualPlainLoops) {
  for_each_sample(200, 1, false, [](const Sample& sample, std::mt19937& random) {
    constexpr Reduction reductions[] = {Reduction::sum, Reduction::max, Reduction::min,
                                        Reduction::mean, Reduction::prod};
    const Reduction reduction = reductions[random() % 5];
    Sample distinct = sample;
    Values& x = distinct.inputs[0];
    for (std::size_t e = 0; e < x.size(); ++e)
      x[e] = (e % 2 == 0 ? 1 : -1) * (0.5 + static_cast<double>(e) / static_cast<double>(x.size()));
    std::shuffle(x.begin(), x.end(), random);
    struct Taken {
      std::vector<std::size_t> from;
    };
    std::vector<Taken> taken(sample.seeds.size());
    sample.windows.for_each_tuple([&](const std::vector<std::int64_t>& from, std::int64_t to) {
      taken[static_cast<std::size_t>(to)].from.push_back(static_cast<std::size_t>(from[0]));
    });
    for (const Taken& t : taken) {
      if (t.from.empty()) return;
    }
    Values wanted(x.size(), 0.0);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const std::vector<std::size_t>& from = taken[i].from;
      const auto less = [&](std::size_t a, std::size_t b) { return x[a] < x[b]; };
      const double seed = sample.seeds[i];
      if (reduction == Reduction::max || reduction == Reduction::min) {
        const auto at = reduction == Reduction::max
                            ? *std::max_element(from.begin(), from.end(), less)
                            : *std::min_element(from.begin(), from.end(), less);
        wanted[at] += seed;
        continue;
      }
      double product = 1;
      for (const std::size_t e : from) product *= x[e];
      for (const std::size_t e : from) {
        wanted[e] += seed * (reduction == Reduction::mean   ? 1 / static_cast<double>(from.size())
                             : reduction == Reduction::prod ? product / x[e]
                                                            : 1.0);
      }
    }
    std::vector<Tensor> operands = distinct.tensors();
    operands[0].requires_grad(true);
    const Tensor seeds = make_tensor(sample.seeds, shape_of(sample.windows.output), DType::f64);
    const Tensor made = distinct.call(operands, reduction, Operation::reduce);
    const Values found = get_values(gradients(reduce(made * seeds, "... ->", "sum"), operands)[0]);
    for (std::size_t e = 0; e < x.size(); ++e)
      EXPECT_NEAR(found[e], wanted[e], 1e-12 * (1 + std::abs(wanted[e]))) << name(reduction);
  });
}

/// One trace for all lengths of a convolution that is as long as its operand.
TEST(Windows, OfAnyLength) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x, const Tensor& w) {
        ++traces;
        return einsum(x, w, "b {t + k - 1} c, k c o -> b t o");
      },
      {"b=2 t c=4", "k=3 c=4 o=5"});
  const Tensor w = randn({3, 4, 5});
  for (const std::int64_t length : {7, 8, 64, 5, 33}) {
    const Tensor x = randn({2, length, 4});
    EXPECT_TRUE(all_close(f(x, w), einsum(x, w, "b {t + k - 1} c, k c o -> b t o"), 1e-5, 1e-5));
  }
  EXPECT_EQ(traces, 1);
}

/// Elements of a window that lie further apart than a short operand is long.
TEST(Windows, OfAnyLengthMeetSomething) {
  const auto pool = [](const Tensor& x) {
    return reduce(x, "{t + 3*k - 1} -> t", "max", "k"_a = 2);
  };
  auto f = compile(pool, {"n"});
  for (const std::int64_t length : {7, 3, 2, 9, 2}) {
    const Tensor x = randn({length});
    if (length == 2)
      expect_error([&] { f(x); }, ErrorKind::reduction, {"wholly outside"});
    else
      EXPECT_EQ(get_values(f(x)), get_values(pool(x))) << length;
  }
}

TEST(Windows, OfOtherReductionsReadNothingBeside) {
  const Tensor x = make_tensor({3, 4, 0, 5}, {4}, DType::f64);
  const auto all = [&](const char* name) {
    return get_values(reduce(x, "{t + k - 1} -> t", runtime(name), "k"_a = 3));
  };
  EXPECT_EQ(all("norm"), (Values{5, 5, std::sqrt(41.0), 5}));
  EXPECT_EQ(all("nansum"), (Values{7, 7, 9, 5}));
  EXPECT_EQ(all("nanmean"), (Values{3.5, 7.0 / 3, 3, 2.5}));
  EXPECT_EQ(all("nanmax"), (Values{4, 4, 5, 5}));
  EXPECT_NEAR(all("logsumexp")[3], std::log(1 + std::exp(5.0)), 1e-14);
}

TEST(Windows, OfMapLeaveOutPointsThatAnOperandLacks) {
  const Tensor x = make_tensor({1, 5, 2, 4}, {4}, DType::f64),
               w = make_tensor({1, 2, 3}, {3}, DType::f64);
  EXPECT_EQ(get_values(map(x, w, "{t + k - 1}, k -> t", fn::mul, "sum")),
            get_values(einsum(x, w, "{t + k - 1}, k -> t")));
  EXPECT_EQ(get_values(map(x, w, "{t + k - 1}, k -> t", fn::add, "max")), (Values{8, 7, 7, 6}));
  EXPECT_EQ(get_values(map(x, w, "{t + k - 1}, k -> t", fn::sub, "mean")),
            (Values{0.5, 2.0 / 3, 5.0 / 3, 1.5}));
  EXPECT_EQ(get_values(map(x, w, "{t + k}, k -> t k", fn::sub)), (Values{0, 3, -1, 4, 0, 1}));
  EXPECT_EQ(get_values(map(w, w, "a, b -> {a + b}", fn::mul, "sum")),
            get_values(einsum(w, w, "a, b -> {a + b}")));
  x.requires_grad(true);
  const Tensor squares = map(
      x, w, "{t + k - 1}, k -> t", [](const auto& a, const auto& b) { return (a - b) * (a - b); },
      "sum");
  // 2 Σ (x - w) over the windows that have the element
  EXPECT_EQ(get_values(gradients(reduce(squares, "t ->", "sum"), std::array{x})[0]),
            (Values{-2, 18, 0, 6}));
  expect_error([&] { map(x, w, "{t + k - 1}, k -> t k", fn::add); }, ErrorKind::pattern,
               {"points that an operand lacks", "pad the operand"});
}

/// Operands of different lengths whose windows are as many.
TEST(Windows, OfMapKnowTheLengthsOfTheirOperands) {
  const auto latest = [](std::int64_t length) {
    const Tensor x = arange(length).to(DType::f64) - 50;
    return get_values(map(x, zeros({3}, DType::f64), "{3*t + k - 1}, k -> t", fn::sub, "max"));
  };
  EXPECT_EQ(latest(7), (Values{-49, -46, -44}));
  EXPECT_EQ(latest(8), (Values{-49, -46, -43}));
  EXPECT_EQ(latest(9), (Values{-49, -46, -43}));
  EXPECT_EQ(latest(2), (Values{-49}));
}

TEST(Windows, OfNothing) {
  EXPECT_EQ(einsum(zeros({0}), "{-a} -> a").shape(), Shape{0});
  EXPECT_EQ(einsum(zeros({0, 2}), ones({2}), "{2*a} b, b -> a").shape(), Shape{0});
  EXPECT_EQ(get_values(einsum(zeros({0}), ones({2}), "{a - 1}, b -> a b")), (Values{0, 0, 0, 0}));
  // Windows that begin before the operand, of no elements or none at all.
  EXPECT_EQ(rearrange(ones({6}), "{2*t + k - 1} -> t k", "t"_a = 4, "k"_a = 0).shape(),
            (Shape{4, 0}));
  EXPECT_EQ(rearrange(ones({6}), "{2*t + k - 1} -> t k", "t"_a = 0, "k"_a = 3).shape(),
            (Shape{0, 3}));
  // A kernel without elements, and its gradients.
  for (const char* pattern : {"{2*y + 2*k - 5}, k -> y", "y, k -> {2*y + k}", "y, k -> {y + k}"}) {
    for (const std::int64_t n : {0, 1, 7}) {
      const Tensor x = ones({n}).requires_grad(true), w = ones({0}).requires_grad(true);
      const Tensor y = einsum(x, w, runtime(pattern));
      const std::vector<Tensor> found = gradients(y, ones(y.shape()), std::array{x, w});
      EXPECT_EQ(get_values(y), Values(static_cast<std::size_t>(y.numel()), 0.0)) << pattern << n;
      EXPECT_EQ(get_values(found[0]), Values(static_cast<std::size_t>(n), 0.0)) << pattern << n;
      EXPECT_EQ(found[1].shape(), Shape{0}) << pattern << n;
    }
  }
  EXPECT_EQ(get_values(map(ones({3}), ones({0}), "{2*y + 2*k - 1}, k -> y", fn::mul, "sum")),
            (Values{0, 0, 0}));
}

TEST(Windows, BadInput) {
  const Tensor x = ones({5}), w = ones({3}), image = ones({4, 6});
  expect_error([&] { einsum(x, ones({8}), "{y + k}, k -> y"); }, ErrorKind::size,
               {"'{y + k}' reads nothing", "at least from 0 to 7", "has 5 elements",
                "k = 8 in operand 2", "- p"});
  expect_error([&] { einsum(x, w, "{y + k + 5}, k -> y"); }, ErrorKind::size, {"reads nothing"});
  expect_error([&] { einsum(x, w, "{y + k + 5}, k -> y", "y"_a = 2); }, ErrorKind::size,
               {"its indices are from 5 to 8"});
  expect_error([&] { rearrange(x, "{t + w} -> t w", "w"_a = 3, "t"_a = 4); }, ErrorKind::size,
               {"reads from 0 to 5", "has 5 elements", "ein::pad"});
  expect_error([&] { rearrange(image, "y x -> {y + x}"); }, ErrorKind::pattern,
               {"several elements come to", "einsum"});
  expect_error([&] { reduce(image, "y x -> {y + x}", "max"); }, ErrorKind::reduction,
               {"add up what meets", "max"});
  expect_error([&] { reduce(x, "{y + k - 1} -> y", "var", "k"_a = 3); }, ErrorKind::reduction,
               {"var reads beside its operand"});
  expect_error([&] { reduce(x, "{y + k - 3} -> y", "max", "k"_a = 2); }, ErrorKind::reduction,
               {"wholly outside"});
  expect_error([&] { einsum(x, w, "a, b -> {a + b - 9}"); }, ErrorKind::size,
               {"has a negative size"});
  expect_error([&] { einsum(ones({1 << 17}), w, "a, b -> {35184372088832*a + b : h}", "h"_a = 4); },
               ErrorKind::overflow, {"exceed 63 bits"});
}

}  // namespace
}  // namespace ein
