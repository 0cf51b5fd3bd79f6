// Ranges of integer steps, against all values that arguments in small ranges give.
#include "nest/integer_range.hpp"

#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "support/seeds.hpp"

namespace ein {
namespace {

using Integer = std::int64_t;

struct Case {
  ScalarOp op;
  std::function<Integer(Integer, Integer, Integer)> value;
  bool is_tight = false;  // both ends are values
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {ScalarOp::neg, [](Integer a, Integer, Integer) { return -a; }, true},
      {ScalarOp::abs, [](Integer a, Integer, Integer) { return a < 0 ? -a : a; }, true},
      {ScalarOp::add, [](Integer a, Integer b, Integer) { return a + b; }, true},
      {ScalarOp::sub, [](Integer a, Integer b, Integer) { return a - b; }, true},
      {ScalarOp::mul, [](Integer a, Integer b, Integer) { return a * b; }, true},
      {ScalarOp::min, [](Integer a, Integer b, Integer) { return std::min(a, b); }, true},
      {ScalarOp::max, [](Integer a, Integer b, Integer) { return std::max(a, b); }, true},
      {ScalarOp::remainder,
       [](Integer a, Integer b, Integer) { return b == 0 ? 0 : ((a % b) + b) % b; }},
      {ScalarOp::bit_and, [](Integer a, Integer b, Integer) { return a & b; }},
      {ScalarOp::bit_or, [](Integer a, Integer b, Integer) { return a | b; }},
      {ScalarOp::bit_xor, [](Integer a, Integer b, Integer) { return a ^ b; }},
      {ScalarOp::shift_right,
       [](Integer a, Integer b, Integer) { return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b; }},
      {ScalarOp::lt, [](Integer a, Integer b, Integer) -> Integer { return a < b; }},
      {ScalarOp::logical_and, [](Integer a, Integer b, Integer) -> Integer { return a && b; }},
      {ScalarOp::logical_not, [](Integer a, Integer, Integer) -> Integer { return !a; }},
      {ScalarOp::where, [](Integer a, Integer b, Integer c) { return a ? b : c; }},
  };
  return all;
}

TEST(IntegerRangeTest, HoldsAllValues) {
  test::for_seeds(300, [&](unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<Integer> end(-9, 9);
    IntegerRange args[3];
    for (IntegerRange& arg : args) {
      const Integer x = end(random), y = end(random);
      arg = {std::min(x, y), std::max(x, y)};
    }
    for (const Case& of : cases()) {
      const auto arity = static_cast<std::size_t>(info(of.op).arity);
      const auto range = range_of(of.op, std::span(args).first(arity));
      ASSERT_TRUE(range) << info(of.op).name;
      Integer least = std::numeric_limits<Integer>::max(), most = -least;
      for (Integer a = args[0].low; a <= args[0].high; ++a) {
        for (Integer b = args[1].low; b <= args[1].high; ++b) {
          for (Integer c = args[2].low; c <= args[2].high; ++c) {
            const Integer value = of.value(a, b, c);
            least = std::min(least, value);
            most = std::max(most, value);
          }
        }
      }
      EXPECT_LE(range->low, least) << info(of.op).name;
      EXPECT_GE(range->high, most) << info(of.op).name;
      if (of.is_tight) {
        EXPECT_EQ(range->low, least) << info(of.op).name;
        EXPECT_EQ(range->high, most) << info(of.op).name;
      }
    }
  });
}

TEST(IntegerRangeTest, NoneOfLeavesAndFunctions) {
  const IntegerRange any[] = {{0, 1}, {0, 1}};
  EXPECT_FALSE(range_of(ScalarOp::input, {}));
  EXPECT_FALSE(range_of(ScalarOp::exp, std::span(any).first(1)));
  EXPECT_FALSE(range_of(ScalarOp::pow, any));
}

}  // namespace
}  // namespace ein
