// tokenizer.json, vocab.json and merges.txt: what is read, what is refused by name, what is
// written.
#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include <ein/text.hpp>

#include "support/expect_error.hpp"
#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

using nlohmann::json;
using test::expect_error;
using test::ScratchDirectory;
using test::write_bytes;
using Ids = std::vector<std::int32_t>;

json fixture(const std::string& name) {
  std::ifstream file(test::project / "tests/fixtures/text" / (name + ".json"));
  return json::parse(file);
}

/// A vocabulary of a, b, ab, c and one added token.
json small() {
  return {
      {"version", "1.0"},
      {"added_tokens", {{{"id", 4}, {"content", "<s>"}, {"special", true}, {"normalized", false}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"c", 3}}},
        {"merges", {"a b"}}}}};
}

void refused(const json& tokenizer, const std::string& part) {
  SCOPED_TRACE(part);
  expect_error([&] { bpe_of_json(tokenizer.dump()); }, ErrorKind::value,
               {"bpe_of_json: the text is no tokenizer that can be used: ", part});
}

/// small() with a change.
template <class Change>
json but(const Change& change) {
  json tokenizer = small();
  change(tokenizer);
  return tokenizer;
}

TEST(BpeFiles, BothFormsOfMerges) {
  const BpeTokenizer strings = bpe_of_json(small().dump());
  EXPECT_EQ(strings.encode("abc<s>ab"), (Ids{2, 3, 4, 2}));
  const BpeTokenizer pairs =
      bpe_of_json(but([](json& t) {
                    t["model"]["merges"] = json::array({json::array({"a", "b"})});
                  }).dump());
  EXPECT_EQ(pairs.save(), strings.save());
  EXPECT_EQ(load_tokenizer(pairs.save())->save(), strings.save());
  for (const json& merge :
       {json("ab"), json("a b c"), json(""), json(1), json(nullptr), json(true), json(1.5),
        json(-1), json::array({"a"}), json::array({"a", "b", "c"}), json::array({"a", 1}),
        json::object(), json::array({json::array({"a"}), "b"})}) {
    refused(but([&](json& t) {
              t["model"]["merges"] = {"a b", merge};
            }),
            "merge 2 is neither two tokens with a blank between them nor an array of two");
  }
}

TEST(BpeFiles, DamagedModelsAreNamed) {
  refused(but([](json& t) {
            t["model"]["merges"] = {"a b", "b x"};
          }),
          "merge 2, of 'b' and 'x': the vocabulary has no 'x'");
  refused(but([](json& t) { t["model"]["merges"] = {"b c"}; }),
          "merge 1, of 'b' and 'c': the vocabulary has no 'bc'");
  refused(but([](json& t) {
            t["model"]["merges"] = {"a b", "a b"};
          }),
          "the merges 1 and 2 are the same, of 'a' and 'b'");
  refused(but([](json& t) { t["model"]["vocab"]["d"] = 3; }),
          "the id 3 is that of two tokens, one of which is 'd'");
  refused(but([](json& t) { t["model"]["vocab"][""] = 9; }),
          "the vocabulary has a token of no bytes, id 9");
  for (const json& id : {json(-1), json(1.5), json("1"), json(nullptr), json(true), json::array(),
                         json::object(), json(std::int64_t{1} << 31)}) {
    refused(but([&](json& t) { t["model"]["vocab"]["d"] = id; }),
            "the id of 'd' in the vocabulary is no whole number below 2^31");
  }
  refused(but([](json& t) { t["model"]["vocab"]["d"] = 100'000; }),
          "the id 100000 of 'd' is not between 0 and 65547");
  refused(but([](json& t) { t["added_tokens"][0]["id"] = 2; }),
          "the added token '<s>' has the id 2, which is that of 'ab'");
  refused(but([](json& t) { t["added_tokens"][0]["content"] = "ab"; }),
          "the added token 'ab' has the id 4, in the vocabulary it has 2");
  refused(but([](json& t) { t["added_tokens"].push_back(t["added_tokens"][0]); }),
          "the added token '<s>' is there twice");
  refused(but([](json& t) { t["added_tokens"][0]["content"] = ""; }),
          "an added token of id 4 has no content");
  refused(but([](json& t) { t["added_tokens"][0]["content"] = std::string(1025, 'x'); }),
          "has 1025 bytes; 1024 are possible");
  refused(but([](json& t) { t["model"].erase("vocab"); }), "its model has no object vocab");
  refused(but([](json& t) { t["model"].erase("merges"); }), "its model has no array merges");
  refused(but([](json& t) { t.erase("model"); }), "it has no model");
  refused(json::array(), "it is no object");
  const auto text_refused = [](const std::string& text, const std::string& part) {
    expect_error([&] { bpe_of_json(text); }, ErrorKind::value, {part});
  };
  text_refused("", "it is no JSON");
  text_refused("{\"model\": {\"vocab\": {\"a\": 1", "it is no JSON");
  text_refused("{\"version\": \"1.0\", \"version\": \"1.0\"}", "it has the field 'version' twice");
  text_refused(
      R"({"model": {"vocab": {"a": 0, "a": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"},
                  "decoder": {"type": "ByteLevel"}})",
      "the vocabulary has 'a' twice");
  text_refused(R"({"model": {"vocab": {"a": 0}, "vocab": {"b": 1}}})",
               "its model has 'vocab' twice");
  text_refused(std::string(40, '[') + std::string(40, ']'), "it is nested too deeply");
}

