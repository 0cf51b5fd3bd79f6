// Assignment 1, section 3: the block and the language model as modules with the handout's names,
// beside nn::Decoder with the same weights; then the parameters and products of GPT-2's sizes, of
// which nothing is in memory.
#include <cmath>
#include <cstdio>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/shapes_only.hpp>

namespace nn = ein::nn;
using ein::Tensor;
using namespace ein::literals;

/// Weight (out, in), normal of variance 2 / (in + out), cut at 3 standard deviations.
struct Linear : nn::Linear {
  Linear(std::int64_t in, std::int64_t out) : nn::Linear(in, out, false, Axes::out_in) {
    const double std = std::sqrt(2 / static_cast<double>(in + out));
    nn::init::trunc_normal(weight, std, -3 * std, 3 * std);
  }
};

struct SelfAttention : nn::Layer {
  SelfAttention(std::int64_t dim, std::int64_t count)
      : heads(count), q_proj(dim, dim), k_proj(dim, dim), v_proj(dim, dim), output_proj(dim, dim) {}
  Tensor forward(const Tensor& x) const override {
    const auto of_heads = [&](const Tensor& y) {
      return rearrange(y, "b s (h d) -> b h s d", "h"_a = heads);
    };
    const Tensor q = of_heads(q_proj(x)), k = of_heads(k_proj(x)), v = of_heads(v_proj(x));
    const std::int64_t d = q.shape()[3];
    const auto turns = nn::rotations({.layout = neighbours}, d, ein::arange(x.shape()[1]));
    const Tensor scores = einsum(nn::rotated(q, turns, neighbours),
                                 nn::rotated(k, turns, neighbours), "b h q d, b h k d -> b h q k") /
                          std::sqrt(static_cast<double>(d));
    const Tensor weights = softmax(tril(scores, "b h [q k]", 0, -INFINITY), "b h q [k]");
    return output_proj(einsum(weights, v, "b h k s, b h s d -> b k (h d)"));
  }
  static constexpr auto neighbours = nn::Rotary::Layout::neighbours;
  std::int64_t heads;
  Linear q_proj, k_proj, v_proj, output_proj;
  EIN_MODULES(q_proj, k_proj, v_proj, output_proj);
};

struct SwiGLU : nn::Layer {
  SwiGLU(std::int64_t dim, std::int64_t inner) : w1(dim, inner), w2(inner, dim), w3(dim, inner) {}
  Tensor forward(const Tensor& x) const override { return w2(silu(w1(x)) * w3(x)); }
  Linear w1, w2, w3;
  EIN_MODULES(w1, w2, w3);
};

struct Block : nn::Layer {
  Block(std::int64_t dim, std::int64_t heads, std::int64_t inner)
      : ln1(dim, 1e-5), attn(dim, heads), ln2(dim, 1e-5), ffn(dim, inner) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor z = x + attn(ln1(x));
    return z + ffn(ln2(z));
  }
  nn::RMSNorm ln1;
  SelfAttention attn;
  nn::RMSNorm ln2;
  SwiGLU ffn;
  EIN_MODULES(ln1, attn, ln2, ffn);
};

struct LanguageModel : nn::Layer {
  explicit LanguageModel(const nn::CS336Sizes& sizes)
      : token_embeddings(sizes.vocabulary, sizes.width),
        ln_final(sizes.width, 1e-5),
        lm_head(sizes.width, sizes.vocabulary) {
    for (int i = 0; i < sizes.layers; ++i)
      layers.emplace_back(sizes.width, sizes.heads, sizes.inner);
  }
  Tensor forward(const Tensor& tokens) const override {
    Tensor x = token_embeddings(tokens);
    for (const Block& block : layers) x = block(x);
    return lm_head(ln_final(x));
  }
  nn::Embedding token_embeddings;
  nn::ModuleList<Block> layers;
  nn::RMSNorm ln_final;
  Linear lm_head;
  EIN_MODULES(token_embeddings, layers, ln_final, lm_head);
};

int main() {
  const nn::CS336Sizes small{
      .vocabulary = 100, .context = 16, .width = 32, .layers = 2, .heads = 4, .inner = 96};
  const LanguageModel ours(small);
  const nn::Decoder decoder(nn::cs336(small));
  nn::load_weights(decoder, ours.state_dict(), nn::WeightNames::cs336);
  const Tensor tokens = ein::arange(32).view({2, 16});
  const double off = reduce(abs(ours(tokens) - decoder(tokens)), "... ->", "max").detach().item();
  std::printf("logits %s; of nn::Decoder with these weights %s\n",
              ours(tokens).shape().to_string().c_str(), off < 1e-5 ? "the same to 1e-5" : "others");

  const nn::CS336Sizes sizes[] = {{.width = 768, .layers = 12, .heads = 12, .inner = 2048},
                                  {.width = 1024, .layers = 24, .heads = 16, .inner = 2752},
                                  {.width = 1280, .layers = 36, .heads = 20, .inner = 3392},
                                  {.width = 1600, .layers = 48, .heads = 25, .inner = 4288}};
  for (const nn::CS336Sizes& of : sizes) {
    const ein::ShapesOnly shapes;
    const LanguageModel model(of);
    const Tensor logits = model(ein::empty({1, 1024}, ein::DType::i64));
    std::printf("%lld layers of %lld: %lld parameters, %s FLOPs forward\n",
                static_cast<long long>(of.layers), static_cast<long long>(of.width),
                static_cast<long long>(model.parameter_count()),
                to_string(shapes.cost(logits).matmul_only).c_str());
  }
}
