// Pictures of patterns: elements stand where the call puts them, texts are escaped, sizes bounded,
// colours readable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <ein/draw.hpp>
#include <ein/ein.hpp>
#include "draw/reach.hpp"
#include "draw/svg.hpp"
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "support/expect_error.hpp"
#include "support/xml.hpp"

namespace ein {
namespace {

using namespace literals;
using test::count;
using test::XmlCheck;

struct Cell {
  double x, y;
  std::string text;
};
/// The cells of each group: an element, and where it goes.
std::vector<std::vector<Cell>> groups_of(const std::string& svg) {
  static const std::regex cell(
      "<rect x=\"([-\\d.]+)\" y=\"([-\\d.]+)\"[^>]*/>\\s*(?:<text[^>]*>([^<]*)</text>)?");
  std::vector<std::vector<Cell>> groups;
  for (std::size_t at = 0; (at = svg.find("<g class=\"goes", at)) != std::string::npos; ++at) {
    const std::string group = svg.substr(at, svg.find("</g>", at) - at);
    groups.emplace_back();
    for (std::sregex_iterator i(group.begin(), group.end(), cell), end; i != end; ++i)
      groups.back().push_back({std::stod((*i)[1]), std::stod((*i)[2]), (*i)[3]});
  }
  return groups;
}
/// What stands in the cells of a result of at most two dimensions, row by row.
std::vector<std::int64_t> numbers_of_result(const std::string& svg) {
  std::vector<Cell> cells;
  for (const std::vector<Cell>& group : groups_of(svg))
    cells.insert(cells.end(), group.begin() + 1, group.end());
  std::sort(cells.begin(), cells.end(),
            [](const Cell& a, const Cell& b) { return std::tie(a.y, a.x) < std::tie(b.y, b.x); });
  std::vector<std::int64_t> numbers;
  for (const Cell& cell : cells) numbers.push_back(std::stoll(cell.text));
  return numbers;
}
std::vector<std::int64_t> elements(const Tensor& x) {
  const Tensor flat = x.contiguous();
  const std::int64_t* data = flat.data<std::int64_t>();
  return {data, data + flat.numel()};
}
Tensor numbered(const Shape& shape) {
  std::int64_t n = 1;
  for (const Size size : shape) n *= std::int64_t{size};
  return arange(n).to(DType::i64).view(shape);
}

TEST(CallPicture, ElementsStandWhereTheCallPutsThem) {
  struct Case {
    const char* pattern;
    Shape shape;
    std::vector<AxisSize> sizes;
  };
  for (const Case& c :
       {Case{"h w -> w h", {2, 3}, {}}, Case{"(h a) w -> h (w a)", {4, 3}, {{"a", 2}}},
        Case{"b h w -> h (b w)", {3, 2, 2}, {}}, Case{"b (h d) -> (h b) d", {3, 4}, {{"h", 2}}},
        Case{"(a + b) c -> (b + a) c", {4, 3}, {{"a", 1}}},
        Case{"{t + w} -> t w", {4}, {{"w", 2}}}}) {
    SCOPED_TRACE(c.pattern);
    std::string svg;
    if (c.sizes.empty())
      svg = draw::rearrange(c.pattern, {c.shape});
    else
      svg = draw::rearrange(c.pattern, {c.shape}, {c.sizes[0]});
    EXPECT_EQ(XmlCheck(svg).mistake(), "");
    Tensor made;
    const Tensor x = numbered(c.shape);
    if (c.sizes.empty())
      made = rearrange(x, runtime(c.pattern));
    else
      made = rearrange(x, runtime(c.pattern), axis(std::string(c.sizes[0].name), c.sizes[0].size));
    EXPECT_EQ(numbers_of_result(svg), elements(made));
  }
}

TEST(CallPicture, RepeatedElementsStandSeveralTimes) {
  const std::string svg = draw::repeat("h w -> (h k) w", {{2, 3}}, {"k"_a = 2});
  EXPECT_EQ(numbers_of_result(svg),
            elements(repeat(numbered({2, 3}), "h w -> (h k) w", "k"_a = 2)));
  for (const auto& group : groups_of(svg)) EXPECT_EQ(group.size(), 3u);
}

/// The lists of numbers behind the words that lead to them in a description.
std::vector<std::string> told(const std::string& svg) {
  const std::string words = "made of: ";
  const std::size_t begin = svg.find(words) + words.size();
  std::string list = svg.substr(begin, svg.find(". ", begin) - begin);
  std::vector<std::string> lists;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    lists.push_back(list.substr(at, end - at));
    at = end + 2;
  }
  return lists;
}

// By the indices, as one reads the pattern.
TEST(CallPicture, SaysWhatResultsAreMadeOf) {
  std::vector<std::string> pooled;
  for (int h = 0; h < 2; ++h) {
    for (int w = 0; w < 2; ++w) {
      const int first = 8 * h + 2 * w;
      pooled.push_back(std::to_string(first) + " " + std::to_string(first + 1) + " " +
                       std::to_string(first + 4) + " " + std::to_string(first + 5));
    }
  }
  EXPECT_EQ(told(draw::reduce("(h 2) (w 2) -> h w", Reduction::max, {{4, 4}})), pooled);

  std::vector<std::string> product;  // of (2, 3) and (3, 2)
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      std::string list;
      for (int k = 0; k < 3; ++k) list += std::to_string(3 * i + k) + " ";
      for (int k = 0; k < 3; ++k) list += std::to_string(6 + 2 * k + j) + (k < 2 ? " " : "");
      product.push_back(list);
    }
  }
  const std::string svg = draw::einsum("i k, k j -> i j", {{2, 3}, {3, 2}});
  EXPECT_EQ(told(svg), product);
  EXPECT_NE(svg.find("Axis k 3: of operand 1 and operand 2, summed."), std::string::npos);
  EXPECT_NE(svg.find("Axis i 2: of operand 1, kept."), std::string::npos);
}

