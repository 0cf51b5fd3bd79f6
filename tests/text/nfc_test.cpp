// Normalization Form C.
#include <gtest/gtest.h>

#include <random>

#include "text/nfc.hpp"

namespace ein {
namespace {

std::string nfc(const std::string& text) { return text::nfc(text, true).text; }

/// Rows of NormalizationTest.txt and examples of Unicode Standard Annex 15.
TEST(Nfc, Examples) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"abc", "abc"},
           {"e\u0301", "\u00e9"},
           {"\u212b", "\u00c5"},              // a sign that is a letter
           {"\u1e0a\u0323", "\u1e0c\u0307"},  // marks in the order of their classes
           {"\u1e0b\u0323\u0301", "\u1e0d\u0307\u0301"},
           {"a\u0315\u0300\u05ae\u0300b", "\u00e0\u05ae\u0300\u0315b"},
           {"\u0958", "\u0915\u093c"},  // excluded from composition
           {"\u1100\u1161\u11a8", "\uac01"},
           {"\uac00\u11a8", "\uac01"},
           {"\uac00\u11a7", "\uac00\u11a7"},
           {"\u1100\u0300\u1161", "\u1100\u0300\u1161"},  // a mark between them
           {"\u09c7\u09be", "\u09cb"},                    // two of class 0
           {"\u0b47\u0300\u0b3e", "\u0b47\u0300\u0b3e"},
           {"\u0344", "\u0308\u0301"},
           {"\U0001109b\U000110ba", "\U0001109c"},
           {"\uf900", "\u8c48"},
           {"\u0301e\u0301", "\u0301\u00e9"},
           {"e\xff\u0301\xe4\xb8", "e\xff\u0301\xe4\xb8"},  // no UTF-8 between them
       }) {
    EXPECT_EQ(nfc(from), to) << testing::PrintToString(from);
    EXPECT_EQ(nfc(to), to);
  }
}

TEST(Nfc, PiecesGiveTheWhole) {
  const std::vector<std::string> parts{"a",      " ",      "\u00e9", "e",      "\u0301",
                                       "\u0323", "\u1100", "\u1161", "\u11a8", "\uac00",
                                       "\u212b", "\xff",   "\u4e2d", "\u0958"};
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (unsigned i = 0, count = random() % 12; i < count; ++i)
      text += parts[random() % parts.size()];
    std::string pieces, kept;
    for (std::size_t at = 0, size; at < text.size(); at += size) {
      size = 1 + random() % 4;
      kept += text.substr(at, size);
      const text::Normalized some = text::nfc(kept, false);
      pieces += some.text;
      kept.erase(0, some.bytes);
    }
    EXPECT_EQ(pieces + nfc(kept), nfc(text)) << testing::PrintToString(text);
    EXPECT_EQ(nfc(nfc(text)), nfc(text));
  }
}

}  // namespace
}  // namespace ein
