// Pattern: what the grammar reads from a text such as "b s (h d) -> b h s d". Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ein {

/// A byte range [begin, end) of a pattern's text.
struct SourceSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const SourceSpan&, const SourceSpan&) = default;
};

namespace grammar {

enum class TermKind : std::uint8_t {
  name,      // an axis
  number,    // 1, or an anonymous axis of that size
  unnamed,   // _
  ellipsis,  // ...
  packed,    // *
  group,     // ( ... ), followed by its members
};

/// One word or group. Terms lie in the order of the text; a group's members follow it, up to `next`.
struct Term {
  TermKind kind = TermKind::name;
  SourceSpan span;
  std::uint32_t next = 0;  // index of the first term after this one and its members
  std::int64_t value = 0;  // of a number
  bool marked = false;     // in brackets [ ]
};

/// One operand or result: the terms [first, last) and the text they came from.
struct Side {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  SourceSpan span;
};

/// A parsed pattern. It owns nothing: the text and the arrays belong to a PatternBuffer or are
/// constant data of the program.
struct Pattern {
  std::string_view text;
  std::span<const Term> terms;
  std::span<const Side> sides;  // the inputs; then, if there is an arrow, the output
  bool has_arrow = false;

  constexpr std::span<const Side> inputs() const {
    return sides.first(has_arrow ? sides.size() - 1 : sides.size());
  }
  /// Precondition: has_arrow.
  constexpr const Side& output() const { return sides.back(); }
  constexpr std::string_view text_of(SourceSpan span) const {
    return text.substr(span.begin, span.end - span.begin);
  }
  constexpr std::string_view name_of(const Term& term) const { return text_of(term.span); }
};

/// The arrays of a Pattern while it is read, and afterwards its owner.
struct PatternBuffer {
  std::vector<Term> terms;
  std::vector<Side> sides;
  bool has_arrow = false;

  constexpr Pattern pattern(std::string_view text) const { return {text, terms, sides, has_arrow}; }
};

}  // namespace grammar
}  // namespace ein
