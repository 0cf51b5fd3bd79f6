#include "mesh/combine.hpp"

#include <algorithm>
#include <cstring>

#include "nest/combine.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::mesh {
namespace {

/// Elements that are combined at a time, so that what is not the result yet stays in the
/// first-level cache.
constexpr std::int64_t strip = 1024;

/// Where a strip of the result goes: twice, or `also` is null.
template <class T>
struct Results {
  T* to;
  T* also;
};

/// results[i] = a[i] ∘ b[i]. A result may be an operand, so elements are independent of each other.
template <Combine combine, class C>
void combine_two(const C* a, const C* b, Results<C> results, std::int64_t count) {
  C* const to = results.to;
  C* const also = results.also;
  if (!also) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) to[i] = combined<combine>(a[i], b[i]);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const C result = combined<combine>(a[i], b[i]);
    to[i] = result;
    also[i] = result;
  }
}

struct Operands {
  std::span<const std::byte* const> from;
  DType dtype;

  template <class T>
  const T* at(std::size_t i, std::int64_t begin) const {
    return reinterpret_cast<const T*>(from[i]) + begin;
  }

  /// In the elements' own type: all but the last into memory of its own, with the last to where the
  /// result goes.
  template <Combine combine, class T>
  void combine_strip(std::int64_t begin, std::int64_t count, Results<T> results) const {
    const T* sum = at<T>(0, begin);
    T total[strip];
    for (std::size_t i = 1; i + 1 < from.size(); ++i) {
      combine_two<combine, T>(sum, at<T>(i, begin), {total, nullptr}, count);
      sum = total;
    }
    combine_two<combine>(sum, at<T>(from.size() - 1, begin), results, count);
  }

  /// In f32, rounded once.
  template <Combine combine, class T>
  void combine_narrow_strip(std::int64_t begin, std::int64_t count, Results<T> results) const {
    const auto n = static_cast<std::size_t>(count);
    float total[strip], x[strip];
    load_as(at<T>(0, begin), dtype, 1, total, n);
    for (std::size_t i = 1; i < from.size(); ++i) {
      load_as(at<T>(i, begin), dtype, 1, x, n);
      combine_two<combine, float>(total, x, {total, nullptr}, count);
    }
    store_from(total, n, results.to, dtype, 1);
    if (results.also) std::memcpy(results.also, results.to, n * sizeof(T));
  }
};

}  // namespace

void combine_elements(std::span<const std::byte* const> from, std::byte* to, std::byte* also,
                      std::int64_t count, DType dtype, Combine combine) {
  const Operands operands{from, dtype};
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    visit_combine(combine, [&](auto constant) {
      for (std::int64_t begin = 0; begin < count; begin += strip) {
        const std::int64_t n = std::min(strip, count - begin);
        const Results<T> results{reinterpret_cast<T*>(to) + begin,
                                 also ? reinterpret_cast<T*>(also) + begin : nullptr};
        if constexpr (is_floating(dtype_of<T>) && sizeof(T) < sizeof(float))
          operands.combine_narrow_strip<constant.value, T>(begin, n, results);
        else
          operands.combine_strip<constant.value, T>(begin, n, results);
      }
    });
  });
}

}  // namespace ein::mesh
