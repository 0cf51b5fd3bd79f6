// Functions of complex numbers as graphs of real ones.
#pragma once

#include "autograd/vjp.hpp"
#include "passes/complex.hpp"
#include "passes/short_forms.hpp"
#include "passes/simplify.hpp"
#include "support/one_op.hpp"

namespace ein::test {

/// The parts of f(z), or of its gradient with the cotangent 1, as a graph of those of z.
inline Graph complex_graph(ScalarOp function, DType dtype, const Shape& shape, bool is_gradient) {
  Op map{.kind = OpKind::map,
         .dtype = dtype,
         .shape = shape,
         .axes = {{"i", shape[0]}},
         .reads = {plain({0})},
         .write = plain({0}),
         .expr = Ex::apply(function, Ex::input(0)),
         .compute = real_dtype(dtype)};
  const Graph forward = without_complex(graph_of({{dtype, shape}}, map), "test");
  return simplify(
      with_short_forms(is_gradient ? autograd::vjp(forward, {true}, {true}).graph : forward), true);
}

}  // namespace ein::test
