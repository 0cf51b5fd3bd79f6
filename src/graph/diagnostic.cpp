#include "graph/diagnostic.hpp"

#include <algorithm>
#include <utility>

#include "size/ask.hpp"

namespace ein {

void fail(ErrorKind kind, std::string_view op, const std::string& what, std::string_view pattern,
          const std::vector<Mark>& places, const std::vector<std::string>& notes) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order;  // by place, then as given
  for (std::size_t i = 0; i < places.size(); ++i) order.emplace_back(places[i].span.begin, i);
  std::sort(order.begin(), order.end());
  std::vector<Mark> marks;
  for (const auto& [begin, i] : order) marks.push_back(places[i]);
  const std::vector<grammar::Text> lines(notes.begin(), notes.end());
  const std::string text(grammar::diagnostic_text(op, what, pattern, marks, lines).view());
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

std::string quoted(std::string_view text) { return std::string(grammar::quoted(text).view()); }

std::string count_axes(std::size_t n) { return std::to_string(n) + (n == 1 ? " axis" : " axes"); }

std::vector<Mark> mark_dims(const grammar::Pattern& pattern, const grammar::Side& side) {
  std::vector<Mark> marks;
  for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) {
    marks.push_back({pattern.terms[i].span, ""});
  }
  if (marks.empty()) marks.push_back(mark_side(pattern, side, ""));
  return marks;
}

}  // namespace ein
