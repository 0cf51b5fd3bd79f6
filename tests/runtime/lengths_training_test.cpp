// Training and decoding with functions compiled for any length: what they compute, and what they
// cost.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/nn/init.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/optim.hpp>

namespace ein {
namespace {

constexpr std::uint64_t suite_seed = 20261124;

/// Random lengths, and what follows ein's own seed, from here on.
class Lengths {
 public:
  Lengths() : random_(suite_seed) {
    std::cout << "seed " << suite_seed << '\n';
    manual_seed(suite_seed);
  }
  std::int64_t up_to(std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
  }

 private:
  std::mt19937_64 random_;
};

/// Expects that they differ by at most that part of the largest element.
void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape().to_string(), b.shape().to_string());
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(y[i]));
    difference = std::max(difference, std::abs(x[i] - y[i]));
  }
  EXPECT_LE(difference, tolerance * largest);
}

constexpr nn::TransformerConfig small{
    .vocab_size = 11, .block_size = 32, .n_layer = 2, .n_head = 2, .n_embd = 16};

Tensor random_tokens(const Shape& shape) { return (rand(shape) * small.vocab_size).to(DType::i64); }

/// FLOPs of the model's products, forward: so many tokens look at so many, all in all, and so many
/// get logits.
Count products(std::int64_t tokens, std::int64_t looks, std::int64_t logits) {
  const std::int64_t c = small.n_embd, blocks = small.n_layer;
  return 2 * c * (12 * c * blocks * tokens + 2 * blocks * looks + small.vocab_size * logits);
}

struct Training {
  Training() {
    manual_seed(suite_seed);
    for (const Tensor& p : model.parameters()) nn::init::normal(p, 0, 0.2);
  }
  Tensor update(const Tensor& loss) {
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
  nn::Transformer model{small};
  // Adam would divide a gradient that is 0, such as of a bias of keys, by its rounding errors.
  optim::SGD optimizer{model.parameters(), {.learning_rate = 0.1, .momentum = 0.9}};
};

TEST(LengthsTraining, EqualsThatOnPaddedBatches) {
  Lengths lengths;
  Training exact, padded;
  int traces = 0;
  auto step = compile(
      [&](const Tensor& tokens, const Tensor& targets) {
        ++traces;
        return exact.update(cross_entropy(exact.model(tokens), targets, "b s [v], b s"));
      },
      {"b s", "b s"});
  // Attention is causal, so that padding at the end needs no mask but that of the loss.
  auto padded_step = compile([&](const Tensor& tokens, const Tensor& targets, const Tensor& mask) {
    const Tensor logits = log_softmax(padded.model(tokens), "b s [v]");
    const Tensor losses = -gather(logits, targets, "b s [v], b s -> b s");
    return padded.update(einsum(losses, mask, "b s, b s ->") / einsum(mask, "b s ->"));
  });
  constexpr std::int64_t most = 4, longest = 24;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t b = lengths.up_to(most), s = lengths.up_to(longest);
    SCOPED_TRACE(std::to_string(b) + " of length " + std::to_string(s));
    const auto padding = [&](const Tensor& x) {
      const Tensor y = zeros({most, longest}, x.dtype());
      y.at({slice(0, b), slice(0, s)}).copy_from(x);
      return y;
    };
    const Tensor tokens = random_tokens({b, s}), targets = random_tokens({b, s});
    expect_close(step(tokens, targets),
                 padded_step(padding(tokens), padding(targets), padding(ones({b, s}))), 1e-6);
    EXPECT_EQ(step.cost().matmul_only, 3 * products(b * s, b * s * s, b * s));
    EXPECT_EQ(step.bill().forward.matmul_only, products(b * s, b * s * s, b * s));
  }
  const auto parameters = exact.model.named_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    SCOPED_TRACE(parameters[i].first);
    expect_close(parameters[i].second.detach(), padded.model.parameters()[i].detach(), 1e-6);
  }
  EXPECT_LE(traces, 4);  // maybe others for 1 sequence, and for 1 token
}

