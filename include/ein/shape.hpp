// Shape: the sizes (or the strides) of a tensor's dimensions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

namespace ein {

/// A short list of integers, one per dimension: sizes for `shape()`, elements for `strides()`. Up
/// to eight live inside the object, so that a call on ordinary tensors allocates nothing for them.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> values)
      : Shape(std::span(values.begin(), values.size())) {}
  explicit Shape(std::span<const std::int64_t> values) { assign(values); }
  Shape(std::size_t rank, std::int64_t value) {
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

  std::int64_t* data() { return heap_ ? heap_.get() : inline_; }
  const std::int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  std::int64_t* begin() { return data(); }
  std::int64_t* end() { return data() + size_; }
  const std::int64_t* begin() const { return data(); }
  const std::int64_t* end() const { return data() + size_; }
  std::int64_t& operator[](std::size_t i) { return data()[i]; }
  std::int64_t operator[](std::size_t i) const { return data()[i]; }
  std::int64_t& back() { return data()[size_ - 1]; }
  std::int64_t back() const { return data()[size_ - 1]; }

  void resize(std::size_t rank) {
    reserve(rank);
    if (rank > size_) std::fill(data() + size_, data() + rank, 0);
    size_ = static_cast<std::uint32_t>(rank);
  }
  void push_back(std::int64_t value) {
    if (size_ == capacity_) reserve(2 * std::size_t{size_});
    data()[size_++] = value;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  /// Written as Python writes a tuple: `()`, `(7,)`, `(2, 3)`.
  std::string to_string() const {
    std::string text = "(";
    for (std::size_t i = 0; i < size_; ++i) {
      if (i > 0) text += ", ";
      text += std::to_string((*this)[i]);
    }
    return text + (size_ == 1 ? ",)" : ")");
  }

 private:
  static constexpr std::size_t inline_capacity = 8;

  void reserve(std::size_t rank) {
    if (rank <= capacity_) return;
    auto grown = std::make_unique<std::int64_t[]>(rank);
    std::copy_n(data(), size_, grown.get());
    heap_ = std::move(grown);
    capacity_ = static_cast<std::uint32_t>(rank);
  }
  void assign(std::span<const std::int64_t> values) {
    reserve(values.size());
    std::copy(values.begin(), values.end(), data());
    size_ = static_cast<std::uint32_t>(values.size());
  }

  std::unique_ptr<std::int64_t[]> heap_;
  std::int64_t inline_[inline_capacity] = {};
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = inline_capacity;
};

/// The distance, in elements, between neighbours along each dimension.
using Strides = Shape;

/// The number of elements. Precondition: the product is known to fit (every Tensor's does).
inline std::int64_t numel(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  return n;
}

/// The product of the sizes, or an ein::Error of kind `overflow` if it (times `element_size`, in
/// bytes) exceeds 2^63 - 1, or of kind `shape` if a size is negative.
std::int64_t checked_numel(const Shape& shape, std::int64_t element_size = 1);

/// The strides of a row-major array without gaps.
Strides contiguous_strides(const Shape& shape);

}  // namespace ein
