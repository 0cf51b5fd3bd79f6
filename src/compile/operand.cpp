#include "compile/operand.hpp"

#include <algorithm>

#include "backend/backend.hpp"
#include "size/ask.hpp"

namespace ein::engine {

std::byte* first_element(const Tensor& x) {
  if (!x.storage()) detail::no_elements_here(x.impl());
  return x.storage()->data() + x.offset() * static_cast<std::int64_t>(x.element_size());
}

bool goes_back(const Strides& strides) {
  return std::any_of(strides.begin(), strides.end(), [](Size stride) { return goes_back(stride); });
}

Size elements_back(const Shape& shape, const Strides& strides) {
  if (!goes_back(strides)) return 0;
  if (std::any_of(shape.begin(), shape.end(), [](Size size) { return ask_equal(size, 0); }))
    return 0;
  Size elements = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (goes_back(strides[d])) elements += (shape[d] - 1) * -strides[d];
  }
  return elements;
}

std::int64_t elements_unaligned(const Tensor& x) {
  if (x.offset() == 0) return 0;
  const std::size_t elements = backend_of(x.device()).alignment() / x.element_size();
  if (elements <= 1) return 0;
  return (x.offset() - elements_back(x.shape(), x.strides())) % static_cast<std::int64_t>(elements);
}

std::int64_t elements_before(const Tensor& x) {
  if (x.offset() == 0) return 0;  // then nothing is below it
  return elements_back(x.shape(), x.strides()) + elements_unaligned(x);
}

InputLayout layout_of(const Tensor& like, const Shape& shape, const Strides& strides) {
  return {strides, elements_back(shape, strides) + elements_unaligned(like)};
}
InputLayout layout_of(const Tensor& x) { return layout_of(x, x.shape(), x.strides()); }

std::byte* address_of(const Tensor& x) {
  return first_element(x) - elements_before(x) * static_cast<std::int64_t>(x.element_size());
}

}  // namespace ein::engine
