// The decoder of CS336 and its ablations beside the course's snapshots, and beside values that were
// computed in f64 by PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/npy.hpp>
#include <ein/safetensors.hpp>

#include "support/shared_data.hpp"

namespace {

using namespace ein::literals;
using ein::StateDict;
using ein::Tensor;
namespace nn = ein::nn;

std::string path(const std::string& name) { return ein::test::shared_data("cs336/" + name); }
StateDict load(const std::string& name) {
  return ein::load_safetensors(path("a1/" + name + ".safetensors")).tensors;
}
Tensor input(const std::string& name) { return ein::load_npy(path("a1/inputs/" + name + ".npy")); }
Tensor snapshot(const std::string& name) {
  return ein::load_npy(path("a1/snapshots/" + name + ".npy"));
}

/// |got - wanted| <= absolute + relative · |wanted|, as the course compares.
void expect_close(const Tensor& got, const Tensor& wanted, double absolute, double relative = 0) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const std::vector<double> a = got.detach().to_vector<double>(), b = wanted.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], absolute + relative * std::abs(b[i])) << "at " << i;
}

constexpr double bound = 2e-5;  // of values that were computed in f64

nn::DecoderConfig small() {
  return nn::cs336(
      {.vocabulary = 512, .context = 16, .width = 64, .layers = 3, .heads = 4, .inner = 128});
}

/// With the weights of own-decoder, without those whose names end so.
std::unique_ptr<nn::Decoder> decoder(const nn::DecoderConfig& config,
                                     const std::vector<std::string>& without = {}) {
  StateDict weights = load("own-decoder");
  std::erase_if(weights, [&](const auto& entry) {
    return std::any_of(without.begin(), without.end(),
                       [&](const std::string& end) { return entry.first.ends_with(end); });
  });
  auto made = std::make_unique<nn::Decoder>(config);
  nn::load_weights(*made, weights, nn::WeightNames::cs336);
  return made;
}

/// Layer `i` of a decoder by itself.
std::unique_ptr<nn::Block> block(const nn::Decoder& of, std::int64_t i) {
  auto made = std::make_unique<nn::Block>(of.config(), i);
  const std::string prefix = "transformer.h." + std::to_string(i) + ".";
  StateDict part;
  for (const auto& [name, tensor] : of.state_dict()) {
    if (name.starts_with(prefix)) part.emplace(name.substr(prefix.size()), tensor);
  }
  made->load_state_dict(part);
  return made;
}

const std::vector<std::string> norms{"ln1.weight", "ln2.weight", "ln_final.weight"};

#define NEEDS_DATA SKIP_WITHOUT_SHARED_DATA("cs336")

TEST(CourseDecoder, LogitsOfTheModelAndItsAblations) {
  NEEDS_DATA;
  const StateDict wanted = load("own-decoder-expected");
  const Tensor tokens = wanted.at("token_ids");
  const nn::DecoderConfig config = small();
  expect_close((*decoder(config))(tokens), wanted.at("lm"), bound);
  expect_close((*decoder(config))(tokens.at({ein::every, ein::slice(0, 6)})),
               wanted.at("lm_truncated"), bound);
  expect_close((*decoder(with_norms_after(config)))(tokens), wanted.at("lm_post_norm"), bound);
  expect_close((*decoder(without_positions(config)))(tokens), wanted.at("lm_no_position"), bound);
  nn::DecoderConfig ungated = without_gate(config);
  ungated.feed_forward.width = 128;
  expect_close((*decoder(ungated, {"w3.weight"}))(tokens), wanted.at("lm_silu_ffn"), bound);
  nn::DecoderConfig tied = config;
  tied.tied = true;
  expect_close((*decoder(tied, {"lm_head.weight"}))(tokens), wanted.at("lm_tied"), bound);
}

