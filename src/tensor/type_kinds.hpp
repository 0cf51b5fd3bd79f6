// Of which kind a type of the standard library is, for what walks over fields.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ein::detail {

template <class T>
inline constexpr bool is_unique_pointer = false;
template <class T>
inline constexpr bool is_unique_pointer<std::unique_ptr<T>> = true;
template <class T>
inline constexpr bool is_shared_pointer = false;
template <class T>
inline constexpr bool is_shared_pointer<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;

}  // namespace ein::detail
