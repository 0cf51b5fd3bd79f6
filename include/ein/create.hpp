// New tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include <ein/tensor.hpp>

namespace ein {

// Every creation is an Error of kind `shape` or `overflow` for an impossible shape, `memory` when
// there is no more.

/// Elements are not set.
Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
Tensor full(const Shape& shape, Scalar value, DType dtype = DType::f32, Device device = cpu);
inline Tensor empty(const Shape& shape, Device device) { return empty(shape, DType::f32, device); }
/// Of the shape of `x`, on its device, and placed on a mesh as it is.
Tensor full_like(const Tensor& x, Scalar value, DType dtype);
inline Tensor zeros(const Shape& shape, Device device) { return zeros(shape, DType::f32, device); }
inline Tensor ones(const Shape& shape, Device device) { return ones(shape, DType::f32, device); }
inline Tensor full(const Shape& shape, Scalar value, Device device) {
  return full(shape, value, DType::f32, device);
}

/// start, start + step, ... below `end` (above it for a negative step). i64 for whole arguments,
/// else f32.
Tensor arange(Scalar start, Scalar end, Scalar step = 1, Device device = cpu);
Tensor arange(Scalar end, Device device = cpu);
/// The n × n identity matrix.
Tensor eye(Size n, DType dtype = DType::f32, Device device = cpu);

/// The values, row by row unless another order is named; an Error of kind `shape` when there are
/// not numel(shape) of them.
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Order order = Order::row_major,
                   Device device = cpu);
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Device device) {
  return from_vector(values, shape, Order::row_major, device);
}
template <class T>
Tensor from_vector(const std::vector<T>& values, Device device = cpu) {
  return from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, device);
}

namespace detail {

template <class T, std::size_t N>
Tensor borrowed(std::span<T, N> elements, const Shape& shape, const Strides& strides,
                std::int64_t offset, std::shared_ptr<void> owner) {
  auto storage = Storage::wrap(const_cast<std::remove_const_t<T>*>(elements.data()),
                               elements.size_bytes(), std::move(owner), std::is_const_v<T>);
  return Tensor(std::move(storage), dtype_of<T>, shape, strides, offset);
}

/// Null data where there are no bytes.
Tensor borrowed_bytes(std::byte* data, std::size_t bytes, bool read_only, DType dtype,
                      const Shape& shape, const Strides& byte_strides, std::int64_t byte_offset,
                      std::shared_ptr<void> owner);

}  // namespace detail

/// Elements side by side that outlive the object that names them: a std::span, or a std::vector,
/// std::array or array that the caller keeps.
template <class R>
concept BorrowedElements = std::ranges::contiguous_range<R> && std::ranges::borrowed_range<R> &&
    std::ranges::sized_range<R> && Element<std::ranges::range_value_t<R>>;

/// Memory of the caller as a tensor, without a copy: element (i0, i1, ...) is
/// `elements[offset + Σ strides[d]·i_d]`; without strides they follow each other row by row. A
/// negative stride goes backwards from the offset, as NumPy's `a[::-1]` does: the n elements of
/// `v` from the last to the first are `from_span(v, {n}, {-1}, n - 1)`. `owner` keeps the memory
/// alive as long as a tensor views it; where it is null, the caller does. Of const elements the
/// tensor is read-only. An Error of kind `shape` when strides and offset reach outside the
/// elements.
template <BorrowedElements R>
Tensor from_span(R&& elements, const Shape& shape, const Strides& strides, std::int64_t offset,
                 std::shared_ptr<void> owner = nullptr) {
  return detail::borrowed(std::span(elements), shape, strides, offset, std::move(owner));
}
template <BorrowedElements R>
Tensor from_span(R&& elements, const Shape& shape, const Strides& strides,
                 std::shared_ptr<void> owner = nullptr) {
  return detail::borrowed(std::span(elements), shape, strides, 0, std::move(owner));
}
template <BorrowedElements R>
Tensor from_span(R&& elements, const Shape& shape, std::shared_ptr<void> owner = nullptr) {
  return detail::borrowed(std::span(elements), shape, contiguous_strides(shape), 0,
                          std::move(owner));
}

