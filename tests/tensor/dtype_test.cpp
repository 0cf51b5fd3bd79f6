// Conversions are checked against tables of every representable value, built here from the formats'
// definitions with ldexp, and against midpoints between neighbours in that table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/error.hpp>

#include "tensor/convert.hpp"

namespace ein {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t seed = 20240229;

template <class T>
T from_bits(unsigned bits) {
  return T{static_cast<decltype(T::bits)>(bits)};
}

// --- Names, sizes, traits ---

static_assert(dtype_of<double> == DType::f64 && dtype_of<float> == DType::f32);
static_assert(dtype_of<f16> == DType::f16 && dtype_of<bf16> == DType::bf16);
static_assert(dtype_of<f8e4m3> == DType::f8e4m3 && dtype_of<f8e5m2> == DType::f8e5m2);
static_assert(dtype_of<std::int64_t> == DType::i64 && dtype_of<long long> == DType::i64);
static_assert(dtype_of<std::int32_t> == DType::i32 && dtype_of<std::uint8_t> == DType::u8);
static_assert(dtype_of<bool> == DType::boolean && dtype_of<const float> == DType::f32);
static_assert(dtype_of<std::int8_t> == DType::i8 && dtype_of<std::int16_t> == DType::i16);
static_assert(dtype_of<std::uint16_t> == DType::u16 && dtype_of<std::uint32_t> == DType::u32);
static_assert(dtype_of<std::uint64_t> == DType::u64 && dtype_of<unsigned long long> == DType::u64);
static_assert(!Element<char> && !Element<long double> && !Element<float*>);
static_assert(Element<f16> && Element<const std::int64_t>);

TEST(dtype, sizes_and_names) {
  const std::array<std::size_t, 15> sizes = {8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 8, 4, 2, 1, 1};
  const std::array<std::string, 15> names = {"f64",    "f32", "f16", "bf16", "f8e4m3",
                                             "f8e5m2", "i64", "i32", "i16",  "i8",
                                             "u64",    "u32", "u16", "u8",   "bool"};
  ASSERT_EQ(std::size(real_dtypes), names.size());
  for (std::size_t i = 0; i < std::size(real_dtypes); ++i) {
    const DType dtype = real_dtypes[i];
    EXPECT_EQ(size_of(dtype), sizes[i]);
    EXPECT_EQ(name(dtype), names[i]);
    EXPECT_EQ(parse_dtype(names[i]), dtype);
    EXPECT_EQ(is_floating(dtype), i < 6) << names[i];
    EXPECT_EQ(is_integral(dtype), i >= 6) << names[i];
    EXPECT_EQ(is_unsigned(dtype), i >= 10) << names[i];
  }
  for (const char* text : {"", "f3", "f322", "F32", " f32", "float", "boolean", "i128"})
    EXPECT_EQ(parse_dtype(text), std::nullopt) << text;
  EXPECT_EQ(list_dtypes(is_complex), "c64 or c128");
}

TEST(dtype, visit_passes_the_type_and_returns_the_result) {
  for (const DType dtype : real_dtypes) {
    EXPECT_EQ(dtype, visit(dtype, []<class T>(std::type_identity<T>) { return dtype_of<T>; }));
  }
  int target = 0;
  visit(DType::u8, [&](auto) -> int& { return target; }) = 5;
  EXPECT_EQ(target, 5);
}

// --- Tables of representable values ---

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool ieee;  // the all-ones exponent is infinity and NaN; otherwise only the all-ones code is NaN
};
template <class T>
constexpr Format format{};
template <>
constexpr Format format<f16>{5, 10, true};
template <>
constexpr Format format<bf16>{8, 7, true};
template <>
constexpr Format format<f8e4m3>{4, 3, false};
template <>
constexpr Format format<f8e5m2>{5, 2, true};

