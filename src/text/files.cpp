#include <algorithm>

#include <ein/error.hpp>
#include <ein/text.hpp>

#include "io/file.hpp"
#include "io/json.hpp"
#include "machine/printable.hpp"
#include "text/json.hpp"

namespace ein {
namespace {

/// Llama 4's tokenizer.json has 28 MB.
constexpr std::uint64_t longest_file = 1 << 28;

std::string read_whole(const io::InputFile& file) {
  if (file.size() > longest_file)
    file.fail("has " + std::to_string(file.size()) + " bytes, more than a tokenizer's " +
              std::to_string(longest_file));
  return file.read();
}

BpeTokenizer bpe_of(text::BpeParts parts, const text::Fail& fail) {
  return BpeTokenizer(std::make_shared<const detail::BpeTables>(std::move(parts), fail));
}

/// One object of whole numbers.
class Vocabulary final : public io::JsonEvents {
 public:
  Vocabulary(text::BpeParts& parts, const text::Fail& fail)
      : JsonEvents(1), parts_(parts), fail_(fail) {}

  bool key(std::string& key) override {
    token_ = std::move(key);
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (depth() != 1 || value > std::uint64_t{INT32_MAX}) return plain();
    parts_.vocabulary.emplace_back(std::move(token_), static_cast<std::int64_t>(value));
    return true;
  }
  bool plain() override {
    fail(depth() == 1 ? "the id of " + io::in_quotes(token_) + " is no whole number below 2^31"
                      : "it is no object");
  }
  bool string(std::string&) override { return plain(); }
  bool start_array(std::size_t) override { return plain(); }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_(what); }

  text::BpeParts& parts_;
  const text::Fail& fail_;
  std::string token_;
};

/// A merge in each line, but for a first one that says the version.
void read_merges(std::string_view text, text::BpeParts& parts, const text::Fail& fail) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if ((number == 1 && line.starts_with("#version")) || (line.empty() && text.empty())) continue;
    const std::size_t blank = line.find(' ');
    if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
      fail("line " + std::to_string(number) + ", " + io::in_quotes(line) +
           ", is not two tokens with a blank between them");
    parts.merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
}

}  // namespace

BpeTokenizer load_bpe(const std::string& path) {
  const io::InputFile file("load_bpe", path);
  const auto fail = [&](const std::string& what) {
    file.fail("is no tokenizer that can be used: " + what);
  };
  return bpe_of(text::parts_of_json(read_whole(file), fail), fail);
}

BpeTokenizer bpe_of_json(std::string_view json) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorKind::value,
                "bpe_of_json: the text is no tokenizer that can be used: " + what);
  };
  return bpe_of(text::parts_of_json(json, fail), fail);
}

void save_bpe(const std::string& path, const BpeTokenizer& tokenizer) {
  io::replace_file("save_bpe", path, tokenizer.save());
}

BpeTokenizer load_bpe_files(const std::string& path, const std::string& merges_path,
                            BpeFilesOptions options) {
  const io::InputFile vocabulary("load_bpe_files", path), merges("load_bpe_files", merges_path);
  text::BpeParts parts;
  parts.split = options.split;
  const text::Fail fail_vocabulary = [&](const std::string& what) {
    vocabulary.fail("is damaged: " + what);
  };
  Vocabulary reader(parts, fail_vocabulary);
  io::read_json(read_whole(vocabulary), reader, fail_vocabulary);
  read_merges(read_whole(merges), parts,
              [&](const std::string& what) { merges.fail("is damaged: " + what); });
  std::int64_t next = 0;
  for (const auto& [token, id] : parts.vocabulary) next = std::max(next, id + 1);
  for (const std::string& special : options.special_tokens) {
    auto listed = std::ranges::find(parts.vocabulary, special, &text::BpeParts::Entry::first);
    if (listed == parts.vocabulary.end()) {
      if (next > INT32_MAX)
        vocabulary.fail("has no id left for the special token " + io::in_quotes(special));
      listed = parts.vocabulary.insert(listed, {special, next++});
    }
    parts.added.push_back({special, static_cast<std::int32_t>(listed->second), true, false});
  }
  return bpe_of(std::move(parts), [&](const std::string& what) {
    vocabulary.fail("and \"" + printable_line(merges_path) +
                    "\" are no tokenizer that can be used: " + what);
  });
}

void save_bpe_files(const std::string& path, const std::string& merges_path,
                    const BpeTokenizer& tokenizer) {
  const text::Bpe& bpe = *tokenizer.tables();
  std::vector<std::string> lines;
  for (std::size_t id = 0; id < bpe.size(); ++id) {
    if (const text::Bpe::Token& token = bpe.token(id); token.length > 0)
      lines.push_back(io::json_string(bpe.spelling(token)) + ": " + std::to_string(id));
  }
  std::string merges = "#version: 0.2\n";
  for (const text::Bpe::Merge& merge : bpe.merges()) {
    merges += bpe.spelling(bpe.token(static_cast<std::size_t>(merge.left))) + ' ' +
              bpe.spelling(bpe.token(static_cast<std::size_t>(merge.right))) + '\n';
  }
  io::ReplacementFile vocabulary("save_bpe_files", path), list("save_bpe_files", merges_path);
  const std::string json = io::in_lines(lines, "{}", 0) + '\n';
  vocabulary.write(json.data(), json.size());
  list.write(merges.data(), merges.size());
  vocabulary.commit();
  list.commit();
}

}  // namespace ein
