// Eager maps and copies: one scalar expression over tensors.
#pragma once

#include <optional>

#include "runtime/plan.hpp"
#include "tensor/compute_type.hpp"

namespace ein::engine {

/// A new tensor of dtype `to`: `formula` of the operands (inputs 0, 1, ...), broadcast against each
/// other, computed in `compute`. `what` names the operation in errors.
Tensor map(std::string_view what, const ScalarExpr& formula, Operands operands, DType compute,
           DType to);

/// A new contiguous tensor of `formula`, which has no inputs; axis index 0 is the row-major
/// position.
Tensor fill_new(const ScalarExpr& formula, const Shape& shape, DType compute, DType to,
                Device device);

/// A new tensor with memory, whose elements are not set: ein::empty, but also in a ShapesOnly.
Tensor with_memory(const Shape& shape, DType dtype, Device device);

/// to[...] = from[...], converted; shapes and devices must be equal. While a function is traced, an
/// assignment that it makes.
void copy(const Tensor& from, const Tensor& to);

/// x stretched to `shape`, as broadcasting does.
Tensor broadcast(const Tensor& x, const Shape& shape);

/// The common shape of operands under broadcasting.
Shape broadcast_shape(std::string_view what, Operands operands);
/// How a value of `shape` is read: dimension d follows the axis with which it is aligned at the
/// right.
Access broadcast_access(const Shape& shape, const Shape& to);

}  // namespace ein::engine
