// Runs of models that a config describes, on characters, on tokens of a tokenizer.json and on files
// of ids: checkpoints keep what resuming and sampling need.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/create.hpp>
#include <ein/nn/decoder_file.hpp>
#include <ein/nn/families.hpp>
#include <ein/text.hpp>
#include <ein/train.hpp>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "train/model.hpp"

namespace ein {
namespace {

using test::expect_error;

class DescribedRun : public testing::Test {
 protected:
  DescribedRun() {
    for (int i = 0; i < 300; ++i)
      text_ += "the quick brown fox " + std::to_string(i) + " jumps over the lazy dog\n";
    test::write_bytes(directory_.path("text.txt"), text_);
  }

  /// Norms, positions, heads and features as Llama has them.
  static nn::DecoderConfig small(std::int64_t vocabulary = 0) {
    nn::DecoderConfig config = nn::llama_form();
    config.vocabulary = vocabulary;
    config.positions = 16;
    config.width = 16;
    config.layers = 2;
    config.attention.heads = 4;
    config.attention.key_heads = 2;
    config.feed_forward.width = 24;
    return config;
  }

  TrainOptions options(const std::string& out) const {
    TrainOptions o;
    o.data = directory_.path("text.txt");
    o.out = directory_.path(out);
    o.model = small();
    o.block_size = 8, o.batch_size = 4;
    o.max_iters = 12, o.warmup_iters = 2, o.eval_interval = 4, o.eval_iters = 1;
    return o;
  }
  /// The ids of the text, and their tokenizer.json.
  TrainOptions of_ids(const std::string& out, TokenType type = TokenType::u16) const {
    const BpeTokenizer tokenizer = train_bpe(text_, {.vocabulary_size = 280});
    save_bpe(directory_.path("tokenizer.json"), tokenizer);
    TrainOptions o = options(out);
    o.data.clear();
    o.tokens = directory_.path("ids");
    o.token_type = type;
    o.tokenizer = directory_.path("tokenizer.json");
    save_tokens(o.tokens, Tokens(from_vector(tokenizer.encode(text_))), type);
    return o;
  }
  std::string sampled(const std::string& out) const {
    std::string text;
    sample({.from = directory_.path(out), .prompt = "the ", .tokens = 20},
           [&](const std::string& piece) { text += piece; });
    return text;
  }
  static std::string last(const TrainOptions& o) {
    return test::read_bytes(o.out + "/step-000012.safetensors");
  }

