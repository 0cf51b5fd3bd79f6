// Memory of other libraries, known by an address and strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <ein/tensor.hpp>

namespace ein::detail {

/// What strides reach from a first element on: `bytes` from `lowest` on, of which the first element
/// lies `offset` elements further.
struct MemoryReach {
  std::byte* lowest = nullptr;
  std::size_t bytes = 0;
  std::int64_t offset = 0;
};
/// Null only where there are no elements, of which strides say nothing: they become row-major ones.
/// Errors of kind `shape` and `overflow` for sizes and strides that no memory has, `value` for
/// null.
MemoryReach reach_of_elements(const void* first, DType dtype, const Shape& shape, Strides& strides);

/// A tensor whose storage is what the strides reach. Without an owner the caller keeps the memory
/// alive. The errors of reach_of_elements, and of kind `value` for an address that is not aligned
/// to the elements, and for memory of a device that may only be read.
Tensor wrap_elements(const void* first, bool read_only, DType dtype, Shape shape, Strides strides,
                     std::shared_ptr<void> owner, Device device = cpu);

}  // namespace ein::detail
