#include <map>
#include <string>
#include <vector>

#include "io/json.hpp"
#include "text/json.hpp"

namespace ein::text {
namespace {

using io::json_string;

std::string word(bool value) { return value ? "true" : "false"; }

/// A line each, as the files that the tokenizers library writes.
class Writer {
 public:
  explicit Writer(const Bpe& bpe) : bpe_(bpe) {}

  std::string text() const {
    return io::in_lines(
               {field("version", json_string("1.0")), field("truncation", "null"),
                field("padding", "null"), field("added_tokens", added_tokens()),
                field("normalizer", bpe_.cuts().normalizes ? R"({"type": "NFC"})" : "null"),
                field("pre_tokenizer", pre_tokenizer()), field("post_processor", post_processor()),
                field("decoder", byte_level(true, true)), field("model", model())},
               "{}", 0) +
           '\n';
  }

 private:
  static std::string field(const char* name, const std::string& value) {
    return json_string(name) + ": " + value;
  }
  static std::string byte_level(bool adds_space, bool has_rule) {
    return R"({"type": "ByteLevel", "add_prefix_space": )" + word(adds_space) +
           R"(, "trim_offsets": true, "use_regex": )" + word(has_rule) + "}";
  }

  std::string added_tokens() const {
    std::vector<std::string> tokens;
    for (const AddedToken& token : bpe_.added()) {
      tokens.push_back(
          "{\"id\": " + std::to_string(token.id) + ", \"content\": " + json_string(token.content) +
          R"(, "single_word": false, "lstrip": false, "rstrip": false, "normalized": )" +
          word(token.is_normalized) + ", \"special\": " + word(token.is_special) + "}");
    }
    return io::in_lines(tokens, "[]", 2);
  }

  std::string pre_tokenizer() const {
    const SplitRule rule = bpe_.cuts().split;
    if (rule == SplitRule::gpt2) return byte_level(bpe_.cuts().adds_space, true);
    const std::string first = rule == SplitRule::smollm2
                                  ? R"({"type": "Digits", "individual_digits": true})"
                                  : R"({"type": "Split", "pattern": {"Regex": )" +
                                        json_string(std::string(pattern_of(rule))) +
                                        R"(}, "behavior": "Isolated", "invert": false})";
    return R"({"type": "Sequence", "pretokenizers": [)" + first + ", " +
           byte_level(false, rule == SplitRule::smollm2) + "]}";
  }

  std::string content(std::int32_t id) const { return json_string(std::string(bpe_.bytes(id))); }

  /// Around two texts, which this library never encodes, each has the same tokens.
  std::string items(const char* sequence, int type) const {
    const auto item = [&](const char* kind, const std::string& id) {
      return std::string("{\"") + kind + "\": {\"id\": " + id +
             ", \"type_id\": " + std::to_string(type) + "}}";
    };
    std::string text;
    for (const std::int32_t id : bpe_.before()) text += item("SpecialToken", content(id)) + ", ";
    text += item("Sequence", json_string(sequence));
    for (const std::int32_t id : bpe_.after()) text += ", " + item("SpecialToken", content(id));
    return text;
  }

  std::string post_processor() const {
    const std::string bytes = byte_level(true, true);
    if (bpe_.before().empty() && bpe_.after().empty()) return bytes;
    std::map<std::string, std::string> tokens;
    for (const auto* around : {&bpe_.before(), &bpe_.after()}) {
      for (const std::int32_t id : *around)
        tokens[content(id)] = "{\"id\": " + content(id) + ", \"ids\": [" + std::to_string(id) +
                              "], \"tokens\": [" + content(id) + "]}";
    }
    std::string special;
    for (const auto& [name, value] : tokens)
      special += (special.empty() ? "" : ", ") + name + ": " + value;
    return R"({"type": "Sequence", "processors": [)" + bytes +
           R"(, {"type": "TemplateProcessing", "single": [)" + items("A", 0) + R"(], "pair": [)" +
           items("A", 0) + ", " + items("B", 1) + R"(], "special_tokens": {)" + special + "}}]}";
  }

  std::string model() const {
    std::vector<std::string> vocabulary, merges;
    for (std::size_t id = 0; id < bpe_.size(); ++id) {
      const Bpe::Token& token = bpe_.token(id);
      if (token.is_listed)
        vocabulary.push_back(json_string(bpe_.spelling(token)) + ": " + std::to_string(id));
    }
    for (const Bpe::Merge& merge : bpe_.merges())
      merges.push_back("[" + json_string(spelling(merge.left)) + ", " +
                       json_string(spelling(merge.right)) + "]");
    return io::in_lines(
        {field("type", json_string("BPE")), field("dropout", "null"), field("unk_token", "null"),
         field("continuing_subword_prefix", "null"), field("end_of_word_suffix", "null"),
         field("fuse_unk", "false"), field("byte_fallback", "false"),
         field("ignore_merges", word(bpe_.ignores_merges())),
         field("vocab", io::in_lines(vocabulary, "{}", 4)),
         field("merges", io::in_lines(merges, "[]", 4))},
        "{}", 2);
  }
  std::string spelling(std::int32_t id) const {
    return bpe_.spelling(bpe_.token(static_cast<std::size_t>(id)));
  }

  const Bpe& bpe_;
};

}  // namespace

std::string to_json(const Bpe& bpe) { return Writer(bpe).text(); }

}  // namespace ein::text
