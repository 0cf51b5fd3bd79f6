// What a checkpoint of a training run says of its model.
#pragma once

#include <memory>
#include <optional>

#include <ein/checkpoint_files.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/tokenizer.hpp>

namespace ein::training {

/// The sizes of the default model and its tokenizer, as texts by name.
Metadata describe(const nn::TransformerConfig& sizes, const Tokenizer& tokenizer);
/// A model that was described by its config: that as a decoder.json. The tokenizer is null where
/// the run has ids alone.
Metadata describe(const nn::DecoderConfig& config, const Tokenizer* tokenizer);

struct Described {
  nn::DecoderConfig config;
  std::optional<nn::TransformerConfig> sizes{};  ///< of the default model
  std::unique_ptr<Tokenizer> tokenizer{};        ///< null: none is there
};
/// The reverse; an Error of kind `file` when something is missing, no number or no decoder.json,
/// and where the tensors are not those of the model.
Described read_description(const Checkpoint& checkpoint);

/// An Error of kind `value` naming what differs unless the model of the weights is that of the run:
/// numbers of both where both are the default model's, else fields of their decoder.json. Dropout
/// and what parameters are at first may differ.
void require_same_model(const Described& loaded, const nn::DecoderConfig& wanted,
                        const std::optional<nn::TransformerConfig>& wanted_sizes,
                        const std::string& path);

/// The whole number under `key`; errors as above.
std::uint64_t number(const Checkpoint& checkpoint, const std::string& key);

/// The tensors whose names begin with `prefix`, without it.
StateDict part_of(const StateDict& tensors, const std::string& prefix);
/// Adds tensors under names that begin with `prefix`.
void add_part(StateDict& tensors, const std::string& prefix, const StateDict& part);

}  // namespace ein::training