TEST(CallPicture, AnEinsumHasALineForEachEndOfAnAxisAndItsLoops) {
  const std::string svg = draw::einsum("b q d, b k d -> b q k", {{2, 5, 64}, {2, 7, 64}});
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  // d between the operands; b from both, q and k to the result.
  EXPECT_EQ(count(svg, "class=\"line wide "), 5u);
  EXPECT_EQ(count(svg, ">for </tspan>"), 4u);
  EXPECT_EQ(count(svg, "> of 64</tspan>"), 1u);
  EXPECT_EQ(count(svg, ">result[</tspan>"), 2u);
  // One that is summed alone, one that is twice in an operand.
  EXPECT_EQ(count(draw::einsum("i i, j -> "), "class=\"line wide "), 5u);
}

TEST(CallPicture, IsSmallWhateverTheShapes) {
  const std::int64_t billion = 1'000'000'000;
  for (const std::string& svg :
       {draw::rearrange("b s (h d) -> b h s d", {{billion, 128, 512}}, {"h"_a = 8}),
        draw::rearrange("a b c d e f g h -> h g f e d c b a"),
        draw::rearrange("... c -> c ...", {{7, 1, 9, billion}}),
        draw::rearrange("*batch c -> c *batch", {{7, 6, 9, 5}}), draw::repeat("a -> a 1000000"),
        draw::reduce("a b=900 -> a", Reduction::mean),
        draw::rearrange("(q + k + v) d -> q d, k d, v d", {{900, 5}}, {"q"_a = 500, "k"_a = 100}),
        draw::einsum("b {2*y + ky - 1} {2*x + kx - 1} c, ky kx c o -> b y x o",
                     {{8, 224, 224, 3}, {3, 3, 3, 64}}),
        draw::einsum("a b, b c, c d, d e, e f -> a f")}) {
    EXPECT_EQ(XmlCheck(svg).mistake(), "");
    EXPECT_LT(svg.size(), 100'000u) << svg.substr(0, 300);
    EXPECT_LE(groups_of(svg).size(), 6 * 36u);
  }
  EXPECT_NE(draw::rearrange("a b -> b a", {{billion, 2}}).find("a 4 for 1000000000"),
            std::string::npos);
}

TEST(CallPicture, WhatCannotBeDrawnSaysWhy) {
  std::string many;
  for (int i = 0; i < 20; ++i) many += "x" + std::to_string(i) + " ";
  test::expect_error([&] { draw::rearrange(many + "-> " + many); }, ErrorKind::value,
                     {"20 axes", "at most 16"});
  test::expect_error([] { draw::einsum("{t + 1000}, -> t"); }, ErrorKind::value,
                     {"more than 36 elements", "numbers in braces"});
  test::expect_error([] { draw::rearrange("b@data s -> s b@data"); }, ErrorKind::value,
                     {"axes of a mesh"});
  test::expect_error([] { draw::rearrange("b s -> b"); }, ErrorKind::pattern, {"'s'"});
  test::expect_error([] { draw::rearrange("b (s -> b s"); }, ErrorKind::syntax, {"closed"});
  test::expect_error(
      [] {
        draw::einsum("a b, b c -> a c", {{2, 3}, {4, 5}});
      },
      ErrorKind::size, {"axis 'b' has two sizes"});
}

TEST(CallPicture, OfNothingIsEmpty) {
  const std::string svg = draw::rearrange("a b -> b a", {{0, 3}});
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  EXPECT_EQ(groups_of(svg).size(), 0u);
  EXPECT_EQ(groups_of(draw::reduce("a b ->", Reduction::sum, {{0, 3}})).size(), 1u);
  // Where the outer one of two axes in a direction has none, so has the inner.
  EXPECT_EQ(groups_of(draw::rearrange("a b c -> c b a", {{0, 2, 3}})).size(), 0u);
  EXPECT_EQ(groups_of(draw::rearrange("{2*t + k - 1} -> t k", {}, {"t"_a = 0})).size(), 1u);
}

std::string picture_of_mistake(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return draw::mistake(error);
  }
  ADD_FAILURE() << "no mistake";
  return "";
}

