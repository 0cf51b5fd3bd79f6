// Texts to ids: the published encodings, streams, bytes that are no UTF-8.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include <ein/text.hpp>

#include "support/expect_error.hpp"
#include "support/project.hpp"
#include "support/shared_data.hpp"
#include "support/tokenizer_cases.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::Ids;
using test::streamed;

nlohmann::json json_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// Made by the tokenizers library 0.23.3, by scripts/compare-tokenizers --write.
TEST(BpeEncode, AsTheTokenizersLibrary) {
  std::size_t files = 0, texts = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::project / "tests/fixtures/text")) {
    const std::string path = entry.path().string();
    if (!path.ends_with("-cases.json")) continue;
    SCOPED_TRACE(path);
    const BpeTokenizer tokenizer = load_bpe(path.substr(0, path.rfind("-cases.json")) + ".json");
    const test::CaseResults results = test::compare_cases(tokenizer, json_of(path));
    for (const std::string& difference : results.differences) ADD_FAILURE() << difference;
    ++files;
    texts += results.texts;
  }
  EXPECT_EQ(files, 9u);
  EXPECT_GE(texts, 350u);
}

/// One of their vocabulary and merges, as a tokenizer.json.
BpeTokenizer of_json(const std::string& vocabulary, const std::string& merges,
                     const std::string& fields = "") {
  return bpe_of_json(
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab": )" +
      vocabulary + ", \"merges\": " + merges + fields);
}

TEST(BpeEncode, TheCoursesExample) {
  const BpeTokenizer tokenizer = of_json(
      R"({"\u0120": 0, "a": 1, "c": 2, "e": 3, "h": 4, "t": 5, "th": 6, "\u0120c": 7, "\u0120a": 8, "the": 9, "\u0120at": 10})",
      R"(["t h", "\u0120 c", "\u0120 a", "th e", "\u0120a t"]}})");
  EXPECT_EQ(tokenizer.encode("the cat ate"), (Ids{9, 7, 1, 5, 10, 3}));
  EXPECT_EQ(tokenizer.vocabulary_size(), 11);
  expect_error([&] { tokenizer.encode("the\x04 bat"); }, ErrorKind::value,
               {"BpeTokenizer: the vocabulary has no token for the byte 0x04, at place 0 of the "
                "pre-token"});
  expect_error([&] { tokenizer.encode("the bat"); }, ErrorKind::value,
               {"the byte 0x62, at place 1 of the pre-token ' bat'"});
  expect_error(
      [&] {
        tokenizer.decode(Ids{0, 11});
      },
      ErrorKind::value, {"no token has the id 11 at place 1; ids are below 11"});
  expect_error([&] { tokenizer.decode(Ids{-1}); }, ErrorKind::value,
               {"no token has the id -1 at place 0"});
}

TEST(BpeEncode, WholePreTokensBeforeMerges) {
  const std::string vocabulary = R"({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5})",
                    merges = R"(["b c", "a b"]})";
  EXPECT_EQ(of_json(vocabulary, merges, "}").encode("abc"), (Ids{0, 4}));
  EXPECT_EQ(of_json(vocabulary, R"(["b c", "a b"], "ignore_merges": true})", "}").encode("abc"),
            (Ids{5}));
}

class Gpt2 : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SHARED_DATA("cs336"); }
  static BpeTokenizer gpt2(std::vector<std::string> specials) {
    return load_bpe_files(test::shared_data("cs336/a1/fixtures/gpt2_vocab.json"),
                          test::shared_data("cs336/a1/fixtures/gpt2_merges.txt"),
                          {.special_tokens = std::move(specials)});
  }
};

TEST_F(Gpt2, EncodingsOfTheCourse) {
  std::size_t cases = 0;
  for (const auto& row : json_of(test::shared_data("cs336/a1/own-gpt2-encodings.json"))) {
    SCOPED_TRACE(row.dump().substr(0, 200));
    const std::string text = row.contains("text") && row["text"].is_string()
                                 ? row["text"].get<std::string>()
                                 : test::shared_bytes("cs336/a1/" + row["file"].get<std::string>());
    const BpeTokenizer tokenizer = gpt2(row.value("special_tokens", std::vector<std::string>()));
    const auto ids = row["ids"].get<Ids>();
    EXPECT_EQ(tokenizer.encode(text), ids);
    EXPECT_EQ(streamed(tokenizer, text, cases), ids);
    EXPECT_EQ(tokenizer.decode(ids), text);
    ++cases;
  }
  EXPECT_GE(cases, 8u);
}

