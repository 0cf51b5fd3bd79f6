// Values whose derivatives are given with them.
#include <gtest/gtest.h>

#include <ein/cost.hpp>
#include <ein/graph.hpp>
#include "autograd/derivative.hpp"
#include "compile/passes.hpp"
#include "passes/simplify.hpp"
#include "support/one_op.hpp"

namespace ein {
namespace {

const Ex x = Ex::input(0), y = Ex::input(1);

/// x·y, with the derivatives 5 and x instead of y and x.
Ex sloped_product() {
  const Ex slopes =
      Ex::apply(ScalarOp::along, x, Ex(5.0)) + Ex::apply(ScalarOp::along, y, x + Ex(1.0));
  return Ex::apply(ScalarOp::with_slope, x * y, slopes);
}

TEST(Slopes, AreTheDerivatives) {
  const auto slopes = autograd::derivatives(sloped_product(), {0, 1}, 2);
  EXPECT_EQ(to_string(slopes[0]), "(x2 * 5)");
  EXPECT_EQ(to_string(slopes[1]), "(x2 * (x0 + 1))");
  // Those of a derivative: of x + 1 by x, and none of 5.
  EXPECT_EQ(to_string(autograd::derivatives(slopes[1], {0}, 3)[0]), "(x3 * x2)");
  EXPECT_TRUE(autograd::derivatives(slopes[0], {0}, 3)[0].steps.empty());
  // In a sum they are added to those of the formula.
  const auto of_sum = autograd::derivatives(sloped_product() + x, {0}, 2);
  EXPECT_EQ(to_string(of_sum[0]), "(x2 + (x2 * 5))");
}

TEST(Slopes, AreLeftOutOfWhatIsCountedAndRun) {
  const ScalarExpr product = x * y;
  EXPECT_EQ(without_slopes(sloped_product()), product);
  EXPECT_EQ(to_string(sloped_product()), "(x0 * x1)");
  EXPECT_EQ(without_slopes(product), product);
  Op map{.kind = OpKind::map,
         .shape = {10},
         .axes = {{"i", 10}},
         .reads = {test::plain({0}), test::plain({0})},
         .write = test::plain({0}),
         .expr = sloped_product()};
  const Graph graph = test::graph_of({{DType::f32, {10}}, {DType::f32, {10}}}, map);
  const Cost counted = cost(graph);
  EXPECT_EQ(counted.mul, 10);
  EXPECT_EQ(counted.add, 0);
  // Passes keep them, as a derivative may be asked for yet; a nest has the value alone.
  EXPECT_EQ(simplify(graph).ops.back().expr, sloped_product().expr());
  const engine::Compilation made = engine::lowered(graph, engine::job_of(graph));
  EXPECT_EQ(made.program.nests.at(0).body, product);
}

}  // namespace
}  // namespace ein
