// What has formulas for sizes, for the lengths of a call.
#pragma once

#include <ein/graph.hpp>
#include "tensor/size_scope.hpp"

namespace ein {

/// Puts numbers in place of formulas.
void put_sizes(Shape& shape, SizesAt& sizes);
void put_sizes(ScalarExpr& expr, SizesAt& sizes);
void put_sizes(Graph& graph, SizesAt& sizes);

/// The same of a copy.
template <class T>
T at_sizes(T of, SizesAt& sizes) {
  put_sizes(of, sizes);
  return of;
}

}  // namespace ein
