// List: what the grammar needs of std::vector, of which a compiler would take a quarter longer for
// `#include <ein/ein.hpp>`.
#pragma once

#include <ein/compiler.hpp>

#include <cstddef>
#include <initializer_list>
#include <utility>

namespace ein::grammar {

/// Elements side by side, whose number grows; in a constant expression too. Elements have a default
/// value. Equal lists have equal elements.
template <class T>
class List {
 public:
  constexpr List() = default;
  constexpr explicit List(std::size_t count, const T& value) {
    if (count > 0) reserve(count);
    while (size_ < count) items_[size_++] = value;
  }
  constexpr List(std::initializer_list<T> items) { add(items.begin(), items.size()); }
  constexpr List(const List& other) { add(other.items_, other.size_); }
  constexpr List(List&& other) noexcept { swap(other); }
  constexpr List& operator=(List other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~List() {
    if (capacity_ > 0) delete[] items_;
  }
  /// What an array holds, for as long as it does: to be read alone.
  static constexpr List borrowed(const T* items, std::size_t count) {
    List list;
    list.items_ = const_cast<T*>(items);  // none is written where there is no capacity
    list.size_ = count;
    return list;
  }

  constexpr void push_back(T item) {
    if (size_ >= capacity_) reserve(size_ == 0 ? 8 : 2 * size_);
    items_[size_++] = std::move(item);
  }
  /// `count` elements, none of this list.
  constexpr void add(const T* items, std::size_t count) {
    if (size_ + count > capacity_) reserve(size_ + count < 2 * size_ ? 2 * size_ : size_ + count);
    for (std::size_t i = 0; i < count; ++i) items_[size_++] = items[i];
  }

  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t size() const { return size_; }
  constexpr const T* data() const { return items_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }
  constexpr T& operator[](std::size_t i) { return items_[i]; }
  constexpr const T& operator[](std::size_t i) const { return items_[i]; }
  constexpr void pop_back() { --size_; }
  constexpr T& back() { return items_[size_ - 1]; }
  constexpr const T& back() const { return items_[size_ - 1]; }

  friend constexpr bool operator==(const List& a, const List& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a.items_[i] == b.items_[i])) return false;
    }
    return true;
  }

 private:
  constexpr void reserve(std::size_t capacity) {
    T* const items = new T[capacity];
    for (std::size_t i = 0; i < size_; ++i) {
      if (capacity_ > 0)
        items[i] = std::move(items_[i]);
      else
        items[i] = static_cast<const T&>(items_[i]);
    }
    if (capacity_ > 0) delete[] items_;
    items_ = items;
    capacity_ = capacity;
  }
  constexpr void swap(List& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* items_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace ein::grammar
