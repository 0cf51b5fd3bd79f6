// The decoder of Stanford CS336's first assignment: RMS norms before attention with rotary
// positions and a gated feed-forward network, and a head of its own. A function is as its reader
// would describe it: the types of what it takes and returns stand in its signature, and none in its
// body.
//
// tests/must_not_compile/decoder has it with mistakes, one at a time.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

using namespace ein::literals;
using ein::einsum;
using ein::Float;
using ein::Long;

struct Layer {
  Float<"d_model"> norm1, norm2;
  Float<"d_model heads d_k"> query, key, value;
  Float<"heads d_k d_model"> output;
  Float<"d_model d_ff"> gate, up;
  Float<"d_ff d_model"> down;
};

struct Decoder {
  Float<"vocab d_model"> embeddings;
  std::vector<Layer> layers;
  Float<"d_model"> norm;
  Float<"d_model vocab"> head;
  Float<"position pair p=2 q=2"> rotations;
};

/// Of each position and pair of elements the matrix that turns it by position · base^(-pair/pairs).
Float<"position pair p=2 q=2"> rotations(std::int64_t longest, std::int64_t d_k, double base) {
  const Float<"position"> positions = ein::arange(longest).to(ein::DType::f32);
  const Float<"pair"> pairs = ein::arange(d_k / 2).to(ein::DType::f32);
  const Float<"p=2 q=2"> stays = ein::eye(2), turns = ein::tensor({{0.0F, 1.0F}, {-1.0F, 0.0F}});
  const auto speeds = exp(pairs * (-2 * std::log(base) / static_cast<double>(d_k)));
  const auto angles = einsum<"s, k -> s k">(positions, speeds);
  return einsum<"s k, p q -> s k p q">(cos(angles), stays) +
         einsum<"s k, p q -> s k p q">(sin(angles), turns);
}

Float<"batch heads seq d_k"> rotated(const Float<"batch heads seq d_k">& x,
                                     const Float<"position pair p=2 q=2">& rotations,
                                     const Long<"seq">& positions) {
  const auto here = gather<"[v] k p q, s -> s k p q">(rotations, positions);
  const auto pairs = rearrange<"b h s (pair p) -> b h s pair p">(x, "p"_a = 2);
  return rearrange<"b h s k q -> b h s (k q)">(
      einsum<"b h s k p, s k p q -> b h s k q">(pairs, here));
}

Float<"batch heads seq d_k"> attended(const Float<"batch heads seq d_k">& q,
                                      const Float<"batch heads keys d_k">& k,
                                      const Float<"batch heads keys d_k">& v) {
  const auto scores =
      einsum<"b h s d, b h t d -> b h s t">(q, k) / std::sqrt(static_cast<float>(q.size<"d_k">()));
  const auto seen = tril(scores, "b h [s t]", 0, -std::numeric_limits<double>::infinity());
  return einsum<"b h s t, b h t d -> b h s d">(softmax(seen, "b h s [t]"), v);
}

Float<"batch seq d_model"> attention(const Float<"batch seq d_model">& x, const Layer& w,
                                     const Float<"position pair p=2 q=2">& rotations,
                                     const Long<"seq">& positions) {
  const auto q = rotated(einsum<"b s m, m h d -> b h s d">(x, w.query), rotations, positions);
  const auto k = rotated(einsum<"b s m, m h d -> b h s d">(x, w.key), rotations, positions);
  const auto v = einsum<"b s m, m h d -> b h s d">(x, w.value);
  const auto mixed = attended(q, k.rename<"seq", "keys">(), v.rename<"seq", "keys">());
  return einsum<"b h s d, h d m -> b s m">(mixed, w.output);
}

Float<"batch seq d_model"> feed_forward(const Float<"batch seq d_model">& x, const Layer& w) {
  const auto gate = silu(einsum<"b s m, m f -> b s f">(x, w.gate));
  return einsum<"b s f, f m -> b s m">(gate * einsum<"b s m, m f -> b s f">(x, w.up), w.down);
}

Float<"batch seq vocab"> logits(const Decoder& w, const Long<"batch seq">& tokens) {
  const Long<"seq"> positions = ein::arange(tokens.size<"seq">());
  auto x = gather<"[v] m, b s -> b s m">(w.embeddings, tokens);
  for (const Layer& layer : w.layers) {
    x = x + attention(rms_norm(x, layer.norm1, "b s [m]"), layer, w.rotations, positions);
    x = x + feed_forward(rms_norm(x, layer.norm2, "b s [m]"), layer);
  }
  return einsum<"b s m, m v -> b s v">(rms_norm(x, w.norm, "b s [m]"), w.head);
}

Float<""> loss(const Decoder& w, const Long<"batch seq">& tokens,
               const Long<"batch seq">& targets) {
  const ein::Scope names(tokens, targets);
  return cross_entropy<"b s [v], b s">(logits(w, tokens), targets);
}

int main() {
  ein::manual_seed(0);
  const std::int64_t vocab = 100, d_model = 32, heads = 4, d_k = 8, d_ff = 64, longest = 16;
  const auto weight = [](const ein::Shape& shape, std::int64_t in, std::int64_t out) {
    const double std = std::sqrt(2.0 / static_cast<double>(in + out));
    return ein::trunc_normal(shape, std, -3 * std, 3 * std).requires_grad(true);
  };
  const auto gain = [&] { return ein::ones({d_model}).requires_grad(true); };
  const auto projection = [&] { return weight({d_model, heads, d_k}, d_model, d_model); };
  Decoder w{.embeddings = ein::trunc_normal({vocab, d_model}, 1, -3, 3).requires_grad(true),
            .layers = {},
            .norm = gain(),
            .head = weight({d_model, vocab}, d_model, vocab),
            .rotations = rotations(longest, d_k, 10000)};
  for (int layer = 0; layer < 2; ++layer) {
    w.layers.push_back({.norm1 = gain(),
                        .norm2 = gain(),
                        .query = projection(),
                        .key = projection(),
                        .value = projection(),
                        .output = weight({heads, d_k, d_model}, d_model, d_model),
                        .gate = weight({d_model, d_ff}, d_model, d_ff),
                        .up = weight({d_model, d_ff}, d_model, d_ff),
                        .down = weight({d_ff, d_model}, d_ff, d_model)});
  }
  const Long<"batch seq"> text = (100.0 * ein::rand({4, 17})).to(ein::DType::i64);
  const auto tokens = text.at<"seq">(ein::slice(0, 16)),
             targets = text.at<"seq">(ein::slice(1, 17));
  const auto value = loss(w, tokens, targets);
  value.backward();
  std::printf("loss %.3f; the gradient of the first gate is %s\n", value.item(),
              w.layers[0].gate.grad().shape().to_string().c_str());
  return 0;
}
