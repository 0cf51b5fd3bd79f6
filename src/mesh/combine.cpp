#include "mesh/combine.hpp"

#include <algorithm>

#include "nest/combine.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::mesh {
namespace {

/// Elements that are combined at a time, so that what is not the result yet stays in the
/// first-level cache.
constexpr std::int64_t strip = 1024;

/// result[i] = a[i] ∘ b[i]. The result may be an operand.
template <Combine combine, class C>
void combine_two(const C* a, const C* b, C* result, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = combined<combine>(a[i], b[i]);
}

/// total[i] = total[i] ∘ x[i]. They do not overlap.
template <Combine combine, class C>
void take_in(C* __restrict total, const C* __restrict x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) total[i] = combined<combine>(total[i], x[i]);
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
  void combine_strip(std::int64_t begin, std::int64_t count, T* result) const {
    if (from.size() == 2)
      return combine_two<combine>(at<T>(0, begin), at<T>(1, begin), result, count);
    T total[strip];
    combine_two<combine>(at<T>(0, begin), at<T>(1, begin), total, count);
    for (std::size_t i = 2; i + 1 < from.size(); ++i)
      take_in<combine>(total, at<T>(i, begin), count);
    combine_two<combine>(total, at<T>(from.size() - 1, begin), result, count);
  }

  /// In f32, rounded once.
  template <Combine combine, class T>
  void combine_narrow_strip(std::int64_t begin, std::int64_t count, T* result) const {
    const auto n = static_cast<std::size_t>(count);
    float total[strip], x[strip];
    load_as(at<T>(0, begin), dtype, 1, total, n);
    for (std::size_t i = 1; i < from.size(); ++i) {
      load_as(at<T>(i, begin), dtype, 1, x, n);
      take_in<combine>(total, x, count);
    }
    store_from(total, n, result, dtype, 1);
  }
};

}  // namespace

void combine_elements(std::span<const std::byte* const> from, std::byte* to, std::int64_t count,
                      DType dtype, Combine combine) {
  const Operands operands{from, dtype};
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    visit_combine(combine, [&](auto constant) {
      for (std::int64_t begin = 0; begin < count; begin += strip) {
        const std::int64_t n = std::min(strip, count - begin);
        T* const result = reinterpret_cast<T*>(to) + begin;
        if constexpr (is_floating(dtype_of<T>) && sizeof(T) < sizeof(float))
          operands.combine_narrow_strip<constant.value, T>(begin, n, result);
        else
          operands.combine_strip<constant.value, T>(begin, n, result);
      }
    });
  });
}

}  // namespace ein::mesh
