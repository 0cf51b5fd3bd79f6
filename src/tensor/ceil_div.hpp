// ceil_div: how many pieces of a size a number falls into.
#pragma once

#include <type_traits>

namespace ein {

/// a / b, rounded up, for a >= 0 and b > 0.
template <class T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0);
}

}  // namespace ein
