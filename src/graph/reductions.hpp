// Reductions as compositions of graph operations.
#pragma once

#include <ein/graph.hpp>
#include <ein/reduction.hpp>
#include "graph/solve.hpp"

namespace ein {

/// Appends to `graph` what reduces value `x` as the solved pattern says, and returns the result, of
/// dtype `result`. Partial results are f32 for the 8- and 16-bit floats, and f64 where x or the
/// result is. Precondition: x and the result are both floating-point or neither is, and the
/// reduction is defined for the dtype and for the number of elements (see require_defined).
ValueId build_reduction(Graph& graph, Reduction reduction, const Solved& solved, ValueId x,
                        DType result);

/// What a reduction of values of `dtype` finds where there is nothing: a NaN where it skips these.
Ex nothing_beside(Reduction reduction, DType dtype);

/// Throws an Error when `reduction` is not defined for `dtype` (kind dtype), or for reducing no
/// elements (kind reduction).
void require_defined(Reduction reduction, DType dtype, const Solved& solved,
                     const grammar::Pattern& pattern, const Shape& shape);

}  // namespace ein
