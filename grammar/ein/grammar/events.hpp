// What each rule of a pattern adds to the Pattern, and what is said when the text does not match.
// Shared by both matchers, so that they agree on accept, reject and place.
#pragma once

#include <ein/grammar/event.hpp>
#include <ein/grammar/mistake.hpp>
#include <ein/grammar/table.hpp>

namespace ein::grammar {

/// Longer patterns are refused, which bounds the work that a hostile one can cause: some steps take
/// the square of the number of words.
inline constexpr std::size_t max_pattern_bytes = 131072;
/// Longer literals are read when the call runs, as compilers bound what they compute, and slow.
inline constexpr std::size_t max_literal_bytes = 16384;
inline constexpr std::size_t max_group_depth = 32;

/// The greatest number in braces: sums of as many as a pattern holds have 63 bits.
inline constexpr std::int64_t max_number_in_braces = std::int64_t{1} << 45;

/// The state of one reading: the pattern so far, and the first mistake.
struct Reading {
  std::string_view text;
  PatternBuffer buffer{};
  Mistake mistake{};
  std::uint32_t side_begin = 0;
  std::uint32_t side_first = 0;
  bool is_behind_arrow = false;
  /// A group that is open: its term; of a sum how many members stand behind the last '+', of which
  /// there should be one, and where that is.
  struct OpenGroup {
    std::uint32_t term = 0;
    std::uint32_t members = 0;
    SourceSpan plus{};
  };
  OpenGroup open_groups[max_group_depth] = {};
  std::uint32_t depth = 0;
  bool in_brackets = false;
  SourceSpan bracket{};  // the one that opened last
  std::uint32_t bracket_first = 0;
  bool in_brace = false;
  std::uint32_t brace = 0;        // the one that opened last
  std::int64_t coefficient = 1;   // of the next name in it
  SourceSpan coefficient_name{};  // the same
  bool names_a_size = false;      // the next name in it

