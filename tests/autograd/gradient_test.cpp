// The gradient of every differentiable operation, element by element, against central differences
// in f64, and those of the first three orders against jets, also at special values.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include <ein/elementwise.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include <ein/scalar_expr.hpp>
#include "autograd/derivative.hpp"
#include "runtime/trace.hpp"
#include "support/derivative_orders.hpp"
#include "support/differences.hpp"

namespace ein {
namespace {

using test::Tensors;
using Values = std::vector<double>;
using namespace literals;
using X = const Tensors&;

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  test::OfTensors f;
  double low = -2, high = 2;  // of the inputs
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Gradient : public testing::TestWithParam<Case> {};

TEST_P(Gradient, AgreesWithDifferences) {
  const Case& c = GetParam();
  const std::uint64_t seed = 17;
  SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Tensors inputs;
  for (const Shape& shape : c.shapes)
    inputs.push_back(test::spread_values(random, shape, c.low, c.high));
  test::expect_gradients(c.f, inputs, random);
}

TEST_P(Gradient, OfEveryOrderAtSpecialValues) {
  const Case& c = GetParam();
  const std::uint64_t seed = 23;
  SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2; ++round) {
    Tensors inputs;
    for (const Shape& shape : c.shapes)
      inputs.push_back(test::special_values(random, shape, c.low, c.high));
    EXPECT_EQ(test::compare_orders(c.f, inputs, random).wrong, "");
  }
}

TEST_P(Gradient, OfEveryOrder) {
  const Case& c = GetParam();
  const std::uint64_t seed = 29;
  SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Tensors inputs;
  std::int64_t elements = 0;
  for (const Shape& shape : c.shapes) {
    inputs.push_back(test::spread_values(random, shape, c.low, c.high));
    elements += numel(shape);
  }
  const test::OrdersCompared found = test::compare_orders(c.f, inputs, random);
  EXPECT_EQ(found.wrong, "");
  EXPECT_EQ(found.elements, 3 * elements);
}

const auto name_of = [](const auto& info) {
  std::string name;
  for (const char letter : info.param.name)
    name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name + "_" + std::to_string(info.index);
};
#define EIN_CASES(group, cases) \
  INSTANTIATE_TEST_SUITE_P(group, Gradient, testing::ValuesIn(cases), name_of)
#define EIN_GRADIENTS(group, ...) EIN_CASES(group, (std::vector<Case> __VA_ARGS__))

std::vector<Case> function_cases() {
  return {
      {"neg", {{2, 3}}, [](X x) { return -x[0]; }},
      {"abs", {{2, 3}}, [](X x) { return abs(x[0]); }},
      {"sign", {{2, 3}}, [](X x) { return sign(x[0]); }},
      {"floor", {{2, 3}}, [](X x) { return floor(x[0]); }},
      {"ceil", {{2, 3}}, [](X x) { return ceil(x[0]); }},
      {"round", {{2, 3}}, [](X x) { return round(x[0]); }},
      {"trunc", {{2, 3}}, [](X x) { return trunc(x[0]); }},
      {"sqrt", {{2, 3}}, [](X x) { return sqrt(x[0]); }, 0.2, 3},
      {"rsqrt", {{2, 3}}, [](X x) { return rsqrt(x[0]); }, 0.2, 3},
      {"exp", {{2, 3}}, [](X x) { return exp(x[0]); }},
      {"exp2", {{2, 3}}, [](X x) { return exp2(x[0]); }},
      {"expm1", {{2, 3}}, [](X x) { return expm1(x[0]); }},
      {"log", {{2, 3}}, [](X x) { return log(x[0]); }, 0.2, 3},
      {"log2", {{2, 3}}, [](X x) { return log2(x[0]); }, 0.2, 3},
      {"log1p", {{2, 3}}, [](X x) { return log1p(x[0]); }, -0.5, 3},
      {"sin", {{2, 3}}, [](X x) { return sin(x[0]); }},
      {"cos", {{2, 3}}, [](X x) { return cos(x[0]); }},
      {"tan", {{2, 3}}, [](X x) { return tan(x[0]); }, -1, 1},
      {"asin", {{2, 3}}, [](X x) { return asin(x[0]); }, -0.8, 0.8},
      {"acos", {{2, 3}}, [](X x) { return acos(x[0]); }, -0.8, 0.8},
      {"atan", {{2, 3}}, [](X x) { return atan(x[0]); }},
      {"sinh", {{2, 3}}, [](X x) { return sinh(x[0]); }},
      {"cosh", {{2, 3}}, [](X x) { return cosh(x[0]); }},
      {"tanh", {{2, 3}}, [](X x) { return tanh(x[0]); }},
      {"erf", {{2, 3}}, [](X x) { return erf(x[0]); }},
      {"erfinv", {{2, 3}}, [](X x) { return erfinv(x[0]); }, -0.8, 0.8},
      {"sigmoid", {{2, 3}}, [](X x) { return sigmoid(x[0]); }},
      {"softplus", {{2, 3}}, [](X x) { return softplus(x[0]); }},
      {"log_sigmoid", {{2, 3}}, [](X x) { return log_sigmoid(x[0]); }},
      {"relu", {{2, 3}}, [](X x) { return relu(x[0]); }},
      {"gelu", {{2, 3}}, [](X x) { return gelu(x[0]); }},
      {"silu", {{2, 3}}, [](X x) { return silu(x[0]); }},
      {"clamp", {{3, 4}}, [](X x) { return clamp(x[0], -1, 0.7); }},
      {"no axes", {{}}, [](X x) { return exp(x[0]) * x[0]; }},
      {"no elements", {{0, 3}}, [](X x) { return exp(x[0]); }},
      {"far from zero",
       {{2, 8}},
       [](X x) { return tanh(x[0]) + sigmoid(x[0]) + gelu(x[0]) + erf(x[0]) + softplus(x[0]); },
       -9,
       9},
  };
}
EIN_CASES(Functions, function_cases());

std::vector<Case> pair_cases() {
  return {
      {"add", {{2, 3}, {2, 3}}, [](X x) { return x[0] + x[1]; }},
      {"sub", {{2, 3}, {2, 3}}, [](X x) { return x[0] - x[1]; }},
      {"mul", {{2, 3}, {2, 3}}, [](X x) { return x[0] * x[1]; }},
      {"div", {{2, 3}, {2, 3}}, [](X x) { return x[0] / x[1]; }, 0.3, 2},
      {"pow", {{2, 3}, {2, 3}}, [](X x) { return pow(x[0], x[1]); }, 0.3, 2},
      {"pow of tensors that are whole",
       {{2, 3}},
       [](X x) {
         return pow(x[0], from_vector(Values{0, 1, 2, 3, 1, 2}, {2, 3})) * x[0];
       }},
      {"atan2", {{2, 3}, {2, 3}}, [](X x) { return atan2(x[0], x[1]); }},
      {"hypot", {{2, 3}, {2, 3}}, [](X x) { return hypot(x[0], x[1]); }},
      {"remainder", {{2, 3}, {2, 3}}, [](X x) { return remainder(x[0], x[1]); }},
      {"floor_divide", {{2, 3}, {2, 3}}, [](X x) { return floor_divide(x[0], x[1]); }},
      {"logaddexp", {{2, 3}, {2, 3}}, [](X x) { return logaddexp(x[0], x[1]); }},
      {"minimum", {{3, 4}, {3, 4}}, [](X x) { return minimum(x[0], x[1]); }},
      {"maximum", {{3, 4}, {3, 4}}, [](X x) { return maximum(x[0], x[1]); }},
  };
}
EIN_CASES(Pairs, pair_cases());

/// Of a row of the tables that is differentiable, a case here.
TEST(Gradient, EveryFunctionHasACase) {
  std::set<std::string> names;
  for (const std::vector<Case>& cases : {function_cases(), pair_cases()}) {
    for (const Case& c : cases) {
      std::mt19937_64 random(1);
      Tensors inputs;
      for (const Shape& shape : c.shapes)
        inputs.push_back(test::spread_values(random, shape, c.low, c.high));
      for (const Op& op : test::traced(c.f, inputs).graph.ops) {
        for (const ScalarStep& step : op.expr.steps) names.emplace(info(step.op).name);
      }
    }
  }
  const Ex g = Ex::input(2), of_one[] = {Ex::input(0)}, of_two[] = {Ex::input(0), Ex::input(1)};
  // No functions of tensors: they are in gradients, in random numbers and in complex functions.
  const std::set<ScalarOp> inner{ScalarOp::gelu_slope, ScalarOp::normal_cdf,
                                 ScalarOp::normal_quantile, ScalarOp::with_slope, ScalarOp::along};
  const auto expect = [&](ScalarOp op, const Ex& value) {
    if (inner.contains(op)) return;
    const auto slopes = autograd::derivatives(value, {0, 1}, 2);
    if (slopes[0].steps.empty()) return;
    EXPECT_TRUE(names.contains(std::string(info(op).name)))
        << "no case of gradients has " << info(op).name;
  };
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  expect(ScalarOp::name, Ex::apply(ScalarOp::name, of_one[0]));
#define EIN_CONVERSION(name, reference, host, adjoint, cuda)
#include <ein/detail/scalar_functions.hpp>
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  expect(ScalarOp::name, Ex::apply(ScalarOp::name, of_two[0], of_two[1]));
#include <ein/detail/binary_functions.hpp>
}

EIN_GRADIENTS(
    TwoOperands,
    {
        {"stretched row", {{2, 3}, {3}}, [](X x) { return x[0] * x[1]; }},
        {"stretched column", {{2, 3}, {2, 1}}, [](X x) { return x[0] / x[1]; }, 0.3, 2},
        {"both stretched", {{3, 1}, {1, 4}}, [](X x) { return x[0] * x[1] + x[1]; }},
        {"a number's shape", {{2, 3}, {}}, [](X x) { return x[0] * x[1] - x[1]; }},
        {"stretched to no elements", {{0, 3}, {3}}, [](X x) { return x[0] * x[1]; }},
        {"the same twice", {{2, 3}}, [](X x) { return x[0] * x[0] + x[0] / x[0]; }, 0.3, 2},
        {"stretched pow", {{2, 1}, {3}}, [](X x) { return pow(x[0], x[1]); }, 0.3, 2},
    });

EIN_GRADIENTS(WithNumbers,
              {
                  {"add", {{2, 3}}, [](X x) { return 2 + x[0] + 0.5; }},
                  {"sub", {{2, 3}}, [](X x) { return 2 - x[0] - 0.5; }},
                  {"mul", {{2, 3}}, [](X x) { return 3 * x[0] * 0.5; }},
                  {"div", {{2, 3}}, [](X x) { return 3 / x[0] + x[0] / 7; }, 0.3, 2},
                  {"pow 2", {{2, 3}}, [](X x) { return pow(x[0], 2); }},
                  {"pow 3", {{2, 3}}, [](X x) { return pow(x[0], 3); }},
                  {"pow -1.5", {{2, 3}}, [](X x) { return pow(x[0], -1.5); }, 0.5, 2},
                  {"pow 0", {{2, 3}}, [](X x) { return pow(x[0], 0) + x[0]; }},
                  {"number to a power", {{2, 3}}, [](X x) { return pow(2.5, x[0]); }},
                  {"minimum", {{3, 4}}, [](X x) { return minimum(x[0], 0.3) * x[0]; }},
                  {"maximum", {{3, 4}}, [](X x) { return maximum(-0.3, x[0]) * x[0]; }},
              });

Tensor pattern_of_truth(const Shape& shape) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < numel(shape); ++i) values.push_back(i % 3 == 0);
  return from_vector(values, shape) == 1;
}

