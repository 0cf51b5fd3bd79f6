// Size: how many elements an axis has: a number, or a formula of sizes that only a call knows.
#pragma once

#include <ein/compiler.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ein {

class Size;

namespace detail {
// The slow path: at least one operand is a formula.
Size sum(Size a, Size b);
Size difference(Size a, Size b);
Size product(Size a, Size b);
Size quotient(Size a, Size b);
bool is_less(Size a, Size b);
bool is_equal(Size a, Size b);
std::int64_t number_of(Size formula);

template <class T>
concept IntegerNumber = std::integral<T> && !std::same_as<T, bool>;
}  // namespace detail

/// A size, stride or offset. In eager code it is a number and converts to one. In a function that
/// ein::compile traces for any length it may be a formula of named sizes, such as 64·s + 1, with
/// which one can compute: +, -, *, and / and % as of std::int64_t. A comparison answers for the
/// lengths of the call that is traced; what was compiled is used for other lengths with the same
/// answers only. To read a formula as a number is an Error of kind `value`.
class Size {
 public:
  constexpr Size() = default;
  /// Numbers from -2^62 to -2^62 + 2^32 become one less: no size, stride or offset is among them.
  constexpr Size(detail::IntegerNumber auto number) : word_(static_cast<std::int64_t>(number)) {
    if (!is_number()) word_ = first_formula - 1;
  }
  /// The size of this name.
  static Size named(std::string_view name);

  constexpr bool is_number() const {
    return static_cast<std::uint64_t>(word_) - static_cast<std::uint64_t>(first_formula) >=
           formulas;
  }
  constexpr operator std::int64_t() const { return is_number() ? word_ : detail::number_of(*this); }
  /// A number of its own for each formula, and for each number itself.
  constexpr std::int64_t word() const { return word_; }
  static constexpr Size of_word(std::int64_t word) {
    Size size;
    size.word_ = word;
    return size;
  }

  friend constexpr Size operator+(Size a, Size b) {
    return are_numbers(a, b) ? Size(a.word_ + b.word_) : detail::sum(a, b);
  }
  friend constexpr Size operator*(Size a, Size b) {
    return are_numbers(a, b) ? Size(a.word_ * b.word_) : detail::product(a, b);
  }
  friend constexpr Size operator-(Size a, Size b) {
    return are_numbers(a, b) ? Size(a.word_ - b.word_) : detail::difference(a, b);
  }
  friend constexpr Size operator/(Size a, Size b) {
    return are_numbers(a, b) ? Size(a.word_ / b.word_) : detail::quotient(a, b);
  }
  friend constexpr Size operator%(Size a, Size b) {
    return are_numbers(a, b) ? Size(a.word_ % b.word_) : a - b * detail::quotient(a, b);
  }
  constexpr Size operator-() const { return Size(0) - *this; }
  friend constexpr bool operator==(Size a, Size b) {
    return a.word_ == b.word_ || (!are_numbers(a, b) && detail::is_equal(a, b));
  }
  friend constexpr bool operator<(Size a, Size b) {
    return are_numbers(a, b) ? a.word_ < b.word_ : detail::is_less(a, b);
  }
  friend constexpr bool operator>(Size a, Size b) { return b < a; }
  friend constexpr bool operator<=(Size a, Size b) { return !(b < a); }
  friend constexpr bool operator>=(Size a, Size b) { return !(a < b); }

  // Beside numbers of other types: without these their conversions to and from a Size would be
  // equally good.
  friend constexpr Size operator+(Size a, detail::IntegerNumber auto b) { return a + Size(b); }
  friend constexpr Size operator+(detail::IntegerNumber auto a, Size b) { return Size(a) + b; }
  friend constexpr Size operator-(Size a, detail::IntegerNumber auto b) { return a - Size(b); }
  friend constexpr Size operator-(detail::IntegerNumber auto a, Size b) { return Size(a) - b; }
  friend constexpr Size operator*(Size a, detail::IntegerNumber auto b) { return a * Size(b); }
  friend constexpr Size operator*(detail::IntegerNumber auto a, Size b) { return Size(a) * b; }
  friend constexpr Size operator/(Size a, detail::IntegerNumber auto b) { return a / Size(b); }
  friend constexpr Size operator/(detail::IntegerNumber auto a, Size b) { return Size(a) / b; }
  friend constexpr Size operator%(Size a, detail::IntegerNumber auto b) { return a % Size(b); }
  friend constexpr Size operator%(detail::IntegerNumber auto a, Size b) { return Size(a) % b; }
  friend constexpr bool operator==(Size a, detail::IntegerNumber auto b) { return a == Size(b); }
  friend constexpr bool operator<(Size a, detail::IntegerNumber auto b) { return a < Size(b); }
  friend constexpr bool operator<(detail::IntegerNumber auto a, Size b) { return Size(a) < b; }
  friend constexpr bool operator>(Size a, detail::IntegerNumber auto b) { return a > Size(b); }
  friend constexpr bool operator>(detail::IntegerNumber auto a, Size b) { return Size(a) > b; }
  friend constexpr bool operator<=(Size a, detail::IntegerNumber auto b) { return a <= Size(b); }
  friend constexpr bool operator<=(detail::IntegerNumber auto a, Size b) { return Size(a) <= b; }
  friend constexpr bool operator>=(Size a, detail::IntegerNumber auto b) { return a >= Size(b); }
  friend constexpr bool operator>=(detail::IntegerNumber auto a, Size b) { return Size(a) >= b; }
  constexpr Size& operator+=(Size b) { return *this = *this + b; }
  constexpr Size& operator-=(Size b) { return *this = *this - b; }
  constexpr Size& operator*=(Size b) { return *this = *this * b; }
  constexpr Size& operator/=(Size b) { return *this = *this / b; }
  constexpr Size& operator%=(Size b) { return *this = *this % b; }

 private:
  static constexpr bool are_numbers(Size a, Size b) { return a.is_number() && b.is_number(); }
  friend struct FormulaWords;
  /// The words of formulas.
  static constexpr std::int64_t first_formula = -(std::int64_t{1} << 62);
  static constexpr std::uint64_t formulas = std::uint64_t{1} << 32;

  std::int64_t word_ = 0;
};

namespace detail {
/// A size that a type says.
template <std::int64_t Number>
struct StaticSize : std::integral_constant<std::int64_t, Number> {
  constexpr operator Size() const { return Number; }
};
}  // namespace detail

/// Whether two sizes are equal for all lengths. That asks nothing: it makes no guard.
constexpr bool always_equal(Size a, Size b) { return a.word() == b.word(); }
/// Whether it is 1 for all lengths.
constexpr bool is_one(Size size) { return always_equal(size, 1); }

/// A number, or a formula such as `64·s + 1`; while a function is traced, with what it is then:
/// `s = 7`.
std::string to_string(Size size);

/// Whether a · b, or a + b, exceeds 63 bits; `result` is set otherwise. Of formulas it is
/// false; their values are checked at the call.
constexpr bool multiply_overflows(Size a, Size b, Size& result) {
  if (a.is_number() && b.is_number()) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a.word(), b.word(), &product)) return true;
    result = product;
    return false;
  }
  result = a * b;
  return false;
}
constexpr bool add_overflows(Size a, Size b, Size& result) {
  if (a.is_number() && b.is_number()) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.word(), b.word(), &sum)) return true;
    result = sum;
    return false;
  }
  result = a + b;
  return false;
}

}  // namespace ein
