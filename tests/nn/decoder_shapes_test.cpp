// Decoders of any size as shapes alone: parameters and products as integers, beside the tables of
// the course and counts of the published configs that transformers gives.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "support/shared_data.hpp"

namespace {

using ein::ErrorKind;
using ein::Tensor;
using ein::test::expect_error;
namespace nn = ein::nn;

std::int64_t parameters(const nn::DecoderConfig& config) {
  const ein::ShapesOnly shapes;
  return nn::Decoder(config).parameter_count();
}

/// Of the products of a forward pass of one sequence.
ein::Count products(const nn::DecoderConfig& config, std::int64_t positions,
                    std::int64_t batch = 1) {
  const ein::ShapesOnly shapes;
  const nn::Decoder model(config);
  return shapes.cost(model(ein::empty({batch, positions}, ein::DType::i64))).matmul_only;
}

struct Published {
  const char* file;
  nn::DecoderConfig (*config)();
  std::int64_t parameters;
  std::int64_t cache;  // bytes in bf16, of so many tokens
  std::int64_t tokens = 8192;
};
const Published published[] = {
    {"gpt2", nn::gpt2, 124439808, 37748736, 1024},
    {"gpt2-xl", nn::gpt2_xl, 1557611200, 314572800, 1024},
    {"tinystories-33m", nn::tinystories_33m, 68514048, 14155776, 2048},
    {"smollm2-135m", nn::smollm2_135m, 134515008, 188743680},
    {"llama-2-7b", nn::llama2_7b, 6738415616, 4294967296},
    {"llama-3.1-8b", nn::llama3_8b, 8030261248, 1073741824},
    {"llama-3.1-70b", nn::llama3_70b, 70553706496, 2684354560},
    {"llama-3.1-405b", nn::llama3_405b, 405853388800, 4227858432},
    {"qwen2.5-0.5b", nn::qwen2_0_5b, 494032768, 100663296},
    {"qwen2.5-7b", nn::qwen2_7b, 7615616512, 469762048},
    {"qwen3-0.6b", nn::qwen3_0_6b, 596049920, 939524096},
    {"qwen3-8b", nn::qwen3_8b, 8190735360, 1207959552},
    {"qwen3-30b-a3b", nn::qwen3_30b_a3b, 30532122624, 805306368},
    {"mistral-7b-v0.1", nn::mistral_7b, 7241732096, 536870912},
    {"mixtral-8x7b", nn::mixtral_8x7b, 46702792704, 1073741824},
    {"gemma-2-9b", nn::gemma2_9b, 9241705984, 2113929216},
    {"gemma-3-1b-it", nn::gemma3_1b, 999885952, 45088768},
    {"gemma-3-27b-it", nn::gemma3_27b, 27009346304, 1107296256},
    {"phi-3-mini-4k", nn::phi3_mini, 3821079552, 804913152, 4096},
    {"gpt-oss-20b", nn::gpt_oss_20b, 20914757184, 204472320},
    {"deepseek-v3", nn::deepseek_v3, 671026404352, 575668224},
};

TEST(DecoderShapes, ParametersOfPublishedModels) {
  for (const Published& of : published)
    EXPECT_EQ(parameters(of.config()), of.parameters) << of.file;
}

TEST(DecoderShapes, CachesOfPublishedModels) {
  for (const Published& of : published) {
    const ein::ShapesOnly shapes;
    std::int64_t elements = 0;
    for (const nn::KVCache& layer : nn::Decoder(of.config()).make_cache(1, of.tokens))
      elements += layer.keys.numel() + layer.values.numel();
    EXPECT_EQ(2 * elements, of.cache) << of.file;
  }
}

// The course counts products alone, three times the forward pass.
TEST(DecoderShapes, FlopsOfAToken) {
  EXPECT_EQ(products(nn::gpt2(), 1024) * ein::Count(3), ein::Count(std::int64_t{854438400} * 1024));
  EXPECT_EQ(products(nn::llama3_8b(), 8192) * ein::Count(3),
            ein::Count(std::int64_t{57912852480} * 8192));
}

TEST(DecoderShapes, ConfigsOfFilesAreThoseOfTheFamilies) {
  SKIP_WITHOUT_SHARED_DATA("configs");
  for (const Published& of : published) {
    SCOPED_TRACE(of.file);
    const ein::test::ScratchDirectory directory;
    std::filesystem::copy_file(ein::test::shared_data(std::string("configs/") + of.file + ".json"),
                               directory.path("config.json"));
    const nn::DecoderConfig read = nn::read_decoder_config(directory.path().string()).config;
    EXPECT_EQ(parameters(read), of.parameters);
    // What makes them differ must be a choice of how to say the same.
    const nn::DecoderConfig known = of.config();
    for (std::int64_t i = 0; i < known.layers; ++i) {
      const nn::AttentionConfig &a = read.attention_of(i), &b = known.attention_of(i);
      EXPECT_EQ(a.window, b.window) << i;
      EXPECT_EQ(a.scale, b.scale) << i;
      EXPECT_EQ(a.soft_cap, b.soft_cap) << i;
      EXPECT_EQ(a.rotary, b.rotary) << i;
      EXPECT_EQ(a.query_key_norm, b.query_key_norm) << i;
    }
    EXPECT_EQ(read.norm, known.norm);
    EXPECT_EQ(read.feed_forward, known.feed_forward);
    EXPECT_EQ(read.mixture, known.mixture);
    EXPECT_EQ(read.tied, known.tied);
    EXPECT_EQ(read.logit_cap, known.logit_cap);
    EXPECT_EQ(read.embedding_scale, known.embedding_scale);
    EXPECT_EQ(read.positions, known.positions);
  }
}

TEST(DecoderShapes, UnknownArchitecturesAreRefusedByName) {
  SKIP_WITHOUT_SHARED_DATA("configs");
  for (const auto& [file, type] : {std::pair("qwen3.5-27b", "qwen3_5")}) {
    const ein::test::ScratchDirectory directory;
    std::filesystem::copy_file(ein::test::shared_data(std::string("configs/") + file + ".json"),
                               directory.path("config.json"));
    expect_error([&] { nn::read_decoder_config(directory.path().string()); }, ErrorKind::file,
                 {"model_type", type});
  }
}

struct Course {
  std::int64_t layers, width, heads, inner, parameters;
  std::int64_t products;  // forward, of so many tokens
  std::int64_t tokens = 1024;
};

TEST(DecoderShapes, TablesOfTheCourse) {
  const Course rows[] = {
      {12, 768, 12, 2048, 162148608, 291648307200},
      {24, 1024, 16, 2752, 406539264, 830172299264},
      {36, 1280, 20, 3392, 833591040, 1768530903040},
      {48, 1600, 25, 4288, 1640452800, 3516769894400},
      {48, 1600, 25, 4288, 1640452800, 133577729638400, 16384},
      // of 2025, with four times the width inside
      {12, 768, 12, 3072, 190460160, 349630365696},
      {24, 1024, 16, 4096, 505629696, 1033109504000},
      {36, 1280, 20, 5120, 1072469760, 2257754521600},
      {48, 1600, 25, 6400, 2127057600, 4513336524800},
      {48, 1600, 25, 6400, 2127057600, 149522795724800, 16384},
  };
  for (const Course& row : rows) {
    SCOPED_TRACE(std::to_string(row.width) + " " + std::to_string(row.inner));
    const bool is_default = row.inner % 64 == 0 && row.inner < 4 * row.width;
    const nn::DecoderConfig config = nn::cs336({.width = row.width,
                                                .layers = row.layers,
                                                .heads = row.heads,
                                                .inner = is_default ? 0 : row.inner});
    EXPECT_EQ(nn::inner_width(config.feed_forward, row.width), row.inner);
    EXPECT_EQ(parameters(config), row.parameters);
    EXPECT_EQ(products(config, row.tokens), ein::Count(row.products));
  }
  // Assignment 2: of 10,000 words and 4 times 512 tokens.
  const Course second[] = {{12, 768, 12, 3072, 128625408, 533968453632},
                           {24, 1024, 16, 4096, 423183360, 1794289696768},
                           {36, 1280, 20, 5120, 969411840, 4111172894720},
                           {32, 2560, 32, 10240, 3406809600, 14192350330880},
                           {50, 4608, 36, 12288, 12832823808, 53338963968000}};
  for (const Course& row : second) {
    const nn::DecoderConfig config = nn::cs336({.vocabulary = 10000,
                                                .context = 512,
                                                .width = row.width,
                                                .layers = row.layers,
                                                .heads = row.heads,
                                                .inner = row.inner});
    EXPECT_EQ(parameters(config), row.parameters);
    EXPECT_EQ(products(config, 512, 4), ein::Count(row.products));
  }
  // The model of TinyStories: 17.58M without the table of tokens.
  EXPECT_EQ(parameters(nn::cs336(
                {.vocabulary = 10000, .context = 256, .width = 512, .layers = 4, .heads = 16})),
            22696448);
  // No norms; SiLU with 4 times the width has other numbers, positions none at all.
  const nn::DecoderConfig small = nn::cs336();
  EXPECT_EQ(parameters(without_norms(small)), 162148608 - 25 * 768);
  EXPECT_EQ(parameters(without_positions(small)), 162148608);
  EXPECT_EQ(parameters(with_norms_after(small)), 162148608);
  EXPECT_EQ(parameters(without_gate(small)), 162148608 + 12 * 768 * (2 * 3072 - 3 * 2048));
}

/// 2·(active matrices + head)·T + 4·L·H·h·T²: of a mixture the chosen experts alone count.
TEST(DecoderShapes, ProductsOfAMixtureAreThoseOfTheChosenExperts) {
  const std::int64_t t = 1024;
  const std::int64_t attention = std::int64_t{4} * 48 * 32 * 128 * t * t;
  const std::int64_t matrices = std::int64_t{2730491904} + 311164928;
  EXPECT_EQ(products(nn::qwen3_30b_a3b(), t), ein::Count(2 * matrices * t + attention));
}

TEST(DecoderShapes, TakeNoMemory) {
  ein::reset_max_memory_allocated();
  const std::size_t before = ein::memory_allocated();
  {
    const ein::ShapesOnly shapes;
    const nn::Decoder model(nn::llama3_405b());
    const Tensor logits = model(ein::empty({1, 2048}, ein::DType::i64));
    EXPECT_EQ(logits.shape(), (ein::Shape{1, 2048, 128256}));
    EXPECT_GT(shapes.cost(logits).matmul_only.approximate(), 1.6e15);
    EXPECT_EQ(model.named_parameters().front().second.shape(), (ein::Shape{128256, 16384}));
  }
  EXPECT_LT(ein::max_memory_allocated() - before, std::size_t{1} << 16);
}

TEST(ShapesOnly, CountsWhatCallsAndGradientsCost) {
  const Tensor outside = ein::ones({3, 4});
  const ein::ShapesOnly shapes;
  const nn::Linear layer(4, 5);
  const Tensor y = layer(outside);
  EXPECT_EQ(y.shape(), (ein::Shape{3, 5}));
  EXPECT_EQ(shapes.cost(y).matmul_only, ein::Count(2 * 3 * 4 * 5));
  EXPECT_EQ(shapes.cost(y).transcendental, ein::Cost().transcendental);  // nothing is drawn
  reduce(y, "... ->", "sum").backward();
  EXPECT_EQ(layer.weight.grad().shape(), layer.weight.shape());
  EXPECT_GT(shapes.cost(std::vector{y, layer.weight.grad()}).model.approximate(), 120);
  EXPECT_EQ(shapes.graph(y).outputs.size(), 1u);
}

TEST(ShapesOnly, BackwardIsTwiceTheForwardPass) {
  const ein::ShapesOnly shapes;
  const nn::Decoder model(nn::cs336());
  const Tensor tokens = ein::empty({1, 1024}, ein::DType::i64);
  const Tensor loss = cross_entropy(model(tokens), tokens, "b s [v], b s");
  loss.backward();
  const ein::Graph graph = shapes.graph(loss);
  const ein::Count forward = ein::cost(graph).matmul_only;
  EXPECT_EQ(forward, ein::Count(291648307200));
  std::vector<Tensor> results{loss};
  for (const Tensor& parameter : model.parameters()) results.push_back(parameter.grad());
  EXPECT_EQ(shapes.cost(results).matmul_only, ein::Count(3 * 291648307200));
}

TEST(ShapesOnly, HasNoElements) {
  std::unique_ptr<nn::Linear> kept;
  {
    const ein::ShapesOnly shapes;
    kept = std::make_unique<nn::Linear>(2, 3);
    expect_error([&] { kept->weight.to_vector<float>(); }, ErrorKind::value,
                 {"no elements", "ein::ShapesOnly"});
    expect_error([] { ein::ShapesOnly inner; }, ErrorKind::value, {"ShapesOnly"});
    expect_error([] { ein::empty({INT64_MAX, 2}); }, ErrorKind::overflow, {});
  }
  EXPECT_EQ(kept->parameter_count(), 9);
  expect_error([&] { (*kept)(ein::ones({1, 2})); }, ErrorKind::value, {"no elements"});
}

TEST(ShapesOnly, ADecoderKeepsItsLimits) {
  const ein::ShapesOnly shapes;
  nn::DecoderConfig config = nn::gpt2();
  const nn::Decoder gpt2(config);
  expect_error(
      [&] {
        gpt2(ein::empty({1, 1025}, ein::DType::i64));
      },
      ErrorKind::shape, {"1025 positions", "1024"});
  expect_error([&] { gpt2(ein::empty({1025}, ein::DType::i64)); }, ErrorKind::rank, {"(1025,)"});
  expect_error(
      [&] {
        gpt2(ein::empty({1, 1025}, ein::DType::i64));
      },
      ErrorKind::shape, {"1025 positions", "1024"});
  config.is_local = {true};
  expect_error([&] { nn::Decoder{config}; }, ErrorKind::value, {"is_local is of 1 layers", "12"});
  config = nn::gpt2();
  config.layers = 0;
  expect_error([&] { nn::Decoder{config}; }, ErrorKind::value, {"layers is 0"});
  config = nn::gpt2();
  config.logit_cap = -1;
  expect_error([&] { nn::Decoder{config}; }, ErrorKind::value, {"logit_cap is -1"});
  config = nn::gpt2();
  config.initial_std = NAN;
  expect_error([&] { nn::Decoder{config}; }, ErrorKind::value, {"initial_std is nan"});
}

}  // namespace
