#include <ein/dtype.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <ein/error.hpp>

namespace ein {

namespace {

detail::FloatFormat format_of_dtype(DType dtype) {
  return visit(dtype, []<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, double>) return detail::FloatFormat{11, 52, true};
    if constexpr (std::is_same_v<T, float>) return detail::binary32;
    return detail::format_of<T>;
  });
}

}  // namespace

void detail::not_real(DType dtype) {
  throw std::logic_error("visit: " + std::string(name(dtype)) + " is no real dtype");
}

std::optional<DType> parse_dtype(std::string_view text) {
  const auto found = std::ranges::find(all_dtypes, text, [](DType dtype) { return name(dtype); });
  return found == std::end(all_dtypes) ? std::nullopt : std::optional(*found);
}

std::string list_dtypes(bool (*wanted)(DType)) {
  std::vector<std::string_view> names;
  for (const DType dtype : all_dtypes) {
    if (!wanted || wanted(dtype)) names.push_back(name(dtype));
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

Finfo finfo(DType dtype) {
  if (!is_floating(dtype)) {
    throw Error(ErrorKind::dtype, "finfo: " + std::string(name(dtype)) +
                                      " is not a floating-point dtype; those are " +
                                      list_dtypes(is_floating));
  }
  const auto format = format_of_dtype(dtype);
  const int least_exponent = 1 - format.bias();
  const double eps = std::ldexp(1.0, -format.mantissa_bits);
  // The largest mantissa: all ones, save that in a format without infinities that code is the NaN.
  const double mantissa = 2 - (format.has_infinity ? eps : 2 * eps);
  const double max = std::ldexp(mantissa, format.bias() + (format.has_infinity ? 0 : 1));
  // Parsed rather than computed, so that 1e-6 is the nearest double to it.
  const double resolution = std::stod("1e-" + std::to_string(static_cast<int>(-std::log10(eps))));
  return {.bits = format.bits(),
          .max = max,
          .lowest = -max,
          .eps = eps,
          .tiny = std::ldexp(1.0, least_exponent),
          .smallest_subnormal = std::ldexp(1.0, least_exponent - format.mantissa_bits),
          .resolution = resolution};
}

namespace {

[[noreturn]] void fail_to_promote(DType a, DType b) {
  throw Error(ErrorKind::dtype, "no integer dtype holds all of " + std::string(name(a)) + " and " +
                                    std::string(name(b)) + "\n  help: cast one with .to(dtype)");
}

}  // namespace

DType promote(DType a, DType b) {
  const std::optional<DType> common = common_dtype(a, b);
  if (!common) fail_to_promote(a, b);
  return *common;
}

}  // namespace ein
