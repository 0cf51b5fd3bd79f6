#include "train/model.hpp"

#include <ein/error.hpp>
#include <ein/shapes_only.hpp>

#include "io/json.hpp"
#include "io/number.hpp"
#include "machine/printable.hpp"
#include "nn/decoder_json.hpp"

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

Metadata describe(const nn::DecoderConfig& config, const Tokenizer* tokenizer) {
  Metadata description{{"model", nn::decoder_json(config)}};
  if (tokenizer) description["tokenizer"] = tokenizer->save();
  return description;
}

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

namespace {

/// Of a checkpoint that has a decoder.json. The tensors must be there before memory for a model is
/// asked for.
Described read_decoder(const Checkpoint& checkpoint, const std::string& json) {
  Described described{.config = nn::parse_decoder_json(json, checkpoint.path)};
  if (const auto saved = checkpoint.metadata.find("tokenizer");
      saved != checkpoint.metadata.end()) {
    described.tokenizer = load_tokenizer(saved->second);
    if (described.tokenizer->vocabulary_size() > described.config.vocabulary)
      fail(checkpoint, ": the tokenizer has a larger vocabulary than the model");
  }
  std::string mistake;
  try {
    const ShapesOnly shapes;
    for (const auto& [name, tensor] : nn::Decoder(described.config).state_dict()) {
      const auto found = checkpoint.tensors.find("model." + name);
      if (found != checkpoint.tensors.end() && found->second.shape() == tensor.shape()) continue;
      mistake = " has no " + name + " of shape " + tensor.shape().to_string();
      break;
    }
  } catch (const Error& error) {
    mistake = std::string(": ") + error.what();
  }
  if (!mistake.empty()) fail(checkpoint, mistake);
  return described;
}

}  // namespace

Described read_description(const Checkpoint& checkpoint) {
  if (const auto json = checkpoint.metadata.find("model"); json != checkpoint.metadata.end())
    return read_decoder(checkpoint, json->second);
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
  visit_numbers(read, described.sizes.emplace());
  described.tokenizer = load_tokenizer(text(checkpoint, "tokenizer"));
  if (described.tokenizer->vocabulary_size() != described.sizes->vocab_size) {
    fail(checkpoint, ": the tokenizer has another vocabulary than the model");
  }
  // The largest tensors must be there before memory for a model is asked for.
  const auto want = [&](const std::string& name, const Shape& shape) {
    const auto tensor = checkpoint.tensors.find("model.transformer." + name + ".weight");
    if (tensor != checkpoint.tensors.end() && tensor->second.shape() == shape) return;
    fail(checkpoint, " has no " + name + ".weight of shape " + shape.to_string());
  };
  const nn::TransformerConfig& config = *described.sizes;
  want("wte", {config.vocab_size, config.n_embd});
  want("wpe", {config.block_size, config.n_embd});
  for (std::int64_t i = 0; i < config.n_layer; ++i)
    want("h." + std::to_string(i) + ".mlp.c_fc", {config.n_embd, 4 * config.n_embd});
  described.config = nn::decoder_config(config);
  return described;
}

namespace {

/// Without what a run that goes on may change.
nn::DecoderConfig what_stays(nn::DecoderConfig config) {
  config.dropout = config.attention.dropout = 0;
  if (config.local_attention) config.local_attention->dropout = 0;
  config.initial = {};
  config.initial_std = 0;
  return config;
}

/// "width 8 for 16, norm/eps 0.1 for 0.2" of what differs.
std::string differences_of(const nn::DecoderConfig& of_file, const nn::DecoderConfig& of_run) {
  const nn::DecoderConfig a = what_stays(of_file), b = what_stays(of_run);
  if (a == b) return "";
  using nlohmann::json;
  const json ours = json::parse(nn::decoder_json(a)), theirs = json::parse(nn::decoder_json(b));
  std::string text;
  for (const json& change : json::diff(ours, theirs)) {
    const auto path = change.at("path").get<std::string>();
    const auto at = [&](const json& from) {
      const json::json_pointer pointer(path);
      return from.contains(pointer) ? from.at(pointer).dump() : std::string("none");
    };
    text += (text.empty() ? "" : ", ") + path.substr(1) + " " + at(ours) + " for " + at(theirs);
  }
  return text;
}

}  // namespace

void require_same_model(const Described& loaded, const nn::DecoderConfig& wanted,
                        const std::optional<nn::TransformerConfig>& wanted_sizes,
                        const std::string& path) {
  std::string differences;
  const auto compare = [&](const char* name, std::int64_t of_file, std::int64_t of_run) {
    if (of_file == of_run) return;
    differences += std::string(differences.empty() ? "" : ", ") + name + " " +
                   std::to_string(of_file) + " for " + std::to_string(of_run);
  };
  if (loaded.sizes && wanted_sizes)
    visit_numbers(compare, *loaded.sizes, *wanted_sizes);
  else
    differences = differences_of(loaded.config, wanted);
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
