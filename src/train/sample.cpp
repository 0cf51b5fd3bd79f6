#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/text.hpp>
#include <ein/train.hpp>
#include "graph/diagnostic.hpp"
#include "graph/domain.hpp"
#include "nest/random.hpp"
#include "train/draw.hpp"
#include "train/trained.hpp"

namespace ein {
namespace {

using training::Trained;

Tensor as_row(std::span<const std::int32_t> tokens, Device device) {
  return from_vector(std::vector(tokens.begin(), tokens.end()),
                     {1, static_cast<std::int64_t>(tokens.size())})
      .to(DType::i64)
      .to(device);
}

/// What the options say, else the model's directory, else ein.
training::DrawFilters filters_of(const SampleOptions& options, const training::Generation& said) {
  training::DrawFilters filters;
  const bool says_any = options.temperature || options.top_k || options.top_p || options.min_p;
  if (said.is_greedy && !says_any) filters.temperature = 0;
  filters.temperature =
      options.temperature.value_or(said.temperature.value_or(filters.temperature));
  filters.top_k = options.top_k.value_or(said.top_k.value_or(filters.top_k));
  filters.top_p = options.top_p.value_or(said.top_p.value_or(filters.top_p));
  filters.min_p = options.min_p.value_or(said.min_p.value_or(filters.min_p));
  require_filters(filters);
  return filters;
}

std::set<std::int64_t> stops_of(const SampleOptions& options, const Trained& trained) {
  std::set<std::int64_t> stops(trained.generation.stop_ids.begin(),
                               trained.generation.stop_ids.end());
  const std::int64_t vocabulary = trained.model->config().vocabulary;
  for (const std::int64_t id : options.stop_ids) {
    if (id < 0 || id >= vocabulary)
      throw Error(ErrorKind::value, "sample: the stop id is " + std::to_string(id) +
                                        ", 0 <= id < " + std::to_string(vocabulary) + " is wanted");
    stops.insert(id);
  }
  for (const std::string& text : options.stop) {
    const std::vector<std::int32_t> ids = trained.tokenizer->encode(text);
    if (ids.size() != 1)
      throw Error(ErrorKind::value, "sample: the stop " + ein::quoted(text) + " is " +
                                        std::to_string(ids.size()) + " tokens, one is wanted");
    stops.insert(ids[0]);
  }
  return stops;
}

/// The text of a token, which may be a part of a character.
std::string text_of(const Tokenizer& tokenizer, std::int32_t token) {
  const std::span one(&token, 1);
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  return bpe ? bpe->decode_bytes(one) : tokenizer.decode(one);
}

Tensor mean_loss(const nn::Decoder& model, const Tensor& x, const Tensor& y) {
  return cross_entropy(model(x), y, "b s [v], b s");
}

}  // namespace

void sample(const SampleOptions& options, const std::function<void(const std::string&)>& write) {
  filters_of(options, {});
  require_at_least(0, "sample", "tokens", options.tokens);
  if (options.prompt.empty()) throw Error(ErrorKind::value, "sample: the prompt is empty");
  const Trained trained = training::load_trained(options.from, options.tokenizer);
  if (options.on_note && !trained.note.empty()) options.on_note(trained.note);
  const training::DrawFilters filters = filters_of(options, trained.generation);
  const std::set<std::int64_t> stops = stops_of(options, trained);
  trained.model->to(options.device);
  const NoGrad no_grad;
  std::vector<std::int32_t> tokens = trained.before;
  const std::vector<std::int32_t> prompt = trained.tokenizer->encode(options.prompt);
  tokens.insert(tokens.end(), prompt.begin(), prompt.end());
  write(options.prompt);
  // No more than can be used: models of long texts have many positions.
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto given = static_cast<std::int64_t>(tokens.size());
  const std::int64_t used = options.tokens > most - given ? most : given + options.tokens;
  const auto room = static_cast<std::size_t>(std::min(trained.model->config().positions, used));
  const std::vector<nn::KVCache> cache =
      trained.model->make_cache(1, static_cast<std::int64_t>(room));
  auto next_logits = compile(
      [&](const Tensor& row, const Tensor& position) {
        return trained.model->next_logits(row, cache, position);
      },
      {"b=1 n", ""});
  const auto known = static_cast<std::size_t>(trained.tokenizer->vocabulary_size());
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
    const std::int32_t next =
        training::draw(std::span(logits).first(std::min(known, logits.size())), filters, u);
    if (stops.contains(next)) return;
    tokens.push_back(next);
    fresh = {next};
    write(text_of(*trained.tokenizer, next));
  }
}

TextScore score(const ScoreOptions& options) {
  require_at_least(0, "score", "block size", options.block_size);
  const Trained trained = training::load_trained(options.from, options.tokenizer);
  if (options.on_note && !trained.note.empty()) options.on_note(trained.note);
  trained.model->to(options.device);
  const NoGrad no_grad;
  std::vector<std::int32_t> tokens = trained.before;
  const std::vector<std::int32_t> of_text = trained.tokenizer->encode(options.text);
  tokens.insert(tokens.end(), of_text.begin(), of_text.end());
  if (tokens.size() < 2)
    throw Error(ErrorKind::value, "score: the text has " + std::to_string(of_text.size()) +
                                      " tokens, too few to predict one");
  constexpr std::int64_t enough = 1024;
  const std::int64_t positions = trained.model->config().positions;
  if (options.block_size > positions)
    throw Error(ErrorKind::value, "score: the block size is " + std::to_string(options.block_size) +
                                      ", the model has " + std::to_string(positions) +
                                      " positions");
  const auto block = static_cast<std::size_t>(options.block_size > 0 ? options.block_size
                                                                     : std::min(positions, enough));
  auto loss_of =
      compile([&](const Tensor& x, const Tensor& y) { return mean_loss(*trained.model, x, y); });
  TextScore score;
  score.bytes = static_cast<std::int64_t>(options.text.size());
  double sum = 0;
  const std::span<const std::int32_t> all(tokens);
  for (std::size_t at = 0; at + 1 < all.size(); at += block) {
    const std::size_t count = std::min(block, all.size() - 1 - at);
    sum += loss_of(as_row(all.subspan(at, count), options.device),
                   as_row(all.subspan(at + 1, count), options.device))
               .item() *
           static_cast<double>(count);
  }
  score.tokens = static_cast<std::int64_t>(all.size()) - 1;
  score.loss = sum / static_cast<double>(score.tokens);
  score.perplexity = std::exp(score.loss);
  score.bits_per_byte = sum / std::log(2.0) / static_cast<double>(score.bytes);
  return score;
}

}  // namespace ein
