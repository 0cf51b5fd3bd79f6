// Characters of a text that may be anything, and what is known of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ein/grammar/events.hpp"
#include "text/unicode_tables.hpp"

namespace ein::text {

/// What splitting rules ask of a character: General_Category L, N and M, White_Space; they have no
/// character in common.
enum class Class : std::uint8_t { other, letter, number, space, mark };

/// The value of a character in a table of unicode_tables.hpp. It keeps the last range, in which the
/// next character often is.
class RangeTable {
 public:
  explicit constexpr RangeTable(std::span<const std::uint32_t> rows) : rows_(rows) {}

  std::uint8_t operator()(char32_t c) {
    const std::uint32_t key = c << 8 | 255;
    if (key < first_ || key >= end_) {
      const auto after = std::upper_bound(rows_.begin(), rows_.end(), key);
      first_ = after[-1];
      end_ = after == rows_.end() ? ~std::uint32_t{0} : *after & ~std::uint32_t{255};
    }
    return static_cast<std::uint8_t>(first_);
  }

 private:
  std::span<const std::uint32_t> rows_;
  std::uint32_t first_ = 1, end_ = 0;  // no range yet
};

/// Classes of the characters that most texts are made of.
inline constexpr auto ascii_classes = [] {
  std::array<Class, 128> classes{};
  std::size_t row = 0;
  for (std::uint32_t c = 0; c < 128; ++c) {
    while (row + 1 < class_ranges.size() && class_ranges[row + 1] >> 8 <= c) ++row;
    classes[c] = static_cast<Class>(class_ranges[row] & 255);
  }
  return classes;
}();

/// The character at a byte of a text. A byte that is part of none is one of its own, of class
/// `other`, and has length 1 and no value.
struct Character {
  static constexpr char32_t none = 0x1FFFFF;
  char32_t value = none;
  std::uint32_t length = 1;  // bytes
};

inline Character character_at(std::string_view text, std::size_t at) {
  const grammar::CodePoint c = grammar::decode_utf8(text, at);
  return c.length == 0 ? Character() : Character{c.value, c.length};
}

/// How many bytes at the end of a text may be the beginning of a character.
inline std::size_t cut_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte >= 0xC2 && byte < 0xF5)
      return (byte >= 0xF0 ? 4u : byte >= 0xE0 ? 3u : 2u) > back ? back : 0;
    if ((byte & 0xC0) != 0x80) return 0;
  }
  return 0;
}

inline void append_utf8(std::string& text, char32_t c) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

/// `bytes` with U+FFFD in place of each maximal part that is no UTF-8 (Unicode 16, section 3.9,
/// "U+FFFD Substitution of Maximal Subparts"), as Python's errors="replace".
std::string replace_malformed(std::string_view bytes);

}  // namespace ein::text