  constexpr void add(TermKind kind, SourceSpan span, std::int64_t value = 0) {
    const auto next = static_cast<std::uint32_t>(buffer.terms.size()) + 1;
    if (depth > 0) ++open_groups[depth - 1].members;
    buffer.terms.push_back({kind, span, next, value, in_brackets});
  }
  constexpr void end_side(std::uint32_t end, std::uint32_t next_begin) {
    const auto last = static_cast<std::uint32_t>(buffer.terms.size());
    buffer.sides.push_back({side_first, last, {side_begin, end}});
    buffer.output_count += is_behind_arrow;
    side_begin = next_begin;
    side_first = last;
  }
  constexpr void complain(Complaint complaint, SourceSpan span) {
    mistake = {complaint, span, {}, 0};
  }
};

/// The value of a text of digits; -1 when it exceeds 63 bits.
constexpr std::int64_t parse_number(std::string_view digits) {
  std::int64_t value = 0;
  for (char c : digits) {
    const int digit = c - '0';
    if (value > (INT64_MAX - digit) / 10) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/// Each mesh axis behind a name makes what stands there longer, by itself and its '@'.
constexpr void add_mesh_axis(SourceSpan& placed, SourceSpan span) {
  if (placed.end == 0) placed.begin = span.begin - 1;
  placed.end = span.end;
}
/// Calls f(value), unless the number is none that an axis can have.
template <class F>
constexpr void with_number(Reading& r, SourceSpan span, F&& f) {
  const std::int64_t value = parse_number(r.text.substr(span.begin, span.end - span.begin));
  if (value < 0) return r.complain(Complaint::number_is_too_large, span);
  if (value == 0) return r.complain(Complaint::number_is_zero, span);
  f(value);
}
constexpr void open_group(Reading& r, SourceSpan span) {
  if (r.depth == max_group_depth) return r.complain(Complaint::groups_are_nested_too_deeply, span);
  const auto term = static_cast<std::uint32_t>(r.buffer.terms.size());
  r.add(TermKind::group, span);
  r.open_groups[r.depth++] = {term};
}
/// A piece of a sum has ended, at a '+' or at the parenthesis.
constexpr void end_piece(Reading& r, SourceSpan span) {
  Reading::OpenGroup& group = r.open_groups[r.depth - 1];
  const SourceSpan before =
      group.plus.end > 0 ? group.plus : r.buffer.terms[group.term].span;  // '+', or '('
  if (group.members == 0)
    return r.complain(Complaint::piece_is_missing, {before.end - 1, span.end});
  if (group.members > 1)
    return r.complain(Complaint::piece_is_several_axes, {before.end, span.begin});
  group.members = 0;
}
constexpr void add_plus(Reading& r, SourceSpan span) {
  end_piece(r, span);
  Reading::OpenGroup& group = r.open_groups[r.depth - 1];
  r.buffer.terms[group.term].kind = TermKind::sum;
  group.plus = span;
}
constexpr void close_group(Reading& r, SourceSpan span) {
  if (r.open_groups[r.depth - 1].plus.end > 0) end_piece(r, span);
  Term& group = r.buffer.terms[r.open_groups[--r.depth].term];
  group.span.end = span.end;
  group.next = static_cast<std::uint32_t>(r.buffer.terms.size());
}

constexpr void open_brace(Reading& r, SourceSpan span) {
  r.in_brace = true;
  r.brace = static_cast<std::uint32_t>(r.buffer.terms.size());
  r.coefficient = 1;
  r.coefficient_name = {};
  r.names_a_size = false;
  r.add(TermKind::brace, span);
}
constexpr void close_brace(Reading& r, SourceSpan span) {
  Term& brace = r.buffer.terms[r.brace];
  brace.span.end = span.end;
  brace.next = static_cast<std::uint32_t>(r.buffer.terms.size());
  r.in_brace = false;
}
constexpr void add_in_brace(Reading& r, TermKind kind, SourceSpan span, std::int64_t value = 0) {
  if (r.names_a_size) {
    r.buffer.terms[r.brace].size_name = span;
    return;
  }
  r.add(kind, span, value);
  r.buffer.terms.back().coefficient = r.coefficient;
  r.buffer.terms.back().coefficient_name = r.coefficient_name;
  r.coefficient_name = {};
}
/// The number before '*', or the name of one, is the coefficient of the name behind it.
constexpr void take_coefficient(Reading& r) {
  const Term last = r.buffer.terms.back();
  const bool is_number = last.kind == TermKind::constant;
  if (is_number && last.value == 0) return r.complain(Complaint::number_is_zero, last.span);
  r.buffer.terms.pop_back();
  r.coefficient = is_number ? last.coefficient * last.value : last.coefficient;
  if (!is_number) r.coefficient_name = last.span;
}
constexpr void add_number(Reading& r, SourceSpan span) {
  if (!r.in_brace)
    return with_number(r, span, [&](std::int64_t value) { r.add(TermKind::number, span, value); });
  const std::int64_t value = parse_number(r.text.substr(span.begin, span.end - span.begin));
  if (value < 0 || value > max_number_in_braces)
    return r.complain(Complaint::number_is_too_large, span);
  add_in_brace(r, TermKind::constant, span, value);
}

/// A rule of a pattern has matched; `span` is the text.
constexpr void on(Event event, Reading& r, SourceSpan span) {
  switch (event) {
    case Event::name:
      return r.in_brace ? add_in_brace(r, TermKind::name, span) : r.add(TermKind::name, span);
    case Event::mesh_axis:
      return add_mesh_axis(r.buffer.terms.back().placed, span);
    case Event::ellipsis:
      return r.add(TermKind::ellipsis, span);
    case Event::unnamed:
      return r.add(TermKind::unnamed, span);
    case Event::many:
      r.buffer.terms.back().is_many = true;
      return;
    case Event::packed:
      return r.add(TermKind::packed, span);
    case Event::axis_size:
      return with_number(r, span, [&](std::int64_t size) { r.buffer.terms.back().value = size; });
    case Event::number:
      return add_number(r, span);
    case Event::open:
      return open_group(r, span);
    case Event::close:
      return close_group(r, span);
    case Event::open_bracket:
      r.in_brackets = true;
      r.bracket = span;
      r.bracket_first = static_cast<std::uint32_t>(r.buffer.terms.size());
      return;
    case Event::close_bracket:
      r.in_brackets = false;
      return;
    case Event::open_brace:
      return open_brace(r, span);
    case Event::close_brace:
      return close_brace(r, span);
    case Event::times:
      return take_coefficient(r);
    case Event::plus:
      if (!r.in_brace) return add_plus(r, span);
      r.coefficient = 1;
      return;
    case Event::minus:
      r.coefficient = -1;
      return;
    case Event::colon:
      r.names_a_size = true;
      return;
    case Event::comma:
      return r.end_side(span.begin, span.end);
    case Event::arrow:
      r.end_side(span.begin, span.end);
      r.is_behind_arrow = true;
      return;
    case Event::pattern:
      return r.end_side(span.end, span.end);
    default:
      return;
  }
}

constexpr bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '.' || byte == '*' || byte >= 0x80;
}

/// The code point at `text[at]` and its length in bytes; length 0 where the text is not valid
/// UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::uint32_t length = 0;
};
constexpr CodePoint decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return {};
  char32_t value = lead & (0x7Fu >> length);
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, length};
}

