// Numbers of a floating dtype beside a given one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <ein/dtype.hpp>
#include <ein/error.hpp>

namespace ein {

/// The greatest number of `dtype` that is not above x, -infinity below its least one; infinities
/// stay.
inline double round_down(DType dtype, double x) {
  if (!std::isfinite(x)) return x;
  const Finfo info = finfo(dtype);
  if (x < info.lowest) return -std::numeric_limits<double>::infinity();
  // The distance between numbers of its size; below the least normal one it does not shrink.
  const int exponent = std::max(std::ilogb(x), std::ilogb(info.tiny));
  const double step = std::ldexp(info.eps, exponent);
  return std::min(step > 0 ? std::floor(x / step) * step : x, info.max);
}
/// The least one that is not below x.
inline double round_up(DType dtype, double x) { return -round_down(dtype, -x); }

/// The least and the greatest number of a dtype in a range.
struct Bounds {
  double least, greatest;
};
/// Of [low, high]; an Error of kind `value`, which begins with `what`, where there is none.
inline Bounds bounds_within(const char* what, DType dtype, double low, double high) {
  const Bounds bounds{round_up(dtype, low), round_down(dtype, high)};
  if (bounds.least <= bounds.greatest) return bounds;
  throw Error(ErrorKind::value, std::string(what) + ": " + std::string(name(dtype)) +
                                    " has no number from " + std::to_string(low) + " to " +
                                    std::to_string(high));
}

}  // namespace ein