TEST(LengthsDecoding, AGrowingCacheGivesTheLogitsOfAFixedOne) {
  Lengths lengths;
  const nn::Transformer model(small);
  for (const Tensor& p : model.parameters()) nn::init::normal(p, 0, 0.2);
  const std::vector<nn::KVCache> growing = model.make_cache(), fixed = model.make_cache();
  int traces = 0;
  auto next_logits = compile(
      [&](const Tensor& before, const Tensor& tokens) {
        ++traces;
        std::vector<nn::KVCache> cache = growing;
        for (nn::KVCache& block : cache) block.length = size_of(before, "p");
        return model.next_logits(tokens, cache);
      },
      {"p", "b=1 n"});
  auto masked_logits =
      compile([&](const Tensor& tokens,
                  const Tensor& position) { return model.next_logits(tokens, fixed, position); },
              {"b=1 n", ""});
  const std::int64_t end = small.block_size;
  const Tensor text = random_tokens({end});
  const auto tokens_of = [&](std::int64_t first, std::int64_t last) {
    return text.at({slice(first, last)}).view({1, last - first});
  };
  for (std::int64_t p = 0, n = 0; p < end; p += n) {
    n = std::min(end - p, p < 20 ? lengths.up_to(4) : 1);
    SCOPED_TRACE(std::to_string(n) + " after " + std::to_string(p));
    const Tensor logits = next_logits(text.at({slice(0, p)}), tokens_of(p, p + n));
    expect_close(logits, masked_logits(tokens_of(p, p + n), full({}, p, DType::i64)), 1e-5);
    const NoGrad no_grad;
    expect_close(logits, model(tokens_of(0, p + n)).at({every, -1}), 1e-5);
    EXPECT_EQ(next_logits.cost().matmul_only, products(n, n * (p + n), 1));
  }
  for (std::size_t i = 0; i < growing.size(); ++i) {
    expect_close(growing[i].keys, fixed[i].keys, 1e-5);
    expect_close(growing[i].values, fixed[i].values, 1e-5);
  }
  EXPECT_LE(traces, 6);  // maybe others for no tokens before, for 1 token, and for a full cache
  EXPECT_THROW(next_logits(text, tokens_of(0, 1)), Error);
}

// A slice's gradient among zeros is -0 where nothing is added to it: slices that cover x at the
// length at hand are joined, as in the function for that length alone.
TEST(LengthsTraining, SlicesThatCoverAllKeepTheSignOfZero) {
  const auto gradient = [](const Tensor& x) {
    const Tensor leaf = detail::differentiable(x);
    const auto parts = unpack(leaf, std::array{Shape{1}, Shape{2}}, "* c");
    const Tensor y = pack({parts[0] * -0.0, parts[1] * -0.0}, "* c").tensor;
    return gradients(y, ones(y.shape()), std::array{leaf}).front();
  };
  const auto signs = [](const Tensor& x) {
    std::vector<bool> result;
    for (const float value : x.to_vector<float>()) result.push_back(std::signbit(value));
    return result;
  };
  auto for_any = compile(gradient, {"n c"});
  EXPECT_THROW(for_any(ones({5, 4})), Error);
  for (const std::int64_t c : {4, 2}) {
    const Tensor x = ones({3, c});
    EXPECT_EQ(signs(for_any(x)), signs(gradient(x)));
  }
}

TEST(LengthsCost, IsThatOfEachLength) {
  Lengths lengths;
  const nn::Block block(32, 4);
  const NoGrad no_grad;
  const auto function = [&](const Tensor& x) { return block(x); };
  auto f = compile(function, {"b=2 s c=32"});
  for (int i = 0; i < 100; ++i) {
    const std::int64_t s = lengths.up_to(400);
    SCOPED_TRACE("length " + std::to_string(s));
    const Tensor x = randn({2, s, 32});
    f.prepare(x);
    auto exact = compile(function);
    exact.prepare(x);
    EXPECT_EQ(f.cost(), exact.cost());
    {
      const CostScope scope;
      function(x);
      const Cost eager = scope.total();
      EXPECT_EQ(f.cost().model, eager.model);
      EXPECT_EQ(f.cost().matmul_only, eager.matmul_only);
      EXPECT_EQ(f.cost().strict(), eager.strict());
      EXPECT_EQ(f.cost().transcendental, eager.transcendental);
    }
    release_memory();
    const std::size_t before = memory_allocated();
    reset_max_memory_allocated();
    f(x);
    const MemoryPlan& memory = f.memory();
    EXPECT_EQ(max_memory_allocated() - before, memory.results + memory.arena + memory.workspace);
    EXPECT_EQ(memory.arguments, x.nbytes());
    EXPECT_EQ(memory.results, x.nbytes());
    EXPECT_EQ(memory.state, exact.memory().state);
  }
}

}  // namespace
}  // namespace ein
