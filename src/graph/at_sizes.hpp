// What has formulas for sizes, for the lengths of a call.
#pragma once

#include <type_traits>

#include <ein/scalar_expr.hpp>
#include "graph/fields.hpp"
#include "size/size_scope.hpp"

namespace ein {

/// Puts numbers in place of all formulas of a struct that lists its fields.
template <class T>
void put_sizes(T& of, SizesAt& sizes) {
  for_each_of<ScalarStep, Size>(of, [&]<class Part>(Part& part) {
    if constexpr (std::is_same_v<Part, Size>) {
      sizes.put(part);
    } else if (part.op == ScalarOp::size) {
      part = Ex::integer(sizes(part.size)).expr().steps[0];
    }
  });
}

/// The same of a copy.
template <class T>
T at_sizes(T of, SizesAt& sizes) {
  put_sizes(of, sizes);
  return of;
}

}  // namespace ein
