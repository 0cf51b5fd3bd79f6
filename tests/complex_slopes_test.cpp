// Gradients of functions of complex numbers as graphs: each part of a derivative is in both parts
// of the gradient, but is computed once in each.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/vjp.hpp"
#include "passes/complex.hpp"
#include "passes/simplify.hpp"
#include "support/complex_errors.hpp"
#include "support/one_op.hpp"

namespace ein::test {
namespace {

Graph gradient_of(ScalarOp function, DType dtype) {
  const Shape shape{8};
  Op map{.kind = OpKind::map,
         .dtype = dtype,
         .shape = shape,
         .axes = {{"i", shape[0]}},
         .reads = {plain({0})},
         .write = plain({0}),
         .expr = Ex::apply(function, Ex::input(0)),
         .compute = real_dtype(dtype)};
  const Graph forward = without_complex(graph_of({{dtype, shape}}, map), "test");
  return simplify(autograd::vjp(forward, {true}, {true}).graph, true);
}

std::ptrdiff_t count(const Graph& graph, OpKind kind) {
  return std::count_if(graph.ops.begin(), graph.ops.end(),
                       [&](const Op& op) { return op.kind == kind; });
}

// A map for the real part and one for the imaginary one, and no tensor of zeros around either.
TEST(ComplexSlopes, AreTwoMaps) {
  for (const ComplexFunction& f : complex_functions()) {
    for (const DType dtype : {DType::c64, DType::c128}) {
      const Graph graph = gradient_of(f.op, dtype);
      EXPECT_EQ(count(graph, OpKind::map), 2) << f.name << " of " << name(dtype);
      EXPECT_EQ(count(graph, OpKind::place), 0) << f.name << " of " << name(dtype);
    }
  }
}

}  // namespace
}  // namespace ein::test
