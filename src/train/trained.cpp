#include "train/trained.hpp"

#include <filesystem>

#include <ein/checkpoint_files.hpp>
#include <ein/error.hpp>
#include <ein/nn/hugging_face.hpp>
#include <ein/text.hpp>
#include "graph/domain.hpp"
#include "io/file.hpp"
#include "io/json.hpp"
#include "machine/printable.hpp"
#include "nn/config_reader.hpp"
#include "train/model.hpp"

namespace ein::training {
namespace {

constexpr std::uint64_t longest_description = 1 << 24;
constexpr int deepest_description = 16;

/// Calls `f` with a reader of the object that a text is.
template <class F>
auto with_object(std::string_view text, const std::string& path, const F& f) {
  const io::JsonTree tree(text, deepest_description, [&](const std::string& what) {
    io::fail("sample", path, "is damaged: " + what);
  });
  if (!tree.root().is_object()) io::fail("sample", path, "is damaged: it is no object");
  return f(nn::ConfigReader(tree.root(), path), tree.root());
}

/// eos_token_id: a number, or several.
std::vector<std::int64_t> stop_ids_of(const nn::ConfigReader& reader,
                                      const nlohmann::json& object) {
  std::vector<std::int64_t> ids;
  if (!reader.has("eos_token_id")) return ids;
  const nlohmann::json& said = object.at("eos_token_id");
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
      reader.fail("eos_token_id", "is no id of a token");
    ids.push_back(id.get<std::int64_t>());
  };
  if (!said.is_array())
    add(said);
  else
    for (const nlohmann::json& id : said) add(id);
  return ids;
}

bool is_model_directory(const std::string& from) {
  std::error_code ignored;
  return std::filesystem::exists(io::join(from, "config.json"), ignored) && !has_checkpoint(from);
}

/// The text of a file in a directory; nothing where there is none.
std::optional<std::string> text_in(const std::string& directory, const char* name) {
  const std::string path = io::join(directory, name);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const io::InputFile file("sample", path);
  if (file.size() > longest_description) file.fail("is too long");
  return file.read();
}

std::unique_ptr<Tokenizer> require_tokenizer(std::unique_ptr<Tokenizer> tokenizer,
                                             const std::string& from) {
  if (tokenizer) return tokenizer;
  throw Error(ErrorKind::value, "sample: \"" + printable_line(from) +
                                    "\" was trained on ids and has no tokenizer\n  help: give its "
                                    "tokenizer.json");
}

}  // namespace

Generation parse_generation(std::string_view text, const std::string& path) {
  return with_object(text, path, [](nn::ConfigReader reader, const nlohmann::json& object) {
    Generation said;
    said.stop_ids = stop_ids_of(reader, object);
    said.is_greedy = !reader.boolean("do_sample", false);
    if (said.is_greedy) return said;
    const auto number = [&](const char* key, const Domain& domain) {
      return reader.has(key) ? std::optional(reader.number(key, 0, domain)) : std::nullopt;
    };
    said.temperature = number("temperature", not_negative);
    if (!said.temperature) said.temperature = 1;
    said.top_p = number("top_p", {0, 1, true});
    said.min_p = number("min_p", fraction);
    said.top_k = reader.integer("top_k", 50, 0);
    if (reader.number("repetition_penalty", 1, not_negative) != 1)
      said.note = "the repetition_penalty of generation_config.json is left out";
    return said;
  });
}

std::vector<std::int64_t> parse_stop_ids(std::string_view config, const std::string& path) {
  return with_object(config, path,
                     [](const nn::ConfigReader& reader, const nlohmann::json& object) {
                       return stop_ids_of(reader, object);
                     });
}

std::unique_ptr<Tokenizer> load_tokenizer_of(const std::string& from,
                                             const std::string& tokenizer) {
  if (!tokenizer.empty()) return std::make_unique<BpeTokenizer>(load_bpe(tokenizer));
  if (is_model_directory(from))
    return std::make_unique<BpeTokenizer>(load_bpe(io::join(from, "tokenizer.json")));
  return require_tokenizer(read_description(load_checkpoint(from, {.mmap = false})).tokenizer,
                           from);
}

namespace {

Trained of_model_directory(const std::string& from, const std::string& tokenizer) {
  Trained trained;
  trained.tokenizer = load_tokenizer_of(from, tokenizer);
  trained.before = dynamic_cast<const BpeTokenizer&>(*trained.tokenizer).tokens_before();
  if (const auto text = text_in(from, "generation_config.json"))
    trained.generation = parse_generation(*text, io::join(from, "generation_config.json"));
  if (trained.generation.stop_ids.empty()) {
    if (const auto text = text_in(from, "config.json"))
      trained.generation.stop_ids = parse_stop_ids(*text, io::join(from, "config.json"));
  }
  trained.note = trained.generation.note;
  trained.model = nn::load_decoder(from, {.mmap = false});
  return trained;
}

}  // namespace

Trained load_trained(const std::string& from, const std::string& tokenizer) {
  Trained trained;
  if (is_model_directory(from)) {
    trained = of_model_directory(from, tokenizer);
  } else {
    const Checkpoint checkpoint = load_checkpoint(from, {.mmap = false});
    Described described = read_description(checkpoint);
    trained.note = checkpoint.note;
    trained.tokenizer = tokenizer.empty() ? require_tokenizer(std::move(described.tokenizer), from)
                                          : std::make_unique<BpeTokenizer>(load_bpe(tokenizer));
    trained.model = std::make_unique<nn::Decoder>(described.config);
    trained.model->load_state_dict(part_of(checkpoint.tensors, "model."));
    trained.model->eval();
  }
  const std::int64_t known = trained.tokenizer->vocabulary_size(),
                     of_model = trained.model->config().vocabulary;
  if (known > of_model) {
    throw Error(ErrorKind::value, "sample: the tokenizer has " + std::to_string(known) +
                                      " tokens, more than the model, " + std::to_string(of_model));
  }
  return trained;
}

}  // namespace ein::training