/// The value of a code by the formats' definition: (-1)^s · 2^(e-bias) · 1.m, or 2^(1-bias) · 0.m.
template <class T>
double value_of(unsigned code) {
  constexpr Format f = format<T>;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int mantissa = static_cast<int>(code & ((1u << f.mantissa_bits) - 1));
  const int ones = (1 << f.exponent_bits) - 1;
  const int exponent = static_cast<int>(code >> f.mantissa_bits) & ones;
  const bool negative = (code >> (f.mantissa_bits + f.exponent_bits)) & 1;
  double value;
  if (f.ieee && exponent == ones) {
    value = mantissa == 0 ? infinity : nan;
  } else if (!f.ieee && exponent == ones && mantissa == (1 << f.mantissa_bits) - 1) {
    value = nan;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - f.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1 << f.mantissa_bits), exponent - bias - f.mantissa_bits);
  }
  return negative ? -value : value;
}

/// The finite values of the codes 0, 1, 2, ..., which is ascending order.
template <class T>
const std::vector<double>& finite_values() {
  static const std::vector<double> values = [] {
    std::vector<double> result;
    for (unsigned code = 0; std::isfinite(value_of<T>(code)); ++code)
      result.push_back(value_of<T>(code));
    return result;
  }();
  return values;
}

/// The code nearest to `x`, which is not NaN, by search in the table. A midpoint of neighbours has
/// one bit more than they have, so it is exact in double.
template <class T>
unsigned nearest_code(double x) {
  const auto& values = finite_values<T>();
  const auto last = static_cast<unsigned>(values.size()) - 1;
  const unsigned sign = std::signbit(x) ? 1u << (8 * sizeof(T) - 1) : 0;
  const double magnitude = std::abs(x);
  const unsigned above = static_cast<unsigned>(
      std::lower_bound(values.begin(), values.end(), magnitude) - values.begin());
  if (above > last) {
    if (!format<T>.ieee) return sign | last;
    // As if the exponent range went on: the next value after the last is one step further.
    const double midpoint = values[last] + (values[last] - values[last - 1]) / 2;
    return sign | (magnitude < midpoint ? last : last + 1);
  }
  if (values[above] == magnitude) return sign | above;
  const double midpoint = (values[above - 1] + values[above]) / 2;
  if (magnitude < midpoint) return sign | (above - 1);
  if (magnitude > midpoint) return sign | above;
  return sign | (above % 2 == 0 ? above : above - 1);
}

template <class T>
class NarrowFloat : public testing::Test {};
using NarrowFloats = testing::Types<f16, bf16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(NarrowFloat, NarrowFloats);

TYPED_TEST(NarrowFloat, every_pattern_has_its_value_and_round_trips) {
  using T = TypeParam;
  const unsigned quiet_bit = 1u << (format<T>.mantissa_bits - 1);
  for (unsigned code = 0; code < 1u << (8 * sizeof(T)); ++code) {
    const T x = from_bits<T>(code);
    const double wide = convert<double>(x);
    const double expected = value_of<T>(code);
    if (std::isnan(expected)) {
      // A signalling NaN becomes the quiet one of the same sign and payload.
      EXPECT_TRUE(std::isnan(wide)) << code;
      EXPECT_TRUE(std::isnan(convert<float>(x))) << code;
      EXPECT_EQ(convert<T>(wide).bits, code | quiet_bit) << code;
      EXPECT_EQ(convert<T>(convert<float>(x)).bits, code | quiet_bit) << code;
    } else if (std::isinf(expected) || wide != 0) {
      EXPECT_EQ(wide, expected) << code;
      EXPECT_EQ(convert<float>(x), static_cast<float>(expected)) << code;
      EXPECT_EQ(convert<T>(wide).bits, code);
      EXPECT_EQ(convert<T>(convert<float>(x)).bits, code);
    } else {
      EXPECT_EQ(expected, 0) << code;
      EXPECT_EQ(std::signbit(wide), std::signbit(expected)) << code;
      EXPECT_EQ(convert<T>(wide).bits, code);
      EXPECT_EQ(convert<T>(convert<float>(x)).bits, code);
    }
  }
}

/// Checks the conversion of ±x from double and, where x is a float, from float.
template <class T>
void expect_nearest(double x) {
  for (const double v : {x, -x}) {
    ASSERT_EQ(convert<T>(v).bits, nearest_code<T>(v)) << std::hexfloat << v;
    const auto f = static_cast<float>(v);
    if (f == v) {
      ASSERT_EQ(convert<T>(f).bits, nearest_code<T>(v)) << std::hexfloat << v;
    }
  }
}