TEST(BpeFiles, WhatIsNotSupportedIsNamed) {
  const auto with = [](const json::json_pointer& at, const json& value, const std::string& part) {
    refused(but([&](json& t) { t[at] = value; }), part);
  };
  using At = json::json_pointer;
  with(At("/version"), "2.0", "its version is '2.0'; 1.0 is supported");
  with(At("/truncation"), json::object(), "it has a truncation, which is not supported");
  with(At("/padding"), json::object(), "it has a padding, which is not supported");
  with(At("/model/type"), "Unigram", "its model is 'Unigram', which is not supported; BPE is");
  with(At("/model/byte_fallback"), true, "its model has byte_fallback true");
  with(At("/model/dropout"), 0.1, "its model has a dropout of '0.1'");
  with(At("/model/unk_token"), "<s>", "it has an unk_token for bytes without tokens");
  with(At("/model/end_of_word_suffix"), "</w>", "its model has the end_of_word_suffix '</w>'");
  with(At("/model/ignore_merges"), 1, "its ignore_merges is '1', and neither true nor false");
  with(At("/normalizer"), {{"type", "NFKC"}},
       "its normalizer is 'NFKC', which is not supported; null and NFC are");
  with(At("/normalizer"),
       {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Lowercase"}}}}},
       "its normalizer is 'Lowercase'");
  with(At("/decoder"), nullptr, "its decoder is 'null', which is not supported; ByteLevel is");
  with(At("/decoder"), {{"type", "Metaspace"}}, "its decoder is 'Metaspace'");
  with(At("/decoder"), "ByteLevel", "its decoder has no type");
  with(At("/pre_tokenizer"), nullptr, "its pre_tokenizer is 'null', which is not supported");
  with(At("/pre_tokenizer"), {{"type", "Metaspace"}}, "its pre_tokenizer is 'Metaspace'");
  with(At("/pre_tokenizer/use_regex"), false, "has ByteLevel with use_regex false by itself");
  with(At("/post_processor"), {{"type", "BertProcessing"}},
       "its post_processor is 'BertProcessing'");
  with(At("/post_processor"), {{"type", "TemplateProcessing"}, {"single", json::array()}},
       "its template has the Sequence A 0 times");
  with(At("/added_tokens/0/lstrip"), true,
       "the added token '<s>' has lstrip true, which is not supported");
  with(At("/added_tokens/0/single_word"), true, "the added token '<s>' has single_word true");
  with(At("/added_tokens"), json::object(), "its added_tokens are no array");
  with(At("/added_tokens/0"), 1, "an added token has no content");

  const auto split = [](const json& first, bool has_rule, const std::string& part) {
    json tokenizer = fixture("llama3");
    json& steps = tokenizer["pre_tokenizer"]["pretokenizers"];
    steps[0] = first;
    steps[1]["use_regex"] = has_rule;
    refused(tokenizer, part);
  };
  json first = fixture("llama3")["pre_tokenizer"]["pretokenizers"][0];
  split({{"type", "Digits"}, {"individual_digits", false}}, true, "use_regex true behind Digits");
  split({{"type", "Whitespace"}}, false, "its pre_tokenizer is 'Whitespace'");
  split(first, true, "use_regex true behind Split");
  first["behavior"] = "Removed";
  split(first, false, "its Split has the behavior 'Removed', which is not supported");
  first["behavior"] = "Isolated";
  first["pattern"] = {{"String", " "}};
  split(first, false, "its Split has no pattern that is a Regex");
  first["pattern"] = {{"Regex", "\\w+|\\s"}};
  split(first, false,
        "its Split has the pattern '\\w+|\\s', which is not supported; those of GPT-2");
}

TEST(BpeFiles, OtherFormsOfTheSame) {
  const std::string text = "It's 12345\n\n  caf\u00e9, THEY'LL\r\n go<|endoftext|>";
  json llama = fixture("llama3");
  const Ids ids = bpe_of_json(llama.dump()).encode(text);
  llama["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";
  llama["pre_tokenizer"]["pretokenizers"][0]["invert"] = true;
  llama["model"].erase("type");
  EXPECT_EQ(bpe_of_json(llama.dump()).encode(text), ids);
  json gpt2 = fixture("gpt2");
  const BpeTokenizer tokenizer = bpe_of_json(gpt2.dump());
  gpt2["model"]["unk_token"] = "<|endoftext|>";  // all bytes have tokens, so it is never needed
  gpt2["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {gpt2["pre_tokenizer"]}}};
  EXPECT_EQ(bpe_of_json(gpt2.dump()).save(), tokenizer.save());
}

/// One that the vocabulary has under another spelling than that of its bytes.
TEST(BpeFiles, AddedTokensBeyondAscii) {
  const BpeTokenizer tokenizer = bpe_of_json(but([](json& t) {
                                               t["added_tokens"][0]["content"] = "<\uff5c \u4e2d>";
                                               t["model"]["vocab"]["<\uff5c \u4e2d>"] = 4;
                                             }).dump());
  EXPECT_EQ(tokenizer.encode("ab<\uff5c \u4e2d>c"), (Ids{2, 4, 3}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 4, 3}), "ab<\uff5c \u4e2d>c");
  EXPECT_EQ(bpe_of_json(tokenizer.save()).save(), tokenizer.save());
}

TEST(BpeFiles, AreWrittenAndReadAgain) {
  const ScratchDirectory scratch;
  for (const std::string name :
       {"gpt2", "gpt2-space", "llama3", "qwen2-normalized-tokens", "qwen35", "smollm2"}) {
    SCOPED_TRACE(name);
    const BpeTokenizer tokenizer =
        load_bpe((test::project / "tests/fixtures/text" / (name + ".json")).string());
    save_bpe(scratch.path("tokenizer.json"), tokenizer);
    EXPECT_EQ(load_bpe(scratch.path("tokenizer.json")).save(), tokenizer.save());
    EXPECT_EQ(test::read_bytes(scratch.path("tokenizer.json")), tokenizer.save());
  }
  const BpeTokenizer tokenizer =
      train_bpe("the cat and the hat", {.vocabulary_size = 262, .special_tokens = {"<|end|>"}});
  save_bpe_files(scratch.path("vocab.json"), scratch.path("merges.txt"), tokenizer);
  const BpeTokenizer again = load_bpe_files(scratch.path("vocab.json"), scratch.path("merges.txt"),
                                            {.special_tokens = {"<|end|>", "<|new|>"}});
  EXPECT_EQ(again.merges(), tokenizer.merges());
  Ids ids = tokenizer.encode("the<|end|> hat");
  ids.push_back(262);
  EXPECT_EQ(again.encode("the<|end|> hat<|new|>"), ids);
  EXPECT_EQ(again.added_token("<|end|>"), 0);
  EXPECT_EQ(again.added_token("<|new|>"), 262);
  EXPECT_EQ(again.added_token("<|other|>"), std::nullopt);
}

TEST(BpeFiles, DamagedVocabulariesAndMergesAreNamed) {
  const ScratchDirectory scratch;
  const std::string vocab = scratch.path("vocab.json"), merges = scratch.path("merges.txt");
  const auto load_refused = [&](const std::string& vocabulary, const std::string& lines,
                                const std::vector<std::string>& parts) {
    write_bytes(vocab, vocabulary);
    write_bytes(merges, lines);
    expect_error([&] { load_bpe_files(vocab, merges); }, ErrorKind::file, parts);
  };
  const std::string good = R"({"a": 0, "b": 1, "ab": 2})";
  for (const std::string bad : {"", "[", "[1]", "1", "\"a\"", R"({"a": {}})"})
    load_refused(bad, "", {"vocab.json\" is damaged: "});
  load_refused(R"({"a": -1})", "", {"the id of 'a' is no whole number below 2^31"});
  load_refused(R"({"a": 0, "a": 1})", "", {"the vocabulary has 'a' twice"});
  load_refused(good, "#version: 0.2\na b\nab\n",
               {"merges.txt\" is damaged: line 3, 'ab', is not two tokens"});
  load_refused(good, "a b\n\na b\n", {"line 2, '', is not two tokens"});
  load_refused(good, "a c\n",
               {"merges.txt\" are no tokenizer that can be used: merge 1, of 'a' and 'c': the "
                "vocabulary has no 'c'"});
  write_bytes(merges, "#version: 0.2\r\na b\r\n");
  EXPECT_EQ(load_bpe_files(vocab, merges).encode("ab"), (Ids{2}));
  expect_error([&] { load_bpe(scratch.path("missing")); }, ErrorKind::file,
               {"load_bpe: ", "missing\" cannot be opened"});
  expect_error([&] { load_bpe(vocab); }, ErrorKind::file,
               {"is no tokenizer that can be used: it has no model"});
}

TEST(BpeFiles, AWriteThatFailsLeavesTheOldFile) {
  const ScratchDirectory scratch;
  const BpeTokenizer tokenizer = bpe_of_json(fixture("gpt2").dump());
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"})
    write_bytes(scratch.path(name), "old");
  {
    const test::FileSizeLimit limit(1000);
    expect_error([&] { save_bpe(scratch.path("tokenizer.json"), tokenizer); }, ErrorKind::file,
                 {"save_bpe: "});
    expect_error(
        [&] { save_bpe_files(scratch.path("vocab.json"), scratch.path("merges.txt"), tokenizer); },
        ErrorKind::file, {"save_bpe_files: "});
  }
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"})
    EXPECT_EQ(test::read_bytes(scratch.path(name)), "old");
  EXPECT_EQ(scratch.listing().size(), 3u);
}

}  // namespace
}  // namespace ein
