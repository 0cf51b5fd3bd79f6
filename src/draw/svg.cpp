#include "draw/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "machine/printable.hpp"
#include "size/ask.hpp"

namespace ein::draw {
namespace {

std::uint32_t mixed_colour(std::uint32_t under, std::uint32_t over, double share) {
  std::uint32_t colour = 0;
  for (const unsigned shift : {16u, 8u, 0u}) {
    const double value = (under >> shift & 0xFFu) * (1 - share) + (over >> shift & 0xFFu) * share;
    colour |= static_cast<std::uint32_t>(std::lround(value)) << shift;
  }
  return colour;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }

/// An attribute where it says something.
std::string attribute(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}

std::string_view word(Svg::Anchor anchor) {
  constexpr std::array<std::string_view, 3> words{"", "middle", "end"};
  return words[static_cast<std::size_t>(anchor)];
}

}  // namespace

Paint mixed(const Paint& under, const Paint& over, double share) {
  return {mixed_colour(under.light, over.light, share), mixed_colour(under.dark, over.dark, share)};
}

std::string colour_text(std::uint32_t colour) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "#";
  for (unsigned shift = 24; shift > 0; shift -= 4) text += digits[colour >> (shift - 4) & 0xFu];
  return text;
}

Paint hue(std::size_t number) {
  constexpr std::array<Paint, hues> colours{{{0x0b5cad, 0x7cc0ff},    // blue
                                             {0xa84300, 0xffb066},    // orange
                                             {0x146c2e, 0x7ee2a0},    // green
                                             {0x9b1f74, 0xff9bd6},    // magenta
                                             {0x00696d, 0x66e0df},    // teal
                                             {0x5b3db0, 0xc0adff},    // violet
                                             {0x6b5600, 0xe6cf5c},    // olive
                                             {0x4a5568, 0xb8c4d4}}};  // slate
  return colours[number % hues];
}

Paint shade(const Paint& of, std::size_t step) {
  constexpr std::array<double, 4> light{0.10, 0.24, 0.38, 0.52}, dark{0.16, 0.26, 0.36, 0.46};
  const std::size_t s = std::min<std::size_t>(step, 3);
  return {mixed_colour(page.light, of.light, light[s]), mixed_colour(page.dark, of.dark, dark[s])};
}

std::string escaped(std::string_view text) {
  constexpr std::pair<char, std::string_view> entities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string result;
  for (const char& c : printable_line(text)) {
    const auto found = std::find_if(std::begin(entities), std::end(entities),
                                    [&](const auto& entity) { return entity.first == c; });
    result += found == std::end(entities) ? std::string_view(&c, 1) : found->second;
  }
  return result;
}

std::string number(double x) {
  const auto tenths = static_cast<std::int64_t>(std::llround(x * 10));
  const std::int64_t whole = tenths / 10, rest = std::abs(tenths % 10);
  return (tenths < 0 && whole == 0 ? "-" : "") + std::to_string(whole) +
         (rest ? "." + std::to_string(rest) : "");
}

std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened(const std::string& text, std::size_t most) {
  if (length(text) <= most) return text;
  std::size_t at = 0;
  for (std::size_t seen = 0; seen < most || !begins_character(text[at]); ++at)
    seen += begins_character(text[at]);
  return text.substr(0, at) + "…";
}

Svg::Svg(std::string title, std::string description)
    : title_(std::move(title)), description_(std::move(description)) {}

std::string Svg::number_of(const Paint& paint) {
  const auto found = std::find(paints_.begin(), paints_.end(), paint);
  const auto at = found - paints_.begin();
  if (found == paints_.end()) paints_.push_back(paint);
  return std::to_string(at);
}
std::string Svg::fill(const Paint& paint) { return "f" + number_of(paint); }
std::string Svg::stroke(const Paint& paint) { return "s" + number_of(paint); }

void Svg::rectangle(const Rectangle& at, double radius, std::string_view classes) {
  body_ += "<rect x=\"" + number(at.x) + "\" y=\"" + number(at.y) + "\" width=\"" +
           number(at.width) + "\" height=\"" + number(at.height) + "\"" +
           (radius > 0 ? attribute("rx", number(radius)) : "") + attribute("class", classes) +
           "/>\n";
}
void Svg::path(const std::string& d, std::string_view classes, bool is_arrow) {
  has_arrows_ |= is_arrow;
  body_ += "<path d=\"" + d + "\"" + attribute("class", classes) +
           (is_arrow ? " marker-end=\"url(#arrow)\"" : "") + "/>\n";
}
void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes) {
  body_ += "<polyline points=\"";
  for (const auto& [x, y] : points)
    body_ += (body_.ends_with('"') ? "" : " ") + number(x) + "," + number(y);
  body_ += "\"" + attribute("class", classes) + "/>\n";
}
void Svg::circle(double x, double y, double radius, std::string_view classes) {
  body_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) +
           "\"" + attribute("class", classes) + "/>\n";
}
void Svg::text(double x, double y, std::string_view content, std::string_view classes,
               Anchor anchor, double size) {
  body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" +
           attribute("text-anchor", word(anchor)) +
           (size == 12 ? "" : attribute("font-size", number(size))) + attribute("class", classes) +
           ">" + escaped(content) + "</text>\n";
}
void Svg::text(double x, double y, const std::vector<Span>& spans, double size) {
  body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" +
           (size == 12 ? "" : attribute("font-size", number(size))) + " xml:space=\"preserve\">";
  for (const Span& span : spans)
    body_ += "<tspan" + attribute("class", span.classes) + ">" + escaped(span.content) + "</tspan>";
  body_ += "</text>\n";
}
void Svg::begin_group(std::string_view title, std::string_view id, std::string_view classes) {
  body_ += "<g" + attribute("id", id) + attribute("class", classes) + ">";
  if (!title.empty()) body_ += "<title>" + escaped(title) + "</title>";
  body_ += "\n";
}
void Svg::end_group() { body_ += "</g>\n"; }

std::string Svg::document(double width, double height) const {
  std::string light, dark;
  const auto add = [&](const std::string& classes, const char* property, const Paint& paint) {
    light += classes + "{" + property + ":" + colour_text(paint.light) + "}";
    dark += classes + "{" + property + ":" + colour_text(paint.dark) + "}";
  };
  add(".page", "fill", page);
  add("text", "fill", ink);
  for (std::size_t p = 0; p < paints_.size(); ++p) {
    add(".f" + std::to_string(p), "fill", paints_[p]);
    add(".s" + std::to_string(p), "stroke", paints_[p]);
  }
  if (has_arrows_) add(".head", "fill", line);
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"" + number(width) +
      "\" height=\"" + number(height) + "\" viewBox=\"0 0 " + number(width) + " " + number(height) +
      "\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
      "font-size=\"12\">\n<title>" +
      escaped(title_) + "</title>\n<desc>" + escaped(description_) + "</desc>\n<style>" + css_ +
      ".line{fill:none}.bold{font-weight:bold}" + light + "@media(prefers-color-scheme:dark){" +
      dark + "}</style>\n";
  if (has_arrows_) {
    text +=
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" class=\"head\"/>"
        "</marker></defs>\n";
  }
  return text + "<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n" + body_ + "</svg>\n";
}

}  // namespace ein::draw
