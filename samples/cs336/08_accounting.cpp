// Assignment 1, accounting: parameters, products and training memory of GPT-2's sizes, counted from
// graphs of shapes alone. In 2026 the feed-forward width is 8/3 of the model's, to the nearest
// multiple of 64; in 2025 it was four times it.
#include <cstdio>

#include <ein/ein.hpp>
#include <ein/napkin.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

namespace nn = ein::nn;
using ein::Tensor;

struct Forward {
  double parameters = 0, projections = 0, scores = 0, feed_forward = 0, head = 0;
  double flops() const { return projections + scores + feed_forward + head; }
};

/// Products of a sequence of so many tokens. Layers are alike: one is counted.
Forward forward(const nn::CS336Sizes& sizes, std::int64_t tokens) {
  const ein::ShapesOnly shapes;
  const nn::DecoderConfig config = nn::cs336(sizes);
  const nn::Decoder model(config);
  const nn::Block block(config, 0);
  const auto layers = static_cast<double>(sizes.layers);
  const Tensor x = ein::empty({1, tokens, sizes.width});
  const auto count = [&](const Tensor& y) { return shapes.cost(y).matmul_only.approximate(); };
  Forward of{.parameters = static_cast<double>(model.parameter_count())};
  of.projections = layers * (count(block.attn.c_attn(x)) + count(block.attn.c_proj(x)));
  of.scores = layers * count(block.attn(x)) - of.projections;
  of.feed_forward = layers * count((*block.mlp)(x));
  of.head = count(nn::Linear(sizes.width, sizes.vocabulary, false)(x));
  return of;
}

/// The handout's list, a float each: parameters, gradients, two moments; and what a sequence keeps.
/// `loss` is what the cross-entropy keeps of a sequence.
void memory(const char* what, const nn::CS336Sizes& s, double parameters, bool gated, double loss) {
  const double t = 1024, d = static_cast<double>(s.width), f = static_cast<double>(s.inner),
               v = static_cast<double>(s.vocabulary), h = static_cast<double>(s.heads);
  const double feed_forward = (gated ? 4 : 2) * t * f + t * d;
  const double layer = 2 * t * d + 3 * t * d + 2 * h * t * t + 2 * t * d + feed_forward;
  const double of_batch = 4 * (static_cast<double>(s.layers) * layer + t * d + t * v + loss);
  std::printf("  %s: %.4f GB + %.4f GB a sequence: %d fit in 80 GB\n", what, 16 * parameters / 1e9,
              of_batch / 1e9, static_cast<int>((80e9 - 16 * parameters) / of_batch));
}

int main() {
  using Sizes = nn::CS336Sizes;
  for (const bool gated : {true, false}) {
    std::printf("%s\n", gated ? "2026" : "2025: f = 4d");
    const auto inner = [&](std::int64_t of_2026, std::int64_t d) {
      return gated ? of_2026 : 4 * d;
    };
    const std::pair<const char*, Sizes> models[] = {
        {"small", {.width = 768, .layers = 12, .heads = 12, .inner = inner(2048, 768)}},
        {"medium", {.width = 1024, .layers = 24, .heads = 16, .inner = inner(2752, 1024)}},
        {"large", {.width = 1280, .layers = 36, .heads = 20, .inner = inner(3392, 1280)}},
        {"XL", {.width = 1600, .layers = 48, .heads = 25, .inner = inner(4288, 1600)}}};
    for (const auto& [name, sizes] : models) {
      const Forward of = forward(sizes, 1024);
      std::printf(
          "  %-6s %.0f parameters, %.0f FLOPs: projections %.4f, scores %.4f, FFN %.4f, head "
          "%.4f\n",
          name, of.parameters, of.flops(), of.projections / of.flops(), of.scores / of.flops(),
          of.feed_forward / of.flops(), of.head / of.flops());
    }
    const Sizes& xl = models[3].second;
    const Forward of = forward(xl, 1024), longer = forward(xl, 16384);
    std::printf("  XL of 16,384 tokens: %.0f FLOPs, %.2f times as many; scores %.4f\n",
                longer.flops(), longer.flops() / of.flops(), longer.scores / longer.flops());
    memory("XL, AdamW, loss keeps logits", xl, of.parameters, gated, 1024.0 * 50257);
    memory("XL, AdamW, loss keeps a number a token", xl, of.parameters, gated, 1024);
    const double step = 3 * of.flops() * 1024, peak = gated ? 495e12 : 19.5e12;
    const double hours = ein::napkin::seconds_for(400000 * step, {1, peak, 0.5}) / 3600;
    std::printf(
        "  a step of 1,024 sequences: %.0f FLOPs; 400,000 steps at half of %.4g FLOP/s: %.2f "
        "hours, %.2f days\n",
        step, peak, hours, hours / 24);
    std::printf("  AdamW's update, 14 FLOPs a parameter: %.0f\n", 14 * of.parameters);
  }
  const Sizes tiny{.vocabulary = 10000, .context = 256, .width = 512, .layers = 4, .heads = 16};
  const Forward of = forward(tiny, 256);
  const double table = 10000.0 * 512;
  std::printf("TinyStories: %.0f parameters, %.0f without the input table, %.0f without both\n",
              of.parameters, of.parameters - table, of.parameters - 2 * table);
  std::printf("  training on 327,680,000 tokens: %.12e FLOPs in products; 6ND has %.3e\n",
              3 * of.flops() * 327680000 / 256, 6 * of.parameters * 327680000);
}
