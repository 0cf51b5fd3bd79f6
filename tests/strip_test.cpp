#include "cpu/strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ein::cpu {
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
      const C tolerance = std::max(std::abs(want) * 8 * std::numeric_limits<C>::epsilon(), std::numeric_limits<C>::denorm_min());
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
  this->check(ScalarOp::exp, {C(0), C(1), C(-1), low, low - 1, low * C(1.02), low * 2, high, high - C(0.3), high * 2, inf, -inf, nan},
              [](C x) { return std::exp(x); });
  const std::vector<C> positive{C(0), C(1), C(2), Limits::min(), Limits::min() / 2, Limits::denorm_min(), Limits::max(), inf, nan, C(-1)};
  this->check(ScalarOp::log, positive, [](C x) { return std::log(x); });
  this->check(ScalarOp::sqrt, positive, [](C x) { return std::sqrt(x); });
  this->check(ScalarOp::rsqrt, positive, [](C x) { return 1 / std::sqrt(x); });
  this->check(ScalarOp::tanh, {C(0), C(1), C(-20), C(20), inf, -inf, nan}, [](C x) { return std::tanh(x); });
  this->check(ScalarOp::erf, {C(0), C(1), C(-8), C(8), inf, -inf, nan}, [](C x) { return std::erf(x); });
}

}  // namespace
}  // namespace ein::cpu
