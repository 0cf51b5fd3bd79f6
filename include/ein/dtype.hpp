// dtypes: element types, their C++ types, conversions and limits.
#pragma once

#include <ein/compiler.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace ein {

/// The table of dtypes.hpp.
enum class DType : std::uint8_t {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) dtype,
#define EIN_COMPLEX EIN_DTYPE
#include <ein/detail/dtypes.hpp>
};

/// Every dtype, in the order of the table.
inline constexpr DType all_dtypes[] = {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) DType::dtype,
#define EIN_COMPLEX EIN_DTYPE
#include <ein/detail/dtypes.hpp>
};
/// Those that kernels compute with: all but c64 and c128, whose elements are pairs of f32 and f64.
inline constexpr DType real_dtypes[] = {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) DType::dtype,
#include <ein/detail/dtypes.hpp>
};

// 16- and 8-bit floats: storage only; arithmetic happens in f32.

/// IEEE 754 binary16: 5 exponent bits, 10 mantissa bits.
struct f16 {
  std::uint16_t bits;
};
/// bfloat16: the upper half of an IEEE 754 binary32.
struct bf16 {
  std::uint16_t bits;
};
/// E4M3 of the OCP 8-bit Floating Point Specification (OFP8), revision 1.0: no infinities, one NaN
/// per sign (S.1111.111), largest finite 448.
struct f8e4m3 {
  std::uint8_t bits;
};
/// E5M2 of the OCP 8-bit Floating Point Specification (OFP8), revision 1.0: IEEE-like, with
/// infinities, largest finite 57344.
struct f8e5m2 {
  std::uint8_t bits;
};

namespace detail {

/// std::complex<float>, std::complex<double>, or another type that is a real part followed by an
/// imaginary one. <ein/complex.hpp> has the header of the former; this one does not need it.
template <class T>
concept ComplexNumber = requires(const T& x) {
  typename T::value_type;
  { x.real() } -> std::convertible_to<typename T::value_type>;
  { x.imag() } -> std::convertible_to<typename T::value_type>;
  requires std::is_same_v<typename T::value_type, float> ||
      std::is_same_v<typename T::value_type, double>;
  requires sizeof(T) == 2 * sizeof(typename T::value_type);
};

template <class T>
consteval std::optional<DType> find_dtype() {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  if (std::is_same_v<T, type>) return DType::dtype;
#include <ein/detail/dtypes.hpp>
  // `long` and `long long` are both 64 bits on most machines, and only one of them is std::int64_t.
  if (std::is_same_v<T, long long> && sizeof(long long) == 8) return DType::i64;
  if (std::is_same_v<T, unsigned long long> && sizeof(unsigned long long) == 8) return DType::u64;
  if constexpr (ComplexNumber<T>) return sizeof(T) == 8 ? DType::c64 : DType::c128;
  return std::nullopt;
}

/// Of complex ones <ein/complex.hpp> says it.
template <DType dtype>
struct FindElement;
#define EIN_DTYPE(dtype, element, text, npy, safetensors, cuda, typed) \
  template <>                                                          \
  struct FindElement<DType::dtype> {                                   \
    using type = element;                                              \
  };
#include <ein/detail/dtypes.hpp>

enum class NumberKind : std::uint8_t { floating, integral, complex };

/// What a row of the table says beside the types.
struct DTypeRow {
  std::string_view text, npy, safetensors;
  NumberKind kind;
};
inline constexpr DTypeRow dtype_rows[] = {
#define EIN_FLOATING(dtype, type, text, npy, safetensors, cuda, typed) \
  {text, npy, safetensors, NumberKind::floating},
#define EIN_INTEGRAL(dtype, type, text, npy, safetensors, cuda, typed) \
  {text, npy, safetensors, NumberKind::integral},
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed) \
  {text, npy, safetensors, NumberKind::complex},
#include <ein/detail/dtypes.hpp>
};
constexpr const DTypeRow& row_of(DType dtype) {
  return dtype_rows[static_cast<std::size_t>(dtype)];
}

}  // namespace detail