TEST(CallPicture, AMistakeIsUnderlined) {
  const std::string svg = picture_of_mistake([] {
    draw::einsum("b s1 h, b s2 h -> b s1 s2", {{2, 3, 64}, {2, 5, 32}});
  });
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  EXPECT_EQ(count(svg, "height=\"3\""), 2u);  // a line for each run of carets
  EXPECT_NE(svg.find("axis 'h' has two sizes: 64 in operand 1, 32 in operand 2"),
            std::string::npos);
  EXPECT_EQ(count(svg, ">h</tspan>"), 2u);
}

TEST(CallPicture, TextsOfStrangersAreEscaped) {
  const Error error(ErrorKind::value,
                    "<script>alert(\"x\")</script> & \x01\x1b[31m ]]> \xff\n  ^^");
  const std::string svg = draw::mistake(error);
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  for (const char c : svg) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_EQ(draw::escaped("a<b>&\"c\x02\n"), "a&lt;b&gt;&amp;&quot;c? ");
  std::string endless = "a: ";
  endless.append(1'000'000, '(');
  EXPECT_LT(draw::mistake(Error(ErrorKind::syntax, endless)).size(), 20'000u);
}

// Of indices at random: each result is made of what the call reads there.
TEST(CallPicture, WhatIsReachedIsWhatTheCallReads) {
  std::mt19937 random(7);
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::string> names{"a", "b", "c", "d"};
    std::shuffle(names.begin(), names.end(), random);
    const std::size_t rank = 1 + random() % 4, kept = random() % (rank + 1);
    std::string pattern;
    Shape shape;
    for (std::size_t i = 0; i < rank; ++i) {
      pattern += names[i] + " ";
      shape.push_back(static_cast<std::int64_t>(1 + random() % 3));
    }
    pattern += "->";
    std::vector<std::string> output(names.begin(), names.begin() + static_cast<long>(kept));
    std::shuffle(output.begin(), output.end(), random);
    for (const std::string& name : output) pattern += " " + name;
    const grammar::Reading reading = grammar::parse_pattern(pattern);
    PatternCall call{.op = Operation::reduce, .pattern = reading.buffer.pattern(pattern)};
    const OperandType operand{shape, DType::f32};
    const draw::Sources reached = draw::reach(build_graph(call, std::span(&operand, 1)))[0];
    // A one in a place reaches the sums that read it.
    const Tensor x = numbered(shape).to(DType::f32);
    for (std::int64_t e = 0; e < x.numel(); ++e) {
      const Tensor sums =
          reduce((x == static_cast<double>(e)).to(DType::f32), runtime(pattern), Reduction::sum)
              .contiguous();
      for (std::size_t r = 0; r < reached.size(); ++r) {
        const bool reads = std::count(reached[r].begin(), reached[r].end(), e) > 0;
        EXPECT_EQ(reads, sums.data<float>()[r] != 0) << pattern << " " << e << " " << r;
      }
    }
  }
}

/// Of WCAG 2.1: contrast ratio of relative luminances.
double contrast(std::uint32_t a, std::uint32_t b) {
  const auto luminance = [](std::uint32_t colour) {
    double sum = 0;
    const double weights[] = {0.2126, 0.7152, 0.0722};
    for (int c = 0; c < 3; ++c) {
      const double v = (colour >> (16 - 8 * c) & 0xFF) / 255.0;
      sum += weights[c] * (v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

TEST(CallPicture, TextsCanBeReadOnLightAndDarkPages) {
  const auto expect_readable = [](const draw::Paint& text, const draw::Paint& under) {
    EXPECT_GE(contrast(text.light, under.light), 4.5) << std::hex << text.light;
    EXPECT_GE(contrast(text.dark, under.dark), 4.5) << std::hex << text.dark;
  };
  expect_readable(draw::ink, draw::page);
  expect_readable(draw::dim, draw::page);
  expect_readable(draw::wrong, draw::page);
  for (std::size_t h = 0; h < draw::hues; ++h) {
    expect_readable(draw::hue(h), draw::page);
    for (std::size_t step = 0; step < 4; ++step)
      expect_readable(draw::ink, draw::shade(draw::hue(h), step));
  }
}

TEST(CallPicture, SaysWhatItShowsToThoseWhoDoNotSee) {
  const std::string svg = draw::rearrange("h w -> w h", {{2, 3}});
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\""), 0u);
  EXPECT_NE(svg.find("<title>rearrange  h w -&gt; w h</title>"), std::string::npos);
  EXPECT_NE(svg.find("<desc>rearrange  h w -&gt; w h: (2, 3) becomes (3, 2), where h 2, w 3."),
            std::string::npos);
  EXPECT_NE(svg.find("@media(prefers-color-scheme:dark)"), std::string::npos);
  EXPECT_EQ(svg, draw::rearrange("h w -> w h", {{2, 3}}));
}

}  // namespace
}  // namespace ein
