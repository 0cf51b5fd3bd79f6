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
    constexpr Reduction reductions[] = {Reduction::sum, Reduction::max,  Reduction::min,
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
      if (reduction == Reduction::any)
        want = !std::all_of(values.begin(), values.end(), is_zero);
      if (reduction == Reduction::all) want = std::none_of(values.begin(), values.end(), is_zero);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(made[i]));
      else
        EXPECT_NEAR(made[i], want, 1e-12 * std::abs(want)) << name(reduction) << " at " << i;
    }
  });
}

}  // namespace
}  // namespace ein