EIN_GRADIENTS(
    Choices,
    {
        {"where",
         {{2, 3}, {2, 3}},
         [](X x) {
           return where(pattern_of_truth({2, 3}), x[0], x[1]);
         }},
        {"where stretched",
         {{3}, {2, 1}},
         [](X x) {
           return where(pattern_of_truth({2, 3}), x[0], x[1] * x[1]);
         }},
        {"where of numbers",
         {{2, 3}},
         [](X x) {
           return where(pattern_of_truth({2, 3}), x[0], 1) + where(pattern_of_truth({3}), -1, x[0]);
         }},
        {"where by itself", {{2, 3}}, [](X x) { return where(x[0] > 0, x[0] * x[0], -x[0]); }},
        {"triu", {{3, 4}}, [](X x) { return triu(x[0], "... [i j]"); }},
        {"triu 1", {{2, 3, 3}}, [](X x) { return triu(x[0], "... [i j]", 1); }},
        {"tril", {{3, 4}}, [](X x) { return tril(x[0], "... [i j]"); }},
        {"tril -1", {{2, 4, 3}}, [](X x) { return tril(x[0], "... [i j]", -1); }},
    });

EIN_GRADIENTS(
    Matmul,
    {
        {"matrices", {{2, 3}, {3, 4}}, [](X x) { return matmul(x[0], x[1]); }},
        {"a batch by one", {{2, 2, 3}, {3, 4}}, [](X x) { return matmul(x[0], x[1]); }},
        {"stretched batches", {{2, 1, 2, 3}, {3, 3, 2}}, [](X x) { return matmul(x[0], x[1]); }},
        {"matrix, vector", {{2, 3}, {3}}, [](X x) { return matmul(x[0], x[1]); }},
        {"vector, matrix", {{3}, {3, 4}}, [](X x) { return matmul(x[0], x[1]); }},
        {"vectors", {{3}, {3}}, [](X x) { return matmul(x[0], x[1]); }},
        {"itself transposed", {{3, 4}}, [](X x) { return matmul(x[0], x[0].transpose()); }},
    });

