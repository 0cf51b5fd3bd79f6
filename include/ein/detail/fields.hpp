// The fields of a struct in one list, from which follows what has to know all of them.
#pragma once

#include <ein/compiler.hpp>

#include <type_traits>

namespace ein::detail {

/// In a struct: all of its fields, in their order. What lacks one does not compile. with_fields(x,
/// f) calls f with all of them, of a constant x with constant ones.
#define EIN_FIELDS(Struct, ...)                                             \
  template <class Self, class F>                                            \
  requires std::is_same_v<std::remove_const_t<Self>, Struct>                \
  friend constexpr decltype(auto) with_fields(Self& self_, const F& use_) { \
    auto& [__VA_ARGS__] = self_;                                            \
    return use_(__VA_ARGS__);                                               \
  }

template <class T>
concept HasFields = requires(T& x) {
  with_fields(x, [](auto&...) {});
};

/// Calls f with each of them.
template <HasFields T, class F>
constexpr void for_each_field(T& x, const F& f) {
  with_fields(x, [&](auto&... fields) { (f(fields), ...); });
}

}  // namespace ein::detail
