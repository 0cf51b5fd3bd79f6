// A matrix product in blocks that stay in the caches, around the micro-kernel.
#pragma once

#include "cpu/gemm.hpp"

namespace ein::host {

/// c = a · b, or c += a · b, on the calling thread. T is float or double. Operands may have any
/// strides and sizes; c must not overlap the others. `finish`: see gemm.
template <class T>
void blocked_product(const MatrixRef<T>& c, const MatrixRef<const T>& a,
                     const MatrixRef<const T>& b, bool accumulate, const Finish& finish = {});

}  // namespace ein::host
