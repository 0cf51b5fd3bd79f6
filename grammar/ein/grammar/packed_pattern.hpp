// PackedPattern: a parsed pattern small enough to be passed about as constant data.
#pragma once

#include <ein/grammar/events.hpp>

namespace ein::grammar {

/// What the compiler keeps of a literal it has parsed. Patterns of more words or bytes than fit,
/// and those with braces or names of many axes, are parsed again when their plan is made.
class PackedPattern {
 public:
  constexpr PackedPattern() = default;
  constexpr explicit PackedPattern(const Pattern& pattern) {
    if (pattern.terms.size() > max_terms || pattern.sides.size() > max_sides ||
        pattern.text.size() > UINT16_MAX || pattern.has_braces() || pattern.has_many())
      return;
    for (const Term& term : pattern.terms) {
      terms_[term_count_++] = {narrow(term.span.begin),
                               narrow(term.span.end),
                               narrow(term.placed.end - term.placed.begin),
                               term.kind,
                               term.marked,
                               static_cast<std::uint8_t>(term.next)};
    }
    for (const Side& side : pattern.sides) {
      sides_[side_count_++] = {narrow(side.span.begin), narrow(side.span.end),
                               static_cast<std::uint8_t>(side.first),
                               static_cast<std::uint8_t>(side.last)};
    }
    output_count_ = static_cast<std::uint8_t>(pattern.output_count);
  }

  /// Whether it holds a pattern at all.
  constexpr bool is_set() const { return side_count_ > 0; }

  /// The pattern in its usual form. `text` is what it was parsed from.
  PatternBuffer unpacked(std::string_view text) const {
    PatternBuffer buffer;
    buffer.output_count = output_count_;
    for (std::size_t i = 0; i < term_count_; ++i) {
      const SmallTerm& t = terms_[i];
      const SourceSpan placed{t.end, std::uint32_t{t.end} + t.placed};
      buffer.terms.push_back({t.kind,
                              {t.begin, t.end},
                              t.next,
                              value_of(t, text),
                              t.marked,
                              t.placed > 0 ? placed : SourceSpan{}});
    }
    for (std::size_t i = 0; i < side_count_; ++i) {
      const SmallSide& s = sides_[i];
      buffer.sides.push_back({s.first, s.last, {s.begin, s.end}});
    }
    return buffer;
  }

 private:
  static constexpr std::size_t max_terms = 40;
  static constexpr std::size_t max_sides = 10;
  static constexpr std::uint16_t narrow(std::uint32_t place) {
    return static_cast<std::uint16_t>(place);
  }

  struct SmallTerm;
  /// Of a number, or the size behind a name.
  static std::int64_t value_of(const SmallTerm& t, std::string_view text) {
    std::size_t begin = t.begin;
    if (t.kind == TermKind::name) {
      begin = std::size_t{t.end} + t.placed + 1;
      if (begin > text.size() || text[begin - 1] != '=') return 0;
    } else if (t.kind != TermKind::number) {
      return 0;
    }
    std::size_t end = begin;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return parse_number(text.substr(begin, end - begin));
  }

  struct SmallTerm {
    std::uint16_t begin = 0, end = 0;
    std::uint16_t placed = 0;  // bytes behind the end
    TermKind kind = TermKind::name;
    bool marked = false;
    std::uint8_t next = 0;
  };
  struct SmallSide {
    std::uint16_t begin = 0, end = 0;
    std::uint8_t first = 0, last = 0;
  };
  SmallTerm terms_[max_terms]{};
  SmallSide sides_[max_sides]{};
  std::uint8_t term_count_ = 0;
  std::uint8_t side_count_ = 0;
  std::uint8_t output_count_ = 0;
};

}  // namespace ein::grammar
