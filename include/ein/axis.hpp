// Axis sizes given beside a pattern: "heads"_a = 8, or ein::axis("heads", 8) for a name known at
// run time.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <ein/size.hpp>

namespace ein {

/// The name of an axis and its size, as an operation sees them.
struct AxisSize {
  std::string_view name;
  Size size = 0;
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

/// A size for an axis whose name is known at run time only.
struct RuntimeAxisSize {
  std::string name;
  Size size = 0;
  operator AxisSize() const { return {name, size}; }
};
inline RuntimeAxisSize axis(std::string name, Size size) { return {std::move(name), size}; }

template <class T>
concept AxisArgument = std::convertible_to<const T&, AxisSize>;

namespace literals {
template <FixedString Name>
constexpr AxisName<Name> operator""_a() {
  return {};
}
}  // namespace literals

}  // namespace ein