std::vector<Case> reduction_cases() {
  std::vector<Case> cases;
  const auto add = [&](Reduction reduction, const char* pattern, const Shape& shape,
                       std::vector<RuntimeAxisSize> sizes = {}) {
    const auto f = [=](X x) {
      return sizes.empty() ? reduce(x[0], runtime(pattern), reduction)
                           : reduce(x[0], runtime(pattern), reduction, sizes[0]);
    };
    cases.push_back({std::string(name(reduction)) + " " + pattern, {shape}, f});
  };
  for (const Reduction reduction :
       {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min, Reduction::prod,
        Reduction::logsumexp, Reduction::var, Reduction::std, Reduction::sample_var,
        Reduction::sample_std, Reduction::norm, Reduction::nansum, Reduction::nanmean,
        Reduction::nanmax, Reduction::nanmin, Reduction::nanprod, Reduction::nanvar,
        Reduction::nanstd}) {
    add(reduction, "a b c -> b", {2, 3, 2});
    add(reduction, "a b ->", {2, 3});
    add(reduction, "b (h 2) -> h b", {2, 6});
    add(reduction, "(a b) c -> a c", {6, 2}, {axis("a", 3)});
    add(reduction, "... a -> ...", {2, 2, 3});
    add(reduction, "... a -> a 1", {2, 3, 2});
    const bool is_root = reduction == Reduction::std || reduction == Reduction::nanstd;
    const bool is_of_sample =
        reduction == Reduction::sample_var || reduction == Reduction::sample_std;
    if (!is_root && !is_of_sample)
      add(reduction, "a b -> b a", {2, 3});  // of one element they are always 0, or NaN
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Reductions, Gradient, testing::ValuesIn(reduction_cases()), name_of);

EIN_GRADIENTS(
    Rearrange,
    {
        {"permuted", {{2, 3, 4}}, [](X x) { return rearrange(x[0], "a b c -> c a b"); }},
        {"merged", {{2, 3, 4}}, [](X x) { return rearrange(x[0], "a b c -> b (c a)"); }},
        {"split",
         {{6, 4}},
         [](X x) { return rearrange(x[0], "(a b) (c d) -> a c b d", "a"_a = 2, "d"_a = 2); }},
        {"regrouped",
         {{4, 6}},
         [](X x) { return rearrange(x[0], "(a b) (c d) -> (a c) (d b)", "a"_a = 2, "c"_a = 3); }},
        {"ones", {{1, 3, 1}}, [](X x) { return rearrange(x[0], "1 a 1 -> a 1 1"); }},
        {"ellipsis", {{2, 3, 4}}, [](X x) { return rearrange(x[0], "... a -> a (...)"); }},
        {"stacked", {{2, 3}, {2, 3}}, [](X x) { return rearrange(x, "k a b -> a (b k)"); }},
        {"stacked twice the same",
         {{2, 3}},
         [](X x) {
           return rearrange(Tensors{x[0], x[0] * x[0]}, "k a b -> a k b");
         }},
        {"no elements", {{0, 3}}, [](X x) { return rearrange(x[0], "a b -> b a"); }},
    });

EIN_GRADIENTS(
    Repeat, {
                {"new axis", {{2, 3}}, [](X x) { return repeat(x[0], "a b -> a r b", "r"_a = 3); }},
                {"numbers", {{2, 3}}, [](X x) { return repeat(x[0], "a b -> 2 a b 2"); }},
                {"in groups",
                 {{2, 3}},
                 [](X x) { return repeat(x[0], "a b -> (a r) (s b)", "r"_a = 2, "s"_a = 3); }},
                {"permuted", {{2, 3}}, [](X x) { return repeat(x[0], "a b -> b r a", "r"_a = 2); }},
                {"ellipsis", {{2, 3}}, [](X x) { return repeat(x[0], "... -> ... r", "r"_a = 2); }},
                {"a number", {{}}, [](X x) { return repeat(x[0], "-> r", "r"_a = 4); }},
                {"stacked", {{2}, {2}}, [](X x) { return repeat(x, "k a -> a r k", "r"_a = 2); }},
            });

EIN_GRADIENTS(
    Einsum,
    {
        {"product", {{2, 3}, {3, 4}}, [](X x) { return einsum(x[0], x[1], "i k, k j -> i j"); }},
        {"transposed", {{2, 3}, {4, 3}}, [](X x) { return einsum(x[0], x[1], "i k, j k -> j i"); }},
        {"batch",
         {{2, 2, 3}, {2, 3, 2}},
         [](X x) { return einsum(x[0], x[1], "b i k, b k j -> b i j"); }},
        {"elementwise",
         {{2, 3}, {2, 3}},
         [](X x) { return einsum(x[0], x[1], "i j, i j -> j i"); }},
        {"outer", {{2}, {3}}, [](X x) { return einsum(x[0], x[1], "i, j -> i j"); }},
        {"inner", {{3}, {3}}, [](X x) { return einsum(x[0], x[1], "i, i ->"); }},
        {"with a number", {{}, {3}}, [](X x) { return einsum(x[0], x[1], ", i -> i"); }},
        {"one operand", {{2, 3}}, [](X x) { return einsum(x[0], "i j -> j"); }},
        {"diagonal", {{3, 3}}, [](X x) { return einsum(x[0], "i i -> i"); }},
        {"trace", {{3, 3}}, [](X x) { return einsum(x[0], "i i ->"); }},
        {"diagonal of three", {{2, 2, 2}}, [](X x) { return einsum(x[0], "i i i -> i"); }},
        {"diagonal of a group", {{6, 2}}, [](X x) { return einsum(x[0], "(i j) i -> j i"); }},
        {"diagonal and another",
         {{3, 3}, {3, 2}},
         [](X x) { return einsum(x[0], x[1], "i i, i j -> j"); }},
        {"two diagonals",
         {{2, 2}, {2, 2}},
         [](X x) { return einsum(x[0], x[1], "i i, i i -> i"); }},
        {"axes of one alone",
         {{2, 3}, {2, 2}},
         [](X x) { return einsum(x[0], x[1], "i _, i _ -> i"); }},
        {"nothing shared, all summed",
         {{2, 3}, {2}},
         [](X x) { return einsum(x[0], x[1], "_ _, _ ->"); }},
        {"three",
         {{2, 3}, {3, 2}, {2, 3}},
         [](X x) { return einsum(x[0], x[1], x[2], "i j, j k, k l -> i l"); }},
        {"three, one axis",
         {{3}, {3}, {3}},
         [](X x) { return einsum(x[0], x[1], x[2], "i, i, i -> i"); }},
        {"four in a ring",
         {{2, 3}, {3, 2}, {2, 3}, {3, 2}},
         [](X x) { return einsum(x[0], x[1], x[2], x[3], "i j, j k, k l, l i ->"); }},
        {"five as a list",
         {{2, 2}, {2, 2}, {2, 2}, {2, 2}, {2}},
         [](X x) { return einsum(x, runtime("a b, b c, c d, d e, e -> a")); }},
        {"repeated operand", {{3}}, [](X x) { return einsum(x[0], x[0], "i, i ->"); }},
        {"repeated operand, turned",
         {{3, 3}},
         [](X x) { return einsum(x[0], x[0], x[0], "i j, j k, k i ->"); }},
        {"groups",
         {{6, 2}, {2, 4}},
         [](X x) {
           return einsum(x[0], x[1], "(a b) c, c (d e) -> a d (b e)", "a"_a = 2, "e"_a = 2);
         }},
        {"numbers", {{2, 6}, {3}}, [](X x) { return einsum(x[0], x[1], "i (2 j), j -> i j"); }},
        {"ellipsis",
         {{2, 2, 3}, {3, 2}},
         [](X x) { return einsum(x[0], x[1], "... i, i j -> ... j"); }},
        {"ellipses",
         {{2, 1, 3}, {3, 3}},
         [](X x) { return einsum(x[0], x[1], "... i, ... i -> ..."); }},
        {"stretched ellipsis",
         {{2, 1, 2}, {3, 2}},
         [](X x) { return einsum(x[0], x[1], "... i, ... i -> ... i"); }},
        {"ones", {{1, 3}, {3, 1}}, [](X x) { return einsum(x[0], x[1], "1 i, i 1 -> 1 i"); }},
        {"attention",
         {{1, 2, 2, 3}, {1, 2, 2, 3}},
         [](X x) { return einsum(x[0], x[1], "b q h d, b k h d -> b h q k"); }},
        {"summed over nothing",
         {{2, 0}, {0, 3}},
         [](X x) { return einsum(x[0], x[1], "i k, k j -> i j"); }},
    });

EIN_GRADIENTS(
    PackAndViews,
    {
        {"pack", {{2, 3}, {2}, {2, 2, 2}}, [](X x) { return pack(x, "b *").tensor; }},
        {"pack in the middle", {{2, 2, 3}, {2, 3}}, [](X x) { return pack(x, "a * b").tensor; }},
        {"pack of one tensor twice",
         {{2, 3}},
         [](X x) {
           return pack(Tensors{x[0], exp(x[0]), x[0]}, "b *").tensor;
         }},
        {"unpack",
         {{2, 7}},
         [](X x) {
           const Tensors parts = unpack(x[0], std::vector<Shape>{{3}, {2, 2}}, "b *");
           return reduce(parts[1], "b h w -> b h", "sum") * parts[0].at({every, slice(0, 2)});
         }},
        {"one part of unpack",
         {{2, 7}},
         [](X x) {
           return unpack(x[0], std::vector<Shape>{{3}, {-1}}, "b *")[1];
         }},
        {"at a position", {{3, 4}}, [](X x) { return x[0].at({-1}); }},
        {"at slices",
         {{5, 7}},
         [](X x) {
           return x[0].at({slice(1, -1, 2), slice(2, 7, 3)});
         }},
        {"at nothing", {{5, 7}}, [](X x) { return x[0].at({slice(3, 3)}); }},
        {"at overlapping places",
         {{6}},
         [](X x) { return x[0].at({slice(0, 5)}) * x[0].at({slice(1, 6)}); }},
        {"brackets", {{3, 4}}, [](X x) { return x[0][1][2] * x[0][0]; }},
        {"view",
         {{3, 4}},
         [](X x) {
           return x[0].view({2, 6});
         }},
        {"view with ones",
         {{3, 4}},
         [](X x) {
           return x[0].view({1, 4, 1, 3});
         }},
        {"reshape of transposed",
         {{3, 4}},
         [](X x) {
           return x[0].transpose().reshape({2, 6});
         }},
        {"transpose", {{3, 4}}, [](X x) { return x[0].transpose(); }},
        {"contiguous", {{3, 4}}, [](X x) { return x[0].transpose().contiguous(); }},
        {"clone", {{3, 4}}, [](X x) { return x[0].clone() * x[0]; }},
    });

Tensor positions(const std::vector<std::int64_t>& values, const Shape& shape) {
  return from_vector(values, shape);
}

EIN_GRADIENTS(
    Named,
    {
        {"softmax", {{2, 4}}, [](X x) { return softmax(x[0], "b [v]"); }},
        {"softmax of an inner axis", {{2, 3, 2}}, [](X x) { return softmax(x[0], "a [b] c"); }},
        {"softmax of two axes", {{2, 2, 3}}, [](X x) { return softmax(x[0], "b [h w]"); }},
        {"softmax behind a mask",
         {{3, 3}},
         [](X x) {
           return softmax(where(tril(ones({3, 3}), "... [i j]") == 1, x[0],
                                -std::numeric_limits<double>::infinity()),
                          "q [k]");
         }},
        {"log_softmax", {{2, 4}}, [](X x) { return log_softmax(x[0], "b [v]"); }},
        {"layer_norm", {{3, 4}}, [](X x) { return layer_norm(x[0], "b [c]"); }},
        {"layer_norm, weight and bias",
         {{3, 4}, {4}, {4}},
         [](X x) { return layer_norm(x[0], x[1], x[2], "b [c]"); }},
        {"layer_norm of two axes",
         {{2, 2, 3}, {2, 3}, {2, 3}},
         [](X x) { return layer_norm(x[0], x[1], x[2], "b [h w]", 0.1); }},
        {"rms_norm", {{3, 4}}, [](X x) { return rms_norm(x[0], "b [c]"); }},
        {"rms_norm, weight", {{3, 4}, {4}}, [](X x) { return rms_norm(x[0], x[1], "b [c]"); }},
        {"cumsum", {{3, 4}}, [](X x) { return cumsum(x[0], "a [b]"); }},
        {"cumsum of the first axis", {{3, 4}}, [](X x) { return cumsum(x[0], "[a] b"); }},
        {"sort", {{3, 4}}, [](X x) { return sort(x[0], "a [b]").values; }},
        {"sort, descending", {{3, 4}}, [](X x) { return sort(x[0], "[a] b", true).values; }},
        {"top_k", {{3, 4}}, [](X x) { return top_k(x[0], "a [b]", 2).values; }},
        {"median", {{3, 4}}, [](X x) { return median(x[0], "a [b]"); }},
        {"quantile", {{3, 4}}, [](X x) { return quantile(x[0], "[a] b", 0.3); }},
        {"quantiles",
         {{3, 4}},
         [](X x) {
           return quantile(x[0], "a [b]", {0, 0.3, 0.9});
         }},
        {"flip", {{3, 4}}, [](X x) { return flip(x[0], "a [b]"); }},
        {"flip of two axes", {{2, 3, 2}}, [](X x) { return flip(x[0], "[a] b [c]") * x[0]; }},
        {"roll",
         {{3, 4}},
         [](X x) {
           return roll(x[0], "[a b]", {1, -2}) * x[0];
         }},
        {"pad",
         {{2, 3}},
         [](X x) {
           return pad(x[0], "[a b]", 1, {0, 2}, 0.5);
         }},
        {"pad, reflect",
         {{2, 3}},
         [](X x) { return pad(x[0], "a [b]", 2, 1, PadMode::reflect) * pad(x[0], "a [b]", 2, 1); }},
        {"pad, replicate",
         {{2, 3}},
         [](X x) { return exp(pad(x[0], "[a b]", 2, 1, PadMode::replicate)); }},
        {"pad, wrap", {{2, 3}}, [](X x) { return pad(x[0], "[a b]", 1, 2, PadMode::wrap); }},
        {"tril", {{3, 2, 4}}, [](X x) { return tril(x[0], "[i] b [j]", 1, 0.5); }},
        {"triu", {{3, 4}}, [](X x) { return triu(x[0], "[i j]", -1); }},
        {"diagonal", {{3, 2, 4}}, [](X x) { return diagonal(x[0], "[i] b [j]", 1); }},
        {"from_diagonal",
         {{2, 3}},
         [](X x) { return from_diagonal(x[0], "b [i]", -1) + from_diagonal(x[0], "b [i]", 1); }},
        {"clamp by tensors",
         {{3, 4}, {4}, {3, 1}},
         [](X x) { return clamp(x[0], x[1] - 0.5, x[2] + 0.5); }},
        {"embedding",
         {{4, 3}},
         [](X x) {
           return gather(x[0], positions({1, 3, 1, 0}, {2, 2}), "[v] d, b s -> b s d");
         }},
        {"one of each row",
         {{3, 4}},
         [](X x) {
           return gather(x[0], positions({2, 0, 3}, {3}), "b [v], b -> b");
         }},
        {"gather, turned",
         {{2, 4, 3}},
         [](X x) {
           return gather(x[0], positions({2, 0, 0}, {3}), "a [v] b, s -> b s a");
         }},
        {"scatter_add",
         {{2, 2, 3}},
         [](X x) {
           return scatter_add(x[0], positions({1, 3, 1, 0}, {2, 2}), "b s d, b s -> [v] d",
                              "v"_a = 5);
         }},
        {"scatter_add, summing",
         {{2, 3}},
         [](X x) {
           return scatter_add(x[0], positions({1, 1, 0}, {3}), "a b, b -> [v]", "v"_a = 2);
         }},
        {"scatter_prod",
         {{2, 4}},
         [](X x) {
           return scatter_prod(x[0], positions({1, 3, 1, 1}, {4}), "a b, b -> a [v]", "v"_a = 4) *
                  positions({1, 2, 3, 4}, {4});
         }},
        {"scatter_max, of all",
         {{2, 4}},
         [](X x) {
           return scatter_max(x[0], positions({0, 1, 1, 0}, {4}), "a b, b -> [v]", "v"_a = 2);
         }},
        {"scatter_min, of all",
         {{2, 4}},
         [](X x) {
           return scatter_min(x[0], positions({0, 1, 1, 0}, {4}), "a b, b -> [v]", "v"_a = 2);
         }},
        {"cumprod", {{3, 4}}, [](X x) { return cumprod(x[0], "a [b]"); }},
        {"cumprod along the first", {{3, 4}}, [](X x) { return cumprod(x[0], "[a] b"); }},
        {"cumprod of two axes",
         {{3, 3}},
         [](X x) { return cumprod(cumprod(x[0], "a [b]"), "[a] b"); }},
        {"logcumsumexp", {{3, 4}}, [](X x) { return logcumsumexp(x[0], "a [b]"); }},
        {"logcumsumexp of the first axis",
         {{3, 4}},
         [](X x) { return logcumsumexp(x[0] * 3.0, "[a] b"); }},
        {"cummax", {{3, 5}}, [](X x) { return cummax(x[0], "a [b]"); }},
        {"cummin", {{3, 5}}, [](X x) { return cummin(x[0], "[a] b"); }},
        {"cross_entropy",
         {{2, 3, 4}},
         [](X x) {
           return cross_entropy(x[0], positions({1, 3, 0, 0, 2, 2}, {2, 3}), "b s [v], b s");
         }},
        {"cross_entropy of each",
         {{3, 4}},
         [](X x) {
           return cross_entropy(x[0], positions({1, 3, 0}, {3}), "b [v], b -> b");
         }},
        {"cross_entropy of columns",
         {{4, 3}},
         [](X x) {
           return cross_entropy(x[0], positions({1, 3, 0}, {3}), "[v] b, b");
         }},
        {"cross_entropy with weights, ignored and smoothed",
         {{2, 3, 4}, {4}},
         [](X x) {
           return cross_entropy(x[0], positions({1, 3, 0, -7, 2, 2}, {2, 3}), "b s [v], b s -> b",
                                {.ignored = -7, .weights = exp(x[1]), .smoothing = 0.2});
         }},
        {"cross_entropy of probabilities",
         {{2, 4}, {2, 4}, {4}},
         [](X x) {
           return cross_entropy(x[0], x[1], "b [v], b v", {.weights = exp(x[2]), .smoothing = 0.2});
         }},
        {"mse_loss", {{2, 3}, {2, 3}}, [](X x) { return mse_loss(x[0], x[1]); }},
        {"dropout",
         {{4, 5}},
         [](X x) {
           if (!engine::Trace::active()) manual_seed(3);  // a trace begins with the same numbers
           return dropout(x[0], 0.4);
         }},
        {"attention",
         {{2, 3, 2}, {2, 3, 2}, {2, 3, 2}},
         [](X x) {
           const Tensor scores = einsum(x[0], x[1], "b q d, b k d -> b q k") / std::sqrt(2.0);
           const Tensor seen = where(tril(ones({3, 3}), "... [i j]") == 1, scores,
                                     -std::numeric_limits<double>::infinity());
           return einsum(softmax(seen, "b q [k]"), x[2], "b q k, b k d -> b q d");
         }},
    });

// --- where differences do not help ---

template <class F>
Values gradient_at(const Values& x, F&& f) {
  return grad([&](const Tensor& t) { return reduce(f(t), "... ->", "sum"); })(from_vector(x))
      .template to_vector<double>();
}

TEST(GradientAtKinks, EqualElementsShareThatOfAMaximum) {
  const auto max = [](const Tensor& x) { return reduce(x, "i ->", "max"); };
  EXPECT_EQ(gradient_at({3, 1, 3, 3, 2}, max), (Values{1. / 3, 0, 1. / 3, 1. / 3, 0}));
  const auto min = [](const Tensor& x) { return reduce(x, "i ->", "min"); };
  EXPECT_EQ(gradient_at({3, 1, 3, 1, 2}, min), (Values{0, 0.5, 0, 0.5, 0}));
}

TEST(GradientAtKinks, OneSided) {
  EXPECT_EQ(gradient_at({0}, [](const Tensor& x) { return relu(x); }), (Values{0}));
  EXPECT_EQ(gradient_at({0}, [](const Tensor& x) { return abs(x); }), (Values{0}));
  EXPECT_EQ(gradient_at({0}, [](const Tensor& x) { return pow(x, 2); }), (Values{0}));
  EXPECT_EQ(gradient_at({0}, [](const Tensor& x) { return pow(x, 1); }), (Values{1}));
  EXPECT_EQ(gradient_at({0}, [](const Tensor& x) { return pow(x, 0); }), (Values{0}));
}

TEST(GradientAtKinks, ProductsWithZeros) {
  const auto prod = [](const Tensor& x) { return reduce(x, "i ->", "prod"); };
  EXPECT_EQ(gradient_at({2, 3, 5}, prod), (Values{15, 10, 6}));
  EXPECT_EQ(gradient_at({2, 0, 5}, prod), (Values{0, 10, 0}));
  EXPECT_EQ(gradient_at({0, 0, 5}, prod), (Values{0, 0, 0}));
  const auto rows = [](const Tensor& x) { return reduce(x.view({2, 2}), "i j -> i", "prod"); };
  EXPECT_EQ(gradient_at({0, 7, 3, 4}, rows), (Values{7, 0, 4, 3}));
}

// ∂²/∂x_i∂x_j is the product of the others, whatever is 0.
TEST(GradientAtKinks, SecondDerivativesOfProductsWithZeros) {
  const auto prod = [](const Tensor& x) { return reduce(x, "i ->", "prod"); };
  for (const Values& x :
       {Values{2, 0, 5, 3}, Values{0, 0, 5, 3}, Values{2, 4, 5, 3}, Values{0, 7, 0, 0}}) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto row = [&](const Tensor& t) { return grad(prod)(t).at({static_cast<int>(i)}); };
      Values expected(x.size(), 0.0);
      for (std::size_t j = 0; j < x.size(); ++j) {
        if (j == i) continue;
        expected[j] = 1;
        for (std::size_t k = 0; k < x.size(); ++k) expected[j] *= k == i || k == j ? 1 : x[k];
      }
      const Values found = gradient_at(x, row);
      for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(found[j], expected[j], 1e-13);
    }
  }
}

