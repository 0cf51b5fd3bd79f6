// Memory of any device, as the runtime sees it.
#pragma once

#include <memory>

#include <ein/tensor.hpp>

namespace ein::engine {

/// An Error of kind `value` for a device that there is not, of kind `memory` or `device` when it
/// has no more.
std::shared_ptr<Storage> allocate(std::size_t bytes, Device device);

/// The first element's address, of the device's.
std::byte* first_element(const Tensor& x);

/// Kernels of a GPU rely on addresses that are multiples of 16 bytes. There, an operand's address
/// is the last such one before its first element, which comes so many elements later; on the CPU
/// none.
inline std::int64_t elements_before(const Tensor& x) {
  return x.device() == cpu ? 0 : x.offset() % static_cast<std::int64_t>(16 / x.element_size());
}
/// That address.
std::byte* address_of(const Tensor& x);

}  // namespace ein::engine
