// A training run on a GPU takes the same steps as on the CPU, and goes on from where the other
// stopped.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <ein/train.hpp>

#include "support/scratch.hpp"

namespace ein {
namespace {

std::vector<double> losses(TrainOptions options, const std::string& out, Device device) {
  options.out = out;
  options.device = device;
  std::vector<double> found;
  train(options, {.begin = {}, .step = [&](const TrainProgress& p) { found.push_back(p.loss); }});
  return found;
}

TEST(OnDevice, SlowTrainingRuns) {
  const test::ScratchDirectory scratch;
  TrainOptions options{.data = scratch.path("text.txt"),
                       .out = "",
                       .block_size = 6,
                       .batch_size = 2,
                       .init_from = ""};
  std::ofstream file(options.data);
  for (int i = 0; i < 40; ++i) file << "to be, or not to be " << i * i << "\n";
  file.close();
  options.n_layer = 1;
  options.n_head = 2;
  options.n_embd = 8;
  options.max_iters = 3;
  options.warmup_iters = 1;
  options.eval_interval = 3;
  options.eval_iters = 1;
  const std::vector<double> here = losses(options, scratch.path("here"), cpu),
                            there = losses(options, scratch.path("there"), cuda);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
  // The GPU's checkpoint, on the CPU.
  options.max_iters = 5;
  options.resume = true;
  const std::vector<double> on = losses(options, scratch.path("there"), cpu),
                            same = losses(options, scratch.path("here"), cpu);
  ASSERT_EQ(on.size(), same.size());
  for (std::size_t i = 0; i < on.size(); ++i) EXPECT_NEAR(on[i], same[i], 1e-4) << i;

  const auto text = [&](Device device) {
    std::string written;
    sample({.from = scratch.path("here"),
            .prompt = "to be",
            .tokens = 1,
            .temperature = 0,
            .device = device},
           [&](const std::string& part) { written += part; });
    return written;
  };
  EXPECT_EQ(text(cuda), text(cpu));
}

}  // namespace
}  // namespace ein
