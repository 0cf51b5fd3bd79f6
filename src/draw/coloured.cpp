#include "draw/coloured.hpp"

#include <algorithm>

#include "machine/printable.hpp"
#include "size/ask.hpp"

namespace ein::draw {

std::vector<Svg::Span> coloured(Svg& svg, const Example& example, SourceSpan part) {
  std::vector<Svg::Span> spans;
  std::size_t left = longest_shown;
  const auto add = [&](std::uint32_t begin, std::uint32_t end, const std::string& classes) {
    if (begin >= end || left == 0) return;
    const std::string text = printable_line(example.text.substr(begin, end - begin));
    spans.push_back({shortened(text, left), classes});
    left -= std::min(left, length(text));
  };
  std::uint32_t at = part.begin;
  for (std::size_t i = 0; i < example.spans.size(); ++i) {
    const SourceSpan span = example.spans[i];
    if (example.axis_of[i] < 0 || span.begin < at || span.end > part.end) continue;
    add(at, span.begin, "");
    add(span.begin, span.end,
        "bold " + svg.fill(hue(static_cast<std::size_t>(example.axis_of[i]))));
    at = span.end;
  }
  add(at, part.end, "");
  return spans;
}

}  // namespace ein::draw