/// The C++ types of elements: those of the table (dtypes.hpp), long long and unsigned long long.
/// What has the members and the layout of std::complex counts as that.
template <class T>
concept Element = detail::find_dtype<std::remove_cv_t<T>>()
.has_value();

/// The dtype of a C++ element type.
template <Element T>
inline constexpr DType dtype_of = *detail::find_dtype<std::remove_cv_t<T>>();

/// The C++ element type of a dtype.
template <DType dtype>
using ElementOf = typename detail::FindElement<dtype>::type;

namespace detail {
[[noreturn]] void not_real(DType dtype);
}

/// Calls `f` with a `std::type_identity<T>` of the C++ type of a real dtype and returns what it
/// returns; a std::logic_error for a complex one.
template <class F>
constexpr decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  case DType::dtype:                                                \
    return f(std::type_identity<type>{});
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed) \
  case DType::dtype:                                                  \
    break;
#include <ein/detail/dtypes.hpp>
  }
  detail::not_real(dtype);
}

/// The dtype's `text` of the table: "f64", ..., "bool".
constexpr std::string_view name(DType dtype) { return detail::row_of(dtype).text; }

/// The dtype of that `name`, if there is one.
std::optional<DType> parse_dtype(std::string_view name);

/// Whether it is a floating-point number, and no complex one.
constexpr bool is_floating(DType dtype) {
  return detail::row_of(dtype).kind == detail::NumberKind::floating;
}
/// Whether it is an integer or bool.
constexpr bool is_integral(DType dtype) {
  return detail::row_of(dtype).kind == detail::NumberKind::integral;
}
constexpr bool is_complex(DType dtype) {
  return detail::row_of(dtype).kind == detail::NumberKind::complex;
}
/// Whether gradients flow through it: floating-point and complex numbers.
constexpr bool has_gradients(DType dtype) { return !is_integral(dtype); }
/// The dtype of the parts of a complex number; of a real one, itself.
constexpr DType real_dtype(DType dtype) {
  return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
}
/// The complex dtype whose parts hold all numbers of `dtype`: c128 for f64, c64 for narrower floats
/// and integers, itself for a complex one.
constexpr DType complex_dtype(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::f64 ? DType::c128 : DType::c64;
}

/// Bytes per element.
constexpr std::size_t size_of(DType dtype) {
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  return parts * visit(real_dtype(dtype), []<class T>(std::type_identity<T>) { return sizeof(T); });
}
/// Whether it is bool or an integer without a sign.
constexpr bool is_unsigned(DType dtype) {
  return visit(real_dtype(dtype),
               []<class T>(std::type_identity<T>) { return std::is_unsigned_v<T>; });
}

/// The names of all dtypes, or of those that `wanted` holds for, as a sentence has them: "f64, f32
/// or f16".
std::string list_dtypes(bool (*wanted)(DType) = nullptr);

/// The limits of a floating dtype.
struct Finfo {
  int bits;                   ///< size of an element
  double max;                 ///< largest finite value
  double lowest;              ///< -max
  double eps;                 ///< distance from 1 to the next larger value
  double tiny;                ///< smallest positive normal value
  double smallest_subnormal;  ///< smallest positive value
  double resolution;          ///< 10^-d, d the decimal digits that eps carries: floor(-log10(eps))
};
/// The limits of `dtype`; an Error of kind `dtype` when it is integral.
Finfo finfo(DType dtype);

