#include <algorithm>
#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>

namespace ein {
namespace {

/// Far more than a pattern that a person reads; what walks axis by axis need not fear for its stack.
constexpr std::size_t max_rank = 1024;

}  // namespace

std::int64_t checked_numel(const Shape& shape, std::int64_t element_size) {
  std::int64_t bytes = element_size;
  for (std::int64_t size : shape) {
    if (size < 0) throw Error(ErrorKind::shape, "shape " + shape.to_string() + " has a negative size");
    // A size of 0 counts as 1, so that the product of any of the sizes fits as well.
    if (__builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes)) {
      throw Error(ErrorKind::overflow, "shape " + shape.to_string() + " needs more than 2^63 - 1 bytes");
    }
  }
  return numel(shape);
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.rank(), 1);
  std::int64_t stride = 1;
  for (std::size_t d = shape.rank(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d] == 0 ? 1 : shape[d];
  }
  return strides;
}

Tensor::Tensor() {
  static const auto empty = std::make_shared<const detail::TensorData>(
      detail::TensorData{Storage::allocate(0), Shape{0}, Strides{1}, 0, DType::f32});
  data_ = empty;
}

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, Shape shape, Strides strides, std::int64_t offset) {
  if (!storage) throw Error(ErrorKind::value, "a tensor of shape " + shape.to_string() + " has no storage");
  if (shape.rank() > max_rank) {
    throw Error(ErrorKind::rank, "a tensor has at most " + std::to_string(max_rank) + " axes, not " + std::to_string(shape.rank()));
  }
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  if (reinterpret_cast<std::uintptr_t>(storage->data()) & static_cast<std::uintptr_t>(bytes - 1)) {
    throw Error(ErrorKind::value, "a tensor of " + std::string(name(dtype)) + " wants memory that is aligned to " +
                                      std::to_string(bytes) + " bytes; copy it first");
  }
  const std::int64_t n = checked_numel(shape, bytes);
  const auto complain = [&] {
    throw Error(ErrorKind::shape, "a tensor of shape " + shape.to_string() + ", strides " + strides.to_string() +
                                      " and offset " + std::to_string(offset) + " does not fit a storage of " +
                                      std::to_string(storage->bytes()) + " bytes");
  };
  if (strides.rank() != shape.rank() || offset < 0) complain();
  std::int64_t last = offset;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    std::int64_t extent = 0;
    if (strides[d] < 0) complain();
    if (shape[d] > 1 && (__builtin_mul_overflow(strides[d], shape[d] - 1, &extent) || __builtin_add_overflow(last, extent, &last))) {
      complain();
    }
  }
  const auto elements = static_cast<std::int64_t>(storage->bytes()) / bytes;
  if (n > 0 ? last >= elements : offset > elements) complain();
  data_ = std::make_shared<const detail::TensorData>(
      detail::TensorData{std::move(storage), std::move(shape), std::move(strides), offset, dtype});
}

void Tensor::require_dtype(DType wanted) const {
  if (dtype() == wanted) return;
  throw Error(ErrorKind::dtype, "data(): the tensor holds " + std::string(name(dtype())) + ", not " + std::string(name(wanted)));
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t d = rank(); d-- > 0;) {
    if (shape()[d] == 0) return true;
    if (shape()[d] != 1 && strides()[d] != expected) return false;
    expected *= shape()[d];
  }
  return true;
}

Tensor Tensor::transpose() const {
  if (rank() != 2) {
    throw Error(ErrorKind::rank, "transpose: wants a matrix, got shape " + shape().to_string() +
                                     "; rearrange exchanges axes by name");
  }
  return Tensor(storage(), dtype(), {shape()[1], shape()[0]}, {strides()[1], strides()[0]}, offset());
}

