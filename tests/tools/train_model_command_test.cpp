// Models, ids and tokenizers of ein train, and what ein sample has beside temperature and top k, as
// a shell sees them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/nn/decoder_file.hpp>
#include <ein/nn/families.hpp>

#include "support/command.hpp"
#include "train/model.hpp"

namespace ein {
namespace {

using test::expect_fails;
using test::expect_holds;
using test::text_of;
using test::write_bytes;
using Words = std::vector<std::string>;

class TrainModelCommand : public testing::Test {
 protected:
  TrainModelCommand() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "the cat and the hat " + std::to_string(i) + "\n";
    write_bytes(text_, text);
  }
  Words train(const std::string& out, const Words& more) const {
    Words words{"train",
                "--out",
                scratch_.path(out),
                "--batch-size",
                "4",
                "--max-iters",
                "4",
                "--eval-iters",
                "1",
                "--eval-interval",
                "4",
                "--warmup-iters",
                "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  nn::DecoderConfig model_of(const std::string& out) const {
    return training::read_description(load_checkpoint(scratch_.path(out))).config;
  }

  const test::ScratchDirectory scratch_;
  const std::string text_ = scratch_.path("text.txt");
};

TEST_F(TrainModelCommand, OptionsDescribeALlama) {
  text_of(train("run", {"--data",
                        text_,
                        "--block-size",
                        "16",
                        "--n-layer",
                        "2",
                        "--n-head",
                        "4",
                        "--n-embd",
                        "16",
                        "--no-bias",
                        "--norm",
                        "rms",
                        "--positions",
                        "rotary",
                        "--rotary-base",
                        "500",
                        "--kv-heads",
                        "2",
                        "--head-size",
                        "8",
                        "--window",
                        "12",
                        "--feed-forward",
                        "swiglu",
                        "--ff-width",
                        "24",
                        "--untied"}));
  nn::DecoderConfig expected;
  expected.vocabulary = model_of("run").vocabulary;
  expected.positions = 16, expected.width = 16, expected.layers = 2;
  expected.norm = {.kind = nn::NormConfig::Kind::rms, .bias = false};
  expected.position = nn::DecoderConfig::Positions::in_attention;
  expected.attention = {.heads = 4,
                        .key_heads = 2,
                        .head_size = 8,
                        .window = 12,
                        .bias = false,
                        .output_bias = false,
                        .rotary = nn::Rotary{.base = 500}};
  expected.feed_forward = {.activation = nn::Activation::silu,
                           .gated = true,
                           .width = 24,
                           .ratio = 8.0 / 3,
                           .multiple = 64,
                           .bias = false};
  expected.tied = false;
  EXPECT_EQ(model_of("run"), expected) << nn::decoder_json(model_of("run"));
  // Neither the model nor its block size are said again.
  text_of({"train", "--data", text_, "--out", scratch_.path("run"), "--resume", "--batch-size", "4",
           "--max-iters", "5", "--eval-iters", "1"});
  expect_fails(2,
               train("run", {"--data", text_, "--resume", "--block-size", "16", "--n-layer", "2",
                             "--n-head", "4", "--n-embd", "16", "--norm", "none"}),
               "is of another model: ");
  EXPECT_EQ(text_of({"sample", "--from", scratch_.path("run"), "--prompt", "the", "--tokens", "20",
                     "--top-p", "0.9", "--min-p", "0.05"})
                .size(),
            24u);
}

TEST_F(TrainModelCommand, ADecoderJsonAndIds) {
  const std::string model = scratch_.path("decoder.json"), ids = scratch_.path("ids.u16"),
                    tokenizer = scratch_.path("tokenizer.json");
  text_of({"tokenize", "train", "--vocab-size", "270", "--special", "<|end|>", "--out", tokenizer,
           text_});
  text_of({"tokenize", "encode", "--tokenizer", tokenizer, "--out", ids, text_});
  nn::DecoderConfig config = nn::cs336(
      {.vocabulary = 270, .context = 12, .width = 16, .layers = 1, .heads = 2, .inner = 24});
  nn::save_decoder_config(model, config);
  const Words words{"--tokens", ids, "--tokenizer", tokenizer, "--model", model};
  expect_holds(text_of(train("run", words)), {"270 in the vocabulary"});
  EXPECT_EQ(model_of("run"), config);
  text_of({"train", "--tokens", ids, "--out", scratch_.path("run"), "--resume", "--batch-size", "4",
           "--max-iters", "5", "--eval-iters", "1"});
  // As u32, with the same losses.
  text_of({"tokenize", "encode", "--tokenizer", tokenizer, "--out", ids, "--type", "u32", text_});
  Words wide = train("wide", words);
  wide.insert(wide.end(), {"--token-type", "u32"});
  text_of(wide);
  EXPECT_EQ(test::read_bytes(scratch_.path("wide/step-000004.safetensors")),
            test::read_bytes(scratch_.path("run/step-000004.safetensors")));

  const std::string from = scratch_.path("run");
  const std::string text = text_of({"sample", "--from", from, "--prompt", "the", "--tokens", "5",
                                    "--stop", "<|end|>", "--stop-id", "5"});
  EXPECT_EQ(text.substr(0, 3), "the");
  expect_holds(text_of({"sample", "--from", from, "--perplexity", text_}),
               {"tokens", "loss", "perplexity", "bits per byte"});
  expect_fails(2, {"sample", "--from", from, "--stop", "no such token"}, "one is wanted");
  expect_fails(2, {"sample", "--from", from, "--stop-id", "270"}, "the stop id is 270");
  expect_fails(2, {"sample", "--from", from, "--stop-id", "x"}, "--stop-id");
  expect_fails(2, {"sample", "--from", from, "--top-p", "0"}, "top p is 0");
  expect_fails(2, {"sample", "--from", from, "--min-p", "2"}, "min p is 2");
}

TEST_F(TrainModelCommand, MistakesAreNamed) {
  const std::string model = scratch_.path("decoder.json");
  const auto fails = [&](int exit_code, const Words& more, const std::string& part) {
    expect_fails(exit_code, train("run", more), part);
  };
  fails(2, {}, "a text or a file of ids");
  fails(2, {"--data", text_, "--tokens", text_}, "one of them");
  fails(2, {"--tokens", text_, "--token-type", "u8"}, "--token-type: 'u8' is neither u16 nor u32");
  fails(2, {"--data", text_, "--norm", "batch"}, "--norm: 'batch' is none of layer, rms, none");
  fails(2, {"--data", text_, "--positions", "x"}, "--positions: 'x' is none of");
  fails(2, {"--data", text_, "--feed-forward", "x"}, "--feed-forward: 'x' is none of");
  fails(2, {"--data", text_, "--kv-heads", "x"}, "--kv-heads");
  fails(2, {"--data", text_, "--kv-heads", "3"}, "3");
  fails(2, {"--data", text_, "--rotary-base", "10"}, "wants --positions rotary");
  fails(1, {"--data", text_, "--model", model}, "decoder.json");
  write_bytes(model, "{\"widht\": 1}");
  fails(1, {"--data", text_, "--model", model}, "'widht' is a key that ein does not know");
  write_bytes(model, "{\"width\": 1e9}");
  fails(1, {"--data", text_, "--model", model}, "'width' is no whole number");
  fails(2, {"--data", text_, "--model", model, "--n-layer", "3"}, "give one of them");
  fails(2, {"--data", text_, "--model", model, "--norm", "rms"}, "give no more of it");
  fails(1, {"--data", text_, "--tokenizer", text_}, "text.txt");
}

}  // namespace
}  // namespace ein
