#include "cpu/strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ein::host {
namespace {

/// The functions of a strip at the ends of their ranges, in whole vectors and in what is left over.
template <class C>
class StripTest : public testing::Test {
 protected:
  void check(ScalarOp op, const std::vector<C>& points, C (*exact)(C)) {
    for (std::size_t n : {1u, 7u, 64u}) {
      for (C at : points) {
        std::vector<C> in(n, C(1)), out(n);
        in[n / 2] = at;
        apply<C>(op, in.data(), nullptr, nullptr, out.data(), n);
        expect_near(out[n / 2], exact(at), op, at);
        expect_near(out[n - 1], exact(n == 1 ? at : C(1)), op, C(1));
        apply<C>(op, in.data(), nullptr, nullptr, in.data(), n);
        expect_near(in[n / 2], exact(at), op, at);
      }
    }
  }

 private:
  static void expect_near(C got, C want, ScalarOp op, C at) {
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << info(op).name << " of " << at << " is " << got;
    } else if (std::isinf(want) || want == 0) {
      EXPECT_EQ(got, want) << info(op).name << " of " << at;
    } else {
      // The last digits of a subnormal number are worth more.
      const C tolerance = std::max(std::abs(want) * 8 * std::numeric_limits<C>::epsilon(),
                                   std::numeric_limits<C>::denorm_min());
      EXPECT_NEAR(got, want, tolerance) << info(op).name << " of " << at;
    }
  }
};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(StripTest, Floats);

TYPED_TEST(StripTest, FunctionsAtTheEndsOfTheirRanges) {
  using C = TypeParam;
  using Limits = std::numeric_limits<C>;
  const C inf = Limits::infinity(), nan = Limits::quiet_NaN();
  const C low = std::log(Limits::min()), high = std::log(Limits::max());
  this->check(ScalarOp::exp,
              {C(0), C(1), C(-1), low, low - 1, low * C(1.02), low * 2, high, high - C(0.3),
               high * 2, inf, -inf, nan},
              [](C x) { return std::exp(x); });
  const std::vector<C> positive{
      C(0),          C(1), C(2), Limits::min(), Limits::min() / 2, Limits::denorm_min(),
      Limits::max(), inf,  nan,  C(-1)};
  this->check(ScalarOp::log, positive, [](C x) { return std::log(x); });
  this->check(ScalarOp::sqrt, positive, [](C x) { return std::sqrt(x); });
  this->check(ScalarOp::rsqrt, positive, [](C x) { return 1 / std::sqrt(x); });
  this->check(ScalarOp::tanh, {C(0), C(1), C(-20), C(20), inf, -inf, nan},
              [](C x) { return std::tanh(x); });
  this->check(ScalarOp::erf, {C(0), C(1), C(-8), C(8), inf, -inf, nan},
              [](C x) { return std::erf(x); });
}

/// Against the double-precision function, over the whole range of floats: an error below a unit in
/// the last place and a half.
TEST(Strip, ExpOfFloats) {
  std::vector<float> in, out;
  for (float x = -104; x < 89; x += 0.0007F) in.push_back(x);
  for (float x = 1e-30F; x < 1; x *= 1.37F) in.insert(in.end(), {x, -x});
  out.resize(in.size());
  for (std::size_t i = 0; i < in.size(); i += 1000) {
    apply<float>(ScalarOp::exp, in.data() + i, nullptr, nullptr, out.data() + i,
                 std::min<std::size_t>(1000, in.size() - i));
  }
  double worst = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double want = std::exp(static_cast<double>(in[i]));
    if (want > static_cast<double>(std::numeric_limits<float>::max())) {
      ASSERT_EQ(out[i], std::numeric_limits<float>::infinity()) << in[i];
      continue;
    }
    const auto rounded = static_cast<float>(want);
    const double unit = std::max(
        static_cast<double>(std::nextafter(rounded, INFINITY)) - static_cast<double>(rounded),
        static_cast<double>(std::numeric_limits<float>::denorm_min()));
    worst =
        std::max(worst, std::isinf(unit) ? 0 : std::abs(static_cast<double>(out[i]) - want) / unit);
  }
  EXPECT_LT(worst, 1.5);
}

