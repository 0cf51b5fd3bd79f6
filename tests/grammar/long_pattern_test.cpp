// Patterns too long for a line: messages show the parts around the carets, which stay where they
// belong.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <ein/error.hpp>
#include <ein/grammar/show_pattern.hpp>

#include "graph/diagnostic.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

struct Shown {
  std::string pattern, carets;
};

/// The second line and the third of a message.
Shown shown(const std::string& text) {
  const std::size_t first = text.find('\n') + 1, second = text.find('\n', first) + 1;
  const std::size_t third = text.find('\n', second);
  return {text.substr(first, second - first - 1), text.substr(second, third - second)};
}

/// The code points from one column to another.
std::string columns(const std::string& text, std::size_t begin, std::size_t end) {
  std::string part;
  std::size_t column = 0;
  for (const char c : text) {
    column += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (column > begin && column <= end) part += c;
  }
  return part;
}

std::size_t width(const std::string& text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

/// What stands above each run of carets.
std::vector<std::string> marked(const Shown& lines) {
  std::vector<std::string> parts;
  for (std::size_t end = 0, begin; (begin = lines.carets.find('^', end)) != std::string::npos;) {
    end = std::min(lines.carets.find(' ', begin), lines.carets.size());
    parts.push_back(columns(lines.pattern, begin, end));
  }
  return parts;
}

std::string message(const std::string& pattern, const std::vector<Mark>& marks) {
  try {
    fail(ErrorKind::pattern, "einsum", "what is wrong", pattern, marks);
  } catch (const Error& error) {
    EXPECT_EQ(error.spans().size(), marks.size());
    return error.what();
  }
}

/// About `bytes` of names that are all different, and where each is.
struct LongPattern {
  std::string text;
  std::vector<SourceSpan> names;
};
LongPattern long_pattern(std::size_t bytes) {
  LongPattern made;
  while (made.text.size() < bytes) {
    const auto begin = static_cast<std::uint32_t>(made.text.size());
    made.text +=
        (made.names.size() % 3 == 0 ? "\xce\xb1x" : "ax") + std::to_string(made.names.size());
    made.names.push_back({begin, static_cast<std::uint32_t>(made.text.size())});
    made.text += ' ';
  }
  return made;
}

TEST(LongPatterns, AreCutAroundTheCaret) {
  const LongPattern made = long_pattern(10 << 10);
  for (std::size_t i = 0; i < made.names.size(); ++i) {
    const SourceSpan span = made.names[i];
    const Shown lines = shown(message(made.text, {{span, "7"}}));
    const std::string name = made.text.substr(span.begin, span.end - span.begin);
    ASSERT_EQ(marked(lines), std::vector<std::string>{name}) << lines.pattern;
    ASSERT_GE(width(lines.pattern), 100u);
    ASSERT_LE(width(lines.pattern), 125u) << lines.pattern;
    const std::size_t after = made.names.size() - i;
    if (i < 8 || i > 20) {
      ASSERT_EQ(lines.pattern.starts_with("  ..."), i > 20) << lines.pattern;
    }
    if (after < 5 || after > 20) {
      ASSERT_EQ(lines.pattern.ends_with("..."), after > 20) << lines.pattern;
    }
  }
}

TEST(LongPatterns, ShowEveryPlaceThatThereIsRoomFor) {
  const LongPattern made = long_pattern(10 << 10);
  test::for_seeds(200, [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Mark> marks;
    std::vector<std::string> names;
    std::size_t last = 0;
    for (int i = 0; i < 2; ++i) {
      last += 1 + random() % (made.names.size() / 2 - 1);
      const SourceSpan span = made.names[last];
      marks.push_back({span, std::to_string(i)});
      names.push_back(made.text.substr(span.begin, span.end - span.begin));
    }
    const Shown lines = shown(message(made.text, marks));
    EXPECT_EQ(marked(lines), names) << lines.pattern;
    EXPECT_LE(width(lines.pattern), 215u) << lines.pattern;
  });
  // Of more than there is room for the first.
  std::vector<Mark> marks;
  for (const SourceSpan span : made.names) marks.push_back({span, ""});
  const Shown lines = shown(message(made.text, marks));
  EXPECT_LE(width(lines.pattern), 215u);
  const std::vector<std::string> parts = marked(lines);
  ASSERT_GT(parts.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(parts[i],
              made.text.substr(made.names[i].begin, made.names[i].end - made.names[i].begin));
}

TEST(LongPatterns, EndsAreMarked) {
  const LongPattern made = long_pattern(10 << 10);
  const auto size = static_cast<std::uint32_t>(made.text.size());
  const Shown all = shown(message(made.text, {{{0, size}, ""}}));
  EXPECT_LE(width(all.pattern), 215u);
  EXPECT_TRUE(all.pattern.starts_with("  \xce\xb1x0 ax1 ")) << all.pattern;
  EXPECT_EQ(all.carets.find_first_not_of(" ^"), std::string::npos);
  const Shown past = shown(message(made.text, {{{size, size}, ""}}));
  EXPECT_TRUE(past.pattern.starts_with("  ..."));
  EXPECT_EQ(past.carets.find('^'), width(past.pattern) + 1);  // behind the blank at the end
  EXPECT_LE(width(message(made.text, {})), 130u);
}

TEST(LongPatterns, OthersAreShownWhole) {
  const std::string text(120, 'a');
  EXPECT_EQ(shown(message(text, {{{119, 120}, ""}})).pattern, "  " + text);
  EXPECT_EQ(ein::quoted(text), "'" + text + "'");
  EXPECT_EQ(ein::quoted(text + "a"), "'" + text.substr(0, 100) + "...'");
}

}  // namespace
}  // namespace ein