TEST_F(Gpt2, FixturesOfTheCourse) {
  const BpeTokenizer tokenizer = gpt2({"<|endoftext|>", "<|endoftext|><|endoftext|>"});
  EXPECT_EQ(tokenizer.added_token("<|endoftext|>"), 50256);
  EXPECT_EQ(tokenizer.added_token("<|endoftext|><|endoftext|>"), 50257);
  const auto encoded = [&](const std::string& name) {
    const std::string path = test::shared_data("cs336/a1/fixtures/" + name),
                      text = test::read_bytes(path);
    Ids ids;
    encode_file(path, tokenizer, [&](std::span<const std::int32_t> some) {
      ids.insert(ids.end(), some.begin(), some.end());
    });
    EXPECT_EQ(tokenizer.encode(text), ids);
    EXPECT_EQ(tokenizer.decode_bytes(ids), text);
    return ids;
  };
  const auto bytes_per_token = [&](const std::string& name) {
    return static_cast<double>(
               std::filesystem::file_size(test::shared_data("cs336/a1/fixtures/" + name))) /
           static_cast<double>(encoded(name).size());
  };
  EXPECT_NEAR(bytes_per_token("address.txt"), 4.59, 0.005);
  EXPECT_NEAR(bytes_per_token("german.txt"), 3.13, 0.005);
  EXPECT_NEAR(bytes_per_token("tinystories_sample.txt"), 4.11, 0.005);
  EXPECT_EQ(encoded("special_token_trailing_newlines.txt"), (Ids{50256, 628}));
  EXPECT_EQ(encoded("special_token_double_newlines_non_whitespace.txt"),
            (Ids{50256, 198, 198, 33407, 0}));
}

TEST(BpeEncode, SmallTokenizersBesideTheRepository) {
  SKIP_WITHOUT_SHARED_DATA("tiny-tokenizers");
  for (const std::string name : {"gpt2", "llama3", "qwen"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path folder = test::shared_data("tiny-tokenizers");
    const BpeTokenizer tokenizer = load_bpe((folder / (name + ".json")).string());
    std::size_t number = 0;
    for (const auto& row : json_of(folder / (name + "-expected.json"))) {
      const auto text = row["text"].get<std::string>();
      const auto ids = row["ids"].get<Ids>();
      EXPECT_EQ(tokenizer.encode(text), ids) << text;
      EXPECT_EQ(streamed(tokenizer, text, number++), ids) << text;
      EXPECT_EQ(tokenizer.encode(text, {.add_template = true}), row.value("ids_with_template", ids))
          << text;
      EXPECT_EQ(tokenizer.decode(ids), row.value("decoded", text)) << text;
    }
    EXPECT_GT(number, 160u);
  }
}

/// Bytes of all kinds, whole characters among them.
std::string random_bytes(std::mt19937& random) {
  const std::vector<std::string> parts{
      "the",    " ",          "\n",           "'s", "\u00e9",        "e\u0301",
      "\u4e2d", "\U0001F600", "\u1100\u1161", "12", "<|endoftext|>", "<|end"};
  std::string text;
  for (unsigned i = 0, count = random() % 12; i < count; ++i) {
    if (random() % 2)
      text += parts[random() % parts.size()];
    else
      text += static_cast<char>(random() % 256);
  }
  return text;
}

TEST(BpeEncode, AnyBytesComeBack) {
  for (const auto& entry :
       std::filesystem::directory_iterator(test::project / "tests/fixtures/text")) {
    const std::string path = entry.path().string();
    if (path.ends_with("-cases.json")) continue;
    SCOPED_TRACE(path);
    const BpeTokenizer tokenizer = load_bpe(path);
    const bool normalizes = path.find("qwen2") != path.npos,
               adds_space = path.find("space") != path.npos;
    std::mt19937 random(3);
    for (std::size_t i = 0; i < 2000; ++i) {
      const std::string text = random_bytes(random);
      const Ids ids = tokenizer.encode(text);
      ASSERT_EQ(streamed(tokenizer, text, i), ids) << testing::PrintToString(text);
      if (normalizes || adds_space) continue;
      ASSERT_EQ(tokenizer.decode_bytes(ids), text) << testing::PrintToString(text);
    }
  }
}

/// A pre-token without an end comes in pieces, and is not read again for each.
TEST(BpeEncode, LongPreTokens) {
  const BpeTokenizer tokenizer =
      train_bpe("aaaa aaaa", {.vocabulary_size = 258, .special_tokens = {}});
  const std::string text(300'000, 'a');
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), text.size() / 4);
  EXPECT_EQ(streamed(tokenizer, text, 0), ids);
}

TEST(BpeEncode, AnotherTextFollows) {
  const BpeTokenizer tokenizer = train_bpe("ab ab", {.vocabulary_size = 258, .special_tokens = {}});
  BpeStream stream(tokenizer);
  Ids ids;
  stream.add("ab", ids);
  stream.finish(ids);
  stream.add("ab", ids);
  stream.finish(ids);
  Ids twice = tokenizer.encode("ab");
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_EQ(ids, twice);
}

}  // namespace
}  // namespace ein
