// Gradients of functions of complex numbers as graphs: each part of a derivative is in both parts
// of the gradient, but is computed once in each.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/complex_errors.hpp"
#include "support/complex_graph.hpp"

namespace ein::test {
namespace {

std::ptrdiff_t count(const Graph& graph, OpKind kind) {
  return std::count_if(graph.ops.begin(), graph.ops.end(),
                       [&](const Op& op) { return op.kind == kind; });
}

// A map for the real part and one for the imaginary one, and no tensor of zeros around either.
TEST(ComplexSlopes, AreTwoMaps) {
  for (const ComplexFunction& f : complex_functions()) {
    for (const DType dtype : {DType::c64, DType::c128}) {
      const Graph graph = complex_graph(f.op, dtype, {8}, true);
      EXPECT_EQ(count(graph, OpKind::map), 2) << f.name << " of " << name(dtype);
      EXPECT_EQ(count(graph, OpKind::place), 0) << f.name << " of " << name(dtype);
    }
  }
}

}  // namespace
}  // namespace ein::test
