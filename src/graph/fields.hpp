// What follows from the fields of structs (EIN_FIELDS): whether two are equal, words of a key, and
// each part of one kind, however deep it lies.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <ein/detail/fields.hpp>
#include <ein/scalar_expr.hpp>
#include <ein/size.hpp>
#include "tensor/type_kinds.hpp"

namespace ein {
namespace detail {

template <class T>
concept Several = std::ranges::range<T> && !std::is_same_v<T, std::string>;

template <class T>
bool equal_field(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Size>) {
    return always_equal(a, b);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else if constexpr (Several<T>) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return equal_field(x, y); });
  } else {
    return a == b;
  }
}

}  // namespace detail

/// Whether all fields are equal: sizes for all lengths, floating-point numbers bit for bit.
template <detail::HasFields T>
bool equal_fields(const T& a, const T& b) {
  return with_fields(a, [&](const auto&... of_a) {
    return with_fields(
        b, [&](const auto&... of_b) { return (detail::equal_field(of_a, of_b) && ...); });
  });
}

/// Calls f with each of the `Parts` in x: x itself, or what its fields, their elements and so on
/// hold. What is shared is copied first if x may be changed.
template <class... Parts, class T, class F>
void for_each_of(T& x, const F& f) {
  using Of = std::remove_const_t<T>;
  if constexpr ((std::is_same_v<Of, Parts> || ...)) {
    f(x);
  } else if constexpr (detail::is_optional<Of>) {
    if (x) for_each_of<Parts...>(*x, f);
  } else if constexpr (detail::is_variant<Of>) {
    std::visit([&](auto& form) { for_each_of<Parts...>(form, f); }, x);
  } else if constexpr (detail::is_shared_pointer<Of>) {
    if (!x) return;
    if constexpr (std::is_const_v<T>) {
      for_each_of<Parts...>(*x, f);
    } else {
      auto copy = std::make_shared<std::remove_const_t<typename Of::element_type>>(*x);
      for_each_of<Parts...>(*copy, f);
      x = std::move(copy);
    }
  } else if constexpr (detail::Several<Of>) {
    using Element = std::ranges::range_value_t<Of>;
    if constexpr (!std::is_arithmetic_v<Element> && !std::is_enum_v<Element>) {
      for (auto& element : x) for_each_of<Parts...>(element, f);
    }
  } else if constexpr (detail::HasFields<Of>) {
    detail::for_each_field(x, [&](auto& field) { for_each_of<Parts...>(field, f); });
  }
}

/// Appends words to a list; not inline, as fields are many.
class AppendTo {
 public:
  explicit AppendTo(std::vector<std::int64_t>& words) : words_(&words) {}
  void operator()(std::int64_t word) const;

 private:
  std::vector<std::int64_t>* words_;
};

/// Calls f with words of 64 bits that say all that x says. Names are left out: they are for people.
/// So is what has the type of one of `Left`.
template <class... Left, class T, class F>
void for_each_word(const T& x, const F& f) {
  if constexpr ((std::is_same_v<T, Left> || ...) || std::is_same_v<T, std::string>) {
    return;
  } else if constexpr (std::is_same_v<T, Size>) {
    f(x.word());
  } else if constexpr (std::is_same_v<T, ScalarStep>) {
    // In few words: keys of everyday calls have them.
    with_fields(
        x, [&](ScalarOp op, const auto& args, int which, double real, std::int64_t integer,
               Size size, std::uint64_t seed, std::uint64_t stream, bool of_run, bool short_form) {
          f(static_cast<std::int64_t>(op) | static_cast<std::int64_t>(of_run) << 32 |
            static_cast<std::int64_t>(short_form) << 33);
          for (const int arg : args) f(std::int64_t{arg});
          f(std::int64_t{which});
          f(std::bit_cast<std::int64_t>(real));
          if (op == ScalarOp::size) f(size.word());
          f(integer);
          f(static_cast<std::int64_t>(seed));
          f(static_cast<std::int64_t>(stream));
        });
  } else if constexpr (std::is_same_v<T, double>) {
    f(std::bit_cast<std::int64_t>(x));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    f(static_cast<std::int64_t>(x));
  } else if constexpr (detail::is_optional<T>) {
    f(std::int64_t{x.has_value()});
    if (x) for_each_word<Left...>(*x, f);
  } else if constexpr (detail::is_shared_pointer<T>) {
    f(std::int64_t{x != nullptr});
    if (x) for_each_word<Left...>(*x, f);
  } else if constexpr (detail::is_variant<T>) {
    f(static_cast<std::int64_t>(x.index()));
    std::visit([&](const auto& form) { for_each_word<Left...>(form, f); }, x);
  } else if constexpr (std::is_array_v<T>) {
    for (const auto& element : x) for_each_word<Left...>(element, f);
  } else if constexpr (detail::Several<T>) {
    f(static_cast<std::int64_t>(std::ranges::size(x)));
    for (const auto& element : x) for_each_word<Left...>(element, f);
  } else {
    detail::for_each_field(x, [&](const auto& field) { for_each_word<Left...>(field, f); });
  }
}

}  // namespace ein
