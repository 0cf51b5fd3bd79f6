// Axis sizes given beside a pattern: "heads"_a = 8, or ein::axis("heads", 8) for a name known at
// run time. Numbers in braces: "stride"_n = 2, or ein::number("stride", 2).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <ein/size.hpp>

namespace ein {

/// The name of an axis and its size, or of a number in braces, as an operation sees them.
struct AxisSize {
  std::string_view name;
  Size size = 0;
  bool is_number = false;
};

/// A string literal as a template argument.
template <std::size_t N>
struct FixedString {
  char text[N] = {};
  constexpr FixedString() = default;
  consteval FixedString(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

/// `"heads"_a = 8`: the name is part of the type.
template <FixedString Name>
struct NamedAxisSize {
  static constexpr std::string_view name() { return Name.view(); }
  Size size = 0;
  constexpr operator AxisSize() const { return {name(), size}; }
};

/// `"heads"_a = ein::size_c<8>`: the size is part of the type, too.
template <FixedString Name, std::int64_t Size>
struct StaticAxisSize {
  static constexpr std::string_view name() { return Name.view(); }
  static constexpr std::int64_t static_size = Size;
  constexpr operator AxisSize() const { return {name(), Size}; }
};
template <std::int64_t Size>
inline constexpr std::integral_constant<std::int64_t, Size> size_c{};

/// `"stride"_n = 2`: a number that braces name, maybe below 0.
template <FixedString Name>
struct NamedNumber {
  static constexpr std::string_view name() { return Name.view(); }
  static constexpr bool is_number = true;
  std::int64_t value = 0;
  constexpr operator AxisSize() const { return {name(), value, true}; }
};

/// `"stride"_n = ein::size_c<2>`: the number is part of the type, too.
template <FixedString Name, std::int64_t Value>
struct StaticNumber {
  static constexpr std::string_view name() { return Name.view(); }
  static constexpr bool is_number = true;
  static constexpr std::int64_t static_size = Value;
  constexpr operator AxisSize() const { return {name(), Value, true}; }
};
template <FixedString Name>
struct NumberName {
  constexpr NamedNumber<Name> operator=(std::integral auto value) const {
    return {static_cast<std::int64_t>(value)};
  }
  template <class T, T Value>
  constexpr StaticNumber<Name, Value> operator=(std::integral_constant<T, Value>) const {
    return {};
  }
};

template <FixedString Name>
struct AxisName {
  constexpr NamedAxisSize<Name> operator=(std::integral auto size) const {
    return {static_cast<std::int64_t>(size)};
  }
  constexpr NamedAxisSize<Name> operator=(Size size) const { return {size}; }
  template <class T, T Size>
  constexpr StaticAxisSize<Name, Size> operator=(std::integral_constant<T, Size>) const {
    return {};
  }
};

/// A size for an axis, or a number, whose name is known at run time only.
struct RuntimeAxisSize {
  std::string name;
  Size size = 0;
  bool is_number = false;
  operator AxisSize() const { return {name, size, is_number}; }
};
inline RuntimeAxisSize axis(std::string name, Size size) { return {std::move(name), size}; }
inline RuntimeAxisSize number(std::string name, std::int64_t value) {
  return {std::move(name), value, true};
}

template <class T>
concept AxisArgument = std::convertible_to<const T&, AxisSize>;

namespace literals {
template <FixedString Name>
constexpr AxisName<Name> operator""_a() {
  return {};
}
template <FixedString Name>
constexpr NumberName<Name> operator""_n() {
  return {};
}
}  // namespace literals

}  // namespace ein
