#include "train/model.hpp"

#include <charconv>

#include <ein/error.hpp>

namespace ein::training {

Metadata describe(const nn::TransformerConfig& config, const Tokenizer& tokenizer) {
  return {{"model.block_size", std::to_string(config.block_size)},
          {"model.n_layer", std::to_string(config.n_layer)},
          {"model.n_head", std::to_string(config.n_head)},
          {"model.n_embd", std::to_string(config.n_embd)},
          {"model.bias", std::to_string(config.bias)},
          {"model.vocab_size", std::to_string(config.vocab_size)},
          {"tokenizer", tokenizer.save()}};
}

namespace {

const std::string& text(const Checkpoint& checkpoint, const std::string& key) {
  const auto found = checkpoint.metadata.find(key);
  if (found != checkpoint.metadata.end()) return found->second;
  throw Error(ErrorKind::file, "\"" + checkpoint.path +
                                   "\" is no checkpoint of ein train: it has no \"" + key + "\"");
}

}  // namespace

std::int64_t number(const Checkpoint& checkpoint, const std::string& key) {
  const std::string& digits = text(checkpoint, key);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && value >= 0) return value;
  throw Error(ErrorKind::file,
              "\"" + checkpoint.path + "\" has no whole number under \"" + key + "\"");
}

Described read_description(const Checkpoint& checkpoint) {
  // Sizes that the tensors contradict are found when they are loaded; these bounds keep the model
  // from being built.
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const auto size = [&](const std::string& key) {
    const std::int64_t value = number(checkpoint, "model." + key);
    if (value <= most) return value;
    throw Error(ErrorKind::file,
                "\"" + checkpoint.path + "\": " + key + " is " + std::to_string(value));
  };
  Described described;
  described.config.block_size = size("block_size");
  described.config.n_layer = size("n_layer");
  described.config.n_head = size("n_head");
  described.config.n_embd = size("n_embd");
  described.config.bias = size("bias") != 0;
  described.config.vocab_size = size("vocab_size");
  described.tokenizer = load_tokenizer(text(checkpoint, "tokenizer"));
  if (described.tokenizer->vocabulary_size() != described.config.vocab_size) {
    throw Error(ErrorKind::file,
                "\"" + checkpoint.path + "\": the tokenizer has another vocabulary than the model");
  }
  // The largest table must be there before memory for it is asked for.
  const auto table = checkpoint.tensors.find("model.transformer.wte.weight");
  const Shape wanted{described.config.vocab_size, described.config.n_embd};
  if (table == checkpoint.tensors.end() || !(table->second.shape() == wanted)) {
    throw Error(ErrorKind::file,
                "\"" + checkpoint.path + "\" has no embedding of shape " + wanted.to_string());
  }
  return described;
}

void require_same_model(const nn::TransformerConfig& loaded, const nn::TransformerConfig& wanted,
                        const std::string& path) {
  std::string differences;
  const auto compare = [&](const char* name, std::int64_t of_file, std::int64_t of_run) {
    if (of_file == of_run) return;
    differences += std::string(differences.empty() ? "" : ", ") + name + " " +
                   std::to_string(of_file) + " for " + std::to_string(of_run);
  };
  compare("block_size", loaded.block_size, wanted.block_size);
  compare("n_layer", loaded.n_layer, wanted.n_layer);
  compare("n_head", loaded.n_head, wanted.n_head);
  compare("n_embd", loaded.n_embd, wanted.n_embd);
  compare("bias", loaded.bias, wanted.bias);
  compare("vocab_size", loaded.vocab_size, wanted.vocab_size);
  if (!differences.empty())
    throw Error(ErrorKind::value, "\"" + path + "\" is of another model: " + differences);
}

StateDict part_of(const StateDict& tensors, const std::string& prefix) {
  StateDict part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) part.emplace(name.substr(prefix.size()), tensor);
  }
  return part;
}
void add_part(StateDict& tensors, const std::string& prefix, const StateDict& part) {
  for (const auto& [name, tensor] : part) tensors.insert_or_assign(prefix + name, tensor);
}

}  // namespace ein::training
