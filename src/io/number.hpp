// Numbers in texts.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace ein::io {

/// The decimal number that `text` is, as "1.5" or "-2e9" in any locale; nothing if it is none or
/// does not fit; libraries disagree whether those nearer to 0 than 2.3e-308 do. std::from_chars of
/// it is missing in libc++ before version 20.
std::optional<double> floating_number(std::string_view text);

/// The number that all of `text` is; nothing if it is none or does not fit in a T.
template <class T>
std::optional<T> number_of(std::string_view text) {
  if constexpr (std::is_same_v<T, double>) {
    return floating_number(text);
  } else {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && after == end ? std::optional<T>(value) : std::nullopt;
  }
}

}  // namespace ein::io
