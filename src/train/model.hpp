// What a checkpoint of a training run says of its model.
#pragma once

#include <memory>

#include <ein/checkpoint.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/tokenizer.hpp>

namespace ein::training {

/// The model's sizes and its tokenizer, as texts by name.
Metadata describe(const nn::TransformerConfig& config, const Tokenizer& tokenizer);

struct Described {
  nn::TransformerConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
};
/// The reverse; an Error of kind `file` when something is missing or no number.
Described read_description(const Checkpoint& checkpoint);

/// An Error of kind `value` naming both configurations unless those of the weights are the same.
void require_same_model(const nn::TransformerConfig& loaded, const nn::TransformerConfig& wanted,
                        const std::string& path);

/// The whole number under `key`; errors as above.
std::uint64_t number(const Checkpoint& checkpoint, const std::string& key);

/// The tensors whose names begin with `prefix`, without it.
StateDict part_of(const StateDict& tensors, const std::string& prefix);
/// Adds tensors under names that begin with `prefix`.
void add_part(StateDict& tensors, const std::string& prefix, const StateDict& part);

}  // namespace ein::training