Tensor Tensor::at(std::span<const Index> indices) const {
  if (indices.size() > rank()) {
    throw Error(ErrorKind::rank, "at: " + std::to_string(indices.size()) + (indices.size() == 1 ? " index" : " indices") + " for shape " + shape().to_string());
  }
  Shape shape;
  Strides strides;
  std::int64_t offset = this->offset();
  for (std::size_t d = 0; d < rank(); ++d) {
    const std::int64_t size = this->shape()[d], stride = this->strides()[d];
    const Index index = d < indices.size() ? indices[d] : Index(all);
    if (index.is_position()) {
      const std::int64_t position = index.position() < 0 ? index.position() + size : index.position();
      if (position < 0 || position >= size) {
        throw Error(ErrorKind::shape, "at: position " + std::to_string(index.position()) + " is outside an axis of size " +
                                          std::to_string(size) + " of shape " + this->shape().to_string());
      }
      offset += position * stride;
      continue;
    }
    const Slice& range = index.range();
    if (range.step < 1) {
      throw Error(ErrorKind::value, "at: the step of a slice is " + std::to_string(range.step) + ", at least 1 is wanted");
    }
    const auto bound = [&](std::int64_t b) { return b < 0 ? std::max<std::int64_t>(0, b + size) : std::min(b, size); };
    const std::int64_t begin = bound(range.begin), end = bound(range.end);
    const std::int64_t count = end > begin ? (end - begin - 1) / range.step + 1 : 0;
    if (count > 0) offset += begin * stride;
    shape.push_back(count);
    strides.push_back(count > 1 ? stride * range.step : stride);
  }
  // What is empty may lie behind the end; it reads nothing, so any place will do.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) offset = this->offset();
  return Tensor(storage(), dtype(), std::move(shape), std::move(strides), offset);
}

namespace {

/// Strides under which the elements of `x`, row-major, have `shape`; false where there are none.
bool find_view_strides(const Tensor& x, const Shape& shape, Strides& strides) {
  strides = contiguous_strides(shape);
  if (x.numel() == 0) return true;
  // Runs of old dimensions that step evenly must be tiled by runs of new ones.
  std::size_t d = x.rank();
  std::size_t n = shape.rank();
  while (d > 0 || n > 0) {
    while (d > 0 && x.shape()[d - 1] == 1) --d;
    if (d == 0) break;
    std::int64_t stride = x.strides()[d - 1];
    std::int64_t old_size = x.shape()[--d];
    while (d > 0 && (x.shape()[d - 1] == 1 || x.strides()[d - 1] == stride * old_size)) old_size *= x.shape()[--d];
    std::int64_t new_size = 1;
    while (new_size < old_size) {
      if (n == 0) return false;
      --n;
      strides[n] = stride * new_size;
      new_size *= shape[n];
    }
    if (new_size != old_size) return false;
  }
  return true;
}

void require_same_numel(const char* what, const Tensor& x, const Shape& shape) {
  const std::int64_t wanted = checked_numel(shape, static_cast<std::int64_t>(x.element_size()));
  if (wanted == x.numel()) return;
  throw Error(ErrorKind::shape, std::string(what) + ": shape " + shape.to_string() + " has " + std::to_string(wanted) +
                                    (wanted == 1 ? " element" : " elements") + ", the tensor of shape " +
                                    x.shape().to_string() + " has " + std::to_string(x.numel()));
}

}  // namespace

Tensor Tensor::view(const Shape& shape) const {
  require_same_numel("view", *this, shape);
  Strides strides;
  if (!find_view_strides(*this, shape, strides)) {
    throw Error(ErrorKind::shape, "view: no strides give shape " + shape.to_string() + " to a tensor of shape " +
                                      this->shape().to_string() + " and strides " + this->strides().to_string() +
                                      "; reshape copies where it must");
  }
  return Tensor(storage(), dtype(), shape, std::move(strides), offset());
}

Tensor Tensor::reshape(const Shape& shape) const {
  require_same_numel("reshape", *this, shape);
  Strides strides;
  return find_view_strides(*this, shape, strides) ? view(shape) : clone().view(shape);
}

}  // namespace ein
