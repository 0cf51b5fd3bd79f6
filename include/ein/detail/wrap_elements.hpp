// Memory of other libraries, known by an address and strides.
#pragma once

#include <memory>

#include <ein/tensor.hpp>

namespace ein::detail {

/// A tensor whose storage is what the strides reach from the first element on. Null only where
/// there are no elements. Without an owner the caller keeps the memory alive. Errors of kind
/// `shape` and `overflow` for sizes and strides that no memory has, `value` for null, for an
/// address that is not aligned to the elements, and for memory of a device that may only be read.
Tensor wrap_elements(const void* first, bool read_only, DType dtype, Shape shape, Strides strides,
                     std::shared_ptr<void> owner, Device device = cpu);

}  // namespace ein::detail
