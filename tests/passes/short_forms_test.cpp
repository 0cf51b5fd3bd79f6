#include "passes/short_forms.hpp"

#include <gtest/gtest.h>

#include <string>

#include "graph/build.hpp"

namespace ein {
namespace {

/// gelu of a vector of this dtype, as text.
std::string gelu_of(DType dtype) {
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .dtype = dtype, .shape = {4}});
  Op map = plain_op(OpKind::map, dtype, {4});
  map.inputs = {0};
  map.reads = {map.write};
  map.expr = Ex::apply(ScalarOp::gelu, Ex::input(0));
  graph.ops.push_back(std::move(map));
  graph.outputs = {1};
  return to_string(with_short_forms(graph));
}

// What `ein emit` prints is what runs.
TEST(ShortForms, HaveANameOfTheirOwn) {
  for (const DType dtype : {DType::bf16, DType::f16})
    EXPECT_NE(gelu_of(dtype).find("gelu_of_16_bits(x0)"), std::string::npos) << gelu_of(dtype);
  EXPECT_NE(gelu_of(DType::f32).find("gelu(x0)"), std::string::npos) << gelu_of(DType::f32);
}

}  // namespace
}  // namespace ein
