// Shape: the sizes (or the strides) of a tensor's dimensions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include <ein/size.hpp>

namespace ein {

/// A short list of sizes, one per dimension: those of `shape()`, elements for `strides()`. Up to
/// eight live inside the object, so that a call on ordinary tensors allocates nothing for them.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Size> values) : Shape(std::span(values.begin(), values.size())) {}
  explicit Shape(std::span<const Size> values) { assign(values); }
  explicit Shape(std::span<const std::int64_t> values) {
    resize(values.size());
    std::copy(values.begin(), values.end(), begin());
  }
  Shape(std::size_t rank, Size value) {
    resize(rank);
    std::fill(begin(), end(), value);
  }
  Shape(const Shape& other) { assign(other); }
  Shape(Shape&& other) noexcept
      : heap_(std::move(other.heap_)), size_(other.size_), capacity_(other.capacity_) {
    std::copy_n(other.inline_, inline_capacity, inline_);
    other.size_ = 0;
    other.capacity_ = inline_capacity;
  }
  Shape& operator=(const Shape& other) {
    if (this != &other) assign(other);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    heap_ = std::move(other.heap_);
    size_ = other.size_;
    capacity_ = other.capacity_;
    std::copy_n(other.inline_, inline_capacity, inline_);
    other.size_ = 0;
    other.capacity_ = inline_capacity;
    return *this;
  }

  /// Number of dimensions; 0 for a scalar.
  std::size_t rank() const { return size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  Size* data() { return heap_ ? heap_.get() : inline_; }
  const Size* data() const { return heap_ ? heap_.get() : inline_; }
  Size* begin() { return data(); }
  Size* end() { return data() + size_; }
  const Size* begin() const { return data(); }
  const Size* end() const { return data() + size_; }
  Size& operator[](std::size_t i) { return data()[i]; }
  Size operator[](std::size_t i) const { return data()[i]; }
  Size& back() { return data()[size_ - 1]; }
  Size back() const { return data()[size_ - 1]; }

  void resize(std::size_t rank) {
    reserve(rank);
    if (rank > size_) std::fill(data() + size_, data() + rank, 0);
    size_ = static_cast<std::uint32_t>(rank);
  }
  void push_back(Size value) {
    if (size_ == capacity_) reserve(2 * std::size_t{size_});
    data()[size_++] = value;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  /// Whether they are equal for all lengths.
  friend bool always_equal(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](Size x, Size y) { return always_equal(x, y); });
  }

  /// Written as Python writes a tuple: `()`, `(7,)`, `(2, 3)`.
  std::string to_string() const {
    std::string text = "(";
    for (std::size_t i = 0; i < size_; ++i) {
      if (i > 0) text += ", ";
      text += ein::to_string((*this)[i]);
    }
    return text + (size_ == 1 ? ",)" : ")");
  }

 private:
  static constexpr std::size_t inline_capacity = 8;

  void reserve(std::size_t rank) {
    if (rank <= capacity_) return;
    auto grown = std::make_unique<Size[]>(rank);
    std::copy_n(data(), size_, grown.get());
    heap_ = std::move(grown);
    capacity_ = static_cast<std::uint32_t>(rank);
  }
  void assign(std::span<const Size> values) {
    reserve(values.size());
    std::copy(values.begin(), values.end(), data());
    size_ = static_cast<std::uint32_t>(values.size());
  }

  std::unique_ptr<Size[]> heap_;
  Size inline_[inline_capacity] = {};
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = inline_capacity;
};

/// The distance, in elements, between neighbours along each dimension.
using Strides = Shape;

/// The number of elements. Precondition: the product is known to fit (every Tensor's does).
inline Size numel(const Shape& shape) {
  Size n = 1;
  for (Size size : shape) n *= size;
  return n;
}

/// The product of the sizes, or an ein::Error of kind `overflow` if it (times `element_size`, in
/// bytes) exceeds 2^63 - 1, or of kind `shape` if a size is negative.
Size checked_numel(const Shape& shape, std::int64_t element_size = 1);

/// The strides of a row-major array without gaps.
Strides contiguous_strides(const Shape& shape);

}  // namespace ein
