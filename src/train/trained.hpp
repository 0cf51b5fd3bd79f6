// A model that writes text: of a training run, or of a model directory of Hugging Face.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ein/nn/decoder.hpp>
#include <ein/tokenizer.hpp>

namespace ein::training {

/// What a generation_config.json says of sampling.
struct Generation {
  bool is_greedy = false;  ///< do_sample is not true
  std::optional<double> temperature{}, top_p{}, min_p{};
  std::optional<std::int64_t> top_k{};  ///< 50 where it samples and does not say it
  std::vector<std::int64_t> stop_ids{};
  std::string note{};  ///< what ein leaves out, if anything
};
/// Of the text of that file, and of config.json, whose end of a text counts where the first says
/// none. Either may be any bytes; errors are of kind `file` and name the path and the key.
Generation parse_generation(std::string_view text, const std::string& path);
std::vector<std::int64_t> parse_stop_ids(std::string_view config, const std::string& path);

struct Trained {
  std::unique_ptr<nn::Decoder> model;  ///< in evaluation, on the host
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::int32_t> before{};  ///< tokens that stand before a text
  Generation generation{};
  std::string note{};  ///< of a checkpoint: which newer ones were passed over; of a directory: what
                       ///< ein leaves out
};

/// Of a training directory, a checkpoint in it, or a directory that has a config.json.
/// `tokenizer`, if not empty, is a tokenizer.json in place of theirs. Errors as load_checkpoint and
/// nn::load_decoder have; kind `value` where there is no tokenizer.
Trained load_trained(const std::string& from, const std::string& tokenizer = "");
/// Its tokenizer alone.
std::unique_ptr<Tokenizer> load_tokenizer_of(const std::string& from,
                                             const std::string& tokenizer = "");

}  // namespace ein::training
