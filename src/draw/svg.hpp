// What all pictures are written with: shapes and texts of an SVG document, and colours that suit a
// light and a dark page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ein::draw {

/// A colour on a light and on a dark page, 0xrrggbb each.
struct Paint {
  std::uint32_t light = 0, dark = 0;
  friend bool operator==(const Paint&, const Paint&) = default;
};

/// The page, what is written on it, what is said beside, lines, and what is wrong.
inline constexpr Paint page{0xffffff, 0x0d1117}, ink{0x1b1f24, 0xe6edf3}, dim{0x57606a, 0x9aa4af},
    line{0x8c959f, 0x6e7681}, wrong{0xb3152a, 0xff8f87};
/// So much of `over` on `under`, from 0 to 1.
Paint mixed(const Paint& under, const Paint& over, double share);
/// "#rrggbb".
std::string colour_text(std::uint32_t colour);

/// The colours of axes, which differ for the colour-blind too as far as eight can; more of them
/// begin again. As text on the page their contrast is 4.5 at least (WCAG 2.1, 1.4.3).
inline constexpr std::size_t hues = 8;
Paint hue(std::size_t number);
/// A light shade of a colour that ink is read on, the stronger the greater `step`, of 0 to 3.
Paint shade(const Paint& of, std::size_t step);

/// What stands for a text in XML: on one line, without control characters, `<` as `&lt;`.
std::string escaped(std::string_view text);
/// A length in pixels, to a tenth.
std::string number(double x);
/// How many characters a text has, and its beginning with `…` where it has more than `most`.
std::size_t length(std::string_view text);
std::string shortened(const std::string& text, std::size_t most);

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

/// A document whose parts come one after another, the later over the earlier.
class Svg {
 public:
  /// Of monospace type a character and a line, in pixels for each pixel of size.
  static constexpr double character = 0.61, line_height = 1.35;

  /// `title` is what a screen reader says first and a browser shows at the pointer; `description`
  /// tells in words what the picture shows.
  Svg(std::string title, std::string description);

  /// The class that fills shapes and texts with a colour, or draws their lines with it.
  std::string fill(const Paint& paint);
  std::string stroke(const Paint& paint);

  // Words of `classes` have blanks between them.
  void rectangle(const Rectangle& at, double radius, std::string_view classes);
  /// `d` is a path of SVG's; where it is an arrow its end has a head.
  void path(const std::string& d, std::string_view classes, bool is_arrow = false);
  /// Through these points, x and y.
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes);
  void circle(double x, double y, double radius, std::string_view classes);
  enum class Anchor : std::uint8_t { start, middle, end };
  void text(double x, double y, std::string_view content, std::string_view classes = "",
            Anchor anchor = Anchor::start, double size = 12);
  /// Parts of a line of text, with a class each.
  struct Span {
    std::string content, classes;
  };
  void text(double x, double y, const std::vector<Span>& spans, double size = 12);
  /// What follows, up to the end of the group, is one thing: the pointer shows its title.
  void begin_group(std::string_view title = "", std::string_view id = "",
                   std::string_view classes = "");
  void end_group();
  /// Rules of CSS, for classes of its own.
  void style(std::string_view css) { css_ += css; }

  /// The document, of that size in pixels.
  std::string document(double width, double height) const;

 private:
  std::string number_of(const Paint& paint);

  std::string title_, description_, css_, body_;
  std::vector<Paint> paints_;
  bool has_arrows_ = false;
};

}  // namespace ein::draw
