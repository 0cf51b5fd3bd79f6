// How a pattern is shown with carets under what is concerned. Constexpr: run-time errors and, where
// a compiler can print a composed text, compile-time ones are the same.
#pragma once

#include <ein/grammar/events.hpp>
#include <ein/grammar/text.hpp>

namespace ein::grammar {

/// A place in the pattern and what to write under it, often a size; the label may be empty.
struct Mark {
  SourceSpan span;
  Text label;
};

namespace detail {

/// Characters that break a line or move what stands around them: control characters, line and
/// paragraph separators, and the bidirectional controls of Unicode Standard Annex 9.
constexpr bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/// The pattern as it is shown: one line, one column per code point.
class ShownLine {
 public:
  constexpr explicit ShownLine(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      const CodePoint c = decode_utf8(text, i);
      const std::uint32_t length = c.length > 0 ? c.length : 1;
      for (std::uint32_t byte = 0; byte < length; ++byte) column_of_byte_.push_back(columns_);
      ++columns_;
      if (c.length == 0) {
        line_.add('?');
      } else if (is_control(c.value)) {
        line_.add(c.value >= 0x09 && c.value <= 0x0D ? ' ' : '?');
      } else {
        line_.add(text.substr(i, length));
      }
      i += length;
    }
  }
  constexpr const Text& line() const { return line_; }
  /// A place past the end, where something is missing, is the column after the last.
  constexpr std::size_t column(std::uint32_t byte) const {
    return byte < column_of_byte_.size() ? column_of_byte_[byte]
                                         : columns_ + (byte - column_of_byte_.size());
  }

 private:
  Text line_;
  List<std::size_t> column_of_byte_;
  std::size_t columns_ = 0;
};

constexpr bool is_free(std::string_view line, std::size_t column, std::size_t size) {
  const std::size_t begin = column > 0 ? column - 1 : 0;
  const std::size_t end = lesser(line.size(), column + size + 1);
  for (std::size_t i = begin; i < end; ++i) {
    if (line[i] != ' ') return false;
  }
  return true;
}

}  // namespace detail

/// The pattern on one line, carets under the marks, and their labels. Columns count code points;
/// white space becomes blanks and control characters `?`.
constexpr Text show_pattern(std::string_view pattern, std::span<const Mark> marks) {
  const detail::ShownLine shown(pattern);
  Text carets;
  List<Text> labels;  // as many lines as it takes for labels not to touch
  for (const Mark& mark : marks) {
    const std::size_t begin = shown.column(mark.span.begin);
    const std::size_t end = greater(begin + 1, shown.column(mark.span.end));
    for (std::size_t column = begin; column < end; ++column) carets.put(column, "^");
    if (mark.label.empty()) continue;
    const std::size_t middle = begin + (end - begin) / 2;
    const std::size_t column = middle + 2 - lesser(middle + 2, mark.label.size() / 2);
    std::size_t line = 0;
    while (line < labels.size() && !detail::is_free(labels[line].view(), column, mark.label.size()))
      ++line;
    if (line == labels.size()) labels.push_back({});
    labels[line].put(column, mark.label.view());
  }
  const Text line = "  " + shown.line();
  Text text = line.view().substr(0, line.view().find_last_not_of(' ') + 1);
  if (!carets.empty()) text = text + "\n  " + carets;
  for (const Text& label : labels) text = text + "\n" + label;
  return text;
}

/// "<op>: <what>", the pattern with its marks, which are in the order of the text, and the notes, a
/// line each.
constexpr Text diagnostic_text(std::string_view op, std::string_view what, std::string_view pattern,
                               std::span<const Mark> marks, std::span<const Text> notes) {
  Text text = Text(op) + ": " + what + "\n" + show_pattern(pattern, marks);
  for (const Text& note : notes) text = text + "\n  " + note;
  return text;
}

/// `text` in quotes, on one line, control characters as `?`.
constexpr Text quoted(std::string_view text) { return "'" + detail::ShownLine(text).line() + "'"; }

/// One mark for a side as a whole, the blanks around it left out.
constexpr Mark mark_side(const Pattern& pattern, const Side& side, Text label) {
  if (side.first == side.last) return {{side.span.begin, side.span.begin}, std::move(label)};
  constexpr std::string_view blanks = " \t\n\v\f\r";
  SourceSpan span = side.span;
  while (blanks.find(pattern.text[span.begin]) != blanks.npos) ++span.begin;
  while (blanks.find(pattern.text[span.end - 1]) != blanks.npos) --span.end;
  return {span, std::move(label)};
}

}  // namespace ein::grammar
