#include "train/model.hpp"

#include <ein/error.hpp>

#include "io/number.hpp"
#include "tensor/printable.hpp"

namespace ein::training {

namespace {

/// Calls `visit` with the name of each number of a configuration and that number of each of
/// `configs`.
template <class Visit, class... Configs>
void visit_numbers(const Visit& visit, Configs&... configs) {
  visit("block_size", configs.block_size...);
  visit("n_layer", configs.n_layer...);
  visit("n_head", configs.n_head...);
  visit("n_embd", configs.n_embd...);
  visit("bias", configs.bias...);
  visit("vocab_size", configs.vocab_size...);
}

[[noreturn]] void fail(const Checkpoint& checkpoint, const std::string& what) {
  throw Error(ErrorKind::file, "\"" + printable_line(checkpoint.path) + "\"" + what);
}

const std::string& text(const Checkpoint& checkpoint, const std::string& key) {
  const auto found = checkpoint.metadata.find(key);
  if (found != checkpoint.metadata.end()) return found->second;
  fail(checkpoint, " is no checkpoint of ein train: it has no \"" + key + "\"");
}

}  // namespace

Metadata describe(const nn::TransformerConfig& config, const Tokenizer& tokenizer) {
  Metadata description{{"tokenizer", tokenizer.save()}};
  visit_numbers([&](const std::string& name,
                    auto value) { description["model." + name] = std::to_string(value); },
                config);
  return description;
}

std::uint64_t number(const Checkpoint& checkpoint, const std::string& key) {
  if (const auto value = io::number_of<std::uint64_t>(text(checkpoint, key))) return *value;
  fail(checkpoint, " has no whole number under \"" + key + "\"");
}

Described read_description(const Checkpoint& checkpoint) {
  // Products of these do not overflow.
  constexpr std::uint64_t most = std::uint64_t{1} << 24;
  const auto read = [&](const std::string& key, auto& number_of_model) {
    const std::uint64_t value = number(checkpoint, "model." + key);
    if (value > most)
      fail(checkpoint,
           ": " + key + " is " + std::to_string(value) + ", more than " + std::to_string(most));
    number_of_model = static_cast<std::remove_cvref_t<decltype(number_of_model)>>(value);
  };
  Described described;
  visit_numbers(read, described.config);
  described.tokenizer = load_tokenizer(text(checkpoint, "tokenizer"));
  if (described.tokenizer->vocabulary_size() != described.config.vocab_size) {
    fail(checkpoint, ": the tokenizer has another vocabulary than the model");
  }
  // The largest tensors must be there before memory for a model is asked for.
  const auto want = [&](const std::string& name, const Shape& shape) {
    const auto tensor = checkpoint.tensors.find("model.transformer." + name + ".weight");
    if (tensor != checkpoint.tensors.end() && tensor->second.shape() == shape) return;
    fail(checkpoint, " has no " + name + ".weight of shape " + shape.to_string());
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
  visit_numbers(compare, loaded, wanted);
  if (!differences.empty())
    throw Error(ErrorKind::value,
                "\"" + printable_line(path) + "\" is of another model: " + differences);
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