/// Whether a name may have a character beyond ASCII.
constexpr bool is_letter(char32_t c) {
  for (const Node& node : table::nodes) {
    if (node.construct != Construct::code_point) continue;
    for (std::uint16_t i = node.first; i < node.last; ++i) {
      if (c >= table::ranges[i].low && c <= table::ranges[i].high) return true;
    }
  }
  return false;
}

/// Where words and '@' that stand side by side end.
constexpr std::uint32_t end_of_words(std::string_view text, std::uint32_t at) {
  while (at < text.size() && (is_word_byte(text[at]) || text[at] == '@')) ++at;
  return at;
}

/// Why there can be no '@' at `at`: only a name has one, right behind it.
constexpr Mistake explain_at_sign(std::string_view text, std::span<const Term> terms,
                                  std::uint32_t at) {
  const SourceSpan rest{at, end_of_words(text, at)};
  for (const Term& term : terms) {
    if (at > 0 && text[at - 1] == ')' && term.span.end == at)
      return {Complaint::group_is_placed, {term.span.begin, rest.end}, {}, 0};
  }
  std::uint32_t begin = at;
  while (begin > 0 && is_word_byte(text[begin - 1])) --begin;
  if (begin == at) return {Complaint::placed_axis_is_missing, rest, {}, 0};
  return {Complaint::only_a_named_axis_is_placed, {begin, rest.end}, {}, 0};
}

/// Why the text of a brace does not go on at `at`.
constexpr Mistake explain_brace(const Reading& r, std::uint32_t at) {
  const std::string_view text = r.text;
  const std::uint32_t open = r.buffer.terms[r.brace].span.begin;
  const char c = at < text.size() ? text[at] : '\0';
  const bool is_arrow = text.substr(at, 2) == "->" || (c == '>' && text[at - 1] == '-');
  if (at == text.size() || c == ',' || c == '{' || is_arrow)
    return {Complaint::brace_is_not_closed, {open, open + 1}, {}, 0};
  if (c == '}' && r.buffer.terms.size() == r.brace + 1 && r.coefficient == 1)
    return {Complaint::brace_is_empty, {open, at + 1}, {}, 0};
  std::uint32_t before = at;
  while (before > open && text[before - 1] == ' ') --before;
  const std::uint32_t end = at + 1 > end_of_words(text, at) ? at + 1 : end_of_words(text, at);
  if (text[before - 1] == '*' && c >= '0' && c <= '9')
    return {Complaint::coefficient_is_no_number, {before - 1, end}, {}, 0};
  return {Complaint::index_is_malformed, {at, end}, {open, open + 1}, 0};
}

