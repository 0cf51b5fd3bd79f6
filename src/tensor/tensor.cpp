#include <algorithm>
#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>
#include "machine/fork.hpp"
#include "tensor/rank.hpp"

namespace ein {
namespace {

/// Far more than a pattern that a person reads; what walks axis by axis need not fear for its
/// stack.
constexpr std::size_t max_rank = 1024;

}  // namespace

void require_possible_rank(std::size_t rank) {
  if (rank > max_rank) {
    throw Error(ErrorKind::rank, "a tensor has at most " + std::to_string(max_rank) +
                                     " axes, not " + std::to_string(rank));
  }
}

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

namespace {

struct Layout {
  const Shape& shape;
  const Strides& strides;
  std::int64_t offset;
};

[[noreturn]] void does_not_fit(const Storage& storage, DType dtype, const Layout& x,
                               const std::string& how = "") {
  throw Error(ErrorKind::shape, "a tensor of shape " + x.shape.to_string() + ", strides " +
                                    x.strides.to_string() + " and offset " +
                                    std::to_string(x.offset) + " does not fit a storage of " +
                                    std::to_string(storage.bytes()) + " bytes, " +
                                    std::to_string(storage.bytes() / size_of(dtype)) +
                                    " elements of " + std::string(name(dtype)) + how);
}

void require_inside(const Storage& storage, DType dtype, const Layout& x) {
  const std::int64_t n = checked_numel(x.shape, static_cast<std::int64_t>(size_of(dtype)));
  const auto elements = static_cast<std::int64_t>(storage.bytes() / size_of(dtype));
  if (x.strides.rank() != x.shape.rank() || x.offset < 0) does_not_fit(storage, dtype, x);
  std::int64_t before = 0, last = x.offset;  // elements before the first one; the last one's place
  for (std::size_t d = 0; d < x.shape.rank(); ++d) {
    std::int64_t extent = 0;
    const std::int64_t stride = x.strides[d], size = x.shape[d];
    if (size <= 1) continue;
    if (__builtin_mul_overflow(stride, size - 1, &extent) ||
        (stride < 0 ? __builtin_sub_overflow(before, extent, &before)
                    : __builtin_add_overflow(last, extent, &last))) {
      does_not_fit(storage, dtype, x);
    }
  }
  if (n == 0 ? x.offset <= elements : before <= x.offset && last < elements) return;
  if (n == 0) does_not_fit(storage, dtype, x);
  std::string how =
      ": it reaches from " + std::to_string(x.offset - before) + " to " + std::to_string(last);
  if (before > x.offset) {
    how +=
        "\n  help: with negative strides the first element is not the lowest one; give an offset "
        "of " +
        std::to_string(before) + " or more";
  }
  does_not_fit(storage, dtype, x, how);
}

}  // namespace

std::shared_ptr<const detail::TensorData> detail::view_of(std::shared_ptr<Storage> storage,
                                                          DType dtype, Shape shape, Strides strides,
                                                          std::int64_t offset) {
  if (!storage)
    throw Error(ErrorKind::value, "a tensor of shape " + shape.to_string() + " has no storage");
  require_possible_rank(shape.rank());
  const std::size_t alignment = size_of(real_dtype(dtype));
  if (reinterpret_cast<std::uintptr_t>(storage->data()) % alignment != 0) {
    throw Error(ErrorKind::value, "a tensor of " + std::string(name(dtype)) +
                                      " wants memory that is aligned to " +
                                      std::to_string(alignment) + " bytes; copy it first");
  }
  require_inside(*storage, dtype, {shape, strides, offset});
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