/// Values that rows or all elements share stay one number until an operation needs them side by
/// side.
TEST(Strip, SharedValuesOfRows) {
  const std::size_t rows = 5, row = 37, n = rows * row;
  std::vector<float> x(n), of_row(rows), one{3.5F}, of_column(row);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 23) - 7;
  for (std::size_t r = 0; r < rows; ++r) of_row[r] = static_cast<float>(r) + 0.25F;
  for (std::size_t c = 0; c < row; ++c) of_column[c] = static_cast<float>(c) / 8;
  const std::vector<LoopNest::Operand> operands(4);
  const std::vector<std::int64_t> steps{1, 0, 0, 1},
      row_steps{static_cast<std::int64_t>(row), 1, 0, 0}, index{2, 100};
  const std::byte* from[] = {reinterpret_cast<const std::byte*>(x.data()),
                             reinterpret_cast<const std::byte*>(of_row.data()),
                             reinterpret_cast<const std::byte*>(one.data()),
                             reinterpret_cast<const std::byte*>(of_column.data())};
  const Ex a = Ex::input(0), b = Ex::input(1), c = Ex::input(2), d = Ex::input(3), i = Ex::index(0),
           j = Ex::index(1);
  const auto pick = [](const Ex& w, const Ex& u, const Ex& v) {
    return Ex::apply(ScalarOp::where, w, u, v);
  };
  const auto below = [](const Ex& u, const Ex& v) { return Ex::apply(ScalarOp::lt, u, v); };
  const auto check = [&](const Ex& expression, auto want) {
    const StripExpr<float> expr(expression, operands);
    std::vector<float> scratch(expr.scratch_size()), into(n);
    const float* got = expr.evaluate({.inputs = from,
                                      .steps = steps,
                                      .row_steps = row_steps,
                                      .row_length = row,
                                      .index = index,
                                      .strip_axis = 1,
                                      .row_axis = 0},
                                     n, scratch.data(), into.data());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < row; ++k) {
        const float wanted = want(x[r * row + k], of_row[r], one[0], of_column[k],
                                  2.F + static_cast<float>(r), 100.F + static_cast<float>(k));
        ASSERT_FLOAT_EQ(got[r * row + k], wanted)
            << to_string(expression) << " at " << r << ", " << k;
      }
    }
  };
  check(a - b, [](float x, float b, float, float, float, float) { return x - b; });
  check(b - a, [](float x, float b, float, float, float, float) { return b - x; });
  check(b * c, [](float, float b, float c, float, float, float) { return b * c; });
  check(c + Ex(1.0), [](float, float, float c, float, float, float) { return c + 1; });
  check(b / d, [](float, float b, float, float d, float, float) { return b / d; });
  check(Ex::apply(ScalarOp::sqrt, b) * a,
        [](float x, float b, float, float, float, float) { return std::sqrt(b) * x; });
  check(i * Ex(10.0) + j, [](float, float, float, float, float i, float j) { return i * 10 + j; });
  check(pick(below(a, b), a, c),
        [](float x, float b, float c, float, float, float) { return x < b ? x : c; });
  check(pick(below(a, b), c, a),
        [](float x, float b, float c, float, float, float) { return x < b ? c : x; });
  check(pick(below(a, b), b, c),
        [](float x, float b, float c, float, float, float) { return x < b ? b : c; });
  check(pick(below(b, c), a, d),
        [](float x, float b, float c, float d, float, float) { return b < c ? x : d; });
  check(pick(below(b, c), b, c),
        [](float, float b, float c, float, float, float) { return b < c ? b : c; });
  check(Ex::apply(ScalarOp::pow, d, Ex(2.0)),
        [](float, float, float, float d, float, float) { return d * d; });
  check(Ex::apply(ScalarOp::pow, d, b),
        [](float, float b, float, float d, float, float) { return std::pow(d, b); });
  check(Ex::apply(ScalarOp::max, b, a) - b * c / (a * a + Ex(1.0)),
        [](float x, float b, float c, float, float, float) {
          return std::max(b, x) - b * c / (x * x + 1);
        });
}

}  // namespace
}  // namespace ein::host
