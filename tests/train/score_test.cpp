// What text a model writes, and how well it predicts one: stops, and directories of Hugging Face.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <ein/create.hpp>
#include <ein/safetensors.hpp>
#include <ein/text.hpp>
#include <ein/train.hpp>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "support/shared_data.hpp"
#include "train/trained.hpp"

namespace ein {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

std::string written(const SampleOptions& options) {
  std::string text;
  sample(options, [&](const std::string& piece) { text += piece; });
  return text;
}

class Sampled : public testing::Test {
 protected:
  Sampled() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "the cat and the hat;\n";
    test::write_bytes(directory_.path("text.txt"), text);
    TrainOptions o;
    o.data = directory_.path("text.txt");
    o.out = run_;
    o.block_size = 16, o.batch_size = 8, o.n_layer = 1, o.n_head = 2, o.n_embd = 32;
    o.max_iters = 150, o.warmup_iters = 5, o.learning_rate = 1e-2, o.eval_interval = 150,
    o.eval_iters = 1;
    train(o, {});
  }
  const test::ScratchDirectory directory_;
  const std::string run_ = directory_.path("run");
};

TEST_F(Sampled, StopsByTextAndById) {
  const SampleOptions all{.from = run_, .prompt = "the cat", .tokens = 30, .temperature = 0};
  const std::string whole = written(all);
  ASSERT_EQ(whole.substr(0, 20), "the cat and the hat;") << whole;
  SampleOptions o = all;
  o.stop = {";", "z"};
  expect_error([&] { written(o); }, ErrorKind::value, {"'z'"});
  o.stop = {"\n", ";"};
  EXPECT_EQ(written(o), "the cat and the hat");
  o.stop = {"at"};
  expect_error([&] { written(o); }, ErrorKind::value, {"'at' is 2 tokens, one is wanted"});
  o.stop.clear();
  // Characters in their order: new line, space, ;
  o.stop_ids = {2, 0};
  EXPECT_EQ(written(o), "the cat and the hat");
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{100}, INT64_MAX}) {
    o.stop_ids = {id};
    expect_error([&] { written(o); }, ErrorKind::value, {"the stop id is " + std::to_string(id)});
  }
}

TEST_F(Sampled, FiltersThatLeaveOneTokenAreGreedy) {
  const SampleOptions greedy{.from = run_, .prompt = "the cat", .tokens = 40, .temperature = 0};
  const std::string whole = written(greedy);
  SampleOptions o = greedy;
  o.temperature = 1.5;
  o.top_p = 1e-6;
  EXPECT_EQ(written(o), whole);
  o.top_p.reset();
  o.min_p = 1;
  EXPECT_EQ(written(o), whole);
}

TEST_F(Sampled, PerplexityIsOfEachTokenButTheFirst) {
  const std::string text = "the cat and the hat;\nthe cat";
  const TextScore score = ein::score({.from = run_, .text = text});
  EXPECT_EQ(score.tokens, 27);
  EXPECT_EQ(score.bytes, 28);
  EXPECT_EQ(score.perplexity, std::exp(score.loss));
  EXPECT_LT(score.perplexity, 2);
  EXPECT_NEAR(score.bits_per_byte, score.loss * 27 / 28 / std::log(2.0), 1e-12);
  // By hand: blocks of 16 follow each other, each predicted from its own beginning.
  const training::Trained trained = training::load_trained(run_);
  const std::vector<std::int32_t> ids = trained.tokenizer->encode(text);
  double sum = 0;
  for (std::size_t i = 0; i < 27; ++i) {
    const std::size_t begin = i - i % 16;
    const std::vector<std::int32_t> before(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                           ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    const auto logits =
        (*trained.model)(
            from_vector(before, {1, static_cast<std::int64_t>(before.size())}).to(DType::i64))
            .to_vector<double>();
    const std::size_t vocabulary = logits.size() / before.size();
    const double* const row = logits.data() + logits.size() - vocabulary;
    double all = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) all += std::exp(row[v]);
    sum += std::log(all) - row[ids[i + 1]];
  }
  EXPECT_NEAR(score.loss, sum / 27, 1e-5);
  expect_error([&] { ein::score({.from = run_, .text = "t"}); }, ErrorKind::value, {"too few"});
  expect_error([&] { ein::score({.from = run_, .text = text, .block_size = 17}); },
               ErrorKind::value, {"block size is 17", "16 positions"});
}

