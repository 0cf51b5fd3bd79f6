#include "train_model.hpp"

#include <array>
#include <utility>

#include <ein/nn/decoder_file.hpp>
#include <ein/nn/transformer.hpp>

#include "call.hpp"
#include "graph/diagnostic.hpp"
#include "io/number.hpp"
#include "report.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

/// The value that `word` stands for.
template <class T, std::size_t N>
T meaning(const char* option, const std::string& word,
          const std::array<std::pair<const char*, T>, N>& words) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (word == name) return value;
    known += std::string(known.empty() ? "" : ", ") + name;
  }
  throw UsageError(std::string(option) + ": " + ein::quoted(word) + " is none of " + known);
}

using Norm = nn::NormConfig::Kind;
using Place = nn::DecoderConfig::NormPlace;
using Positions = nn::DecoderConfig::Positions;
using FeedForward = std::pair<nn::Activation, bool>;  // whether it is gated

constexpr std::array<std::pair<const char*, Norm>, 3> norms{
    {{"layer", Norm::layer}, {"rms", Norm::rms}, {"none", Norm::none}}};
constexpr std::array<std::pair<const char*, Place>, 3> places{
    {{"before", Place::before}, {"after", Place::after}, {"both", Place::both}}};
constexpr std::array<std::pair<const char*, Positions>, 3> all_positions{
    {{"learned", Positions::learned},
     {"rotary", Positions::in_attention},
     {"none", Positions::none}}};
constexpr std::array<std::pair<const char*, FeedForward>, 6> feed_forwards{
    {{"gelu", {nn::Activation::gelu, false}},
     {"gelu-tanh", {nn::Activation::gelu_tanh, false}},
     {"silu", {nn::Activation::silu, false}},
     {"relu", {nn::Activation::relu, false}},
     {"geglu", {nn::Activation::gelu, true}},
     {"swiglu", {nn::Activation::silu, true}}}};

}  // namespace

void ModelWords::add(CLI::App& app, std::vector<const CLI::Option*> sizes) {
  sizes_ = std::move(sizes);
  add_word(app, "--model", file_, "a decoder.json in place of sizes and all that follows")
      ->type_name("FILE");
  add_word(app, "--norm", norm_, "layer (default), rms or none");
  add_word(app, "--norm-place", norm_place_, "before (default), after or both");
  add_word(app, "--positions", positions_, "learned (default), rotary or none");
  add_word(app, "--rotary-base", base_, "of rotary positions; 10000 without");
  add_word(app, "--kv-heads", key_heads_, "heads of keys and values; without, as many as heads")
      ->type_name("N");
  add_word(app, "--head-size", head_size_, "without, the width by the heads")->type_name("N");
  add_word(app, "--window", window_, "positions that a layer sees; without, all")->type_name("N");
  add_word(app, "--feed-forward", feed_forward_,
           "gelu (default), gelu-tanh, silu, relu, or gated geglu or swiglu");
  add_word(app, "--ff-width", width_,
           "features inside; without, 4 times the width, gated 8/3 to a multiple of 64")
      ->type_name("N");
  app.add_flag("--untied", is_untied_, "a head that is not the table of tokens");
}

std::optional<nn::DecoderConfig> ModelWords::model(const TrainOptions& options) const {
  const std::array words{&norm_,      &norm_place_, &positions_, &base_,        &key_heads_,
                         &head_size_, &window_,     &width_,     &feed_forward_};
  bool are_given = is_untied_;
  for (const std::string* word : words) are_given = are_given || !word->empty();
  if (!file_.empty()) {
    for (const CLI::Option* size : sizes_) {
      if (size->count() > 0)
        throw UsageError("--model says what " + size->get_name() + " does: give one of them");
    }
    if (are_given) throw UsageError("--model says what the model is: give no more of it");
    return nn::load_decoder_config(file_);
  }
  if (!are_given) return std::nullopt;

  nn::DecoderConfig config = nn::decoder_config({.vocab_size = 0,
                                                 .block_size = options.block_size,
                                                 .n_layer = options.n_layer,
                                                 .n_head = options.n_head,
                                                 .n_embd = options.n_embd,
                                                 .dropout = options.dropout,
                                                 .bias = options.bias});
  const auto size = [](const char* option, const std::string& word, std::int64_t& field) {
    if (!word.empty()) field = whole_number(option, word);
  };
  if (!norm_.empty()) config.norm.kind = meaning("--norm", norm_, norms);
  if (!norm_place_.empty()) config.norm_place = meaning("--norm-place", norm_place_, places);
  if (!positions_.empty()) config.position = meaning("--positions", positions_, all_positions);
  if (config.position == Positions::in_attention) config.attention.rotary.emplace();
  if (!base_.empty()) {
    const auto base = io::number_of<double>(base_);
    if (!base) throw UsageError("--rotary-base: " + ein::quoted(base_) + " is no number");
    if (!config.attention.rotary) throw UsageError("--rotary-base wants --positions rotary");
    config.attention.rotary->base = *base;
  }
  size("--kv-heads", key_heads_, config.attention.key_heads);
  size("--head-size", head_size_, config.attention.head_size);
  size("--window", window_, config.attention.window);
  if (!feed_forward_.empty()) {
    const auto [activation, is_gated] = meaning("--feed-forward", feed_forward_, feed_forwards);
    config.feed_forward.activation = activation;
    config.feed_forward.gated = is_gated;
    if (is_gated) {
      config.feed_forward.ratio = 8.0 / 3;
      config.feed_forward.multiple = 64;
    }
  }
  size("--ff-width", width_, config.feed_forward.width);
  config.tied = !is_untied_;
  return config;
}

}  // namespace ein::command