  const test::ScratchDirectory directory_;
  std::string text_;
};

TEST_F(DescribedRun, AResumedRunNeedsTheDataAloneAndEndsWithTheSameBits) {
  for (const bool of_text : {true, false}) {
    const std::string name = of_text ? "of-text" : "of-ids";
    const TrainOptions whole = of_text ? options(name) : of_ids(name);
    const TrainProgress progress = train(whole, {});
    EXPECT_LT(progress.validation_loss, std::log(of_text ? 37 : 280));
    TrainOptions stopped = whole;
    stopped.out += "-stopped";
    train(stopped, {.begin = {}, .step = {}, .stop = [n = 0]() mutable { return ++n == 7; }});
    EXPECT_FALSE(std::filesystem::exists(stopped.out + "/step-000012.safetensors"));
    stopped.resume = true;
    stopped.model.reset();
    stopped.tokenizer.clear();
    train(stopped, {});
    EXPECT_EQ(last(stopped), last(whole)) << name;
    EXPECT_EQ(sampled(name + "-stopped"), sampled(name));
  }
}

TEST_F(DescribedRun, TheCheckpointHasTheModelAndTheTokenizer) {
  const TrainOptions o = of_ids("run");
  train(o, {});
  const training::Described described = training::read_description(load_checkpoint(o.out));
  EXPECT_EQ(described.config, small(280));
  EXPECT_FALSE(described.sizes);
  ASSERT_TRUE(described.tokenizer);
  EXPECT_EQ(described.tokenizer->save(), load_bpe(o.tokenizer).save());
}

TEST_F(DescribedRun, IdsOfAFileAreThoseOfItsText) {
  const TrainOptions ids = of_ids("of-ids");
  TrainOptions text = options("text");
  text.tokenizer = ids.tokenizer;
  EXPECT_EQ(train(ids, {}).loss, train(text, {}).loss);
  EXPECT_EQ(last(ids), last(text));
}

TEST_F(DescribedRun, IdsWithoutATokenizer) {
  TrainOptions o = of_ids("run", TokenType::i32);
  o.tokenizer.clear();
  expect_error([&] { train(o, {}); }, ErrorKind::value, {"how large the vocabulary is"});
  o.model = small(300);
  train(o, {});
  const auto nowhere = [](const std::string&) {};
  expect_error([&] { sample({.from = o.out, .prompt = "the"}, nowhere); }, ErrorKind::value,
               {"has no tokenizer"});
  std::string text;
  sample(
      {.from = o.out, .prompt = "the", .tokens = 3, .tokenizer = directory_.path("tokenizer.json")},
      [&](const std::string& piece) { text += piece; });
  EXPECT_EQ(text.substr(0, 3), "the");
  o.resume = true;
  o.model.reset();
  o.max_iters = 13;
  EXPECT_EQ(train(o, {}).step, 13);
}

TEST_F(DescribedRun, AnIdOutsideOfTheVocabularyIsNamed) {
  TrainOptions o = of_ids("run");
  o.model = small(279);
  expect_error([&] { train(o, {}); }, ErrorKind::value,
               {"the tokenizer has 280 tokens", "vocabulary of the model, 279"});
  o.tokenizer.clear();
  o.model = small(200);
  expect_error([&] { train(o, {}); }, ErrorKind::value,
               {"the tokens have the id 2", "the vocabulary has 200 tokens"});
  // A u32 beyond 2^31, as it is in the file.
  o.token_type = TokenType::i32;
  std::vector<std::int32_t> ids(1000, 1);
  ids[500] = -2;
  save_tokens(o.tokens, Tokens(from_vector(ids)), o.token_type);
  expect_error([&] { train(o, {}); }, ErrorKind::value, {"the id 4294967294"});
}

TEST_F(DescribedRun, AnotherModelIsRefusedByWhatDiffers) {
  TrainOptions o = options("run");
  train(o, {});
  o.resume = true;
  o.model->feed_forward.width = 32;
  o.model->norm.eps = 0.5;
  expect_error([&] { train(o, {}); }, ErrorKind::value,
               {"is of another model", "feed_forward/width 24 for 32", "norm/eps"});
  o = options("run");
  o.resume = true;
  o.model.reset();
  o.n_layer = 3;
  expect_error([&] { train(o, {}); }, ErrorKind::value,
               {"n layer is 3, that of the run to go on with is 2"});
  o = options("run");
  o.resume = true;
  o.model->dropout = 0.5;  // may be another
  o.max_iters = 13;
  EXPECT_EQ(train(o, {}).step, 13);
}

TEST_F(DescribedRun, SizesAndFilesThatDoNotFit) {
  TrainOptions o = options("run");
  o.block_size = 17;
  expect_error([&] { train(o, {}); }, ErrorKind::value,
               {"the block size, 17", "positions of the model, 16"});
  o = options("run");
  o.model->layers = 5000;
  expect_error([&] { train(o, {}); }, ErrorKind::value, {"layers is 5000"});
  o = options("run");
  o.model->width = 1 << 20, o.model->feed_forward.width = 1 << 22;
  expect_error([&] { train(o, {}); }, ErrorKind::memory, {"GB of memory"});
  o = options("run");
  o.tokens = o.data;
  expect_error([&] { train(o, {}); }, ErrorKind::value, {"one of them"});
  o = of_ids("run");
  test::write_bytes(o.tokens, "abc");
  expect_error([&] { train(o, {}); }, ErrorKind::file, {"no whole number of tokens"});
  o = options("run");
  o.validation_fraction = 0.9999;
  expect_error([&] { train(o, {}); }, ErrorKind::value, {"part to train on"});
}

TEST_F(DescribedRun, ABlockSizeOfZeroIsThePositionsOfTheModel) {
  TrainOptions o = options("run");
  o.block_size = 0;
  o.max_iters = 0;
  std::int64_t blocks = 0;
  train(o, {.begin = [&](const TrainBill& bill) { blocks = bill.validation_tokens; }, .step = {}});
  EXPECT_GT(blocks, 16);
  o.model->positions = blocks;
  o.overwrite = true;
  expect_error([&] { train(o, {}); }, ErrorKind::value,
               {"must be longer than the block size, " + std::to_string(blocks)});
}

// What a checkpoint says of its model may be anything.
TEST_F(DescribedRun, ADescriptionThatIsNotOfItsTensors) {
  train(options("run"), {});
  const Checkpoint whole = load_checkpoint(directory_.path("run"));
  const auto refused = [&](const nn::DecoderConfig& config, const std::string& what) {
    Checkpoint said = whole;
    said.metadata["model"] = nn::decoder_json(config);
    expect_error([&] { training::read_description(said); }, ErrorKind::file, {what});
  };
  nn::DecoderConfig config = training::read_description(whole).config;
  config.layers = 4096;
  refused(config, "has no transformer.h.");
  config.layers = 2;
  config.width = 1 << 24;
  refused(config, "has no ");
  config.width = 18;
  refused(config, "18");
  config = training::read_description(whole).config;
  config.vocabulary = 1 << 24;
  refused(config, "has no ");
  config.vocabulary = 1;
  refused(config, "the tokenizer has a larger vocabulary");
  Checkpoint said = whole;
  said.metadata["model"] = "{\"widht\": 1}";
  expect_error([&] { training::read_description(said); }, ErrorKind::file, {"'widht'"});
}

}  // namespace
}  // namespace ein
