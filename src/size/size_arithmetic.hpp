// Arithmetic of sizes that is more than an operator.
#pragma once

#include <type_traits>

#include <ein/size.hpp>

namespace ein {

/// a / b, rounded up, for a >= 0 and b > 0.
template <class T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0);
}

constexpr Size ceil_div(Size a, Size b) {
  return a.is_number() && b.is_number() ? Size(ceil_div(a.word(), b.word())) : (a + b - 1) / b;
}

constexpr Size magnitude(Size size) { return size < 0 ? -size : size; }

/// The next multiple of `step` from a on.
constexpr Size round_up(Size a, std::int64_t step) {
  return always_equal(a % step, 0) ? a : ceil_div(a, step) * step;
}

}  // namespace ein
