// Operands: where tensors lie in memory of their device.
#pragma once

#include <ein/tensor.hpp>
#include "passes/lower.hpp"

namespace ein::engine {

/// The first element's address, of the device's.
std::byte* first_element(const Tensor& x);

/// Whether a stride is negative; one that is a formula is not.
inline bool goes_back(Size stride) { return stride.is_number() && stride.word() < 0; }
bool goes_back(const Strides& strides);
/// How many elements come before the first one, to which negative strides lead.
Size elements_back(const Shape& shape, const Strides& strides);
/// Kernels rely on addresses of Backend::alignment(). How many elements the lowest one comes after
/// such an address.
std::int64_t elements_unaligned(const Tensor& x);
/// An operand's address is the last aligned one at or before its lowest element. This is
/// the number of elements from there to its first element.
std::int64_t elements_before(const Tensor& x);
/// That address.
std::byte* address_of(const Tensor& x);
/// Where an operand lies from its address on.
InputLayout layout_of(const Tensor& x);
/// The same of `like` with sizes and strides that may be formulas.
InputLayout layout_of(const Tensor& like, const Shape& shape, const Strides& strides);

}  // namespace ein::engine
