// Text: a string that grows in a constant expression, as std::string does not with every standard
// library.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <ein/grammar/list.hpp>

namespace ein::grammar {

// Those of <algorithm>, which takes a compiler longer than all of the grammar.
constexpr std::size_t lesser(std::size_t a, std::size_t b) { return b < a ? b : a; }
constexpr std::size_t greater(std::size_t a, std::size_t b) { return a < b ? b : a; }

class Text {
 public:
  constexpr Text() = default;
  template <std::convertible_to<std::string_view> T>
  constexpr Text(const T& text) {
    add(std::string_view(text));
  }

  constexpr void add(char c) { chars_.push_back(c); }
  constexpr void add(const char* more) { add(std::string_view(more)); }
  constexpr void add(std::string_view more) { chars_.add(more.data(), more.size()); }
  constexpr void add(std::int64_t number) {
    char digits[20] = {};
    std::size_t first = sizeof(digits);
    std::uint64_t rest = static_cast<std::uint64_t>(number);
    if (number < 0) rest = 0 - rest;
    for (; rest > 0 || first == sizeof(digits); rest /= 10) {
      digits[--first] = static_cast<char>('0' + rest % 10);
    }
    if (number < 0) add("-");
    add(std::string_view(digits + first, sizeof(digits) - first));
  }
  /// Writes over what stands at `begin`, behind blanks where the text is shorter.
  constexpr void put(std::size_t begin, std::string_view text) {
    while (chars_.size() < begin + text.size()) chars_.push_back(' ');
    for (std::size_t i = 0; i < text.size(); ++i) chars_[begin + i] = text[i];
  }
  friend constexpr Text operator+(Text a, const Text& b) {
    a.add(b.view());
    return a;
  }
  template <std::convertible_to<std::string_view> T>
  friend constexpr Text operator+(Text a, const T& b) {
    a.add(std::string_view(b));
    return a;
  }

  constexpr bool empty() const { return chars_.empty(); }
  constexpr std::size_t size() const { return chars_.size(); }
  constexpr std::string_view view() const { return {chars_.data(), chars_.size()}; }
  friend constexpr bool operator==(const Text& a, const Text& b) { return a.view() == b.view(); }

 private:
  List<char> chars_;
};

constexpr Text number_text(std::int64_t number) {
  Text text;
  text.add(number);
  return text;
}

}  // namespace ein::grammar
