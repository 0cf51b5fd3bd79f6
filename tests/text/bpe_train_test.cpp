// Training of byte-level BPE, beside the examples and the reference of Stanford's CS336,
// assignment 1.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include <ein/parallel.hpp>
#include <ein/text.hpp>
#include <nlohmann/json.hpp>

#include "support/expect_error.hpp"
#include "support/shared_data.hpp"
#include "text/pre_tokens.hpp"
#include "text/spelling.hpp"

namespace ein {
namespace {

using test::expect_error;
using Merges = std::vector<std::pair<std::string, std::string>>;
using PreTokens = std::vector<std::pair<std::string, std::int64_t>>;

/// The definition, word for word: all pairs are counted in each round.
Merges naive_merges(const PreTokens& pre_tokens, std::size_t merges) {
  std::vector<std::pair<std::vector<std::string>, std::int64_t>> words;
  for (const auto& [bytes, count] : pre_tokens) {
    words.emplace_back(std::vector<std::string>(), count);
    for (const char byte : bytes) words.back().first.emplace_back(1, byte);
  }
  Merges made;
  std::set<std::string> tokens;
  while (tokens.size() < merges) {
    std::map<std::pair<std::string, std::string>, std::int64_t> counts;
    for (const auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += count;
    }
    std::pair<std::string, std::string> best;
    std::int64_t most = 0;
    for (const auto& [pair, count] :
         counts) {  // in the order of pairs, so the greatest is the last
      if (count >= most && count > 0) {
        best = pair;
        most = count;
      }
    }
    if (most == 0) break;
    made.push_back(best);
    tokens.insert(best.first + best.second);
    for (auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != best.first || word[i + 1] != best.second) continue;
        word[i] += word[i + 1];
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return made;
}

BpeTokenizer train(const PreTokens& pre_tokens, std::int64_t merges) {
  return train_bpe(
      pre_tokens,
      {.vocabulary_size = 256 + merges, .special_tokens = {}, .split = SplitRule::gpt2});
}

TEST(BpeTrain, TheCoursesExample) {
  const PreTokens words{{"low", 5}, {"lower", 2}, {"widest", 3}, {"newest", 6}};
  const Merges wanted{{"s", "t"},   {"e", "st"},    {"o", "w"},     {"l", "ow"},
                      {"w", "est"}, {"n", "e"},     {"ne", "west"}, {"w", "i"},
                      {"wi", "d"},  {"wid", "est"}, {"low", "e"},   {"lowe", "r"}};
  EXPECT_EQ(train(words, 12).merges(), wanted);
  EXPECT_EQ(train(words, 1000).merges(), wanted);  // no pair is left
  EXPECT_EQ(train(words, 1000).vocabulary_size(), 268);
  const BpeTokenizer six = train(words, 6);
  const auto ids = six.encode("newest");
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(six.decode(std::span(ids).first(1)), "ne");
  EXPECT_EQ(six.decode(std::span(ids).last(1)), "west");
}

TEST(BpeTrain, CorpusOfTheCourse) {
  SKIP_WITHOUT_SHARED_DATA("cs336");
  const std::string fixtures = "cs336/a1/fixtures/";
  const BpeTrainOptions options{.vocabulary_size = 500, .special_tokens = {"<|endoftext|>"}};
  const BpeTokenizer tokenizer = train_bpe(test::shared_bytes(fixtures + "corpus.en"), options);
  const std::string path = test::shared_data(fixtures + "corpus.en");
  EXPECT_EQ(train_bpe_on_files(std::span(&path, 1), options).save(), tokenizer.save());
  const test::ScratchDirectory scratch;
  save_bpe_files(scratch.path("vocab.json"), scratch.path("merges.txt"), tokenizer);
  EXPECT_EQ(test::read_bytes(scratch.path("merges.txt")),
            "#version: 0.2\n" + test::shared_bytes(fixtures + "train-bpe-reference-merges.txt"));
  EXPECT_EQ(tokenizer.merges().size(), 243u);
  EXPECT_EQ(tokenizer.vocabulary_size(), 500);
  EXPECT_EQ(tokenizer.added_token("<|endoftext|>"), 0);
  // The vocabulary has the same strings of bytes; the course compares no ids.
  std::set<std::string> wanted, got;
  const auto reference =
      nlohmann::json::parse(test::shared_bytes(fixtures + "train-bpe-reference-vocab.json"));
  for (const auto& [spelling, id] : reference.items())
    wanted.insert(text::bytes_of(spelling).value());
  for (std::int32_t id = 0; id < 500; ++id) got.insert(tokenizer.decode_bytes({&id, 1}));
  EXPECT_EQ(got.size(), 500u);
  EXPECT_EQ(got, wanted);
}

TEST(BpeTrain, CorpusOfTheCourseShakespeare) {
  SKIP_WITHOUT_SHARED_DATA("cs336");
  const BpeTokenizer tokenizer =
      train_bpe(test::shared_bytes("tinyshakespeare.txt"),
                {.vocabulary_size = 1000, .special_tokens = {"<|endoftext|>"}});
  const test::ScratchDirectory scratch;
  save_bpe_files(scratch.path("vocab.json"), scratch.path("merges.txt"), tokenizer);
  std::string wanted = test::shared_bytes("cs336/a1/own-tinyshakespeare-1000-merges.txt");
  if (!wanted.ends_with('\n')) wanted += '\n';
  EXPECT_EQ(test::read_bytes(scratch.path("merges.txt")), "#version: 0.2\n" + wanted);
}

TEST(BpeTrain, RandomPreTokensAsByTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    PreTokens words;
    const unsigned letters = 1 + random() % 4;
    for (unsigned i = 0, count = 1 + random() % 12; i < count; ++i) {
      std::string word(random() % 12, ' ');
      // Bytes from 0x80 on are greater than letters.
      for (char& c : word) c = static_cast<char>("ab\xc3\x80"[random() % letters]);
      words.emplace_back(word, random() % 4);
    }
    EXPECT_EQ(train(words, 12).merges(), naive_merges(words, 12));
  }
}

TEST(BpeTrain, SpecialTokensCutTheTextAndAreNotCounted) {
  const std::string text = "ab<|end|>ab<|end|><|end|>ab";
  const BpeTokenizer tokenizer =
      train_bpe(text, {.vocabulary_size = 300, .special_tokens = {"<|end|>", "<|end|><|end|>"}});
  EXPECT_EQ(tokenizer.merges(), (Merges{{"a", "b"}}));
  EXPECT_EQ(tokenizer.encode(text), (std::vector<std::int32_t>{258, 0, 258, 1, 258}));
}

/// Of some languages and ends of line, in parts and blocks that end anywhere.
std::string long_text(unsigned seed, std::size_t size) {
  const std::vector<std::string> words{"the",
                                       " law",
                                       "\n",
                                       "\n\n ",
                                       " Gl\u00fcck",
                                       "\u4e2d\u6587",
                                       " \u0434\u0435\u043d\u044c",
                                       " 2026",
                                       "'s",
                                       " ...",
                                       "<|x|>",
                                       "<|",
                                       "\t",
                                       "\r\n",
                                       " a",
                                       "e\u0301",
                                       "\xff",
                                       "\u3000"};
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size) text += words[random() % words.size()];
  return text;
}

struct Collected {
  void added_token(std::int32_t) {}
  void pre_token(std::string_view bytes) { pre_tokens.emplace_back(bytes, 1); }
  PreTokens pre_tokens;
};

TEST(BpeTrain, PreTokensOfTheCoursesCorpus) {
  SKIP_WITHOUT_SHARED_DATA("cs336");
  text::Cuts cuts;
  cuts.of_text.add("<|endoftext|>", 0);
  Collected collected;
  text::PreTokens<Collected>(cuts, collected)
      .push(test::shared_bytes("cs336/a1/fixtures/corpus.en"), true);
  EXPECT_EQ(collected.pre_tokens.size(), 27758u);
  EXPECT_EQ(std::set(collected.pre_tokens.begin(), collected.pre_tokens.end()).size(), 4763u);
}

TEST(BpeTrain, ThreadsAndFilesChangeNothing) {
  const std::string text = long_text(2, 1 << 20);
  const test::ScratchDirectory scratch;
  const std::string path = scratch.path("text");
  test::write_bytes(path, text);
  for (const SplitRule split : {SplitRule::gpt2, SplitRule::llama3, SplitRule::qwen2,
                                SplitRule::qwen35, SplitRule::smollm2}) {
    SCOPED_TRACE(name(split));
    const BpeTrainOptions options{
        .vocabulary_size = 400, .special_tokens = {"<|x|>"}, .split = split};
    // The pre-tokens of the whole, one after the other.
    text::Cuts cuts;
    cuts.split = split;
    cuts.of_text.add("<|x|>", 0);
    Collected collected;
    text::PreTokens<Collected>(cuts, collected).push(text, true);
    const std::string saved = train_bpe(collected.pre_tokens, options).save();
    EXPECT_EQ(train_bpe(text, options).save(), saved);
    EXPECT_EQ(train_bpe_on_files(std::span(&path, 1), options).save(), saved);
    const ThreadLimit one(1);
    EXPECT_EQ(train_bpe(text, options).save(), saved);
  }
}

TEST(BpeTrain, MistakesAreNamed) {
  const auto refused = [](const BpeTrainOptions& options, const std::string& part) {
    expect_error([&] { train_bpe("text", options); }, ErrorKind::value, {"train_bpe: ", part});
  };
  refused({.vocabulary_size = 256, .special_tokens = {"x"}},
          "a vocabulary of 256 is not between 257");
  refused({.vocabulary_size = std::int64_t{1} << 40, .special_tokens = {}}, "is not between 256");
  refused({.vocabulary_size = 300, .special_tokens = {"<s>", ""}},
          "special token 2 has 0 bytes, not 1 to 1024");
  refused({.vocabulary_size = 300, .special_tokens = {std::string(1025, 'x')}},
          "special token 1 has 1025 bytes");
  refused({.vocabulary_size = 300, .special_tokens = {"<s>", "<s>"}},
          "the special token '<s>' is given twice");
  refused({.vocabulary_size = 300, .special_tokens = {"a"}}, "the vocabulary has 'a' twice");
  expect_error(
      [] {
        train(PreTokens{{"ab", -1}}, 1);
      },
      ErrorKind::value, {"'ab' has the count -1"});
  expect_error([] { train(PreTokens{{"ab", INT64_MAX}}, 1); }, ErrorKind::value, {"exceed 2^62"});
  expect_error(
      [] {
        const PreTokens words{{"a<s>", 1}};
        train_bpe(words, {.vocabulary_size = 300, .special_tokens = {"<s>"}});
      },
      ErrorKind::value, {"'a<s>' holds the special token '<s>'"});
  expect_error(
      [] {
        const std::string missing = "/missing/text";
        train_bpe_on_files(std::span(&missing, 1), {});
      },
      ErrorKind::file, {"train_bpe_on_files: \"/missing/text\" cannot be opened"});
}

}  // namespace
}  // namespace ein