/// promote(a, b); none where that is an Error.
constexpr std::optional<DType> common_dtype(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool is_wide = real_dtype(a) == DType::f64 || real_dtype(b) == DType::f64;
    return is_wide ? DType::c128 : DType::c64;
  }
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a))
    return size_of(a) == size_of(b) ? DType::f32 : size_of(a) > size_of(b) ? a : b;
  if (a == DType::boolean || b == DType::boolean) return a == DType::boolean ? b : a;
  if (is_unsigned(a) == is_unsigned(b)) return size_of(a) >= size_of(b) ? a : b;
  const DType with_sign = is_unsigned(a) ? b : a, without = is_unsigned(a) ? a : b;
  // The least with a sign that has more bits than `without`.
  std::optional<DType> least;
  for (const DType dtype : real_dtypes) {
    if (is_floating(dtype) || is_unsigned(dtype) || size_of(dtype) <= size_of(without)) continue;
    if (!least || size_of(dtype) < size_of(*least)) least = dtype;
  }
  if (!least) return std::nullopt;
  return size_of(with_sign) >= size_of(*least) ? with_sign : *least;
}
/// The dtype of mixed elementwise arithmetic on `a` and `b`. Commutative. bool beside an integer
/// takes the integer's; integers take the narrowest that holds all of both, as NumPy does: u8 and
/// i8 make i16, u32 and i32 make i64. None holds u64 and an integer with a sign, which is an Error
/// of kind `dtype`. A float beside an integer keeps its dtype; f64 over f32 over 16-bit over 8-bit
/// floats; two different floats of 16 bits, or of 8, make f32. A complex dtype beside a real one is
/// c128 if that is f64, else keeps its own.
DType promote(DType a, DType b);

namespace detail {

/// A binary floating-point format that is stored but not computed with.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // without: the largest exponent is used by numbers, all ones alone is NaN

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  constexpr std::uint32_t magnitude_mask() const { return (1u << (bits() - 1)) - 1; }
  /// The infinity, or the NaN where there is none.
  constexpr std::uint32_t first_special() const {
    return has_infinity ? magnitude_mask() - mantissa_mask() : magnitude_mask();
  }
  /// What a value too large becomes: infinity, or the largest number where there is none.
  constexpr std::uint32_t overflow() const { return first_special() - (has_infinity ? 0 : 1); }
  constexpr std::uint32_t quiet_bit() const { return 1u << (mantissa_bits - 1); }
};

inline constexpr FloatFormat binary32{8, 23, true};

template <class T>
inline constexpr FloatFormat format_of{};
template <>
inline constexpr FloatFormat format_of<f16>{5, 10, true};
template <>
inline constexpr FloatFormat format_of<bf16>{8, 7, true};
template <>
inline constexpr FloatFormat format_of<f8e4m3>{4, 3, false};
template <>
inline constexpr FloatFormat format_of<f8e5m2>{5, 2, true};

template <class T>
inline constexpr bool is_stored_float = format_of<T>.mantissa_bits != 0;

/// The bits of `x` (float or double) rounded once, to nearest even, to a narrower format. Free of
/// branches, so that loops over it become vector code.
template <FloatFormat format, class Wide>
constexpr std::uint32_t round_to(Wide x) {
  using Bits = std::conditional_t<sizeof(Wide) == 4, std::uint32_t, std::uint64_t>;
  constexpr int wide_mantissa = std::numeric_limits<Wide>::digits - 1;
  constexpr int wide_bias = std::numeric_limits<Wide>::max_exponent - 1;
  constexpr int shift = wide_mantissa - format.mantissa_bits;
  constexpr Bits wide_infinity = Bits{2 * wide_bias + 1} << wide_mantissa;

  const Bits bits = std::bit_cast<Bits>(x);
  const Bits sign = bits >> (8 * sizeof(Bits) - 1);
  const Bits magnitude = bits & (~Bits{0} >> 1);

  // The exponent's bias changed and the mantissa's tail rounded; a carry may run into the exponent.
  constexpr Bits rebias = Bits(wide_bias - format.bias()) << wide_mantissa;
  const Bits rebiased = magnitude - rebias;
  Bits result = (rebiased + ((Bits{1} << (shift - 1)) - 1) + ((rebiased >> shift) & 1)) >> shift;

  if constexpr (rebias != 0) {
    // Below the smallest normal value the addition of a power of two whose last place is the
    // format's smallest subnormal does the rounding. Larger values only ride along; they are
    // clamped because the addition of a NaN is no constant expression.
    constexpr Bits anchor = Bits(wide_bias + 1 - format.bias() + shift) << wide_mantissa;
    constexpr Bits smallest_normal = rebias + (Bits{1} << wide_mantissa);
    const Bits lesser = magnitude < smallest_normal ? magnitude : smallest_normal;
    const Bits subnormal =
        std::bit_cast<Bits>(std::bit_cast<Wide>(lesser) + std::bit_cast<Wide>(anchor)) - anchor;
    result = magnitude < smallest_normal ? subnormal : result;
  }
  result = result < format.overflow() ? result : Bits{format.overflow()};

  const Bits nan =
      format.first_special() | format.quiet_bit() | ((magnitude >> shift) & format.mantissa_mask());
  result = magnitude > wide_infinity ? nan : result;
  return static_cast<std::uint32_t>(result | (sign << (format.bits() - 1)));
}

