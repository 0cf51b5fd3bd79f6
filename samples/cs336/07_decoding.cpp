// Assignment 1, section 6: temperature, top p and stop tokens; then one batch is learned by heart,
// and a cache of keys and values writes it down again.
#include <cstdio>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/text.hpp>

namespace nn = ein::nn;
using ein::Tensor;

/// Probabilities of the next token: softmax of logits / temperature.
Tensor tempered(const Tensor& logits, double temperature) {
  return softmax(logits / temperature, "[v]");
}

/// The fewest likeliest tokens whose probabilities sum to p at least, made to sum to 1.
Tensor top_p(const Tensor& probabilities, double p) {
  const auto [sorted, places] = ein::sort(probabilities, "[v]", true);
  const Tensor before = cumsum(sorted, "[v]") - sorted;  // of those that are likelier
  const Tensor kept = where(before < p, sorted, 0.0);
  const Tensor mine =
      ein::scatter_add(kept, places, "k, k -> [v]", ein::axis("v", probabilities.numel()));
  return mine / reduce(mine, "v -> 1", "sum");
}

void show(const char* what, const Tensor& probabilities) {
  std::printf("%-22s", what);
  for (const float p : probabilities.to_vector<float>()) std::printf(" %.4f", p);
  std::printf("\n");
}

int main() {
  const Tensor logits = ein::tensor({2.0, 1.0, 0.5, -1.0});
  show("temperature 1", tempered(logits, 1));
  show("temperature 0.5", tempered(logits, 0.5));
  show("temperature 0.01", tempered(logits, 0.01));
  show("temperature 1, top 0.8", top_p(tempered(logits, 1), 0.8));

  const std::string story =
      "Once upon a time, a little cat named Mia found a red ball.<|endoftext|>";
  const ein::BpeTokenizer tokenizer =
      ein::train_bpe(story, {.vocabulary_size = 290, .special_tokens = {"<|endoftext|>"}});
  const std::vector<std::int32_t> ids = tokenizer.encode(story);
  const Tensor tokens = rearrange(ein::from_vector(ids).to(ein::DType::i64), "s -> 1 s");
  const std::int64_t last = tokens.shape()[1] - 1;
  ein::manual_seed(0);
  const nn::Decoder model(nn::cs336({.vocabulary = tokenizer.vocabulary_size(),
                                     .context = 64,
                                     .width = 64,
                                     .layers = 2,
                                     .heads = 4}));
  ein::optim::AdamW optimizer(model.parameters(), {.learning_rate = 3e-3});
  auto step = ein::compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = ein::cross_entropy(model(x), y, "b s [v], b s");
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor x = tokens.at({ein::every, ein::slice(0, last)}),
               y = tokens.at({ein::every, ein::slice(1, last + 1)});
  double loss = 0;
  for (int i = 0; i < 150; ++i) loss = step(x, y).item();
  std::printf("loss of one batch after 150 steps: %s\n",
              loss < 0.01 ? "below 0.01" : "not below 0.01");

  std::vector<nn::KVCache> cache = model.make_cache();
  const std::int32_t stop = *tokenizer.added_token("<|endoftext|>");
  std::vector<std::int32_t> written{ids[0]};
  for (int i = 0; i < 60; ++i) {
    const Tensor next =
        model.next_logits(ein::full({1, 1}, written.back(), ein::DType::i64), cache);
    const auto token = static_cast<std::int32_t>(argmax(next, "1 [v]").item<std::int64_t>());
    if (token == stop) break;
    written.push_back(token);
  }
  std::printf("greedy, until <|endoftext|>: %s\n", tokenizer.decode(written).c_str());
}
