// Decoders with grouped heads, rotary positions, windows and gates over a mesh: the losses and
// gradients of one process.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include <ein/nn.hpp>

#include "support/expect_error.hpp"

namespace ein {
namespace {

nn::DecoderConfig small() {
  nn::DecoderConfig config = nn::llama_form();
  config.vocabulary = 13;
  config.positions = 16;
  config.width = 16;
  config.layers = 2;
  config.attention.heads = 8;
  config.attention.key_heads = 4;
  config.attention.bias = true;
  config.attention.query_key_norm = config.norm;
  config.feed_forward.width = 12;
  nn::add_windows(config, 3, 2);
  return config;
}

/// The loss and all gradients, whole.
std::vector<Tensor> step(nn::Decoder& model, const Tensor& tokens, const Tensor& targets) {
  auto compiled = compile([&](const Tensor& x, const Tensor& y) {
    model.zero_grad();
    const Tensor loss = cross_entropy(model(x), y, "b s [v], b s");
    loss.backward();
    std::vector<Tensor> all{loss.detach()};
    for (const Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
    return all;
  });
  return compiled(tokens, targets);
}

std::vector<double> whole(const Tensor& x) {
  if (!x.is_placed()) return x.to_vector<double>();
  std::string stays;
  for (std::size_t d = 0; d < x.rank(); ++d) stays += (d ? " i" : "i") + std::to_string(d);
  const std::string way = placement(x) + " -> " + stays;
  return reshard(x, runtime(way)).to_vector<double>();
}

TEST(DecoderMesh, SplitBlocksAndPositionsChangeNothing) {
  manual_seed(61);
  nn::Decoder one(small());
  const Tensor tokens = (rand({2, 8}) * 13).to(DType::i64),
               targets = (rand({2, 8}) * 13).to(DType::i64);
  const std::vector<Tensor> wanted = step(one, tokens, targets);
  for (const bool by_heads : {true, false}) {
    SCOPED_TRACE(by_heads ? "heads" : "positions");
    const Mesh mesh({{by_heads ? "model" : "seq", 2}});
    nn::Decoder model(small());
    model.load_state_dict(one.state_dict());
    Tensor x = tokens, y = targets;
    if (by_heads) {
      model.split_blocks(mesh, "model");
    } else {
      model.split_positions(mesh, "seq");
      x = place(tokens, mesh, "b s@seq");
      y = place(targets, mesh, "b s@seq");
    }
    const std::vector<Tensor> got = step(model, x, y);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::vector<double> a = whole(got[i]), b = whole(wanted[i]);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5) << i;
    }
  }
}

TEST(DecoderMesh, MixturesAreNotSplit) {
  nn::DecoderConfig config = small();
  config.mixture = nn::MixtureConfig{.experts = 2, .chosen = 1, .expert = config.feed_forward};
  nn::Decoder model(config);
  test::expect_error(
      [&] {
        model.split_blocks(Mesh({{"model", 2}}), "model");
      },
      ErrorKind::value, {"mixtures of experts are not split"});
}

}  // namespace
}  // namespace ein
