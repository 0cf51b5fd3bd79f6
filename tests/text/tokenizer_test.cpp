#include <gtest/gtest.h>

#include <random>
#include <string>

#include <ein/error.hpp>
#include <ein/tokenizer.hpp>

namespace ein {
namespace {

using Ids = std::vector<std::int32_t>;

template <class F>
void expect_refused(const std::string& reason, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos)
        << "wanted: " << reason << "\ngot: " << error.what();
  }
}

TEST(ByteTokenizerTest, EveryByteIsItsValue) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocabulary_size(), 256);
  std::string text;
  Ids ids;
  for (int i = 255; i >= 0; --i) {
    text += static_cast<char>(i);
    ids.push_back(i);
  }
  EXPECT_EQ(tokenizer.encode(text), ids);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.encode("a\u00e9"), (Ids{97, 0xc3, 0xa9}));
  EXPECT_TRUE(tokenizer.encode("").empty());
  expect_refused("id 256 at place 1 is outside of the vocabulary of 256", [&] {
    tokenizer.decode(Ids{0, 256});
  });
  expect_refused("id -1 at place 0", [&] { tokenizer.decode(Ids{-1}); });
}

TEST(CharTokenizerTest, IdsAreRanksOfCodePoints) {
  // Python: sorted(set("hello, World\n"))
  const CharTokenizer tokenizer("hello, World\n");
  EXPECT_EQ(tokenizer.vocabulary_size(), 10);
  EXPECT_EQ(tokenizer.vocabulary(), "\n ,Wdehlor");
  EXPECT_EQ(tokenizer.encode("hello, World\n"), (Ids{6, 5, 7, 7, 8, 2, 1, 3, 8, 9, 7, 4, 0}));
  EXPECT_EQ(tokenizer.decode(Ids{3, 8, 9, 7, 4}), "World");
}

TEST(CharTokenizerTest, TheVocabularyOfTheShakespeareModel) {
  // The 65 characters that nanoGPT's data/shakespeare_char/prepare.py prints.
  const std::string characters =
      "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const CharTokenizer tokenizer(std::string(characters.rbegin(), characters.rend()) + characters);
  EXPECT_EQ(tokenizer.vocabulary_size(), 65);
  EXPECT_EQ(tokenizer.vocabulary(), characters);
  EXPECT_EQ(tokenizer.encode("First Citizen:\n"),
            (Ids{18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10, 0}));
}

TEST(CharTokenizerTest, CodePointsOfEveryLength) {
  const std::string text =
      std::string("z\0", 2) + "\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff";
  const CharTokenizer tokenizer(text);
  EXPECT_EQ(tokenizer.encode(text), (Ids{1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.vocabulary(), std::string("\0z", 2) + text.substr(2));
}

TEST(CharTokenizerTest, UnknownCharactersAreNamed) {
  const CharTokenizer tokenizer("ab\u00e9");
  expect_refused("the character U+0063 'c' at byte 4 (character 3) is not in the vocabulary of 3",
                 [&] { tokenizer.encode("a\u00e9bcd"); });
  expect_refused("the character U+20AC '\u20ac' at byte 0", [&] { tokenizer.encode("\u20ac"); });
  expect_refused("the character U+01F600 '\U0001F600' at byte 1",
                 [&] { tokenizer.encode("a\U0001F600"); });
  expect_refused("the character U+000A at byte 1", [&] { tokenizer.encode("a\n"); });
  expect_refused("id 3 at place 2 is outside of the vocabulary of 3", [&] {
    tokenizer.decode(Ids{0, 1, 3});
  });
  expect_refused("id -2147483648 at place 0", [&] { tokenizer.decode(Ids{INT32_MIN}); });
  const CharTokenizer none("");
  EXPECT_EQ(none.vocabulary_size(), 0);
  EXPECT_TRUE(none.encode("").empty());
  expect_refused("vocabulary of 0", [&] { none.encode("a"); });
}

TEST(CharTokenizerTest, InvalidUtf8IsRefused) {
  // RFC 3629: stray and missing continuations, overlong forms, surrogates, beyond U+10FFFF.
  for (const std::string bad :
       {"\x80", "\xbf", "\xc3", "\xc3(", "\xc0\x80", "\xc1\xbf", "\xe2\x82", "\xe2\x28\xa1",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff"}) {
    expect_refused("not valid UTF-8 at byte 3 (character 2)",
                   [&] { CharTokenizer("\u00e9x" + bad); });
    expect_refused("not valid UTF-8 at byte 1", [&] { CharTokenizer("x").encode("x" + bad); });
  }
}

TEST(CharTokenizerTest, RandomBytesAreRefusedOrKept) {
  constexpr std::uint32_t seed = 3;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int kept = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 6, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 256 : random() % 128);
    try {
      const CharTokenizer tokenizer(text);
      ++kept;
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
    }
  }
  EXPECT_GT(kept, 100);
  EXPECT_LT(kept, 1900);
}

// CS336, assignment 1: 13 characters are 23 bytes.
TEST(TokenizerTest, TheCoursesGreeting) {
  const std::string greeting = "hello! \u3053\u3093\u306b\u3061\u306f!";
  EXPECT_EQ(CharTokenizer(greeting).encode(greeting).size(), 13u);
  EXPECT_EQ(ByteTokenizer().encode(greeting).size(), 23u);
}

TEST(TokenizerTest, SavedAndLoaded) {
  const std::string text = std::string("q\"\\\n\0", 5) + "\u00e9\U0001F600";
  const CharTokenizer characters(text);
  const auto loaded = load_tokenizer(characters.save());
  EXPECT_EQ(loaded->vocabulary_size(), 7);
  EXPECT_EQ(loaded->encode(text), characters.encode(text));
  EXPECT_EQ(loaded->save(), characters.save());
  const auto bytes = load_tokenizer(ByteTokenizer().save());
  EXPECT_EQ(bytes->vocabulary_size(), 256);
  EXPECT_EQ(load_tokenizer(CharTokenizer("").save())->vocabulary_size(), 0);
  for (const std::string bad : {"", "byte", "bytes ", "characters", "bpe:ab"}) {
    expect_refused("load_tokenizer", [&] { load_tokenizer(bad); });
  }
  for (const std::string bad : {"characters:ba", "characters:aa"}) {
    expect_refused("in order, and each there once", [&] { load_tokenizer(bad); });
  }
  expect_refused("not valid UTF-8", [&] { load_tokenizer("characters:\xff"); });
}

}  // namespace
}  // namespace ein
