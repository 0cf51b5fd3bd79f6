// A block of GPT-2 with its embeddings and its loss, and the gradients of all weights. Types stand
// where data comes in, at the weights and the tokens; the compiler finds those of all values in
// between, and `is` asserts a few of them to show it. Operands meet by the names of their axes.
//
// tests/must_not_compile/gpt2 has this program with mistakes, one at a time.
#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

using namespace ein::literals;
using ein::einsum;
using ein::Float;
using ein::Long;

using Tokens = Long<"batch seq">;

struct Weights {
  Float<"vocab hidden"> words;
  Float<"position hidden"> positions;
  Float<"hidden"> scale1, shift1, scale2, shift2, scale3, shift3;
  Float<"hidden heads d"> to_q, to_k, to_v;
  Float<"heads d"> bias_q, bias_k, bias_v;
  Float<"heads d hidden"> to_result;
  Float<"hidden"> bias_result;
  Float<"hidden inner"> up;
  Float<"inner"> bias_up;
  Float<"inner hidden"> down;
  Float<"hidden"> bias_down;
};

/// What the compiler says a value is.
template <class Expected, class Value>
const Value& is(const Value& value) {
  static_assert(std::is_same_v<Value, Expected>);
  return value;
}

auto attention(const Float<"batch seq hidden">& x, const Weights& w) {
  const auto q = einsum<"b s c, c h d -> b h s d">(x, w.to_q) + w.bias_q;
  const auto k = einsum<"b s c, c h d -> b h s d">(x, w.to_k) + w.bias_k;
  const auto v = einsum<"b s c, c h d -> b h s d">(x, w.to_v) + w.bias_v;
  // A sequence is both queries and keys: along the keys it has a second name.
  const auto keys = k.rename<"seq", "keys">(), values = v.rename<"seq", "keys">();
  const auto scores =
      einsum<"b h s d, b h t d -> b h s t">(q, keys) / std::sqrt(static_cast<float>(q.size<"d">()));
  is<Float<"batch heads seq keys">>(scores);
  const auto seen = tril(scores, "b h [s t]", 0, -std::numeric_limits<double>::infinity());
  const auto mixed = einsum<"b h s t, b h t d -> b h s d">(softmax(seen, "b h s [t]"), values);
  return einsum<"b h s d, h d c -> b s c">(mixed, w.to_result) + w.bias_result;
}

auto mlp(const Float<"batch seq hidden">& x, const Weights& w) {
  const auto inner = gelu(einsum<"b s c, c i -> b s i">(x, w.up) + w.bias_up);
  is<Float<"batch seq inner">>(inner);
  return einsum<"b s i, i c -> b s c">(inner, w.down) + w.bias_down;
}

auto loss(const Weights& w, const Tokens& tokens, const Tokens& targets) {
  const ein::Scope names(tokens, targets);  // their axes have the same sizes, or it is an Error
  const Long<"seq"> order = ein::arange(tokens.size<"seq">());
  const auto words = gather<"[v] c, b s -> b s c">(w.words, tokens);
  const auto positions = gather<"[p] c, s -> s c">(w.positions, order);
  const auto x = is<Float<"batch seq hidden">>(words + positions);
  const auto attended = x + attention(layer_norm(x, w.scale1, w.shift1, "b s [c]"), w);
  const auto y = attended + mlp(layer_norm(attended, w.scale2, w.shift2, "b s [c]"), w);
  const auto logits =
      einsum<"b s c, v c -> b s v">(layer_norm(y, w.scale3, w.shift3, "b s [c]"), w.words);
  is<Float<"batch seq vocab">>(logits);
  return cross_entropy<"b s [v], b s">(logits, targets);
}

int main() {
  ein::manual_seed(0);
  const std::int64_t vocab = 65, longest = 32, hidden = 64, heads = 4, d = 16, inner = 256;
  const auto weight = [](const ein::Shape& shape) {
    return (0.05 * ein::randn(shape)).requires_grad(true);
  };
  const auto constant = [](double value, const ein::Shape& shape) {
    return ein::full(shape, value, ein::DType::f32).requires_grad(true);
  };
  const auto scale = [&] { return constant(1, {hidden}); };
  const auto shift = [&] { return constant(0, {hidden}); };
  const Weights w{.words = weight({vocab, hidden}),
                  .positions = weight({longest, hidden}),
                  .scale1 = scale(),
                  .shift1 = shift(),
                  .scale2 = scale(),
                  .shift2 = shift(),
                  .scale3 = scale(),
                  .shift3 = shift(),
                  .to_q = weight({hidden, heads, d}),
                  .to_k = weight({hidden, heads, d}),
                  .to_v = weight({hidden, heads, d}),
                  .bias_q = constant(0, {heads, d}),
                  .bias_k = constant(0, {heads, d}),
                  .bias_v = constant(0, {heads, d}),
                  .to_result = weight({heads, d, hidden}),
                  .bias_result = shift(),
                  .up = weight({hidden, inner}),
                  .bias_up = constant(0, {inner}),
                  .down = weight({inner, hidden}),
                  .bias_down = shift()};
  const Tokens text = (65.0 * ein::rand({4, 33})).to(ein::DType::i64);
  const auto value = loss(w, text.at<"seq">(ein::slice(0, 32)), text.at<"seq">(ein::slice(1, 33)));
  value.backward();
  const auto slope = is<Float<"hidden heads d">>(w.to_q.grad());
  std::printf("loss %.3f, of %d words at random %.3f; the gradient of to_q is %s\n", value.item(),
              static_cast<int>(vocab), std::log(static_cast<double>(vocab)),
              slope.shape().to_string().c_str());
}