/// The exact value of the number with these bits; a NaN is made quiet. Free of branches as well.
template <FloatFormat format>
constexpr float expand(std::uint32_t bits) {
  constexpr int shift = 23 - format.mantissa_bits;
  const std::uint32_t sign = (bits >> (format.bits() - 1)) << 31;
  const std::uint32_t magnitude = bits & format.magnitude_mask();
  std::uint32_t result = magnitude << shift;
  if constexpr (format.bias() != 127) {
    // A subnormal takes the exponent of the smallest normal value, which is then subtracted. The
    // subtraction (of zero otherwise) happens always: GCC makes no vector code of a branch
    // around it.
    constexpr auto smallest_normal = std::uint32_t(128 - format.bias()) << 23;
    const bool is_subnormal = magnitude <= format.mantissa_mask();
    result += smallest_normal - (is_subnormal ? 0u : 1u << 23);
    const std::uint32_t excess = is_subnormal ? smallest_normal : 0u;
    result =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(result) - std::bit_cast<float>(excess));
  }
  result |= magnitude >= format.first_special() ? 0x7f800000u : 0u;
  result |= magnitude > format.first_special() ? 0x00400000u : 0u;
  return std::bit_cast<float>(result | sign);
}

/// Truncated toward zero; the nearest limit where out of range; 0 for NaN.
template <class To, class From>
constexpr To truncate_to(From x) {
  constexpr From low = static_cast<From>((std::numeric_limits<To>::min)());
  constexpr From beyond = static_cast<From>((std::numeric_limits<To>::max)() / 2 + 1) * 2;
  const bool in_range = x >= low && x < beyond;
  To result = static_cast<To>(in_range ? x : From{0});
  result = x >= beyond ? (std::numeric_limits<To>::max)() : result;
  return x < low ? (std::numeric_limits<To>::min)() : result;
}

}  // namespace detail

/// `x` as another element type.
/// - To a float: the nearest value, ties to even, rounded once (an i64 on its way to a 16- or 8-bit
///   float is rounded to f64 first). Too large becomes infinity; f8e4m3, which has none, saturates
///   to ±448, infinities too (the saturating mode of the OFP8 specification). NaN stays a NaN:
///   quiet, with its sign and the leading bits of its payload.
/// - Float to integer: truncated toward zero; out of range the nearest limit; 0 for NaN.
/// - Integer to integer: modulo 2^bits.
/// - To bool: x != 0, so NaN is true. From bool: 0 or 1.
/// The floating-point environment is taken to be the default one, rounding to nearest.
template <Element To, Element From>
constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (detail::is_stored_float<From>) {
    return convert<To>(detail::expand<detail::format_of<From>>(x.bits));
  } else if constexpr (detail::is_stored_float<To>) {
    using Wide = std::conditional_t<std::is_same_v<From, float>, float, double>;
    constexpr auto format = detail::format_of<To>;
    return To{static_cast<decltype(To::bits)>(detail::round_to<format>(static_cast<Wide>(x)))};
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return detail::truncate_to<To>(x);
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    // A constant expression may not overflow; the machine's conversion gives infinity.
    if (std::is_constant_evaluated())
      return std::bit_cast<float>(detail::round_to<detail::binary32>(x));
    return static_cast<float>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace ein
