#include "graph/diagnostic.hpp"

#include <algorithm>

#include "ein/grammar/events.hpp"

namespace ein {
namespace {

/// Characters that break a line or move what stands around them: control characters, line and
/// paragraph separators, and the bidirectional controls of Unicode Standard Annex 9.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/// The pattern as it is shown: one line, one column per code point.
class ShownLine {
 public:
  explicit ShownLine(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      const grammar::CodePoint c = grammar::decode_utf8(text, i);
      const std::uint32_t length = std::max(1u, c.length);
      column_of_byte_.insert(column_of_byte_.end(), length, columns_++);
      if (c.length == 0) {
        line_ += '?';
      } else if (is_control(c.value)) {
        line_ += c.value >= 0x09 && c.value <= 0x0D ? ' ' : '?';
      } else {
        line_ += text.substr(i, length);
      }
      i += length;
    }
  }
  const std::string& line() const { return line_; }
  /// A place past the end, where something is missing, is the column after the last.
  std::size_t column(std::uint32_t byte) const {
    return byte < column_of_byte_.size() ? column_of_byte_[byte] : columns_ + (byte - column_of_byte_.size());
  }

 private:
  std::string line_;
  std::vector<std::size_t> column_of_byte_;
  std::size_t columns_ = 0;
};

void put(std::string& line, std::size_t column, std::string_view text) {
  if (line.size() < column + text.size()) line.resize(column + text.size(), ' ');
  line.replace(column, text.size(), text);
}

bool is_free(const std::string& line, std::size_t column, std::size_t size) {
  const std::size_t begin = column > 0 ? column - 1 : 0;
  const std::size_t end = std::min(line.size(), column + size + 1);
  for (std::size_t i = begin; i < end; ++i) {
    if (line[i] != ' ') return false;
  }
  return true;
}

}  // namespace

std::string show_pattern(std::string_view pattern, std::span<const Mark> marks) {
  const ShownLine shown(pattern);
  std::string carets;
  std::vector<std::string> labels;  // as many lines as it takes for labels not to touch
  for (const Mark& mark : marks) {
    const std::size_t begin = shown.column(mark.span.begin);
    const std::size_t end = std::max(begin + 1, shown.column(mark.span.end));
    put(carets, begin, std::string(end - begin, '^'));
    if (mark.label.empty()) continue;
    const std::size_t middle = begin + (end - begin) / 2;
    const std::size_t column = middle + 2 - std::min(middle + 2, mark.label.size() / 2);
    auto line = std::find_if(labels.begin(), labels.end(),
                             [&](const std::string& l) { return is_free(l, column, mark.label.size()); });
    if (line == labels.end()) line = labels.insert(labels.end(), std::string());
    put(*line, column, mark.label);
  }
  std::string text = "  " + shown.line();
  text.erase(text.find_last_not_of(' ') + 1);
  if (!carets.empty()) text += "\n  " + carets;
  for (const std::string& line : labels) text += "\n" + line;
  return text;
}

void fail(ErrorKind kind, std::string_view op, const std::string& what, std::string_view pattern,
          const std::vector<Mark>& places, const std::vector<std::string>& notes) {
  std::vector<Mark> marks = places;
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.span.begin < b.span.begin; });
  std::string text = std::string(op) + ": " + what + "\n" + show_pattern(pattern, marks);
  for (const std::string& note : notes) text += "\n  " + note;
  std::vector<SourceSpan> spans;
  for (const Mark& mark : marks) spans.push_back(mark.span);
  throw Error(kind, text, std::move(spans));
}

std::string show_operands(std::span<const Shape> shapes) {
  constexpr std::size_t widest = 98;  // behind the margin of 2
  std::string text;
  std::size_t width = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string operand = "operand " + std::to_string(i + 1) + ": " + shapes[i].to_string();
    if (i > 0 && width + 3 + operand.size() > widest) {
      text += "\n  ";
      width = 0;
    } else if (i > 0) {
      text += "   ";
      width += 3;
    }
    text += operand;
    width += operand.size();
  }
  return text;
}

std::string quoted(std::string_view text) { return "'" + ShownLine(text).line() + "'"; }

std::string count_axes(std::size_t n) { return std::to_string(n) + (n == 1 ? " axis" : " axes"); }

std::vector<Mark> mark_dims(const grammar::Pattern& pattern, const grammar::Side& side) {
  std::vector<Mark> marks;
  for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) {
    marks.push_back({pattern.terms[i].span, ""});
  }
  if (marks.empty()) marks.push_back(mark_side(pattern, side, ""));
  return marks;
}

Mark mark_side(const grammar::Pattern& pattern, const grammar::Side& side, std::string label) {
  if (side.first == side.last) return {{side.span.begin, side.span.begin}, std::move(label)};
  SourceSpan span = pattern.terms[side.first].span;
  for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) {
    span.end = pattern.terms[i].span.end;
  }
  return {span, std::move(label)};
}

}  // namespace ein
