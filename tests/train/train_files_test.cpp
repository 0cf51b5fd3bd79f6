// What a run that goes on reads of an earlier one: its log, and what a checkpoint says of the
// model. Both may be damaged, or made by somebody else.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <ein/create.hpp>
#include <ein/error.hpp>

#include "train/log.hpp"
#include "train/model.hpp"

namespace ein::training {
namespace {

TEST(TrainLog, KeepsTheLinesUpToAStep) {
  const std::string first = "{\"step\": 0, \"train_loss\": 4.5, \"val_loss\": 4.75}\n",
                    step = "{\"step\": 1, \"loss\": 4.25}\n",
                    second = "{\"step\": 1, \"train_loss\": 3.5, \"val_loss\": 3.75}\n";
  Losses losses;
  // The evaluation at the step comes again, and the last line is cut.
  EXPECT_EQ(read_log(first + step + second + "{\"step\": 1, \"lo", 1, losses), first + step);
  ASSERT_EQ(losses.steps.size(), 1u);
  EXPECT_EQ(losses.steps[0].step, 1);
  EXPECT_EQ(losses.steps[0].loss, 4.25);
  ASSERT_EQ(losses.train.size(), 1u);
  EXPECT_EQ(losses.train[0].loss, 4.5);
  ASSERT_EQ(losses.validation.size(), 1u);
  EXPECT_EQ(losses.validation[0].loss, 4.75);
}

TEST(TrainLog, NullIsALossThatIsNotFinite) {
  const std::string text =
      "{\"step\": 1, \"loss\": null, \"lr\": 0.1}\n"
      "{\"step\": 2, \"train_loss\": null, \"val_loss\": 2}\n";
  Losses losses;
  EXPECT_EQ(read_log(text, 5, losses), text);
  ASSERT_EQ(losses.steps.size(), 1u);
  EXPECT_TRUE(std::isnan(losses.steps[0].loss));
  ASSERT_EQ(losses.train.size(), 1u);
  EXPECT_TRUE(std::isnan(losses.train[0].loss));
  ASSERT_EQ(losses.validation.size(), 1u);
}

TEST(TrainLog, StepsThatNoRunHasAreDropped) {
  for (const std::string step : {"null", "nan", "-nan", "inf", "-inf", "-1", "1e300", "-1e300",
                                 "9223372036854775808", "0x1p63", "x"}) {
    Losses losses;
    EXPECT_EQ(read_log("{\"step\": " + step + ", \"loss\": 1}\n", INT64_MAX, losses), "") << step;
    EXPECT_TRUE(losses.steps.empty()) << step;
  }
}

TEST(TrainLog, ThePictureHasNumbersForPlaces) {
  for (const double loss : {0.0, 4.5, 7.2e23, 3e38, 1e308, -1e308, double{NAN}, double{INFINITY}}) {
    for (const double other : {loss, 2.5, -3e38}) {
      const std::string svg = picture({{{1, loss}, {2, other}}, {{1, loss}}, {{1, other}}});
      EXPECT_EQ(svg.find("nan"), svg.npos) << loss << " " << other;
      EXPECT_EQ(svg.find("inf"), svg.npos) << loss << " " << other;
    }
  }
}

TEST(TrainDescription, AModelIsNotMadeLargerThanItsFile) {
  nn::TransformerConfig config{
      .vocab_size = 3, .block_size = 2, .n_layer = 2, .n_head = 1, .n_embd = 2};
  const auto with = [&](const nn::TransformerConfig& said) {
    Checkpoint checkpoint;
    checkpoint.path = "file";
    checkpoint.metadata = describe(said, CharTokenizer("abc"));
    checkpoint.tensors = {{"model.transformer.wte.weight", zeros({3, 2})},
                          {"model.transformer.wpe.weight", zeros({2, 2})},
                          {"model.transformer.h.0.mlp.c_fc.weight", zeros({2, 8})},
                          {"model.transformer.h.1.mlp.c_fc.weight", zeros({2, 8})}};
    return checkpoint;
  };
  const Described described = read_description(with(config));
  EXPECT_EQ(described.config.layers, 2);
  EXPECT_EQ(described.tokenizer->vocabulary_size(), 3);

  const auto refuse = [&](const nn::TransformerConfig& said, const std::string& what) {
    try {
      read_description(with(said));
      ADD_FAILURE() << "no error: " << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  nn::TransformerConfig said = config;
  said.n_layer = 1 << 24;
  refuse(said, "has no h.2.mlp.c_fc.weight of shape (2, 8)");
  said = config;
  said.block_size = 1 << 24;
  refuse(said, "has no wpe.weight of shape (16777216, 2)");
  said = config;
  said.n_embd = 1 << 24;
  refuse(said, "has no wte.weight of shape (3, 16777216)");
  said.n_embd = (1 << 24) + 1;
  refuse(said, "n_embd is 16777217");
}

}  // namespace
}  // namespace ein::training