TEST(GradientAtKinks, EqualElementsWhenSorting) {
  const auto largest = [](const Tensor& x) {
    return top_k(x, "[v]", 2).values * from_vector(Values{1, 10});
  };
  EXPECT_EQ(gradient_at({5, 7, 7, 1}, largest), (Values{0, 1, 10, 0}));
}

TEST(GradientAtKinks, LogarithmOfASumWhereAllIsMinusInfinityButOne) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto f = [](const Tensor& x) { return reduce(x, "i ->", "logsumexp"); };
  EXPECT_EQ(gradient_at({-inf, 2, -inf}, f), (Values{0, 1, 0}));
  EXPECT_EQ(gradient_at({1000, 1000}, f), (Values{0.5, 0.5}));
}

TEST(Gradient, WhatHasNone) {
  const Tensor x = from_vector(Values{3, 1, 2}).requires_grad(true);
  EXPECT_FALSE(argmax(x, "[v]").requires_grad());
  EXPECT_FALSE(sort(x, "[v]").positions.requires_grad());
  EXPECT_FALSE((x > 1).requires_grad());
  EXPECT_FALSE(all_close(x, x + 1));
  EXPECT_FALSE(one_hot(argmax(x, "[v]"), "-> [3]").requires_grad());
  for (const char* name : {"any", "all"}) {
    const Tensor y = reduce(x, "i ->", runtime(name)) * 2.0 + reduce(x, "i ->", "sum");
    x.zero_grad();
    y.backward();
    EXPECT_EQ(x.grad().to_vector<double>(), (Values{1, 1, 1})) << name;
  }
}

}  // namespace
}  // namespace ein
