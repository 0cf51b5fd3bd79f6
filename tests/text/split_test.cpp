// Splitting rules, on texts that each clause of a pattern decides.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/split.hpp"

namespace ein {
namespace {

using Parts = std::vector<std::string>;

Parts split(SplitRule rule, std::string_view text) {
  text::Splitter splitter(rule);
  Parts parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = splitter.next(text, at, true);
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

TEST(Split, Gpt2) {
  const auto of = [](std::string_view text) { return split(SplitRule::gpt2, text); };
  EXPECT_EQ(of("some text that i'll pre-tokenize"),
            (Parts{"some", " text", " that", " i", "'ll", " pre", "-", "tokenize"}));
  EXPECT_EQ(of("'S 's'st ''d ..'ll"),
            (Parts{"'", "S", " '", "s", "'s", "t", " ''", "d", " ..'", "ll"}));
  EXPECT_EQ(of("a  b\n\n c \n"), (Parts{"a", " ", " b", "\n\n", " c", " \n"}));
  EXPECT_EQ(of("x\u3000\u3000y 12\u00bd3 \u4e2d"),
            (Parts{"x", "\u3000", "\u3000", "y", " 12\u00bd3", " \u4e2d"}));
  EXPECT_EQ(of("e\u0301 \xff\xff"), (Parts{"e", "\u0301", " \xff\xff"}));
}

TEST(Split, Llama3) {
  const auto of = [](std::string_view text) { return split(SplitRule::llama3, text); };
  EXPECT_EQ(of("I'LL 'Sit\u017f'\u017fx"), (Parts{"I", "'LL", " '", "Sit\u017f", "'\u017f", "x"}));
  EXPECT_EQ(of("1234567 89"), (Parts{"123", "456", "7", " ", "89"}));
  EXPECT_EQ(of("\tword (word \u0301word"), (Parts{"\tword", " (", "word", " \u0301", "word"}));
  EXPECT_EQ(of("a  \n \n  b..\r\n c"), (Parts{"a", "  \n \n", " ", " b", "..\r\n", " c"}));
  EXPECT_EQ(of("a  1  "), (Parts{"a", " ", " ", "1", "  "}));
}

TEST(Split, Qwen) {
  EXPECT_EQ(split(SplitRule::qwen2, "12 e\u0301x"), (Parts{"1", "2", " e", "\u0301x"}));
  EXPECT_EQ(split(SplitRule::qwen35, "12 e\u0301x \u0301\u0302."),
            (Parts{"1", "2", " e\u0301x", " \u0301\u0302", "."}));
}

TEST(Split, Smollm2) {
  EXPECT_EQ(split(SplitRule::smollm2, "a  12 'l3"), (Parts{"a", "  ", "1", "2", " '", "l", "3"}));
}

TEST(Split, PatternsAreThoseOfTheRules) {
  for (const SplitRule rule :
       {SplitRule::gpt2, SplitRule::llama3, SplitRule::qwen2, SplitRule::qwen35}) {
    EXPECT_EQ(text::rule_of_pattern(text::pattern_of(rule)), rule);
    EXPECT_EQ(split_rule_named(name(rule)), rule);
  }
  EXPECT_EQ(text::rule_of_pattern(""), std::nullopt);
  EXPECT_EQ(split_rule_named("gpt3"), std::nullopt);
}

/// What is certain of a beginning is so of the whole.
TEST(Split, BeginningsOfTexts) {
  const std::string text = "I'll  go 12345\r\n \n now'\u017f e\u0301. ";
  for (const SplitRule rule : {SplitRule::gpt2, SplitRule::llama3, SplitRule::qwen2,
                               SplitRule::qwen35, SplitRule::smollm2}) {
    SCOPED_TRACE(name(rule));
    text::Splitter splitter(rule);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = splitter.next(text, at, true);
      std::size_t certain = 0;
      for (std::size_t size = at + 1; size <= text.size(); ++size) {
        std::string_view part = std::string_view(text).substr(0, size);
        part.remove_suffix(text::cut_character(part));
        if (part.size() <= at) continue;
        const std::size_t got = splitter.next(part, at, false);
        if (got == 0) {
          EXPECT_EQ(certain, 0u) << "no longer certain";
          continue;
        }
        EXPECT_EQ(got, end);
        certain = got;
      }
      at = end;
    }
  }
}

}  // namespace
}  // namespace ein
