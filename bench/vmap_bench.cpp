// A gradient for each example of a batch: in one call, and example by example.
#include <memory>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn/transformer.hpp>
#include "harness.hpp"

namespace bench {
namespace {

using ein::Tensor;

/// The model of `ein train`, with sequences of 64 and of 8 tokens.
struct Examples {
  explicit Examples(std::int64_t positions)
      : length(positions),
        tokens((ein::rand({16, positions}) * 65).to(ein::DType::i64)),
        targets((ein::rand({16, positions}) * 65).to(ein::DType::i64)) {}

  /// Of one example, for all parameters.
  std::vector<Tensor> operator()(const Tensor& x, const Tensor& y) const {
    const ein::Shape one{1, length};
    const Tensor loss = cross_entropy(model(x.view(one)), y.view(one), "b s [v], b s");
    return ein::gradients(loss, parameters);
  }
  std::vector<Tensor> all() const {
    return ein::vmap([this](const Tensor& x, const Tensor& y) { return (*this)(x, y); }, "n")(
        tokens, targets);
  }

  std::int64_t length;
  Tensor tokens, targets;
  ein::nn::Transformer model{
      {.vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128}};
  std::vector<Tensor> parameters = model.parameters();
};

}  // namespace

void vmaps(Bench& bench) {
  bench.section("Nanoseconds for the gradients of 16 examples, each by itself");
  for (const std::int64_t length : {64, 8}) {
    const auto examples = std::make_shared<Examples>(length);
    bench.run(
        {.title = "vmap(grad) of 16 x " + std::to_string(length) + " tokens",
         .peer = "a loop over the examples",
         .ours = [=] { return examples->all().front(); },
         .beside =
             [=] {
               for (std::int64_t i = 0; i < 16; ++i)
                 (*examples)(examples->tokens[i], examples->targets[i]);
             },
         .unit = "ns",
         .target = at_least(3),
         .expected =
             [=] {
               std::vector<Tensor> each;
               for (std::int64_t i = 0; i < 16; ++i)
                 each.push_back((*examples)(examples->tokens[i], examples->targets[i]).front());
               return ein::rearrange(each, "n ... -> n ...");
             },
         .tolerance = 1e-6},
        one_and_all());
  }
}

}  // namespace bench
