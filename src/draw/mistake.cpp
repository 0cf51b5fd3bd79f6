#include "draw/mistake.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "draw/svg.hpp"
#include "ein/grammar/parse.hpp"
#include "size/ask.hpp"

namespace ein::draw {
namespace {

constexpr double around = 24, type_size = 15, step = type_size * Svg::character, line_space = 24;
constexpr std::size_t most_lines = 40, most_columns = 240, most_words = 4000;

bool is_carets(const std::string& line) {
  return line.find('^') != line.npos && line.find_first_not_of(" ^") == line.npos;
}

/// A pattern's line with its axes in their colours, if it can be read.
std::vector<Svg::Span> coloured_line(Svg& svg, const std::string& text) {
  const grammar::Reading reading = grammar::parse_pattern(text);
  std::vector<Svg::Span> spans;
  std::map<std::string, std::size_t> numbers;
  std::uint32_t at = 0;
  const auto add = [&](std::uint32_t to, const std::string& classes) {
    if (to > at) spans.push_back({text.substr(at, to - at), classes});
    at = std::max(at, to);
  };
  for (const grammar::Term& term :
       reading.mistake ? grammar::List<grammar::Term>() : reading.buffer.terms) {
    if (term.kind != grammar::TermKind::name || term.span.begin < at) continue;
    add(term.span.begin, "");
    const std::string name = text.substr(at, term.span.end - at);
    add(term.span.end,
        "bold " + svg.fill(hue(numbers.try_emplace(name, numbers.size()).first->second)));
  }
  add(static_cast<std::uint32_t>(text.size()), "");
  return spans;
}

/// A line under each run of carets.
void underline(Svg& svg, const std::string& carets, double y) {
  for (std::size_t begin = 0; (begin = carets.find('^', begin)) != carets.npos;) {
    std::size_t end = begin;
    while (end < carets.size() && carets[end] == '^') ++end;
    const double x = around + static_cast<double>(begin) * step + 1,
                 width = static_cast<double>(end - begin) * step - 2;
    svg.rectangle({x, y, width, 3}, 1.5, svg.fill(wrong));
    begin = end;
  }
}

}  // namespace

std::string to_svg(const Error& error) {
  std::vector<std::string> lines;
  std::istringstream text(error.what());
  for (std::string line; lines.size() < most_lines && std::getline(text, line);)
    lines.push_back(shortened(line, most_columns));
  Svg svg(lines.empty() ? "A mistake" : lines[0], shortened(error.what(), most_words));
  svg.style("text{white-space:pre}");
  double y = around + type_size, width = 0;
  const bool has_carets = std::any_of(lines.begin(), lines.end(), is_carets);
  bool is_label = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    width = std::max(width, static_cast<double>(length(line)) * step);
    if (is_carets(line)) {
      underline(svg, line, y - line_space + 6);
      y += 1;
      is_label = true;
      continue;
    }
    const bool is_pattern = has_carets && i + 1 < lines.size() && is_carets(lines[i + 1]);
    is_label = is_label && line.find(':') == line.npos;
    if (is_pattern) {
      svg.text(around, y, coloured_line(svg, line), type_size);
    } else {
      svg.text(around, y,
               std::vector<Svg::Span>{{line, i == 0     ? "bold " + svg.fill(wrong)
                                             : is_label ? svg.fill(wrong)
                                                        : svg.fill(dim)}},
               type_size);
    }
    y += line_space;
  }
  return svg.document(width + 2 * around, y - line_space + around);
}

}  // namespace ein::draw
