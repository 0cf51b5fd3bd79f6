// Shape: the sizes (or the strides) of a tensor's dimensions.
#pragma once

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
  explicit Shape(std::span<const std::int64_t> values) { assign(values); }
  Shape(std::size_t rank, Size value) {
    resize(rank);
    for (Size& size : *this) size = value;
  }
  Shape(const Shape& other) { assign(other); }
  Shape(Shape&& other) noexcept
      : heap_(std::move(other.heap_)), size_(other.size_), capacity_(other.capacity_) {
    copy(other.inline_, inline_capacity, inline_);
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
    copy(other.inline_, inline_capacity, inline_);
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
    for (std::size_t i = size_; i < rank; ++i) data()[i] = 0;
    size_ = static_cast<std::uint32_t>(rank);
  }
  void push_back(Size value) {
    if (size_ == capacity_) reserve(2 * std::size_t{size_});
    data()[size_++] = value;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return are_equal(a, b, [](Size x, Size y) { return x == y; });
  }

  /// Whether they are equal for all lengths.
  friend bool always_equal(const Shape& a, const Shape& b) {
    return are_equal(a, b, [](Size x, Size y) { return always_equal(x, y); });
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
    copy(data(), size_, grown.get());
    heap_ = std::move(grown);
    capacity_ = static_cast<std::uint32_t>(rank);
  }
  template <class T>
  void assign(std::span<const T> values) {
    reserve(values.size());
    copy(values.data(), values.size(), data());
    size_ = static_cast<std::uint32_t>(values.size());
  }
  void assign(const Shape& other) { assign(std::span<const Size>(other.data(), other.size())); }

  // <algorithm> takes a compiler longer than all of this file.
  template <class T>
  static void copy(const T* from, std::size_t count, Size* to) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  }
  template <class AreEqual>
  static bool are_equal(const Shape& a, const Shape& b, const AreEqual& are_equal) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!are_equal(a[i], b[i])) return false;
    }
    return true;
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

/// How a matrix's elements follow each other in memory: row by row, as C and NumPy have them, or
/// column by column, as Fortran, BLAS and Eigen do. With more dimensions, the last or the first one
/// is the closest.
enum class Order : std::uint8_t { row_major, column_major };

/// The strides of an array without gaps.
Strides contiguous_strides(const Shape& shape, Order order = Order::row_major);

}  // namespace ein
