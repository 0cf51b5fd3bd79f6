// Where the sums of products of few rows go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_panels.hpp"

namespace ein::host::EIN_LEVEL {

/// The sums of a chunk of columns over parts of the depth, added up: all numbers one by one would
/// lose digits, and of ones in f32 no more than 2^24 can be added so. V is a number or a vector.
template <class V>
class Totals {
 public:
  /// Memory for as many totals as a chunk has sums.
  void lie_at(V* memory) { totals_ = memory; }
  /// The next chunk.
  void begin(std::int64_t count) {
    count_ = count;
    are_there_ = false;
  }
  /// Takes the sums of a part; those of the next part begin at 0.
  void take(const V* sums) {
    for (std::int64_t i = 0; i < count_; ++i)
      totals_[i] = are_there_ ? totals_[i] + sums[i] : sums[i];
    are_there_ = true;
  }
  /// Adds those that were taken to the sums of the last part.
  void add_to(V* sums) const {
    for (std::int64_t i = 0; are_there_ && i < count_; ++i) sums[i] += totals_[i];
  }

 private:
  V* totals_ = nullptr;
  std::int64_t count_ = 0;
  bool are_there_ = false;
};

/// c, or a buffer for what finishes it, a chunk of columns at a time.
template <class C, class Sum>
class FewRowsResult {
  static constexpr std::int64_t width = vector_width<Sum>;

 public:
  FewRowsResult(const MatrixRef<C>& c, bool accumulate, const Finish& finish)
      : c_(c), finish_(finish), accumulate_(accumulate) {}

  /// The next chunk has `count` columns from `first` on.
  void begin(std::int64_t first, std::int64_t count) {
    first_ = first;
    count_ = count;
    if (!std::is_same_v<C, Sum> && finish_) {
      struct OfSums {};
      sums_ = finish_.sums_at(thread_buffer<float, OfSums>(c_.rows * count), c_.rows, count);
    }
  }
  /// `count` sums of row i, from column j of the chunk on.
  void put(std::int64_t i, std::int64_t j, std::int64_t count, const Vector<Sum>& sums) const {
    C* const to = c_.data + i * c_.row_stride + (first_ + j) * c_.col_stride;
    if constexpr (std::is_same_v<C, Sum>) {
      if (count == width && c_.col_stride == 1)
        return store<C>(to, accumulate_ ? load(to) + sums : sums);
    } else if (finish_) {
      float* const sum = sums_.data + i * sums_.row_stride + j * sums_.col_stride;
      if (count == width && sums_.col_stride == 1) return store<float>(sum, sums);
      return put_each(sum, sums_.col_stride, count, sums, false);
    }
    put_each(to, c_.col_stride, count, sums, accumulate_);
  }
  /// All sums of the chunk were put.
  void end() const {
    if (finish_) finish_(0, c_.rows, first_, count_, sums_.data);
  }

 private:
  template <class T>
  [[gnu::noinline]] static void put_each(T* to, std::int64_t stride, std::int64_t count,
                                         const Vector<Sum>& sums, bool accumulate) {
    for (std::int64_t l = 0; l < count; ++l) {
      T& element = to[l * stride];
      if constexpr (std::is_same_v<T, Sum>) {
        element = accumulate ? element + sums[l] : sums[l];
      } else {
        element = convert<T>(sums[l]);
      }
    }
  }

  const MatrixRef<C> c_;
  const Finish finish_;
  const bool accumulate_;
  std::int64_t first_ = 0, count_ = 0;
  MatrixRef<float> sums_{};  // of the chunk, if they are not written to c
};

}  // namespace ein::host::EIN_LEVEL