/// The same of memory whose steps are counted in bytes, such as one field of an array of structs:
/// element (i0, i1, ...) of `dtype` begins at byte `byte_offset + Σ byte_strides[d]·i_d`. Give
/// std::as_writable_bytes(span), or std::as_bytes(span) for a read-only tensor. Errors of kind
/// `shape` when that reaches outside the bytes, or when the stride of an axis is no multiple of the
/// element's size, and of kind `value` when the elements are not aligned to theirs:
/// copy_from_bytes reads those.
template <std::size_t N>
Tensor from_bytes(std::span<std::byte, N> bytes, DType dtype, const Shape& shape,
                  const Strides& byte_strides, std::int64_t byte_offset = 0,
                  std::shared_ptr<void> owner = nullptr) {
  return detail::borrowed_bytes(bytes.data(), bytes.size(), false, dtype, shape, byte_strides,
                                byte_offset, std::move(owner));
}
template <std::size_t N>
Tensor from_bytes(std::span<const std::byte, N> bytes, DType dtype, const Shape& shape,
                  const Strides& byte_strides, std::int64_t byte_offset = 0,
                  std::shared_ptr<void> owner = nullptr) {
  return detail::borrowed_bytes(const_cast<std::byte*>(bytes.data()), bytes.size(), true, dtype,
                                shape, byte_strides, byte_offset, std::move(owner));
}
/// A new tensor of the elements that from_bytes describes, at any address and any byte strides, as
/// packed structs have them. An Error of kind `shape` when they reach outside the bytes.
Tensor copy_from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                       const Strides& byte_strides, std::int64_t byte_offset = 0);

namespace detail {

/// Numbers in nested braces, of which rows are as long as the first one.
template <class T>
struct Nested {
  std::vector<T> values;
  Shape shape;

  /// Rows of dimension `depth`.
  template <class Row>
  void add(std::initializer_list<Row> rows, std::size_t depth = 0) {
    const auto size = static_cast<std::int64_t>(rows.size());
    if (depth == shape.rank()) {
      shape.push_back(size);
    } else if (shape[depth] != size) {
      ragged(depth, size);
    }
    for (const Row& row : rows) {
      if constexpr (std::is_same_v<Row, T>) {
        values.push_back(row);
      } else {
        add(row, depth + 1);
      }
    }
  }
  [[noreturn]] void ragged(std::size_t depth, std::int64_t size) const {
    throw Error(ErrorKind::shape, "tensor: dimension " + std::to_string(depth) + " has rows of " +
                                      to_string(shape[depth]) + " and of " + std::to_string(size) +
                                      "; all are to be equally long");
  }
};

/// The dtype of numbers that are written down: i64 for int, f32 for double, as arange has them;
/// others keep theirs.
template <Element T>
inline constexpr DType dtype_of_literals = std::is_same_v<T, int>      ? DType::i64
                                           : std::is_same_v<T, double> ? DType::f32
                                                                       : dtype_of<T>;

template <class T, class Rows>
Tensor tensor_of(std::initializer_list<Rows> rows, DType dtype, Device device) {
  Nested<T> nested;
  nested.add(rows);
  return from_vector(nested.values, nested.shape).to(dtype).to(device);
}

}  // namespace detail

/// Numbers as they are written: `tensor({1, 2, 3})`, `tensor({{1.0, 2.0}, {3.0, 4.0}})`, up to four
/// deep. All are of one C++ type: whole ones make i64, doubles f32, unless a dtype is named; other
/// types keep theirs. An Error of kind `shape` where rows differ in length.
template <Element T>
Tensor tensor(std::initializer_list<T> values, DType dtype = detail::dtype_of_literals<T>,
              Device device = cpu) {
  return detail::tensor_of<T>(values, dtype, device);
}
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
              DType dtype = detail::dtype_of_literals<T>, Device device = cpu) {
  return detail::tensor_of<T>(rows, dtype, device);
}
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows,
              DType dtype = detail::dtype_of_literals<T>, Device device = cpu) {
  return detail::tensor_of<T>(rows, dtype, device);
}
template <Element T>
Tensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        rows,
    DType dtype = detail::dtype_of_literals<T>, Device device = cpu) {
  return detail::tensor_of<T>(rows, dtype, device);
}

// Random numbers are a function of the seed, the number of random tensors made since it was set,
// and an element's position, so they are the same on every machine and device and for any number of
// threads.

/// Starts the sequence of random tensors anew. Without it, the seed is 0.
void manual_seed(std::uint64_t seed);
/// The place in that sequence, to go back to: the seed and how many random tensors were made from
/// it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t streams = 0;
};
RandomState random_state();
void set_random_state(RandomState state);
/// Standard normal.
Tensor randn(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
inline Tensor randn(const Shape& shape, Device device) { return randn(shape, DType::f32, device); }
/// Uniform in [0, 1).
Tensor rand(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
inline Tensor rand(const Shape& shape, Device device) { return rand(shape, DType::f32, device); }
/// Normal with mean 0 and standard deviation `std`, conditioned on lying between a and b, which are
/// values, not multiples of std; so it does when it has been rounded to the dtype. An Error of kind
/// `value` unless a < b, std > 0 and the dtype has a number between them.
Tensor trunc_normal(const Shape& shape, double std = 1, double a = -2, double b = 2,
                    DType dtype = DType::f32, Device device = cpu);

}  // namespace ein
