// The accounting of CS336's assignments 1 and 2 of 2025 and 2026, in the digits that the course
// expects: shares of a forward pass, memory of AdamW, times, sizes that are measured.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/napkin.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

namespace {

using ein::Count;
using ein::Tensor;
namespace nn = ein::nn;

/// Products of a sequence by their purpose; of layers, which are alike, one is counted.
struct Forward {
  std::int64_t parameters = 0;
  Count projections{}, scores{}, feed_forward{}, head{};
  Count flops() const { return projections + scores + feed_forward + head; }
  double share(const Count& of) const { return of.approximate() / flops().approximate(); }
};

Forward forward(const nn::CS336Sizes& sizes, std::int64_t tokens) {
  const ein::ShapesOnly shapes;
  const nn::DecoderConfig config = nn::cs336(sizes);
  const nn::Block block(config, 0);
  const Tensor x = ein::empty({1, tokens, sizes.width});
  const auto count = [&](const Tensor& y) { return shapes.cost(y).matmul_only; };
  Forward of{.parameters = nn::Decoder(config).parameter_count()};
  of.projections =
      Count(sizes.layers) * (count(block.attn.c_attn(x)) + count(block.attn.c_proj(x)));
  of.scores = Count(sizes.layers) * count(block.attn(x)) - of.projections;
  of.feed_forward = Count(sizes.layers) * count((*block.mlp)(x));
  of.head = count(nn::Linear(sizes.width, sizes.vocabulary, false)(x));
  return of;
}

nn::CS336Sizes xl(std::int64_t inner) {
  return {.width = 1600, .layers = 48, .heads = 25, .inner = inner};
}

TEST(CourseAccounting, SharesOfAForwardPass) {
  struct Row {
    nn::CS336Sizes sizes;
    std::int64_t tokens, bytes, flops;
    double projections, scores, feed_forward, head;
  };
  const Row rows[] = {{{.width = 768, .layers = 12, .heads = 12, .inner = 2048},
                       1024,
                       648594432,
                       291648307200,
                       .1988,
                       .1325,
                       .3976,
                       .2710},
                      {{.width = 1024, .layers = 24, .heads = 16, .inner = 2752},
                       1024,
                       1626157056,
                       830172299264,
                       .2483,
                       .1242,
                       .5005,
                       .1270},
                      {{.width = 1280, .layers = 36, .heads = 20, .inner = 3392},
                       1024,
                       3334364160,
                       1768530903040,
                       .2732,
                       .1093,
                       .5430,
                       .0745},
                      {xl(4288), 1024, 6561811200, 3516769894400, .2862, .0916, .5753, .0468},
                      {xl(4288), 16384, 6561811200, 133577729638400, .1206, .6173, .2424, .0197},
                      // of 2025
                      {{.width = 768, .layers = 12, .heads = 12, .inner = 3072},
                       1024,
                       4 * 190460160,
                       349630365696,
                       .1658,
                       .1106,
                       .4975,
                       .2261},
                      {{.width = 1024, .layers = 24, .heads = 16, .inner = 4096},
                       1024,
                       4 * std::int64_t{505629696},
                       1033109504000,
                       .1996,
                       .0998,
                       .5987,
                       .1020},
                      {{.width = 1280, .layers = 36, .heads = 20, .inner = 5120},
                       1024,
                       4 * std::int64_t{1072469760},
                       2257754521600,
                       .2140,
                       .0856,
                       .6420,
                       .0584},
                      {xl(6400), 1024, 8508230400, 4513336524800, .2230, .0714, .6691, .0365},
                      {xl(6400), 16384, 8508230400, 149522795724800, .1077, .5515, .3232, .0176}};
  for (const Row& row : rows) {
    SCOPED_TRACE(std::to_string(row.sizes.width) + " " + std::to_string(row.sizes.inner));
    const Forward of = forward(row.sizes, row.tokens);
    EXPECT_EQ(4 * of.parameters, row.bytes);
    EXPECT_EQ(of.flops(), Count(row.flops));
    EXPECT_NEAR(of.share(of.projections), row.projections, 5.01e-5);
    EXPECT_NEAR(of.share(of.scores), row.scores, 5.01e-5);
    EXPECT_NEAR(of.share(of.feed_forward), row.feed_forward, 5.01e-5);
    EXPECT_NEAR(of.share(of.head), row.head, 5.01e-5);
  }
  const Forward of = forward(xl(4288), 1024);
  EXPECT_EQ(of.projections, Count(std::int64_t{1006632960000}));
  EXPECT_EQ(of.scores, Count(std::int64_t{322122547200}));
  EXPECT_EQ(of.feed_forward, Count(std::int64_t{2023332249600}));
  EXPECT_EQ(of.head, Count(std::int64_t{164682137600}));
  const auto longer = [](std::int64_t inner) {
    return forward(xl(inner), 16384).flops().approximate() /
           forward(xl(inner), 1024).flops().approximate();
  };
  EXPECT_NEAR(longer(4288), 37.98, 0.005);
  EXPECT_NEAR(longer(6400), 33.13, 0.005);
}

TEST(CourseAccounting, TimeOfTrainingXl) {
  const Count step = Count(3 * 1024) * forward(xl(4288), 1024).flops();
  EXPECT_EQ(step, Count(std::int64_t{10803517115596800}));
  const auto hours = [](const Count& of_step, double peak) {
    return ein::napkin::seconds_for(400000 * of_step.approximate(), {1, peak, 0.5}) / 3600;
  };
  EXPECT_NEAR(hours(step, 495e12), 4850.06, 0.005);  // the handout's tf32; the datasheet has 494.5
  EXPECT_NEAR(hours(Count(3 * 1024) * forward(xl(6400), 1024).flops(), 19.5e12) / 24, 6583.56,
              0.005);
  EXPECT_EQ(Count(14) * Count(forward(xl(4288), 1).parameters), Count(std::int64_t{22966339200}));
}

// Parameters, gradients and moments are ein's count; activations are the handout's list.
TEST(CourseAccounting, SequencesThatFitIn80GB) {
  struct Row {
    std::int64_t inner;
    int of_feed_forward;  // (T, f) tensors
    double loss, constant, of_sequence;
    int fit;
  };
  const double t = 1024, d = 1600, v = 50257;
  for (const Row& row :
       {Row{4288, 4, t * v, 26.2472, 16.3734, 3}, Row{4288, 4, t, 26.2472, 16.1675, 3},
        Row{6400, 2, t * v, 34.0329, 15.5178, 2}, Row{6400, 2, t, 34.0329, 15.3119, 3}}) {
    const double constant = static_cast<double>(ein::napkin::bytes_per_parameter({}) *
                                                forward(xl(row.inner), 1).parameters);
    const double layer = 7 * t * d + 2 * 25 * t * t +
                         row.of_feed_forward * t * static_cast<double>(row.inner) + t * d;
    const double of_sequence = 4 * (48 * layer + t * d + t * v + row.loss);
    EXPECT_NEAR(constant / 1e9, row.constant, 5.01e-5);
    EXPECT_NEAR(of_sequence / 1e9, row.of_sequence, 5.01e-5);
    EXPECT_EQ(static_cast<int>((80e9 - constant) / of_sequence), row.fit);
  }
}

TEST(CourseAccounting, TinyStories) {
  const nn::CS336Sizes sizes{
      .vocabulary = 10000, .context = 256, .width = 512, .layers = 4, .heads = 16};
  const Forward of = forward(sizes, 256);
  const std::int64_t table = 10000 * 512;
  EXPECT_EQ(of.parameters, 22696448);
  EXPECT_EQ(of.parameters - table, 17576448);
  EXPECT_EQ(of.parameters - 2 * table, 12456448);
  const auto training = [&](std::int64_t tokens) { return Count(3 * tokens / 256) * of.flops(); };
  EXPECT_EQ(training(std::int64_t{20000} * 64 * 256), Count(std::int64_t{36609227489280000}));
  EXPECT_EQ(training(std::int64_t{5000} * 32 * 256), Count(std::int64_t{4576153436160000}));
  EXPECT_NEAR(ein::napkin::training_flops(of.parameters, 327680000).approximate(), 4.462e16,
              0.0005e16);
}

// Assignment 2: parameters and products are in DecoderShapes.TablesOfTheCourse.
TEST(CourseAccounting, SizesOfTheSecondAssignment) {
  struct Row {
    std::int64_t width, inner, layers, heads;
    double parameters, adamw;  // GB
    std::int64_t residual;     // MiB
  };
  for (const Row& row :
       {Row{768, 3072, 12, 12, .5145, 2.058, 6}, Row{1024, 4096, 24, 16, 1.6927, 6.771, 8},
        Row{1280, 5120, 36, 20, 3.8776, 15.511, 10}, Row{2560, 10240, 32, 32, 13.6272, 54.509, 20},
        Row{4608, 12288, 50, 36, 51.331, 205.325, 36}}) {
    const ein::ShapesOnly shapes;
    const nn::Decoder model(nn::cs336({.vocabulary = 10000,
                                       .context = 512,
                                       .width = row.width,
                                       .layers = row.layers,
                                       .heads = row.heads,
                                       .inner = row.inner}));
    const auto bytes = [&](std::int64_t each) {
      return static_cast<double>(each * model.parameter_count()) / 1e9;
    };
    EXPECT_NEAR(bytes(4), row.parameters, row.width == 4608 ? 5e-4 : 5.01e-5);
    EXPECT_NEAR(bytes(ein::napkin::bytes_per_parameter({})), row.adamw, 5.01e-4);
    EXPECT_EQ(ein::empty({4, 512, row.width}).nbytes(), static_cast<std::size_t>(row.residual)
                                                            << 20);
    if (row.width != 2560) continue;
    EXPECT_EQ(ein::empty({4, 2048, row.width}).nbytes(), 80u << 20);
    EXPECT_EQ(ein::empty({4, 128, row.width}).nbytes(), 5u << 20);
    EXPECT_EQ(ein::empty({4, row.heads, 2048, 2048}).nbytes(), std::size_t{2} << 30);  // scores
    EXPECT_EQ(ein::empty({4, 2048, row.inner}).nbytes(), 320u << 20);
  }
}

TEST(CourseAccounting, TheLeaderboardsModel) {
  const nn::CS336Sizes sizes{.vocabulary = 151936,
                             .context = 32768,
                             .width = 4096,
                             .layers = 34,
                             .heads = 32,
                             .inner = 11008};
  const Forward of = forward(sizes, 32768);
  EXPECT_EQ(of.parameters, 8125698048);
  EXPECT_NEAR(16 * static_cast<double>(of.parameters) / 1e9, 130.0, 0.05);
  EXPECT_NEAR(3 * 2 * of.flops().approximate(), 6.539e15, 0.0005e15);
  EXPECT_NEAR(of.share(of.scores), 0.55, 0.005);
  const ein::ShapesOnly shapes;
  EXPECT_EQ(ein::empty({2, 32768, 151936}, ein::DType::bf16).nbytes(), 19914555392u);
}

// What two processes hold of xl, in f32: assignment 2's optimizer_state_sharding and FSDP.
TEST(CourseAccounting, HalvesOfXl) {
  const ein::ShapesOnly shapes;
  const nn::Decoder model(nn::cs336({.vocabulary = 10000,
                                     .context = 512,
                                     .width = 2560,
                                     .layers = 32,
                                     .heads = 32,
                                     .inner = 10240}));
  std::int64_t norms = 0;
  for (const auto& [name, p] : model.named_parameters())
    if (p.rank() == 1) norms += p.numel();
  EXPECT_EQ(norms, 166400);
  const auto p = static_cast<double>(model.parameter_count());
  EXPECT_NEAR(4 * p / 1e9, 13.627, 5.01e-4);
  EXPECT_NEAR((4 + 4 + 8) * p / 1e9, 54.509, 5.01e-4);
  EXPECT_NEAR((4 + 4 + 8 / 2) * p / 1e9, 40.882, 5.01e-4);
  const auto split = static_cast<double>(model.parameter_count() - norms);
  EXPECT_NEAR(16 * (split / 2 + static_cast<double>(norms)) / 1e9, 27.256, 5.01e-4);
}

}  // namespace
