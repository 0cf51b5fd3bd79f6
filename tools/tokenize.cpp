// ein tokenize: texts to ids of tokens and back, and the training of tokens.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ein/error.hpp>
#include <ein/text.hpp>

#include "call.hpp"
#include "graph/diagnostic.hpp"
#include "io/file.hpp"
#include "numbers.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein tokenize train --vocab-size 10000 --special '<|endoftext|>' --out tokenizer.json stories.txt
  ein tokenize encode --tokenizer tokenizer.json --out stories.u16 stories.txt
  ein tokenize decode --tokenizer tokenizer.json stories.u16
More of them: ein tokenize train --help, ein tokenize encode --help, ein tokenize decode --help.

Exit code: 0; 2 for a mistake in the call; 1 for files and the rest.)";

constexpr std::size_t piece = 1 << 16;  // bytes that are read together

/// Calls `take` with the bytes of a file, or of the standard input for "-", some at a time.
void read_pieces(const std::string& path, const std::function<void(std::string_view)>& take) {
  if (path == "-") {
    std::string bytes(piece, '\0');
    for (;;) {
      const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) io::fail("tokenize", "-", "cannot be read: " + io::reason(errno));
      if (got == 0) return;
      take(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
    }
  }
  const io::InputFile file("tokenize", path);
  for (std::uint64_t at = 0; at < file.size(); at += piece)
    take(file.read(at, std::min<std::uint64_t>(piece, file.size() - at)));
}

// --- train ---

constexpr const char* train_examples = R"(Examples:
  ein tokenize train --vocab-size 10000 --special '<|endoftext|>' --out tokenizer.json stories.txt
  ein tokenize train --vocab-size 32000 --split llama3 --out tokenizer.json a.txt b.txt
  ein tokenize train --vocab-size 1000 --out vocab.json --merges merges.txt stories.txt

Byte-level BPE: the pair of tokens that occurs most often is merged, of several the greatest by its bytes. The vocabulary
has the special tokens, the 256 bytes and a token for each merge, with ids in this order. Each file is a text.

Exit code: 0; 2 for a mistake in the call; 1 for files and the rest.)";

struct TrainWords {
  std::string size, split = "gpt2", out, merges;
  std::vector<std::string> specials, files;
};

std::string train(const TrainWords& words) {
  BpeTrainOptions options;
  options.vocabulary_size = whole_number("--vocab-size", words.size);
  options.special_tokens = words.specials;
  const std::optional<SplitRule> rule = split_rule_named(words.split);
  if (!rule) {
    throw Error(ErrorKind::value,
                "tokenize train: --split " + ein::quoted(words.split) +
                    " is no rule\n  help: gpt2, llama3, qwen2, qwen35 and smollm2 are");
  }
  options.split = *rule;
  const BpeTokenizer tokenizer = train_bpe_on_files(words.files, options);
  if (words.merges.empty())
    save_bpe(words.out, tokenizer);
  else
    save_bpe_files(words.out, words.merges, tokenizer);
  Table table({false, true});
  table.add({"tokens", grouped(tokenizer.vocabulary_size())});
  table.add({"special", grouped(static_cast<std::int64_t>(words.specials.size()))});
  table.add({"merges", grouped(static_cast<std::int64_t>(tokenizer.merges().size()))});
  return table.text();
}

// --- encode ---

/// How a file has ids.
enum class IdType { u16, u32 };

IdType id_type(const std::string& word, std::int64_t vocabulary) {
  if (word == "u16" || (word.empty() && vocabulary <= 1 << 16)) return IdType::u16;
  if (word == "u32" || word.empty()) return IdType::u32;
  throw Error(ErrorKind::value,
              "tokenize: --type " + ein::quoted(word) + " is neither u16 nor u32");
}

constexpr const char* encode_examples = R"(Examples:
  ein tokenize encode --tokenizer tokenizer.json --out stories.u16 stories.txt
  zcat stories.gz | ein tokenize encode --tokenizer tokenizer.json --out stories.u32 --type u32 -

OUT receives the ids and nothing else, little-endian, as ein::Tokens::open reads them (u16; of u32 as i32). It is there when
all of the text is encoded, or not at all. Memory does not grow with the text. TOKENIZER is a tokenizer.json of byte-level
BPE.

Exit code: 0; 2 for a mistake in the call, or a byte that has no token; 1 for files and the rest.)";

struct EncodeWords {
  std::string tokenizer, out, type, file;
  bool add_template = false;
};

/// Writes ids in the type of a file.
class IdFile {
 public:
  IdFile(const std::string& path, IdType type) : file_("tokenize encode", path), type_(type) {}

  void write(std::span<const std::int32_t> ids) {
    count_ += static_cast<std::int64_t>(ids.size());
    if (type_ == IdType::u32) return file_.write(ids.data(), ids.size_bytes());
    narrow_.clear();
    for (const std::int32_t id : ids) {
      if (id > UINT16_MAX)
        throw Error(ErrorKind::value, "tokenize encode: the id " + std::to_string(id) +
                                          " is no u16\n  help: --type u32");
      narrow_.push_back(static_cast<std::uint16_t>(id));
    }
    file_.write(narrow_.data(), narrow_.size() * sizeof(std::uint16_t));
  }
  std::int64_t commit() {
    file_.commit();
    return count_;
  }

 private:
  io::ReplacementFile file_;
  const IdType type_;
  std::vector<std::uint16_t> narrow_;
  std::int64_t count_ = 0;
};

