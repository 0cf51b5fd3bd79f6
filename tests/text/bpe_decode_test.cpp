// Ids to texts.
#include <gtest/gtest.h>

#include <ein/text.hpp>

#include "text/character.hpp"

namespace ein {
namespace {

using Ids = std::vector<std::int32_t>;

/// Python: bytes.decode("utf-8", errors="replace"); U+FFFD is written as '?'.
TEST(BpeDecode, MalformedPartsBecomeOneCharacterEach) {
  const auto replaced = [](std::string_view bytes) {
    std::string text = text::replace_malformed(bytes);
    for (std::size_t at; (at = text.find("\uFFFD")) != text.npos;) text.replace(at, 3, "?");
    return text;
  };
  for (const auto& [bytes, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"a\u00e9\u4e2d\U0001F600", "a\u00e9\u4e2d\U0001F600"},
           {"\x80", "?"},
           {"\xc0\x80", "??"},
           {"\xc3", "?"},
           {"\xc3(", "?("},
           {"\xe4\xb8", "?"},
           {"\xe4\xb8x", "?x"},
           {"\xe0\x80\x80", "???"},
           {"\xed\xa0\x80", "???"},
           {"\xf0\x9f\x98", "?"},
           {"\xf0\x9f\x98\xc3\xa9", "?\u00e9"},
           {"\xf0\x80\x80\x80", "????"},
           {"\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64",
            "???b?c??d"},  // Unicode 16, table 3-11
           {"\xf4\x90\x80\x80", "????"},
           {"\xf5\xff", "??"},
       }) {
    EXPECT_EQ(replaced(bytes), wanted) << testing::PrintToString(bytes);
  }
}

TEST(BpeDecode, PartsOfCharactersMeet) {
  const BpeTokenizer tokenizer =
      train_bpe("", {.vocabulary_size = 257, .special_tokens = {"<|end|>"}});
  const std::string text = "hello! \u3053\u3093\u306b\u3061\u306f!<|end|>";
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), 24u);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.decode(ids, {.skip_special_tokens = true}), text.substr(0, 23));
  EXPECT_EQ(tokenizer.decode(std::span(ids).first(9)), "hello! \uFFFD");
  EXPECT_EQ(tokenizer.decode_bytes(std::span(ids).first(9)), "hello! \xe3\x81");
  EXPECT_EQ(tokenizer.decode({}), "");
}

}  // namespace
}  // namespace ein
