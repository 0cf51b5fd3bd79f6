// Assignment 1, section 3: the layers of a Transformer from patterns and functions of elements,
// each beside ein's own. Weights are (out, in), as the handout has them.
#include <cmath>
#include <cstdio>

#include <ein/ein.hpp>
#include <ein/nn.hpp>

using ein::Tensor;
using namespace ein::literals;

Tensor linear(const Tensor& x, const Tensor& w) { return einsum(x, w, "... i, o i -> ... o"); }

Tensor embedding(const Tensor& table, const Tensor& ids) {
  return gather(table, ids, "[v] d, ... -> ... d");
}

Tensor rms_norm(const Tensor& x, const Tensor& gain) {
  return x * gain * rsqrt(reduce(x * x, "... d -> ... 1", "mean") + 1e-5);
}

Tensor swish(const Tensor& x) { return x * sigmoid(x); }

Tensor swiglu(const Tensor& x, const Tensor& w1, const Tensor& w2, const Tensor& w3) {
  return linear(swish(linear(x, w1)) * linear(x, w3), w2);
}

/// Elements 2k and 2k + 1 are a pair, which turns by position · 10000^(-2k/d).
Tensor rope(const Tensor& x, const Tensor& positions) {
  const std::int64_t d = x.shape()[x.rank() - 1];
  const Tensor speeds = exp(ein::arange(0, d, 2) * (-std::log(10000.0) / static_cast<double>(d)));
  const Tensor angles = einsum(positions.to(ein::DType::f32), speeds, "s, k -> s k");
  const Tensor turns =
      einsum(cos(angles), ein::tensor({{1.0, 0.0}, {0.0, 1.0}}), "s k, i j -> s k i j") +
      einsum(sin(angles), ein::tensor({{0.0, -1.0}, {1.0, 0.0}}), "s k, i j -> s k i j");
  const Tensor pairs = rearrange(x, "... s (k j) -> ... s k j", "j"_a = 2);
  return einsum(turns, pairs, "s k i j, ... s k j -> ... s (k i)");
}

Tensor softmax(const Tensor& x) {
  const Tensor e = exp(x - reduce(x, "... k -> ... 1", "max"));
  return e / reduce(e, "... k -> ... 1", "sum");
}

/// mask (q, k): true where a query may look.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[q.rank() - 1]));
  const Tensor scores = einsum(q, k, "... q d, ... k d -> ... q k") * scale;
  return einsum(softmax(where(mask, scores, -INFINITY)), v, "... q k, ... k d -> ... q d");
}

void compare(const char* what, const Tensor& ours, const Tensor& wanted) {
  const double off = reduce(abs(ours - wanted), "... ->", "max").item();
  std::printf("%-10s %-16s %s\n", what, ours.shape().to_string().c_str(),
              off < 1e-5 ? "as ein's own, to 1e-5" : "another result than ein's own");
}

int main() {
  namespace nn = ein::nn;
  const Tensor x = ein::randn({2, 12, 64}), gain = ein::rand({64}), table = ein::randn({100, 64});
  const Tensor w1 = ein::randn({192, 64}) / 8, w2 = ein::randn({64, 192}) / 14,
               w3 = ein::randn({192, 64}) / 8, ids = ein::arange(24).view({2, 12});
  nn::Linear layer(64, 192, false, nn::Linear::Axes::out_in);
  compare("linear", linear(x, layer.weight.detach()), layer(x).detach());
  compare("embedding", embedding(table, ids), table.at({ein::slice(0, 24)}).view({2, 12, 64}));
  compare("RMSNorm", rms_norm(x, gain), ein::rms_norm(x, gain, "... [d]", 1e-5));
  compare("SiLU", swish(x), ein::silu(x));
  nn::MLP mlp(64, {.activation = nn::Activation::silu, .gated = true, .width = 192, .bias = false});
  const auto turned = [](const Tensor& w) { return rearrange(w, "i o -> o i"); };
  mlp.load_state_dict(
      {{"c_gate.weight", turned(w1)}, {"c_fc.weight", turned(w3)}, {"c_proj.weight", turned(w2)}});
  compare("SwiGLU", swiglu(x, w1, w2, w3), mlp(x).detach());
  const Tensor positions = ein::arange(12);
  const auto neighbours = nn::Rotary::Layout::neighbours;
  compare("RoPE", rope(x, positions),
          nn::rotated(x, nn::rotations({.layout = neighbours}, 64, positions), neighbours));
  compare("softmax", softmax(x + 100), ein::softmax(x, "... [k]"));
  const auto heads = [](const Tensor& y) {
    return rearrange(y, "b s (h d) -> b h s d", "h"_a = 4);
  };
  const Tensor q = heads(x), k = heads(x * 0.5), v = heads(x * gain);
  const Tensor before = ein::tril(ein::ones({12, 12}), "[q k]") > 0;
  const Tensor scores = einsum(q, k, "b h q d, b h k d -> b h q k") / 4;
  const Tensor weights = ein::softmax(tril(scores, "b h [q k]", 0, -INFINITY), "b h q [k]");
  compare("attention", attention(q, k, v, before),
          einsum(weights, v, "b h q k, b h k d -> b h q d"));
  for (const std::int64_t d : {512, 768, 1024, 1280, 1600})
    std::printf("width %lld: %lld features inside\n", static_cast<long long>(d),
                static_cast<long long>(nn::inner_width(nn::cs336({.width = d}).feed_forward, d)));
}
