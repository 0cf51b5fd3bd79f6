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
  // Products of these do not overflow.
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
  // The largest tensors must be there before memory for a model is asked for.
  const auto want = [&](const std::string& name, const Shape& shape) {
    const auto tensor = checkpoint.tensors.find("model.transformer." + name + ".weight");
    if (tensor != checkpoint.tensors.end() && tensor->second.shape() == shape) return;
    throw Error(ErrorKind::file, "\"" + checkpoint.path + "\" has no " + name +
                                     ".weight of shape " + shape.to_string());
  };
  const nn::TransformerConfig& config = described.config;
  want("wte", {config.vocab_size, config.n_embd});
  want("wpe", {config.block_size, config.n_embd});
  for (std::int64_t i = 0; i < config.n_layer; ++i)
    want("h." + std::to_string(i) + ".mlp.c_fc", {config.n_embd, 4 * config.n_embd});
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
