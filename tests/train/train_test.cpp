// Training runs: the losses are PyTorch's, and resumed runs end with the same bits.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/error.hpp>
#include <ein/train.hpp>
#include "support/figures.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

class Train : public testing::Test {
 protected:
  Train() {
    std::ofstream text(directory_.path("text.txt"));
    for (int i = 0; i < 400; ++i)
      text << "the quick brown fox " << i << " jumps over the lazy dog\n";
  }

  TrainOptions options(const std::string& out, std::int64_t steps) const {
    TrainOptions o;
    o.data = directory_.path("text.txt");
    o.out = directory_.path(out);
    o.block_size = 8, o.batch_size = 4, o.n_layer = 1, o.n_head = 2, o.n_embd = 16;
    o.max_iters = 30, o.warmup_iters = 5, o.eval_interval = steps, o.eval_iters = 2,
    o.dropout = 0.1;
    return o;
  }

  test::ScratchDirectory directory_;
};

TEST_F(Train, AResumedRunEndsWithTheSameBits) {
  const TrainProgress whole = train(options("whole", 10), {});
  EXPECT_LT(whole.validation_loss, 3.55);  // at first: log 37 = 3.61
  // Stopped by its reporter after step 17: the last checkpoint is that of step 10.
  struct Stop {};
  TrainOptions stopped = options("stopped", 10);
  EXPECT_THROW(train(stopped, {.begin = {},
                               .step =
                                   [](const TrainProgress& p) {
                                     if (p.step == 17) throw Stop();
                                   }}),
               Stop);
  stopped.resume = true;
  std::int64_t first = -1;
  train(stopped, {.begin = [&](const TrainBill& bill) { first = bill.first_step; }, .step = {}});
  EXPECT_EQ(first, 10);
  const std::string file = "/step-000030.safetensors";
  EXPECT_EQ(test::read_bytes(stopped.out + file),
            test::read_bytes(options("whole", 10).out + file));
}

// From the same weights on the same batches; bench/peers/compare_losses.py writes the figures.
TEST_F(Train, TheFirstLossesArePyTorchs) {
  for (const std::string name : {"plain", "bias"}) {
    const auto figures = test::figures("train/" + name + ".json");
    const auto& given = figures["options"];
    const std::vector<double> losses = figures["losses"], norms = figures["grad_norms"];
    const std::string data = std::string(EIN_TEST_DATA) + "/train/";
    TrainOptions o;
    o.data = data + "text.txt";
    o.init_from = data + name + ".safetensors";
    o.block_size = given["block_size"], o.batch_size = given["batch_size"];
    o.n_layer = given["n_layer"], o.n_head = given["n_head"], o.n_embd = given["n_embd"];
    o.learning_rate = given["learning_rate"], o.min_lr = given["min_lr"],
    o.warmup_iters = given["warmup_iters"];
    o.bias = given["bias"], o.seed = given["seed"];
    o.max_iters = static_cast<std::int64_t>(losses.size()), o.eval_iters = 1;
    ASSERT_EQ(losses.size(), 20u);
    for (const bool compiled : {true, false}) {
      o.out = directory_.path(name + (compiled ? "-compiled" : "-eager"));
      o.compile = compiled;
      std::size_t seen = 0;
      train(o, {.begin = {}, .step = [&](const TrainProgress& p) {
                  if (p.step == 0) return;
                  const auto at = static_cast<std::size_t>(p.step - 1);
                  EXPECT_NEAR(p.loss, losses.at(at), 1e-4) << name << ", step " << p.step;
                  EXPECT_NEAR(p.grad_norm, norms.at(at), 2e-3 * norms.at(at))
                      << name << ", step " << p.step;
                  ++seen;
                }});
      EXPECT_EQ(seen, losses.size());
    }
  }
}

