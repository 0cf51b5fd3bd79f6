#include <algorithm>
#include <cmath>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/train.hpp>
#include "graph/domain.hpp"
#include "nest/random.hpp"
#include "train/model.hpp"

namespace ein {
namespace {

/// A token drawn from softmax(logits / temperature) over the top_k likeliest; `u` is uniform in [0,
/// 1).
std::int32_t draw(const std::vector<float>& logits, const SampleOptions& options, double u) {
  std::vector<std::int32_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (options.temperature == 0) return order[0];
  if (options.top_k > 0)
    order.resize(std::min(order.size(), static_cast<std::size_t>(options.top_k)));
  std::vector<double> weights;
  double total = 0;
  for (std::int32_t token : order) {
    weights.push_back(std::exp((logit(token) - logit(order[0])) / options.temperature));
    total += weights.back();
  }
  double rest = u * total;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if ((rest -= weights[i]) < 0) return order[i];
  }
  return order.back();
}

Tensor as_row(const std::vector<std::int32_t>& tokens, Device device) {
  return from_vector(tokens, {1, static_cast<std::int64_t>(tokens.size())})
      .to(DType::i64)
      .to(device);
}

}  // namespace

void sample(const SampleOptions& options, const std::function<void(const std::string&)>& write) {
  require_in(not_negative, "sample", "temperature", options.temperature);
  require_at_least(0, "sample", "top k", options.top_k);
  require_at_least(0, "sample", "tokens", options.tokens);
  if (options.prompt.empty()) throw Error(ErrorKind::value, "sample: the prompt is empty");
  const Checkpoint checkpoint = load_checkpoint(options.from, {.mmap = false});
  if (options.on_note && !checkpoint.note.empty()) options.on_note(checkpoint.note);
  const training::Described described = training::read_description(checkpoint);
  nn::Transformer model(described.config);
  model.load_state_dict(training::part_of(checkpoint.tensors, "model."));
  model.to(options.device);
  model.eval();
  const NoGrad no_grad;
  std::vector<std::int32_t> tokens = described.tokenizer->encode(options.prompt);
  write(options.prompt);
  const auto room = static_cast<std::size_t>(described.config.block_size);
  const std::vector<nn::KVCache> cache = model.make_cache();
  auto next_logits =
      compile([&](const Tensor& row,
                  const Tensor& position) { return model.next_logits(row, cache, position); },
              {"b=1 n", ""});
  std::vector<std::int32_t> fresh(
      tokens.end() - static_cast<std::ptrdiff_t>(std::min(room, tokens.size())), tokens.end());
  std::size_t cached = 0;
  for (std::int64_t n = 0; n < options.tokens; ++n) {
    if (cached + fresh.size() > room) {
      // Positions end here: go on from the last half of them.
      cached = 0;
      fresh.assign(tokens.end() - static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, room / 2)),
                   tokens.end());
    }
    const Tensor position = full({}, cached, DType::i64, options.device);
    const std::vector<float> logits =
        next_logits(as_row(fresh, options.device), position).to_vector<float>();
    cached += fresh.size();
    const double u = random::uniform(options.seed, 0, static_cast<std::uint64_t>(n));
    const std::int32_t next = draw(logits, options, u);
    tokens.push_back(next);
    fresh = {next};
    write(described.tokenizer->decode(fresh));
  }
}

}  // namespace ein