TEST(CourseDecoder, PartsOfALayer) {
  NEEDS_DATA;
  const StateDict wanted = load("own-decoder-expected");
  const Tensor x = input("in_embeddings");
  const nn::DecoderConfig config = small();
  const auto whole = decoder(config);
  const auto first = block(*whole, 0);
  expect_close(first->mlp->c_gate->forward(x), wanted.at("linear"), bound);
  expect_close(first->mlp->forward(x), wanted.at("swiglu"), bound);
  expect_close(first->attn(x), wanted.at("mha_rope"), bound);
  expect_close((*first)(x), wanted.at("block"), bound);
  expect_close(block(*whole, 1)->ln_1->forward(x), wanted.at("rmsnorm"), bound);
  const auto no_positions = decoder(without_positions(config));
  expect_close(block(*no_positions, 0)->attn(x), wanted.at("mha"), bound);
  expect_close((*block(*decoder(with_norms_after(config)), 0))(x), wanted.at("block_post_norm"),
               bound);
  expect_close((*block(*decoder(without_norms(config), norms), 0))(x), wanted.at("block_no_norm"),
               bound);
  nn::DecoderConfig ungated = without_gate(config);
  ungated.feed_forward.width = 128;
  expect_close(block(*decoder(ungated, {"w3.weight"}), 0)->mlp->forward(x), wanted.at("silu_ffn"),
               bound);
  const nn::Embedding table(512, 64);
  table.load_state_dict({{"weight", load("own-decoder").at("token_embeddings.weight")}});
  expect_close(table(wanted.at("token_ids")), wanted.at("embedding"), 0);
}

TEST(CourseDecoder, LossAndGradients) {
  NEEDS_DATA;
  const auto model = decoder(small());
  const Tensor tokens = load("own-decoder-expected").at("token_ids").to(ein::DType::i64);
  const auto loss = [&](const Tensor& x) {
    return cross_entropy((*model)(x.at({ein::every, ein::slice(0, 11)})),
                         x.at({ein::every, ein::slice(1, 12)}), "b s [v], b s");
  };
  // By the same names.
  const nn::Decoder wanted(small());
  nn::load_weights(wanted, load("own-decoder-gradients"), nn::WeightNames::cs336);
  const StateDict gradients = wanted.state_dict();
  const auto check = [&] {
    double squares = 0;
    for (const auto& [name, parameter] : model->named_parameters()) {
      SCOPED_TRACE(name);
      expect_close(parameter.grad(), gradients.at(name), 1e-5);
      for (double g : parameter.grad().to_vector<double>()) squares += g * g;
    }
    EXPECT_NEAR(std::sqrt(squares), 1.9219758015163992, 1e-5);
  };
  const Tensor value = loss(tokens);
  EXPECT_NEAR(value.item(), 6.459179539090718, 1e-5);
  value.backward();
  check();
  // In one program.
  auto step = ein::compile([&](const Tensor& x) {
    model->zero_grad();
    loss(x).backward();
    std::vector<Tensor> all;
    for (const Tensor& parameter : model->parameters()) all.push_back(parameter.grad());
    return all;
  });
  const std::vector<Tensor> all = step(tokens);
  model->zero_grad();
  for (std::size_t i = 0; i < all.size(); ++i) model->parameters()[i].set_grad(all[i]);
  check();
}

TEST(CourseDecoder, AttentionAndItsGradients) {
  NEEDS_DATA;
  const StateDict data = ein::load_safetensors(path("a2/attention.safetensors")).tensors;
  const auto attended = [](const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
    const Tensor scores = einsum(q, k, "b q d, b k d -> b q k") / 8;
    const Tensor seen = causal ? tril(scores, "b [q k]", 0, -INFINITY) : scores;
    return einsum(softmax(seen, "b q [k]"), v, "b q k, b k d -> b q d");
  };
  for (const bool causal : {false, true}) {
    const auto wanted = [&](const std::string& name) {
      return data.at((causal ? "causal_" : "") + name);
    };
    const auto step = [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g) {
      const Tensor a = q.detach(), b = k.detach(), c = v.detach();
      for (const Tensor& x : {a, b, c}) x.requires_grad(true);
      const Tensor out = attended(a, b, c, causal);
      out.backward(g);
      return std::vector<Tensor>{out.detach(), a.grad(), b.grad(), c.grad()};
    };
    const Tensor q = data.at("q"), k = data.at("k"), v = data.at("v"), g = data.at("grad_output");
    for (const std::vector<Tensor>& got : {step(q, k, v, g), ein::compile(step)(q, k, v, g)}) {
      expect_close(got[0], wanted("output"), bound);
      expect_close(got[1], wanted("grad_q"), bound);
      expect_close(got[2], wanted("grad_k"), bound);
      expect_close(got[3], wanted("grad_v"), bound);
    }
  }
}