std::string encode(const EncodeWords& words) {
  const BpeTokenizer tokenizer = load_bpe(words.tokenizer);
  IdFile out(words.out, id_type(words.type, tokenizer.vocabulary_size()));
  if (words.add_template) out.write(tokenizer.tokens_before());
  BpeStream stream(tokenizer);
  std::vector<std::int32_t> ids;
  std::int64_t bytes = 0;
  read_pieces(words.file, [&](std::string_view text) {
    bytes += static_cast<std::int64_t>(text.size());
    stream.add(text, ids);
    out.write(ids);
    ids.clear();
  });
  stream.finish(ids);
  out.write(ids);
  if (words.add_template) out.write(tokenizer.tokens_after());
  const std::int64_t count = out.commit();
  Table table({false, true});
  table.add({"bytes", grouped(bytes)});
  table.add({"tokens", grouped(count)});
  if (count > 0)
    table.add({"bytes per token", shown(static_cast<double>(bytes) / static_cast<double>(count))});
  return table.text();
}

// --- decode ---

constexpr const char* decode_examples = R"(Examples:
  ein tokenize decode --tokenizer tokenizer.json stories.u16 > stories.txt
  ein tokenize decode --tokenizer tokenizer.json --type u32 --skip-special --replace -

Writes the bytes of the tokens to the standard output, or to OUT. Those of a part of a text need be no UTF-8: --replace
puts U+FFFD for each maximal part that is none.

Exit code: 0; 2 for a mistake in the call, or an id that no token has; 1 for files and the rest.)";

struct DecodeWords {
  std::string tokenizer, out, type, file;
  bool skips_special = false, replaces = false;
};

std::string decode(const DecodeWords& words) {
  const BpeTokenizer tokenizer = load_bpe(words.tokenizer);
  std::string bytes;
  read_pieces(words.file, [&](std::string_view part) { bytes += part; });
  const std::size_t size = id_type(words.type, tokenizer.vocabulary_size()) == IdType::u16 ? 2 : 4;
  if (bytes.size() % size != 0)
    io::fail("tokenize decode", words.file,
             "has " + std::to_string(bytes.size()) + " bytes, which is no whole number of ids of " +
                 std::to_string(size));
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < size; ++i)
      id |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
    ids.push_back(static_cast<std::int32_t>(id));
  }
  const BpeDecodeOptions options{.skip_special_tokens = words.skips_special};
  std::string text =
      words.replaces ? tokenizer.decode(ids, options) : tokenizer.decode_bytes(ids, options);
  if (words.out.empty()) return text;
  io::replace_file("tokenize decode", words.out, text);
  return "";
}

// --- the command ---

void add_train(CLI::App& tokenize, std::string& output) {
  CLI::App* command = tokenize.add_subcommand("train", "Learn tokens from texts");
  const auto words = std::make_shared<TrainWords>();
  add_word(*command, "--vocab-size", words->size, "tokens in all")->type_name("N")->required();
  add_words(*command, "--special", words->specials,
            "a token that cuts the text; for each one again")
      ->type_name("TOKEN");
  add_word(*command, "--split", words->split,
           "gpt2, llama3, qwen2, qwen35 or smollm2; gpt2 without")
      ->type_name("RULE");
  add_word(*command, "--out", words->out, "tokenizer.json, or with --merges vocab.json")
      ->type_name("FILE")
      ->required();
  add_word(*command, "--merges", words->merges, "merges.txt")->type_name("FILE");
  add_words(*command, "FILES", words->files, "texts")->allow_extra_args()->required();
  command->footer(train_examples);
  command->callback([words, &output] { output = train(*words); });
}

void add_encode(CLI::App& tokenize, std::string& output) {
  CLI::App* command = tokenize.add_subcommand("encode", "A text to a file of ids");
  const auto words = std::make_shared<EncodeWords>();
  add_word(*command, "--tokenizer", words->tokenizer, "tokenizer.json")
      ->type_name("FILE")
      ->required();
  add_word(*command, "--out", words->out, "where the ids go")->type_name("FILE")->required();
  add_word(*command, "--type", words->type, "u16 or u32; without, u16 where it holds all ids")
      ->type_name("TYPE");
  command->add_flag("--template", words->add_template,
                    "put the tokens of the tokenizer's template around the text's");
  add_word(*command, "FILE", words->file, "the text; - is the standard input")->required();
  command->footer(encode_examples);
  command->callback([words, &output] { output = encode(*words); });
}

void add_decode(CLI::App& tokenize, std::string& output) {
  CLI::App* command = tokenize.add_subcommand("decode", "A file of ids to their text");
  const auto words = std::make_shared<DecodeWords>();
  add_word(*command, "--tokenizer", words->tokenizer, "tokenizer.json")
      ->type_name("FILE")
      ->required();
  add_word(*command, "--out", words->out, "where the text goes; without, the standard output")
      ->type_name("FILE");
  add_word(*command, "--type", words->type, "u16 or u32; without, u16 where it holds all ids")
      ->type_name("TYPE");
  command->add_flag("--skip-special", words->skips_special, "leave out special tokens");
  command->add_flag("--replace", words->replaces, "U+FFFD for what is no UTF-8");
  add_word(*command, "FILE", words->file, "the ids; - is the standard input")->required();
  command->footer(decode_examples);
  command->callback([words, &output] { output = decode(*words); });
}

}  // namespace

void add_tokenize(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("tokenize", "Texts to ids of tokens and back; learn tokens");
  command->require_subcommand(1);
  add_train(*command, output);
  add_encode(*command, output);
  add_decode(*command, output);
  command->footer(examples);
}

}  // namespace ein::command
