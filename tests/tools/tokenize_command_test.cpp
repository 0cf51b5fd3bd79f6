// ein tokenize as a shell sees it.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include <ein/data.hpp>
#include <ein/text.hpp>

#include "support/command.hpp"

namespace ein {
namespace {

using test::expect_fails;
using test::expect_holds;
using test::read_bytes;
using test::text_of;
using test::write_bytes;

class TokenizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    write_bytes(text_, "the cat and the hat<|end|>the caf\u00e9\n");
    printed_ = text_of({"tokenize", "train", "--vocab-size", "264", "--special", "<|end|>", "--out",
                        tokenizer_, text_});
  }

  const test::ScratchDirectory scratch_;
  const std::string text_ = scratch_.path("text"), tokenizer_ = scratch_.path("tokenizer.json"),
                    ids_ = scratch_.path("ids");
  std::string printed_;
};

TEST_F(TokenizeCommand, TrainEncodeDecode) {
  EXPECT_EQ(printed_, "tokens   264\nspecial    1\nmerges     7\n");
  const BpeTokenizer tokenizer = load_bpe(tokenizer_);
  const std::string text = read_bytes(text_);
  EXPECT_EQ(train_bpe(text, {.vocabulary_size = 264, .special_tokens = {"<|end|>"}}).save(),
            tokenizer.save());
  const auto wanted = tokenizer.encode(text);
  for (const auto& [type, token_type] :
       {std::pair("u16", TokenType::u16), std::pair("u32", TokenType::i32)}) {
    const std::string printed = text_of(
        {"tokenize", "encode", "--tokenizer", tokenizer_, "--out", ids_, "--type", type, text_});
    expect_holds(printed,
                 {"bytes", "36", "tokens", std::to_string(wanted.size()), "bytes per token"});
    const Tokens tokens = Tokens::open(ids_, token_type);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens.size()));
    tokens.copy(0, ids);
    EXPECT_EQ(std::vector<std::int32_t>(ids.begin(), ids.end()), wanted);
    EXPECT_EQ(text_of({"tokenize", "decode", "--tokenizer", tokenizer_, "--type", type, ids_}),
              text);
  }
  EXPECT_EQ(text_of({"tokenize", "decode", "--tokenizer", tokenizer_, "--type", "u32", "--out",
                     scratch_.path("back"), ids_}),
            "");
  EXPECT_EQ(read_bytes(scratch_.path("back")), text);
  EXPECT_EQ(text_of({"tokenize", "decode", "--tokenizer", tokenizer_, "--type", "u32",
                     "--skip-special", ids_}),
            "the cat and the hatthe caf\u00e9\n");
  // A character's first byte alone.
  write_bytes(ids_, std::string("\xc4\x00", 2));
  EXPECT_EQ(text_of({"tokenize", "decode", "--tokenizer", tokenizer_, ids_}), "\xc3");
  EXPECT_EQ(text_of({"tokenize", "decode", "--tokenizer", tokenizer_, "--replace", ids_}),
            "\uFFFD");
}

TEST_F(TokenizeCommand, TheStandardInput) {
  const std::string line = "'" EIN_COMMAND "' tokenize encode --tokenizer '" + tokenizer_ +
                           "' --out '" + ids_ + "' - < '" + text_ + "' && cat '" + ids_ +
                           "' | '" EIN_COMMAND "' tokenize decode --tokenizer '" + tokenizer_ +
                           "' --out '" + scratch_.path("back") + "' -";
  EXPECT_EQ(std::system(line.c_str()), 0);
  EXPECT_EQ(read_bytes(scratch_.path("back")), read_bytes(text_));
}

TEST_F(TokenizeCommand, FilesOfTwo) {
  text_of({"tokenize", "train", "--vocab-size", "264", "--out", scratch_.path("vocab.json"),
           "--merges", scratch_.path("merges.txt"), text_, text_});
  EXPECT_EQ(
      load_bpe_files(scratch_.path("vocab.json"), scratch_.path("merges.txt")).vocabulary_size(),
      264);
}

TEST_F(TokenizeCommand, Mistakes) {
  expect_fails(2, {"tokenize"}, "subcommand");
  expect_fails(2, {"tokenize", "train", "--out", ids_, text_}, "--vocab-size is required");
  expect_fails(2, {"tokenize", "train", "--vocab-size", "many", "--out", ids_, text_},
               "--vocab-size: 'many' is not a positive number");
  expect_fails(2, {"tokenize", "train", "--vocab-size", "10", "--out", ids_, text_},
               "a vocabulary of 10 is not between 256");
  expect_fails(
      2, {"tokenize", "train", "--vocab-size", "300", "--split", "gpt3", "--out", ids_, text_},
      "--split 'gpt3' is no rule\n  help: gpt2, llama3");
  expect_fails(1, {"tokenize", "encode", "--tokenizer", text_, "--out", ids_, text_},
               "is no tokenizer that can be used");
  expect_fails(
      2, {"tokenize", "encode", "--tokenizer", tokenizer_, "--out", ids_, "--type", "u8", text_},
      "--type 'u8' is neither u16 nor u32");
  expect_fails(
      1, {"tokenize", "encode", "--tokenizer", tokenizer_, "--out", ids_, scratch_.path("missing")},
      "cannot be opened");
  write_bytes(ids_, "abc");
  expect_fails(1, {"tokenize", "decode", "--tokenizer", tokenizer_, ids_},
               "has 3 bytes, which is no whole number of ids of 2");
  write_bytes(ids_, "\xff\xff");
  expect_fails(2, {"tokenize", "decode", "--tokenizer", tokenizer_, ids_},
               "no token has the id 65535 at place 0");
  EXPECT_EQ(read_bytes(ids_), "\xff\xff");
}

}  // namespace
}  // namespace ein