// 65 characters, 4 layers, 128 wide: 65·128 + 64·128 + 4·(2·128 + 12·128²) + 128 without biases,
// and 4·(2·128 + 9·128) + 128 of them.
TEST_F(Train, TheBillCountsParameters) {
  std::string text;
  for (char c = '!'; c < '!' + 65; ++c) text += c;
  for (int i = 0; i < 6; ++i) text += text.substr(0, 200);
  test::write_bytes(directory_.path("65.txt"), text);
  TrainOptions o;
  o.data = directory_.path("65.txt");
  o.out = directory_.path("bill");
  o.max_iters = 0, o.batch_size = 1, o.eval_iters = 1;
  std::int64_t parameters = 0;
  const TrainReport report{.begin = [&](const TrainBill& bill) { parameters = bill.parameters; },
                           .step = {}};
  o.compile = false;
  train(o, report);
  EXPECT_EQ(parameters, 804096 + 5760);
  o.bias = false;
  o.out += "-plain";
  train(o, report);
  EXPECT_EQ(parameters, 804096);
}

// Each block of the last tenth once, against the model's losses of single blocks.
TEST_F(Train, TheLastStepHasTheLossOfTheWholeValidationText) {
  TrainOptions o = options("whole", 30);
  const TrainProgress last = train(o, {});
  ASSERT_TRUE(last.whole_validation_loss);
  // The same checkpoint with one block to a batch: as many batches as blocks, none smaller.
  TrainOptions one = options("one", 30);
  one.init_from = o.out;
  one.batch_size = 1, one.max_iters = 0;
  const TrainProgress first = train(one, {});
  ASSERT_TRUE(first.whole_validation_loss);
  EXPECT_NEAR(*first.whole_validation_loss, *last.whole_validation_loss, 1e-5);
  EXPECT_NEAR(*first.whole_validation_loss, last.validation_loss, 0.2);
}

TEST_F(Train, ARunIsResumedByTheSameModelOnly) {
  TrainOptions o = options("other", 30);
  o.max_iters = 1;
  train(o, {});
  o.resume = true;
  o.n_embd = 32, o.bias = false;
  try {
    train(o, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_NE(std::string(error.what()).find("n_embd 16 for 32, bias 1 for 0"), std::string::npos)
        << error.what();
  }
  o = options("new", 30);
  o.init_from = directory_.path("other");
  o.n_head = 1;  // of the same shapes
  EXPECT_THROW(train(o, {}), Error);
}

TEST_F(Train, CompiledAndEagerAgree) {
  TrainOptions eager = options("eager", 30);
  eager.compile = false;
  const TrainProgress a = train(options("compiled", 30), {}), b = train(eager, {});
  EXPECT_NEAR(a.validation_loss, b.validation_loss, 1e-3);
}

TEST_F(Train, AccumulatedBatchesAreOneLargeBatch) {
  TrainOptions small = options("small", 30), large = options("large", 30);
  small.dropout = large.dropout = 0;
  small.grad_accum = 2;
  large.batch_size = 8;
  small.max_iters = large.max_iters = 5;
  std::vector<double> losses[2];
  const auto keep = [&](int which) {
    return TrainReport{.begin = {}, .step = [&losses, which](const TrainProgress& p) {
                         losses[which].push_back(p.loss);
                       }};
  };
  train(small, keep(0));
  train(large, keep(1));
  ASSERT_EQ(losses[0].size(), losses[1].size());
  for (std::size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-5);
}

TEST_F(Train, SamplesBeyondTheBlock) {
  train(options("run", 10), {});
  std::string text;
  sample({.from = options("run", 10).out, .prompt = "the ", .tokens = 40},
         [&](const std::string& piece) { text += piece; });
  EXPECT_EQ(text.size(), 44u);
  EXPECT_TRUE(text.starts_with("the "));
  std::string again;
  sample({.from = options("run", 10).out, .prompt = "the ", .tokens = 40},
         [&](const std::string& piece) { again += piece; });
  EXPECT_EQ(text, again);
}

TEST_F(Train, MistakesAreErrors) {
  TrainOptions o = options("bad", 10);
  o.data = "/nonexistent";
  EXPECT_THROW(train(o, {}), Error);
  o = options("bad", 10);
  o.block_size = 100000;
  EXPECT_THROW(train(o, {}), Error);
  EXPECT_THROW(sample({.from = options("none", 10).out}, [](const std::string&) {}), Error);
}

}  // namespace
}  // namespace ein
