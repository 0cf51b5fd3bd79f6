#include <algorithm>
#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>
#include "tensor/fork.hpp"

namespace ein {
namespace {

/// Far more than a pattern that a person reads; what walks axis by axis need not fear for its
/// stack.
constexpr std::size_t max_rank = 1024;

}  // namespace

Size checked_numel(const Shape& shape, std::int64_t element_size) {
  std::int64_t bytes = element_size, elements = 1;
  bool has_formulas = false;
  for (Size of_dim : shape) {
    if (of_dim < 0)
      throw Error(ErrorKind::shape, "shape " + shape.to_string() + " has a negative size");
    if (!of_dim.is_number()) {
      has_formulas = true;
      continue;
    }
    const std::int64_t size = of_dim.word();
    // A size of 0 counts as 1, so that the product of any of the sizes fits as well.
    if (__builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes)) {
      throw Error(ErrorKind::overflow,
                  "shape " + shape.to_string() + " needs more than 2^63 - 1 bytes");
    }
    elements *= size;
  }
  return has_formulas ? numel(shape) : Size(elements);
}

Strides contiguous_strides(const Shape& shape, Order order) {
  const std::size_t rank = shape.rank();
  Strides strides(rank, 1);
  Size stride = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = order == Order::row_major ? rank - 1 - i : i;
    strides[d] = stride;
    // Formulas are not asked whether they are 0: an empty tensor has no elements to find.
    if (shape[d].word() != 0) stride *= shape[d];
  }
  return strides;
}

Tensor::Tensor() {
  data_ = made_once([] {
    return std::make_shared<const detail::TensorData>(
        detail::TensorData{Storage::allocate(0), Shape{0}, Strides{1}, 0, DType::f32});
  });
}

std::shared_ptr<const detail::TensorData> detail::view_of(std::shared_ptr<Storage> storage,
                                                          DType dtype, Shape shape, Strides strides,
                                                          std::int64_t offset) {
  if (!storage)
    throw Error(ErrorKind::value, "a tensor of shape " + shape.to_string() + " has no storage");
  if (shape.rank() > max_rank) {
    throw Error(ErrorKind::rank, "a tensor has at most " + std::to_string(max_rank) +
                                     " axes, not " + std::to_string(shape.rank()));
  }
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const std::size_t alignment = size_of(real_dtype(dtype));
  if (reinterpret_cast<std::uintptr_t>(storage->data()) % alignment != 0) {
    throw Error(ErrorKind::value, "a tensor of " + std::string(name(dtype)) +
                                      " wants memory that is aligned to " +
                                      std::to_string(alignment) + " bytes; copy it first");
  }
  const std::int64_t n = checked_numel(shape, bytes);
  const auto complain = [&] {
    throw Error(ErrorKind::shape, "a tensor of shape " + shape.to_string() + ", strides " +
                                      strides.to_string() + " and offset " +
                                      std::to_string(offset) + " does not fit a storage of " +
                                      std::to_string(storage->bytes()) + " bytes");
  };
  if (strides.rank() != shape.rank() || offset < 0) complain();
  std::int64_t last = offset;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    std::int64_t extent = 0;
    const std::int64_t stride = strides[d], size = shape[d];
    if (stride < 0) complain();
    if (size > 1 && (__builtin_mul_overflow(stride, size - 1, &extent) ||
                     __builtin_add_overflow(last, extent, &last))) {
      complain();
    }
  }
  const auto elements = static_cast<std::int64_t>(storage->bytes()) / bytes;
  if (n > 0 ? last >= elements : offset > elements) complain();
  return std::make_shared<const detail::TensorData>(
      detail::TensorData{std::move(storage), std::move(shape), std::move(strides), offset, dtype});
}

void Tensor::require_dtype(DType wanted) const {
  if (dtype() == wanted) return;
  throw Error(ErrorKind::dtype, "data(): the tensor holds " + std::string(name(dtype())) +
                                    ", not " + std::string(name(wanted)));
}

bool Tensor::is_contiguous() const {
  Size expected = 1;
  for (std::size_t d = rank(); d-- > 0;) {
    const Size size = shape()[d];
    if (size == 0) return true;
    if (!is_one(size) && strides()[d] != expected && size != 1) return false;
    expected *= size;
  }
  return true;
}

}  // namespace ein