TYPED_TEST(NarrowFloat, rounds_to_nearest_even_around_every_value_and_midpoint) {
  using T = TypeParam;
  const auto& values = finite_values<T>();
  std::vector<double> points;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    points.push_back(values[i]);
    points.push_back((values[i] + values[i + 1]) / 2);
  }
  points.push_back(values.back());
  points.push_back(values.back() + (values.back() - values[values.size() - 2]) / 2);
  for (const double point : points) {
    const auto narrow = static_cast<float>(point);
    expect_nearest<T>(point);
    expect_nearest<T>(std::nextafter(point, infinity));
    expect_nearest<T>(std::nextafter(narrow, std::numeric_limits<float>::infinity()));
    if (point > 0) {
      expect_nearest<T>(std::nextafter(point, 0.0));
      expect_nearest<T>(std::nextafter(narrow, 0.0f));
    }
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(NarrowFloat, rounds_random_values_to_nearest_even) {
  using T = TypeParam;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto& values = finite_values<T>();
  std::uniform_real_distribution<double> exponent(std::log2(values[1]) - 4,
                                                  std::log2(values.back()) + 3);
  for (int i = 0; i < 300'000; ++i) {
    const double in_range = std::exp2(exponent(random));
    const double any = std::bit_cast<double>(random());
    const float any_float = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    expect_nearest<T>(in_range);
    expect_nearest<T>(static_cast<float>(in_range));
    if (!std::isnan(any)) expect_nearest<T>(any);
    if (!std::isnan(any_float)) expect_nearest<T>(any_float);
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(NarrowFloat, extremes) {
  using T = TypeParam;
  for (const double x :
       {0.0, 5e-324, 1e-310, std::numeric_limits<double>::min(), 1e-45, 1e-40,
        double{std::numeric_limits<float>::min()}, double{std::numeric_limits<float>::max()}, 1e39,
        1e300, std::numeric_limits<double>::max(), infinity})
    expect_nearest<T>(x);
  const float quiet = std::numeric_limits<float>::quiet_NaN();
  for (const T x : {convert<T>(nan), convert<T>(-nan), convert<T>(quiet), convert<T>(-quiet),
                    convert<T>(std::bit_cast<float>(0x7f800001u)),
                    convert<T>(std::bit_cast<double>(std::uint64_t{0x7ff0000000000001})),
                    convert<T>(std::bit_cast<double>(~std::uint64_t{0}))})
    EXPECT_TRUE(std::isnan(value_of<T>(x.bits))) << x.bits;
  EXPECT_EQ(convert<T>(nan).bits >> (8 * sizeof(T) - 1), 0);
  EXPECT_EQ(convert<T>(-nan).bits >> (8 * sizeof(T) - 1), 1);
}

// --- Named values ---

template <class T>
constexpr double rounded(double x) {
  return convert<double>(convert<T>(x));
}

// Constant expressions give what the machine gives.
static_assert(rounded<f16>(1e-8) == 0);
static_assert(rounded<bf16>(1e-8) == 1.0011717677116394e-08);
static_assert(rounded<f16>(70000) == infinity);
static_assert(convert<f16>(nan).bits == 0x7e00 && convert<bf16>(-nan).bits == 0xffc0);
static_assert(rounded<f8e5m2>(nan) != rounded<f8e5m2>(nan));
static_assert(rounded<f8e4m3>(-infinity) == -448 && rounded<f8e5m2>(1e9) == infinity);
static_assert(convert<float>(1e300) == std::numeric_limits<float>::infinity());
static_assert(convert<float>(0.1) == 0.1f && convert<float>(-1e-40) == -1e-40f);
static_assert(convert<float>(1e-60) == 0 && convert<float>(16777217.0) == 16777216.0f);
static_assert(convert<std::int32_t>(convert<f16>(-2.75)) == -2);

TEST(dtype, known_values) {
  EXPECT_EQ(rounded<f16>(1e-8), 0);
  EXPECT_EQ(rounded<bf16>(1e-8), 1.0011717677116394e-08);
  EXPECT_EQ(rounded<f16>(70000), infinity);
  EXPECT_EQ(rounded<f16>(65519.999), 65504);
  EXPECT_EQ(rounded<f16>(65520), infinity);
  EXPECT_EQ(rounded<f8e4m3>(448), 448);
  EXPECT_EQ(rounded<f8e4m3>(1e6), 448);
  EXPECT_EQ(rounded<f8e4m3>(-infinity), -448);
  EXPECT_EQ(rounded<f8e5m2>(57344), 57344);
  EXPECT_EQ(rounded<f8e5m2>(61440), infinity);
  EXPECT_EQ(rounded<f8e5m2>(-infinity), -infinity);
  EXPECT_EQ(convert<f16>(1.0).bits, 0x3c00);
  EXPECT_EQ(convert<bf16>(1.0).bits, 0x3f80);
  EXPECT_EQ(convert<f8e4m3>(1.0).bits, 0x38);
  EXPECT_EQ(convert<f8e5m2>(1.0).bits, 0x3c);
  EXPECT_EQ(convert<float>(1e300), std::numeric_limits<float>::infinity());
}

TEST(dtype, a_double_is_rounded_once) {
  // A hair above the midpoint of two neighbours; in f32 it is the midpoint, which ties to even.
  const double x = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(rounded<f16>(x), 1 + 0x1p-10);
  EXPECT_EQ(convert<double>(convert<f16>(convert<float>(x))), 1);
  EXPECT_EQ(rounded<bf16>(1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(rounded<f8e4m3>(1 + 0x1p-4 + 0x1p-40), 1 + 0x1p-3);
  EXPECT_EQ(rounded<f8e5m2>(1 + 0x1p-3 + 0x1p-40), 1 + 0x1p-2);
}

TEST(dtype, between_narrow_floats) {
  EXPECT_EQ(convert<bf16>(from_bits<f16>(0x7bff)).bits, convert<bf16>(65504.0).bits);
  EXPECT_EQ(convert<f8e4m3>(convert<f8e5m2>(57344.0)).bits, 0x7e);
  EXPECT_EQ(convert<f8e4m3>(from_bits<f8e5m2>(0xfc)).bits, 0xfe);  // -inf
  EXPECT_EQ(convert<f8e5m2>(convert<f8e4m3>(448.0)).bits, convert<f8e5m2>(448.0).bits);
  EXPECT_EQ(convert<f16>(from_bits<f8e4m3>(0x7f)).bits & 0x7e00, 0x7e00);  // NaN
}

// --- Integers and booleans ---

template <class From>
void expect_truncation() {
  const auto to = [](double x) { return convert<std::int32_t>(convert<From>(x)); };
  EXPECT_EQ(to(2.5), 2);
  EXPECT_EQ(to(-2.5), -2);
  EXPECT_EQ(to(-0.25), 0);
  EXPECT_EQ(to(nan), 0);
  EXPECT_EQ(convert<std::uint8_t>(convert<From>(-3.0)), 0);
  EXPECT_EQ(convert<std::uint8_t>(convert<From>(-0.5)), 0);
  EXPECT_EQ(convert<std::uint8_t>(convert<From>(224.0)), 224);
  EXPECT_EQ(convert<std::uint8_t>(convert<From>(256.0)), 255);
  EXPECT_EQ(convert<std::uint8_t>(convert<From>(300.0)), 255);
  EXPECT_EQ(convert<std::uint8_t>(convert<From>(nan)), 0);
  EXPECT_EQ(convert<std::int64_t>(convert<From>(-7.0)), -7);
  EXPECT_TRUE(convert<bool>(convert<From>(0.5)));
  EXPECT_TRUE(convert<bool>(convert<From>(nan)));
  EXPECT_FALSE(convert<bool>(convert<From>(-0.0)));
  EXPECT_EQ(convert<double>(convert<From>(true)), 1);
  EXPECT_EQ(convert<double>(convert<From>(std::uint8_t{7})), 7);
  EXPECT_EQ(convert<double>(convert<From>(std::int64_t{-96})), -96);
}

TEST(dtype, floats_to_integers) {
  expect_truncation<double>();
  expect_truncation<float>();
  expect_truncation<f16>();
  expect_truncation<bf16>();
  expect_truncation<f8e4m3>();
  expect_truncation<f8e5m2>();
  constexpr auto max32 = std::numeric_limits<std::int32_t>::max();
  constexpr auto min32 = std::numeric_limits<std::int32_t>::min();
  constexpr auto max64 = std::numeric_limits<std::int64_t>::max();
  constexpr auto min64 = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(convert<std::int32_t>(2147483647.5), max32);
  EXPECT_EQ(convert<std::int32_t>(2147483646.5), max32 - 1);
  EXPECT_EQ(convert<std::int32_t>(2147483648.0), max32);
  EXPECT_EQ(convert<std::int32_t>(2147483648.0f), max32);
  EXPECT_EQ(convert<std::int32_t>(2147483520.0f), 2147483520);
  EXPECT_EQ(convert<std::int32_t>(-2147483648.5), min32);
  EXPECT_EQ(convert<std::int32_t>(-2147483647.5), min32 + 1);
  EXPECT_EQ(convert<std::int32_t>(-infinity), min32);
  EXPECT_EQ(convert<std::int64_t>(0x1p63), max64);
  EXPECT_EQ(convert<std::int64_t>(0x1p63f), max64);
  EXPECT_EQ(convert<std::int64_t>(0x1.fffffffffffffp62), 0x7ffffffffffffc00);
  EXPECT_EQ(convert<std::int64_t>(-0x1p63), min64);
  EXPECT_EQ(convert<std::int64_t>(-1e30), min64);
  EXPECT_EQ(convert<std::int64_t>(infinity), max64);
  EXPECT_EQ(convert<std::int64_t>(from_bits<f16>(0xfc00)), min64);
}

TEST(dtype, integers) {
  EXPECT_EQ(convert<std::uint8_t>(std::int32_t{257}), 1);
  EXPECT_EQ(convert<std::uint8_t>(std::int32_t{-1}), 255);
  EXPECT_EQ(convert<std::int32_t>(std::int64_t{0x1'8000'0000}), std::int32_t{-2147483647 - 1});
  EXPECT_EQ(convert<std::int64_t>(std::uint8_t{200}), 200);
  EXPECT_EQ(convert<std::int64_t>(std::int32_t{-5}), -5);
  EXPECT_TRUE(convert<bool>(std::int64_t{256}));
  EXPECT_FALSE(convert<bool>(std::int32_t{0}));
  EXPECT_EQ(convert<std::uint8_t>(true), 1);
  EXPECT_EQ(convert<float>(std::int64_t{16777217}), 16777216.0f);
  EXPECT_EQ(convert<double>(std::int64_t{9007199254740993}), 9007199254740992.0);
  EXPECT_EQ(convert<double>(convert<f16>(std::int64_t{65519})), 65504);
  EXPECT_EQ(convert<double>(convert<f16>(std::int32_t{65520})), infinity);
  EXPECT_EQ(convert<double>(convert<f8e4m3>(std::numeric_limits<std::int64_t>::min())), -448);
}

// --- Limits and promotion ---

void expect_finfo(DType dtype, const Finfo& expected) {
  const Finfo actual = finfo(dtype);
  EXPECT_EQ(actual.bits, expected.bits) << name(dtype);
  EXPECT_EQ(actual.max, expected.max) << name(dtype);
  EXPECT_EQ(actual.lowest, expected.lowest) << name(dtype);
  EXPECT_EQ(actual.eps, expected.eps) << name(dtype);
  EXPECT_EQ(actual.tiny, expected.tiny) << name(dtype);
  EXPECT_EQ(actual.smallest_subnormal, expected.smallest_subnormal) << name(dtype);
  EXPECT_EQ(actual.resolution, expected.resolution) << name(dtype);
}

template <class T>
Finfo native_finfo(double resolution) {
  using Limits = std::numeric_limits<T>;
  return {.bits = 8 * static_cast<int>(sizeof(T)),
          .max = Limits::max(),
          .lowest = Limits::lowest(),
          .eps = Limits::epsilon(),
          .tiny = Limits::min(),
          .smallest_subnormal = Limits::denorm_min(),
          .resolution = resolution};
}

/// From the table: the largest value, the smallest, the first with an exponent, and 1's successor.
template <class T>
Finfo table_finfo(double resolution) {
  const auto& values = finite_values<T>();
  const auto one = std::find(values.begin(), values.end(), 1.0);
  return {.bits = 8 * static_cast<int>(sizeof(T)),
          .max = values.back(),
          .lowest = -values.back(),
          .eps = *(one + 1) - 1,
          .tiny = values[std::size_t{1} << format<T>.mantissa_bits],
          .smallest_subnormal = values[1],
          .resolution = resolution};
}

TEST(dtype, finfo) {
  expect_finfo(DType::f64, native_finfo<double>(1e-15));
  expect_finfo(DType::f32, native_finfo<float>(1e-6));
  expect_finfo(DType::f16, table_finfo<f16>(1e-3));
  expect_finfo(DType::bf16, table_finfo<bf16>(1e-2));
  expect_finfo(DType::f8e4m3, table_finfo<f8e4m3>(1));
  expect_finfo(DType::f8e5m2, table_finfo<f8e5m2>(1));
  EXPECT_EQ(finfo(DType::f16).max, 65504);
  EXPECT_EQ(finfo(DType::f16).eps, 0.0009765625);
  EXPECT_NEAR(finfo(DType::f16).tiny, 6.10352e-05, 1e-10);
  EXPECT_NEAR(finfo(DType::bf16).max, 3.38953e38, 1e33);
  EXPECT_EQ(finfo(DType::bf16).eps, 0.0078125);
  EXPECT_NEAR(finfo(DType::bf16).tiny, 1.17549e-38, 1e-43);
  EXPECT_EQ(finfo(DType::f8e4m3).max, 448);
  EXPECT_EQ(finfo(DType::f8e5m2).max, 57344);
}

TEST(dtype, finfo_of_an_integer_is_an_error) {
  for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean}) {
    try {
      finfo(dtype);
      ADD_FAILURE() << name(dtype);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::dtype);
      EXPECT_NE(std::string(error.what()).find(name(dtype)), std::string::npos) << error.what();
    }
  }
}

TEST(dtype, promote) {
  // Of integers what numpy.promote_types gives, but for u64 beside a sign, where NumPy gives f64.
  const char* const rows[15] = {
      // f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool
      "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64",
      "f64 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32",
      "f64 f32 f16 f32 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16",
      "f64 f32 f32 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16",
      "f64 f32 f16 bf16 f8e4m3 f32 f8e4m3 f8e4m3 f8e4m3 f8e4m3 f8e4m3 f8e4m3 f8e4m3 f8e4m3 f8e4m3",
      "f64 f32 f16 bf16 f32 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i64 i64 i64 none i64 i64 i64 i64",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i32 i32 none i64 i32 i32 i32",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i16 none i64 i32 i16 i16",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 none i64 i32 i16 i8",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 none none none none u64 u64 u64 u64 u64",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i64 i64 i64 u64 u32 u32 u32 u32",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i32 i32 u64 u32 u16 u16 u16",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i16 u64 u32 u16 u8 u8",
      "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool",
  };
  for (std::size_t i = 0; i < std::size(real_dtypes); ++i) {
    std::string row;
    for (const DType b : real_dtypes) {
      if (!row.empty()) row += ' ';
      try {
        row += name(promote(real_dtypes[i], b));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::dtype);
        row += "none";
      }
    }
    EXPECT_EQ(row, rows[i]);
  }
}

// --- Bulk conversion ---

/// Random bits, with zeros, ones and small numbers among them.
template <class T>
std::vector<T> random_elements(std::size_t n, std::mt19937_64& random) {
  std::vector<T> result(n);
  for (T& x : result) {
    const std::uint64_t bits = random();
    const auto small = static_cast<std::int64_t>(random() % 1024) - 512;
    if (random() % 2 == 0) {
      std::memcpy(&x, &bits, sizeof x);
    } else if constexpr (std::is_floating_point_v<T>) {
      x = static_cast<T>(small) / 16;
    } else {
      x = static_cast<T>(small);
    }
  }
  return result;
}

/// Where element i of n lies, counted from the lowest address in use.
std::size_t position(std::size_t i, std::size_t n, std::ptrdiff_t stride) {
  const auto step = static_cast<std::size_t>(std::abs(stride));
  return stride < 0 ? (n - 1 - i) * step : i * step;
}

constexpr std::array<std::size_t, 5> counts = {1, 7, 64, 100, 1029};
constexpr std::array<std::ptrdiff_t, 6> strides = {1, 2, 5, 0, -1, -3};

template <class Wide>
class Bulk : public testing::Test {};
using WideTypes = testing::Types<float, double, std::int8_t, std::int16_t, std::int32_t,
                                 std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(Bulk, WideTypes);

TYPED_TEST(Bulk, load_equals_scalar_conversion) {
  using To = TypeParam;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const DType from : real_dtypes) {
    for (const std::size_t n : counts) {
      for (const std::ptrdiff_t stride : strides) {
        // One byte past an aligned address: nothing may rely on alignment.
        const std::size_t span = position(stride < 0 ? 0 : n - 1, n, stride) + 1;
        const std::vector<std::uint8_t> bytes =
            random_elements<std::uint8_t>(span * size_of(from) + 1, random);
        const std::uint8_t* lowest = bytes.data() + 1;
        std::vector<To> expected(n), actual(n);
        visit(from, [&]<class From>(std::type_identity<From>) {
          for (std::size_t i = 0; i < n; ++i) {
            const std::uint8_t* address = lowest + position(i, n, stride) * sizeof(From);
            if constexpr (std::is_same_v<From, bool>) {
              expected[i] = *address == 0 ? 0 : 1;
            } else {
              From element;
              std::memcpy(&element, address, sizeof element);
              expected[i] = convert<To>(element);
            }
          }
        });
        load_as(lowest + position(0, n, stride) * size_of(from), from, stride, actual.data(), n);
        ASSERT_EQ(std::memcmp(actual.data(), expected.data(), n * sizeof(To)), 0)
            << name(from) << " n " << n << " stride " << stride;
      }
    }
  }
}

