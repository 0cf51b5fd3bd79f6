#include "cpu/first_equal.hpp"

#include <bit>
#include <cmath>
#include <concepts>
#include <stdexcept>
#include <type_traits>

#include "size/ask.hpp"
#include "tensor/convert.hpp"

// Compilers have vector code for the loops in every instruction set, the oldest, too, as each block
// has one length and its hits are numbers as wide as the elements.
namespace ein::host {
namespace {

/// The first element that has a hit, which is other than 0: its block, then its group, of which
/// each element has a bit, so that no branch depends on where it is.
template <class T, class Hit>
std::int64_t first_hit(const T* x, std::int64_t n, Hit hit) {
  constexpr std::int64_t block = 256 / static_cast<std::int64_t>(sizeof(T)), group = 16;
  std::int64_t first = 0;
  for (; first + block <= n; first += block) {
    decltype(hit(*x)) hits = 0;
    for (std::int64_t i = 0; i < block; ++i) hits |= hit(x[first + i]);
    if (hits != 0) break;
  }
  const auto bits_of = [&](std::int64_t count) {
    unsigned bits = 0;
    for (std::int64_t i = 0; i < count; ++i) bits |= unsigned{hit(x[first + i]) != 0} << i;
    return bits;
  };
  for (; first + group <= n; first += group) {
    if (const unsigned bits = bits_of(group)) return first + std::countr_zero(bits);
  }
  const unsigned bits = bits_of(n - first);
  return bits == 0 ? n : first + std::countr_zero(bits);
}

/// The greatest bit of a number that is 0, alone of all: SSE2 compares none of 64 bits.
constexpr std::uint64_t zero_bit(std::uint64_t x) { return (x - 1) & ~x & std::uint64_t{1} << 63; }

template <std::unsigned_integral T>
std::int64_t first_integer(const T* x, T value, std::int64_t n) {
  return first_hit(x, n, [=](T element) -> T {
    if constexpr (sizeof(T) == 8)
      return zero_bit(element ^ value);
    else
      return element == value;
  });
}

std::int64_t first_number(const std::uint32_t* x, std::uint32_t value, std::int64_t n) {
  const auto wanted = std::bit_cast<float>(value);
  return first_hit(x, n, [=](std::uint32_t bits) {
    const auto element = std::bit_cast<float>(bits);
    return std::uint32_t{element == wanted} | std::uint32_t{element != element};
  });
}
/// By bits, where there are no vectors of comparisons.
template <std::unsigned_integral T>
std::int64_t first_number(const T* x, T value, T infinity, std::int64_t n) {
  constexpr T magnitude = static_cast<T>(~T{0}) >> 1;
  // Both zeros are equal.
  const T asked = (value & magnitude) == 0 ? magnitude : static_cast<T>(~T{0}),
          wanted = value & asked;
  return first_hit(x, n, [=](T element) -> T {
    const T bits = element & magnitude;
    if constexpr (sizeof(T) == 8)
      return zero_bit((element & asked) ^ wanted) | (infinity - bits) >> 63;
    else
      return static_cast<T>((element & asked) == wanted) | static_cast<T>(bits > infinity);
  });
}

template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

}  // namespace

bool finds_first_equal(DType dtype) {
  return !is_complex(dtype) && !(is_floating(dtype) && size_of(dtype) == 1);
}

void first_equal(const SearchedRows& rows, DType dtype, std::int64_t* places) {
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> || sizeof(T) == 2 || std::is_floating_point_v<T>) {
      using Bits = BitsOf<T>;
      const auto *elements = reinterpret_cast<const Bits*>(rows.elements),
                 *values = reinterpret_cast<const Bits*>(rows.values);
      for (std::int64_t r = 0; r < rows.rows;
           ++r, elements += rows.row_step, values += rows.value_step) {
        if constexpr (std::is_integral_v<T>)
          places[r] = first_integer(elements, *values, rows.length);
        else if constexpr (sizeof(T) == 4)
          places[r] = first_number(elements, *values, rows.length);
        else
          places[r] = first_number(elements, *values, std::bit_cast<Bits>(convert<T>(INFINITY)),
                                   rows.length);
      }
    } else {
      throw std::logic_error("first_equal: a dtype that it does not take");
    }
  });
}

}  // namespace ein::host
