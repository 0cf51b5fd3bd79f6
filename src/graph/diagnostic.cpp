#include "graph/diagnostic.hpp"

#include <algorithm>

#include "ein/grammar/events.hpp"

namespace ein {
namespace {

/// The pattern as it is shown: one line, one column per code point.
class ShownLine {
 public:
  explicit ShownLine(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      const std::uint32_t length = grammar::decode_utf8(text, i).length;
      column_of_byte_.insert(column_of_byte_.end(), std::max(1u, length), columns_++);
      const auto byte = static_cast<unsigned char>(text[i]);
      if (length == 0 || byte == 0x7F) {
        line_ += '?';
      } else if (byte < 0x20) {
        line_ += byte >= 0x09 && byte <= 0x0D ? ' ' : '?';
      } else {
        line_ += text.substr(i, length);
      }
      i += std::max(1u, length);
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
  if (!carets.empty()) text += "\n  " + carets;
  for (const std::string& line : labels) text += "\n" + line;
  return text;
}

void fail(ErrorKind kind, std::string_view op, const std::string& what, std::string_view pattern,
          const std::vector<Mark>& marks, const std::vector<std::string>& notes) {
  std::string text = std::string(op) + ": " + what + "\n" + show_pattern(pattern, marks);
  for (const std::string& note : notes) text += "\n  " + note;
  std::vector<SourceSpan> spans;
  for (const Mark& mark : marks) spans.push_back(mark.span);
  throw Error(kind, text, std::move(spans));
}

std::string show_operands(std::span<const Shape> shapes) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0) text += "   ";
    text += "operand " + std::to_string(i + 1) + ": " + shapes[i].to_string();
  }
  return text;
}

}  // namespace ein