// Variances 2 / (in + out), each of queries, keys and values by itself; tables 1; all cut at 3σ.
TEST(CourseDecoder, BeginsAsTheCourse) {
  ein::manual_seed(51);
  const nn::Decoder model(nn::cs336(
      {.vocabulary = 300, .context = 16, .width = 96, .layers = 1, .heads = 4, .inner = 128}));
  const auto check = [&](const std::string& name, const Tensor& part, double std) {
    const std::vector<double> values = part.to_vector<double>();
    double squares = 0, most = 0;
    for (double v : values) {
      squares += v * v;
      most = std::max(most, std::abs(v));
    }
    const auto n = static_cast<double>(values.size());
    // Cutting at 3σ leaves .98658 of the deviation.
    EXPECT_NEAR(std::sqrt(squares / n) / std / 0.98658, 1, 5 / std::sqrt(2 * n)) << name;
    EXPECT_LE(most, 3 * std) << name;
  };
  const auto glorot = [](double in, double out) { return std::sqrt(2 / (in + out)); };
  const StateDict state = model.state_dict();
  const Tensor qkv = state.at("transformer.h.0.attn.c_attn.weight");
  for (std::int64_t part : {0, 1, 2})
    check("qkv", qkv.at({ein::every, ein::slice(96 * part, 96 * (part + 1))}), glorot(96, 96));
  check("o", state.at("transformer.h.0.attn.c_proj.weight"), glorot(96, 96));
  check("w1", state.at("transformer.h.0.mlp.c_gate.weight"), glorot(96, 128));
  check("w2", state.at("transformer.h.0.mlp.c_proj.weight"), glorot(96, 128));
  check("table", state.at("transformer.wte.weight"), 1);
  check("head", state.at("lm_head.weight"), glorot(96, 300));
}

TEST(CourseDecoder, SnapshotsOfTheCourse) {
  NEEDS_DATA;
  constexpr double relative = 1e-4;
  const Tensor x = input("in_embeddings");
  const nn::Rotary rotary{.layout = nn::Rotary::Layout::neighbours};
  expect_close(nn::rotated(x, nn::rotations(rotary, 64, ein::arange(12)), rotary.layout),
               snapshot("rope"), 1e-5, relative);
  const nn::RMSNorm norm(64, 1e-5);
  norm.load_state_dict({{"weight", input("rmsnorm_weight_recovered")}});
  expect_close(norm(x), snapshot("rmsnorm"), 1e-4, relative);
  // Any mask: true is seen.
  const Tensor q = input("q"), k = input("k"), v = input("v"), mask = input("mask");
  const auto attended = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
    const Tensor scores = einsum(q, k, "... q d, ... k d -> ... q k") / 8;
    const Tensor weights = softmax(where(mask, scores, -INFINITY), "... q [k]");
    return einsum(weights, v, "... q k, ... k d -> ... q d");
  };
  expect_close(attended(q, k, v, mask), snapshot("scaled_dot_product_attention"), 1e-5, relative);
  const auto heads = [](const Tensor& t) {
    return rearrange(t, "(b h) s d -> b h s d", "h"_a = 2);
  };
  expect_close(attended(heads(q), heads(k), heads(v), heads(mask)),
               snapshot("4d_scaled_dot_product_attention"), 1e-5, relative);
  expect_close(softmax(input("softmax_x"), "... [c]"), input("softmax_expected"), 1e-5, relative);
  expect_close(softmax(input("softmax_x") + 100, "... [c]"), input("softmax_expected"), 1e-5,
               relative);
  expect_close(silu(input("silu_x")), input("silu_expected"), 1e-5, relative);
  const Tensor logits = input("cross_entropy_logits"), targets = input("cross_entropy_targets");
  EXPECT_NEAR(cross_entropy(logits, targets, "b s [v], b s").item(), 1.6094728, 1e-4);
  EXPECT_NEAR(cross_entropy(logits * 1000, targets, "b s [v], b s").item(), 272.9625, 1e-4 * 273);
}

}  // namespace