TEST(Generation, WhatItsFileSays) {
  const auto read = [](const std::string& text) {
    return training::parse_generation(text, "generation_config.json");
  };
  const training::Generation greedy =
      read(R"({"eos_token_id": 7, "temperature": 0.5, "top_k": "x"})");
  EXPECT_TRUE(greedy.is_greedy);  // the rest is not looked at
  EXPECT_FALSE(greedy.temperature);
  EXPECT_EQ(greedy.stop_ids, (std::vector<std::int64_t>{7}));
  const training::Generation plain = read(R"({"do_sample": true, "eos_token_id": [1, 2]})");
  EXPECT_FALSE(plain.is_greedy);
  EXPECT_EQ(plain.temperature, 1);
  EXPECT_EQ(plain.top_k, 50);
  EXPECT_EQ(plain.stop_ids, (std::vector<std::int64_t>{1, 2}));
  const training::Generation said = read(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1,
          "repetition_penalty": 1.1, "transformers_version": "5"})");
  EXPECT_EQ(said.temperature, 0.6);
  EXPECT_EQ(said.top_k, 20);
  EXPECT_EQ(said.top_p, 0.95);
  EXPECT_EQ(said.min_p, 0.1);
  EXPECT_NE(said.note.find("repetition_penalty"), std::string::npos);
  const auto refused = [&](const std::string& text, const std::string& part) {
    expect_error([&] { read(text); }, ErrorKind::file, {"generation_config.json", part});
  };
  refused("", "no JSON");
  refused("[]", "no object");
  refused(R"({"eos_token_id": -1})", "eos_token_id");
  refused(R"({"eos_token_id": [1, "2"]})", "eos_token_id");
  refused(R"({"eos_token_id": 4294967296})", "eos_token_id");
  refused(R"({"do_sample": 1})", "do_sample");
  refused(R"({"do_sample": true, "top_p": 1.5})", "top_p");
  refused(R"({"do_sample": true, "top_p": 0})", "top_p");
  refused(R"({"do_sample": true, "temperature": -1})", "temperature");
  refused(R"({"do_sample": true, "top_k": -1})", "top_k");
  refused(std::string(1 << 16, '['), "nested too deep");
}

/// A tokenizer.json of 96 tokens, each one byte: a new line, space, and what is printable.
std::string tokenizer_of_96() {
  std::string vocabulary = R"("Ċ": 0, "Ġ": 1)";
  for (int byte = 33; byte < 127; ++byte) {
    const std::string spelled = byte == '"' || byte == '\\' ? "\\" : "";
    vocabulary += ", \"" + spelled + static_cast<char>(byte) + "\": " + std::to_string(byte - 31);
  }
  return R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": )"
         R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}, )"
         R"("post_processor": null, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {)" +
         vocabulary + R"(}, "merges": []}})";
}

// transformers wrote these models, and computed what they continue and predict.
TEST(ModelDirectory, WritesAndPredictsAsTransformersSays) {
  SKIP_WITHOUT_SHARED_DATA("tiny-models/qwen3-qknorm/model.safetensors");
  for (const std::string name : {"gpt2", "gpt_neo", "llama-gqa-llama3rope", "mistral-window",
                                 "qwen3-qknorm", "mixtral", "gemma3"}) {
    const test::ScratchDirectory scratch;
    const std::string directory = scratch.path("model");
    fs::copy(test::shared_data("tiny-models/" + name), directory);
    test::write_bytes(directory + "/tokenizer.json", tokenizer_of_96());
    const Safetensors expected = load_safetensors(directory + "/expected.safetensors");
    const BpeTokenizer tokenizer = load_bpe(directory + "/tokenizer.json");
    const auto text_of = [&](const Tensor& ids) {
      return tokenizer.decode(ids.to(DType::i32).to_vector<std::int32_t>());
    };
    const std::string text = text_of(expected.tensors.at("greedy")[0]);
    EXPECT_EQ(written({.from = directory, .prompt = text.substr(0, 8), .tokens = 8}), text) << name;
    double sum = 0;
    for (const std::int64_t row : {0, 1})
      sum +=
          score({.from = directory, .text = text_of(expected.tensors.at("token_ids")[row])}).loss;
    EXPECT_NEAR(sum / 2, std::stod(expected.metadata.at("loss")), 2e-5) << name;

    // An end of the text by either file; the first counts.
    const auto id = tokenizer.encode(text.substr(10, 1))[0];
    test::write_bytes(directory + "/generation_config.json",
                      "{\"eos_token_id\": [" + std::to_string(id) + "]}");
    const std::size_t end = text.find(text[10], 8);
    EXPECT_EQ(written({.from = directory, .prompt = text.substr(0, 8), .tokens = 8}),
              text.substr(0, end))
        << name;
  }
}

TEST(ModelDirectory, MissingFilesAreNamed) {
  SKIP_WITHOUT_SHARED_DATA("tiny-models/qwen3-qknorm/model.safetensors");
  const test::ScratchDirectory scratch;
  const std::string directory = scratch.path("model");
  fs::copy(test::shared_data("tiny-models/qwen3-qknorm"), directory);
  expect_error([&] { written({.from = directory}); }, ErrorKind::file, {"tokenizer.json"});
  test::write_bytes(directory + "/tokenizer.json", tokenizer_of_96());
  fs::remove(directory + "/generation_config.json");
  EXPECT_EQ(written({.from = directory, .prompt = "a", .tokens = 0}), "a");
  fs::remove(directory + "/model.safetensors");
  expect_error([&] { written({.from = directory}); }, ErrorKind::file, {"model.safetensors"});
}

}  // namespace
}  // namespace ein
