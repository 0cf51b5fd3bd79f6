#include <ein/dtype.hpp>

#include <cmath>
#include <string>

#include <ein/error.hpp>

namespace ein {

namespace {

/// The order of promotion; equal ranks are different formats of the same width.
int promotion_rank(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 7;
    case DType::f32:
      return 6;
    case DType::f16:
    case DType::bf16:
      return 5;
    case DType::f8e4m3:
    case DType::f8e5m2:
      return 4;
    case DType::i64:
      return 3;
    case DType::i32:
      return 2;
    case DType::u8:
      return 1;
    case DType::boolean:
      break;
  }
  return 0;
}

detail::FloatFormat format_of_dtype(DType dtype) {
  return visit(dtype, []<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, double>) return detail::FloatFormat{11, 52, true};
    if constexpr (std::is_same_v<T, float>) return detail::binary32;
    return detail::format_of<T>;
  });
}

}  // namespace

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name(dtype) == text) return dtype;
  }
  return std::nullopt;
}

Finfo finfo(DType dtype) {
  if (!is_floating(dtype)) {
    throw Error(ErrorKind::dtype,
                "finfo: " + std::string(name(dtype)) +
                    " is not a floating dtype (f64, f32, f16, bf16, f8e4m3, f8e5m2)");
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

DType promote(DType a, DType b) {
  if (a == b) return a;
  const int rank_a = promotion_rank(a);
  const int rank_b = promotion_rank(b);
  if (rank_a == rank_b) return DType::f32;
  return rank_a > rank_b ? a : b;
}

}  // namespace ein
