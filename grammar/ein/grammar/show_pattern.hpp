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
      for (std::uint32_t byte = 0; byte < length; ++byte) column_of_byte_.push_back(columns());
      begin_of_column_.push_back(line_.size());
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
  constexpr std::size_t columns() const { return begin_of_column_.size(); }
  /// A place past the end, where something is missing, is the column after the last.
  constexpr std::size_t column(std::uint32_t byte) const {
    return byte < column_of_byte_.size() ? column_of_byte_[byte]
                                         : columns() + (byte - column_of_byte_.size());
  }
  /// What stands in the columns from `begin` to `end`.
  constexpr std::string_view part(std::size_t begin, std::size_t end) const {
    const std::size_t first = begin < columns() ? begin_of_column_[begin] : line_.size();
    const std::size_t last = end < columns() ? begin_of_column_[end] : line_.size();
    return line_.view().substr(first, last - first);
  }

 private:
  Text line_;
  List<std::size_t> column_of_byte_, begin_of_column_;
};

/// The columns of a line up to which it is shown whole. Of a longer one `window` columns are shown
/// around both ends of each place, of the first places where they are more than `widest_cut`.
inline constexpr std::size_t widest_whole = 120, window = 100, widest_cut = 200;
inline constexpr std::string_view cut = "...";

/// A line with "..." in place of each part that is far from the places that are marked.
class CutLine {
 public:
  constexpr CutLine(const ShownLine& whole, std::span<const Mark> marks) : whole_(whole) {
    if (whole.columns() <= widest_whole) {
      line_ = whole.line();
      columns_ = whole.columns();
      return;
    }
    is_shown_ = List<bool>(whole.columns(), false);
    std::size_t left = widest_cut;
    for (const Mark& mark : marks) {
      show_around(whole.column(mark.span.begin), left);
      if (mark.span.end > mark.span.begin) show_around(whole.column(mark.span.end) - 1, left);
    }
    if (marks.empty()) show_around(0, left);
    join();
  }
  constexpr const Text& line() const { return line_; }
  /// Where a column of the whole line is; one that is cut, at the dots.
  constexpr std::size_t column(std::size_t of_whole) const {
    if (of_whole >= whole_.columns()) return columns_ + (of_whole - whole_.columns());
    return is_shown_.empty() ? of_whole : column_[of_whole];
  }
  /// Whether any of the columns from `begin` to `end` is shown.
  constexpr bool shows(std::size_t begin, std::size_t end) const {
    if (is_shown_.empty() || end > whole_.columns()) return true;
    for (std::size_t i = begin; i < end; ++i) {
      if (is_shown_[i]) return true;
    }
    return false;
  }

 private:
  constexpr void show_around(std::size_t column, std::size_t& left) {
    const std::size_t before = lesser(column, window / 2), columns = whole_.columns();
    const std::size_t begin = lesser(column - before, columns - window);
    for (std::size_t i = begin; i < begin + window && left > 0; ++i) {
      if (!is_shown_[i]) --left;
      is_shown_[i] = true;
    }
  }
  constexpr void join() {
    for (std::size_t i = 0, end = 0; i < whole_.columns(); i = end) {
      for (end = i; end < whole_.columns() && is_shown_[end] == is_shown_[i]; ++end)
        column_.push_back(columns_ + (is_shown_[i] ? end - i : 0));
      line_.add(is_shown_[i] ? whole_.part(i, end) : cut);
      columns_ += is_shown_[i] ? end - i : cut.size();
    }
  }

  const ShownLine& whole_;
  Text line_;
  List<bool> is_shown_;  // of each column; empty where all are
  List<std::size_t> column_;
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
/// white space becomes blanks and control characters `?`. Of a long pattern the parts around the
/// marks are shown.
constexpr Text show_pattern(std::string_view pattern, std::span<const Mark> marks) {
  const detail::ShownLine whole(pattern);
  const detail::CutLine shown(whole, marks);
  Text carets;
  List<Text> labels;  // as many lines as it takes for labels not to touch
  for (const Mark& mark : marks) {
    const std::size_t first = whole.column(mark.span.begin);
    const std::size_t last = greater(first + 1, whole.column(mark.span.end));
    if (!shown.shows(first, last)) continue;
    const std::size_t begin = shown.column(first), end = greater(begin + 1, shown.column(last));
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

/// `text` in quotes, on one line, control characters as `?`, the end of a long one left out.
constexpr Text quoted(std::string_view text) {
  const detail::ShownLine line(text);
  if (line.columns() <= detail::widest_whole) return "'" + line.line() + "'";
  return "'" + Text(line.part(0, detail::window)) + detail::cut + "'";
}

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
