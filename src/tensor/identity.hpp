// What combinations of no elements are.
#pragma once

#include <limits>
#include <stdexcept>

#include <ein/detail/combines.hpp>
#include <ein/dtype.hpp>

namespace ein {

/// The combination of no numbers.
template <class C>
C identity(Combine combine) {
  using Limits = std::numeric_limits<C>;
  switch (info(combine).nothing) {
    case CombineInfo::zero:
      return C(0);
    case CombineInfo::one:
      return C(1);
    case CombineInfo::lowest:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case CombineInfo::highest:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  throw std::logic_error("combine: unknown combination");
}

/// The combination of no elements, as dtype_of<T> holds it.
template <class T>
T nothing(Combine combine) {
  if constexpr (is_floating(dtype_of<T>))
    return convert<T>(identity<double>(combine));
  else
    return identity<T>(combine);
}

}  // namespace ein
