// Tensors to and from plain numbers, in any memory layout, element by element: without the
// library's own copies and conversions of arrays. A complex element is two numbers, its parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <ein/complex.hpp>
#include <ein/dtype.hpp>
#include <ein/tensor.hpp>

namespace ein::test {

/// Calls f(address of the element, its row-major number) for each element of `x`.
template <class F>
void for_each_element(const Tensor& x, F&& f) {
  std::vector<std::int64_t> at(x.rank(), 0);
  const std::int64_t n = x.numel();
  std::byte* const first = static_cast<std::byte*>(x.raw_data());
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    f(first + place * static_cast<std::int64_t>(x.element_size()), static_cast<std::size_t>(i));
    for (std::size_t d = x.rank(); d-- > 0;) {
      place += x.strides()[d];
      if (++at[d] < x.shape()[d]) break;
      place -= at[d] * x.strides()[d];
      at[d] = 0;
    }
  }
}

/// `value` as an element of `dtype` holds it: rounded once, or for integers (a whole value below
/// 2^63) modulo 2^bits; as a part of it where it is complex.
inline double stored(double value, DType dtype) {
  return visit(real_dtype(dtype), [&]<class T>(std::type_identity<T>) {
    if (is_integral(dtype)) return convert<double>(convert<T>(static_cast<std::int64_t>(value)));
    return convert<double>(convert<T>(value));
  });
}

/// How many numbers the elements of such a tensor are.
inline std::size_t count_of_values(const Shape& shape, DType dtype) {
  return static_cast<std::size_t>(numel(shape)) * (is_complex(dtype) ? 2 : 1);
}

inline void set_values(const Tensor& x, const std::vector<double>& values) {
  if (is_complex(x.dtype())) return set_values(view_as_real(x), values);
  visit(x.dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_element(x, [&](std::byte* to, std::size_t i) {
      *reinterpret_cast<T*>(to) = convert<T>(values[i]);
    });
  });
}

inline std::vector<double> get_values(const Tensor& x) {
  if (is_complex(x.dtype())) return get_values(view_as_real(x));
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  visit(x.dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_element(x, [&](std::byte* from, std::size_t i) {
      values[i] = convert<double>(*reinterpret_cast<T*>(from));
    });
  });
  return values;
}

/// A new row-major tensor of these values.
inline Tensor make_tensor(const std::vector<double>& values, const Shape& shape,
                          DType dtype = DType::f32) {
  const auto bytes = static_cast<std::size_t>(numel(shape)) * size_of(dtype);
  const Tensor x(Storage::allocate(bytes), dtype, shape, contiguous_strides(shape));
  set_values(x, values);
  return x;
}

/// A tensor that lies in memory in some random way: dimensions permuted, with gaps, backwards,
/// behind an offset, and those marked in `constant` (along which the caller's values are equal)
/// maybe with stride 0. Elements are not set.
template <class Random>
Tensor scattered_tensor(const Shape& shape, DType dtype, const std::vector<bool>& constant,
                        Random& random) {
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  std::vector<std::size_t> order(shape.rank());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  const bool permuted = below(2) == 1;
  // Gaps in each of many dimensions multiply.
  const bool gaps = below(2) == 1 && shape.rank() <= 8;
  if (permuted) std::shuffle(order.begin(), order.end(), random);
  Strides strides(shape.rank(), 0);
  std::int64_t extent = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t d = order[i];
    if (constant[d]) continue;
    const std::int64_t step = gaps && extent < 100000 ? 1 + below(3) : 1;
    strides[d] = extent * step;
    extent *= std::max<std::int64_t>(shape[d], 1) * step + (step > 1 ? below(2) : 0);
  }
  std::int64_t offset = below(2) * below(9);
  // The storage ends with the last element, so that sanitizers see what reads beyond.
  std::int64_t end = numel(shape) == 0 ? 0 : offset + 1;
  for (std::size_t d = 0; d < shape.rank() && end > 0; ++d) end += strides[d] * (shape[d] - 1);
  const bool backwards = below(3) == 0;
  for (std::size_t d = 0; d < shape.rank() && backwards; ++d) {
    if (below(2) == 0) continue;
    if (end > 0) offset += strides[d] * (shape[d] - 1);
    strides[d] = -strides[d];
  }
  auto storage =
      Storage::allocate(static_cast<std::size_t>(std::max(end, offset)) * size_of(dtype));
  return Tensor(std::move(storage), dtype, shape, strides, offset);
}

}  // namespace ein::test
