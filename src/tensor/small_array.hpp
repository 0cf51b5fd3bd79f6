// SmallArray: memory on the stack for a number of elements that is seldom large.
#pragma once

#include <cstddef>
#include <memory>

namespace ein {

/// `size` elements, those of plain types without a value yet; up to `most` of them without an
/// allocation.
template <class T, std::size_t most>
class SmallArray {
 public:
  explicit SmallArray(std::size_t size)
      : size_(size),
        heap_(size > most ? std::make_unique_for_overwrite<T[]>(size) : nullptr),
        data_(heap_ ? heap_.get() : near_) {}
  SmallArray(const SmallArray&) = delete;
  SmallArray& operator=(const SmallArray&) = delete;

  T& operator[](std::size_t i) { return data_[i]; }
  T* data() { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  T near_[most];
  std::unique_ptr<T[]> heap_;
  T* data_;
};

}  // namespace ein