/// Why the text does not go on at `at` as the grammar wants. The language is LL(1), so the place of
/// a failed `must` is the place of the mistake.
constexpr Mistake explain_failure(const Reading& r, std::uint32_t at) {
  const auto mistake = [](Complaint complaint, std::uint32_t begin, std::uint32_t end) {
    return Mistake{complaint, {begin, end}, {}, 0};
  };
  const std::string_view text = r.text;
  const char c = at < text.size() ? text[at] : '\0';
  const bool is_arrow = text.substr(at, 2) == "->";
  if (r.in_brace) return explain_brace(r, at);
  const bool is_mesh_axis = at > 0 && text[at - 1] == '@';
  if (is_mesh_axis && !is_word_byte(c)) return mistake(Complaint::mesh_axis_is_missing, at - 1, at);
  // Behind '=' is a number, and before it a name.
  if (at > 0 && text[at - 1] == '=')
    return mistake(Complaint::axis_size_is_no_number, at - 1, end_of_words(text, at));
  if (text.substr(at, 2) == "=>") return mistake(Complaint::arrow_is_malformed, at, at + 2);
  if (c == '=') return mistake(Complaint::only_a_named_axis_has_a_size, at, at + 1);
  if (c == '@') return explain_at_sign(text, r.buffer.terms, at);
  if (r.in_brackets) {
    const bool is_empty = r.buffer.terms.size() == r.bracket_first;
    if (c == ']' && is_empty)
      return mistake(Complaint::brackets_are_empty, r.bracket.begin, at + 1);
    if (c == '[') return mistake(Complaint::brackets_are_nested, at, at + 1);
    if (c == '(') return mistake(Complaint::group_is_inside_brackets, at, at + 1);
    if (c == '{') return mistake(Complaint::brace_is_inside_brackets, at, at + 1);
    const bool group_ends = c == ')' && r.depth > 0;
    if (at == text.size() || c == ',' || is_arrow || group_ends) {
      return mistake(Complaint::bracket_is_not_closed, r.bracket.begin, r.bracket.end);
    }
  }
  if (r.depth > 0 && (at == text.size() || c == ',' || is_arrow)) {
    const Term& group = r.buffer.terms[r.open_groups[r.depth - 1].term];
    return mistake(Complaint::parenthesis_is_not_closed, group.span.begin, group.span.begin + 1);
  }
  if (c == ']') return mistake(Complaint::bracket_closes_nothing, at, at + 1);
  if (c == ')') return mistake(Complaint::parenthesis_closes_nothing, at, at + 1);
  if (c == '}') return mistake(Complaint::brace_closes_nothing, at, at + 1);
  if (is_arrow) return mistake(Complaint::arrow_is_repeated, at, at + 2);
  if (c == '+') return mistake(Complaint::sum_is_outside_parentheses, at, at + 1);
  if (c == '-' || c == '>') return mistake(Complaint::arrow_is_malformed, at, at + 1);
  if (!is_word_byte(c)) return mistake(Complaint::unexpected_character, at, at + 1);

  std::uint32_t begin = at;
  while (begin > 0 && is_word_byte(text[begin - 1])) --begin;
  std::uint32_t end = at;
  while (end < text.size() && is_word_byte(text[end])) ++end;
  for (std::uint32_t i = begin; i < end;) {
    const CodePoint point = decode_utf8(text, i);
    if (point.length == 0) return mistake(Complaint::text_is_not_utf8, i, i + 1);
    if (point.value >= 0x80 && !is_letter(point.value))
      return mistake(Complaint::unexpected_character, i, i + point.length);
    i += point.length;
  }
  if (is_mesh_axis) return mistake(Complaint::mesh_axis_is_missing, at - 1, end);
  const std::string_view word = text.substr(begin, end - begin);
  const Complaint complaint = word.find_first_not_of('.') == word.npos
                                  ? Complaint::ellipsis_is_not_three_dots
                              : word.find_first_of(".*") != word.npos ? Complaint::words_touch
                              : word.front() == '_' || word.back() == '_'
                                  ? Complaint::axis_name_begins_or_ends_with_underscore
                                  : Complaint::axis_name_begins_with_a_digit;
  return mistake(complaint, begin, end);
}

}  // namespace ein::grammar
