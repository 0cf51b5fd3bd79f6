// Training runs: resumed ones end with the same bits.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <ein/error.hpp>
#include <ein/train.hpp>

namespace ein {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Train : public testing::Test {
 protected:
  Train() : directory_(std::filesystem::temp_directory_path() / ("ein_train_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(directory_);
    std::ofstream text(directory_ / "text.txt");
    for (int i = 0; i < 400; ++i) text << "the quick brown fox " << i << " jumps over the lazy dog\n";
  }
  ~Train() override { std::filesystem::remove_all(directory_); }

  TrainOptions options(const std::string& out, std::int64_t steps) const {
    TrainOptions o;
    o.data = (directory_ / "text.txt").string();
    o.out = (directory_ / out).string();
    o.block_size = 8, o.batch_size = 4, o.n_layer = 1, o.n_head = 2, o.n_embd = 16;
    o.max_iters = 30, o.warmup_iters = 5, o.eval_interval = steps, o.eval_iters = 2, o.dropout = 0.1;
    return o;
  }

  std::filesystem::path directory_;
};

TEST_F(Train, AResumedRunEndsWithTheSameBits) {
  const TrainProgress whole = train(options("whole", 10), {});
  EXPECT_LT(whole.validation_loss, 3.55);  // at first: log 37 = 3.61
  // Stopped by its reporter after step 17: the last checkpoint is that of step 10.
  struct Stop {};
  TrainOptions stopped = options("stopped", 10);
  EXPECT_THROW(train(stopped, {.begin = {}, .step = [](const TrainProgress& p) { if (p.step == 17) throw Stop(); }}), Stop);
  stopped.resume = true;
  std::int64_t first = -1;
  train(stopped, {.begin = [&](const TrainBill& bill) { first = bill.first_step; }, .step = {}});
  EXPECT_EQ(first, 10);
  const std::string file = "/step-000030.safetensors";
  EXPECT_FALSE(contents(options("whole", 10).out + file).empty());
  EXPECT_EQ(contents(stopped.out + file), contents(options("whole", 10).out + file));
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
    return TrainReport{.begin = {}, .step = [&losses, which](const TrainProgress& p) { losses[which].push_back(p.loss); }};
  };
  train(small, keep(0));
  train(large, keep(1));
  ASSERT_EQ(losses[0].size(), losses[1].size());
  for (std::size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-5);
}

TEST_F(Train, SamplesBeyondTheBlock) {
  train(options("run", 10), {});
  std::string text;
  sample({.from = options("run", 10).out, .prompt = "the ", .tokens = 40}, [&](const std::string& piece) { text += piece; });
  EXPECT_EQ(text.size(), 44u);
  EXPECT_TRUE(text.starts_with("the "));
  std::string again;
  sample({.from = options("run", 10).out, .prompt = "the ", .tokens = 40}, [&](const std::string& piece) { again += piece; });
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
