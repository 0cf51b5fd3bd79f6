// Where tensors lie in memory of their device.
#pragma once

#include <ein/tensor.hpp>

namespace ein::engine {

/// The first element's address, of the device's.
std::byte* first_element(const Tensor& x);

/// Kernels rely on addresses of Backend::alignment(). An operand's address is the last such one at
/// or before its first element, which comes so many elements later.
std::int64_t elements_before(const Tensor& x);
/// That address.
std::byte* address_of(const Tensor& x);

}  // namespace ein::engine
