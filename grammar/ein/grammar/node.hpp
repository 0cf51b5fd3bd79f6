// The rules of the grammar as data: what table.hpp is made of.
#pragma once

#include <cstdint>

#include <ein/grammar/event.hpp>

namespace ein::grammar {

/// What a rule does, as in PEGTL. `first` to `last` are its parts in the table's list of parts; of
/// a rule for characters, the code points that it takes, in the list of ranges.
enum class Construct : std::uint8_t {
  seq,
  sor,
  star,
  plus,
  opt,
  at,
  not_at,
  must,
  eof,
  string,     // each range a character
  byte,       // one of the ranges
  code_point  // one of the ranges, in UTF-8
};

/// `begins` has a bit for each kind of character that text which the rule takes may begin with;
/// all of them where it may take none, or fail as `must` does. The kinds are in the table: of
/// each ASCII character, of all others, and of the end of the text.
struct Node {
  Construct construct = Construct::seq;
  Event event = Event::none;
  std::uint16_t first = 0, last = 0;
  std::uint32_t begins = 0;
  friend constexpr bool operator==(const Node&, const Node&) = default;
};

/// Places in the list of kinds.
inline constexpr std::uint32_t other_character = 128, end_of_text = 129;

struct CharacterRange {
  std::uint32_t low = 0, high = 0;
  friend constexpr bool operator==(const CharacterRange&, const CharacterRange&) = default;
};

}  // namespace ein::grammar
