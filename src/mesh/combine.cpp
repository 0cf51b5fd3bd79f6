#include "mesh/combine.hpp"

#include <algorithm>
#include <cstring>

#include "nest/combine.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::mesh {
namespace {

/// Elements that are combined at a time, in memory of their own: `to` may be one of the operands.
/// That memory stays in the first-level cache.
constexpr std::int64_t strip = 1024;

template <Combine combine, class C>
void take_in(C* __restrict total, const C* __restrict x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) total[i] = combined<combine>(total[i], x[i]);
}

template <Combine combine, class C>
void combine_two(C* __restrict total, const C* __restrict a, const C* __restrict b,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) total[i] = combined<combine>(a[i], b[i]);
}

struct Strips {
  std::span<const std::byte* const> from;
  std::byte* to;
  std::byte* also;
  std::int64_t count;
  DType dtype;

  void store(const void* elements, std::int64_t begin, std::int64_t n) const {
    const std::size_t element = size_of(dtype);
    const std::size_t offset = static_cast<std::size_t>(begin) * element;
    const std::size_t bytes = static_cast<std::size_t>(n) * element;
    std::memcpy(to + offset, elements, bytes);
    if (also) std::memcpy(also + offset, elements, bytes);
  }

  template <Combine combine, class T>
  void run() const {
    const auto operand = [&](std::size_t i, std::int64_t begin) {
      return reinterpret_cast<const T*>(from[i]) + begin;
    };
    for (std::int64_t begin = 0; begin < count; begin += strip) {
      const std::int64_t n = std::min(strip, count - begin);
      if constexpr (is_floating(dtype_of<T>) && sizeof(T) < sizeof(float)) {
        float total[strip], x[strip];
        T rounded[strip];
        load_as(operand(0, begin), dtype, 1, total, static_cast<std::size_t>(n));
        for (std::size_t i = 1; i < from.size(); ++i) {
          load_as(operand(i, begin), dtype, 1, x, static_cast<std::size_t>(n));
          take_in<combine>(total, x, n);
        }
        store_from(total, static_cast<std::size_t>(n), rounded, dtype, 1);
        store(rounded, begin, n);
      } else {
        T total[strip];
        combine_two<combine>(total, operand(0, begin), operand(1, begin), n);
        for (std::size_t i = 2; i < from.size(); ++i) take_in<combine>(total, operand(i, begin), n);
        store(total, begin, n);
      }
    }
  }
};

}  // namespace

void combine_elements(std::span<const std::byte* const> from, std::byte* to, std::byte* also,
                      std::int64_t count, DType dtype, Combine combine) {
  const Strips strips{from, to, also, count, dtype};
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    visit_combine(combine, [&](auto constant) { strips.run<constant.value, T>(); });
  });
}

}  // namespace ein::mesh
