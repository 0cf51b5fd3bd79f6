// What has formulas for sizes, for the lengths of a call.
#pragma once

#include <ein/scalar_expr.hpp>
#include "graph/fields.hpp"
#include "tensor/size_scope.hpp"

namespace ein {

/// Puts numbers in place of all formulas of a struct that lists its fields.
template <class T>
void put_sizes(T& of, SizesAt& sizes) {
  for_each_of<ScalarStep>(of, [&](ScalarStep& step) {
    if (step.op == ScalarOp::size) step = Ex::integer(sizes(step.size)).expr().steps[0];
  });
  for_each_of<Size>(of, [&](Size& size) { sizes.put(size); });
}

/// The same of a copy.
template <class T>
T at_sizes(T of, SizesAt& sizes) {
  put_sizes(of, sizes);
  return of;
}

}  // namespace ein
