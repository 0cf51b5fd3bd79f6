// Complex tensors as real ones, which is what plans, the tape and traces know.
#pragma once

#include <ein/complex.hpp>

#include "runtime/plan.hpp"

namespace ein::engine {

/// A complex tensor with its parts along a last dimension of size 2: the same memory, the same
/// value of a trace, the same gradient. A real one as it is.
Tensor as_real(const Tensor& x);
/// The way back: a tensor of f32 or f64 whose last dimension has size 2. Where that does not lie
/// side by side, a copy.
Tensor as_complex(const Tensor& x);

/// The shape and the strides of as_real(x), for a tensor of this dtype.
Shape real_shape(DType dtype, Shape shape);
Strides real_strides(DType dtype, Strides strides);

}  // namespace ein::engine
