// Functions of two numbers: what strips give for each row of the table, whole and by rows, beside
// the row's reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <ein/elementwise.hpp>
#include "cpu/strip.hpp"
#include "support/exact_steps.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

struct Row {
  ScalarOp op;
  std::string text;
  CostClass cost;
  Tensor (*function)(Operand, Operand);
  bool of_floats, of_integers;
};
const Row rows[] = {
#define EIN_ROW(name, text, cost, function, floats, integers) \
  {ScalarOp::name, text, CostClass::cost, ein::function, floats, integers},
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  EIN_ROW(name, text, cost, function, true, true)
#define EIN_BINARY_OF_FLOATS(name, text, cost, function, result, reference, host, adjoint_a, \
                             adjoint_b, cuda)                                                \
  EIN_ROW(name, text, cost, function, true, false)
#define EIN_BINARY_OF_INTEGERS(name, text, cost, function, result, reference, host, adjoint_a, \
                               adjoint_b, cuda)                                                \
  EIN_ROW(name, text, cost, function, false, true)
#define EIN_BINARY_OF_PASSES(name, text, cost, function, result, reference, host, adjoint_a, \
                             adjoint_b, cuda)
#include <ein/detail/binary_functions.hpp>
};

template <class C>
void expect_like_references(const std::vector<C>& numbers) {
  for (const Row& row : rows) {
    if (!(std::is_integral_v<C> ? row.of_integers : row.of_floats)) continue;
    std::vector<C> a, b;
    for (C x : numbers) {
      for (C y : numbers) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    std::vector<C> out(a.size());
    host::apply<C>(row.op, a.data(), b.data(), b.data(), out.data(), a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      // The interpreter has cases of its own for what integers make of these.
      const bool divides = row.op == ScalarOp::remainder || row.op == ScalarOp::floor_divide;
      if (std::is_integral_v<C> && divides && b[i] == 0) continue;
      if (std::is_integral_v<C> && row.op == ScalarOp::pow && b[i] < C(0)) continue;
      const double got = static_cast<double>(out[i]);
      const double want =
          test::apply_exactly(row.op, static_cast<double>(a[i]), static_cast<double>(b[i]), 0);
      if (std::is_unsigned_v<C> && want < 0) continue;  // it wraps
      const double error = row.cost == CostClass::transcendental || row.cost == CostClass::division
                               ? 1e-6 * std::abs(want)
                               : 0;
      if (!std::is_integral_v<C> && static_cast<C>(want) == out[i]) continue;
      EXPECT_TRUE(std::abs(got - want) <= error || (std::isnan(got) && std::isnan(want)))
          << row.text << " of " << static_cast<double>(a[i]) << " and " << static_cast<double>(b[i])
          << " gives " << got << ", ought to be " << want;
    }
  }
}

TEST(BinaryFunctions, StripsLikeReferences) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  expect_like_references<double>({0, -0.0, 1, -1, 0.5, 2, -3, 7.25, 1e10, inf, -inf, nan});
  expect_like_references<float>({0, -0.0F, 1, -1, 0.5F, 2, -3, 7.25F, 64, static_cast<float>(inf),
                                 static_cast<float>(-inf), static_cast<float>(nan)});
  expect_like_references<std::int64_t>({0, 1, -1, 2, -3, 7, 5, -8});
  expect_like_references<std::uint64_t>({0, 1, 2, 3, 7, 5, 8, 11});
}

// Each function computes its row: one argument of the same value along rows, columns, or
// everywhere.
TEST(BinaryFunctions, TensorsOfEveryShape) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    EXPECT_EQ(info(row.op).name, row.text);
    EXPECT_EQ(info(row.op).arity, 2);
    EXPECT_EQ(info(row.op).cost, row.cost);
    EXPECT_TRUE(names.insert(row.text).second) << row.text;
    const DType dtype = row.of_floats ? DType::f64 : DType::i64;
    const std::vector<double> numbers{1, 2, 3, 5, 7, 4};
    const Tensor whole = test::make_tensor(numbers, {2, 3}, dtype);
    const std::vector<double> all = test::get_values(row.function(whole, whole.at({slice(0, 1)})));
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(all[i], test::apply_exactly(row.op, numbers[i], numbers[i % 3], 0), 1e-9)
          << row.text;
    }
    EXPECT_NEAR(test::get_values(row.function(whole, 2))[3], test::apply_exactly(row.op, 5, 2, 0),
                1e-9)
        << row.text;
    EXPECT_NEAR(test::get_values(row.function(3, whole))[3], test::apply_exactly(row.op, 3, 5, 0),
                1e-9)
        << row.text;
  }
}

}  // namespace
}  // namespace ein