TYPED_TEST(Bulk, load_of_every_narrow_pattern) {
  using To = TypeParam;
  for (const DType from : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    visit(from, [&]<class From>(std::type_identity<From>) {
      if constexpr (detail::is_stored_float<From>) {
        std::vector<From> source(std::size_t{1} << (8 * sizeof(From)));
        for (unsigned code = 0; code < source.size(); ++code) source[code] = from_bits<From>(code);
        std::vector<To> actual(source.size());
        load_as(source.data(), from, 1, actual.data(), source.size());
        for (unsigned code = 0; code < source.size(); ++code) {
          const To expected = convert<To>(source[code]);
          ASSERT_EQ(std::memcmp(&actual[code], &expected, sizeof expected), 0)
              << name(from) << " code " << code;
        }
      }
    });
  }
}

TYPED_TEST(Bulk, store_equals_scalar_conversion_and_leaves_the_gaps) {
  using From = TypeParam;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const DType to : real_dtypes) {
    for (const std::size_t n : counts) {
      for (const std::ptrdiff_t stride : strides) {
        const std::vector<From> source = random_elements<From>(n, random);
        const std::size_t span = position(stride < 0 ? 0 : n - 1, n, stride) + 1;
        std::vector<std::uint8_t> expected(span * size_of(to) + 9, 0xa5);
        std::vector<std::uint8_t> actual = expected;
        visit(to, [&]<class To>(std::type_identity<To>) {
          for (std::size_t i = 0; i < n; ++i) {
            const To element = convert<To>(source[i]);
            std::memcpy(expected.data() + 1 + position(i, n, stride) * sizeof(To), &element,
                        sizeof element);
          }
        });
        store_from(source.data(), n, actual.data() + 1 + position(0, n, stride) * size_of(to), to,
                   stride);
        ASSERT_EQ(actual, expected) << name(to) << " n " << n << " stride " << stride;
      }
    }
  }
}

TYPED_TEST(Bulk, nothing_of_nothing) {
  using T = TypeParam;
  for (const DType dtype : real_dtypes) {
    load_as(nullptr, dtype, 1, static_cast<T*>(nullptr), 0);
    store_from(static_cast<const T*>(nullptr), 0, nullptr, dtype, 1);
  }
}

}  // namespace
}  // namespace ein
