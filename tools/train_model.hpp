// The model of ein train, as its options tell of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ein/nn/decoder.hpp>
#include <ein/train.hpp>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ein::command {

/// Options that describe a model: a decoder.json, or what differs from the default model.
class ModelWords {
 public:
  /// Adds --model, --norm and the rest. `sizes` are the options of the default model's sizes, which
  /// a decoder.json has itself.
  void add(CLI::App& app, std::vector<const CLI::Option*> sizes);

  /// The model; nothing where no option of these was given. Its vocabulary is 0 unless a file says
  /// it. A UsageError for a word that is none, and for sizes beside --model.
  std::optional<nn::DecoderConfig> model(const TrainOptions& options) const;

 private:
  std::string file_, norm_, norm_place_, positions_, key_heads_, head_size_, feed_forward_, width_,
      base_, window_;
  bool is_untied_ = false;
  std::vector<const CLI::Option*> sizes_;
};

}  // namespace ein::command
