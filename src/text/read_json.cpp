#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/json.hpp"
#include "text/json.hpp"

namespace ein::text {
namespace {

using io::in_quotes;
using nlohmann::json;

constexpr int deepest = 16;  // post-processors' special tokens are at 7

/// A file as a tree, but for model.vocab and model.merges, which are most of it.
class Tree final : public io::JsonTree {
 public:
  Tree(std::string_view text, BpeParts& parts, const Fail& fail)
      : JsonTree(deepest), parts_(parts), fail_(fail) {
    io::read_json(text, *this, fail);
  }
  bool has_vocabulary() const { return has_vocabulary_; }
  bool has_merges() const { return has_merges_; }

  bool key(std::string& key) override {
    if (is_in_vocabulary()) {
      token_ = std::move(key);
      return true;
    }
    if (holds(key)) fail("it has the field " + in_quotes(key) + " twice");
    if (depth() == 1) is_model_ = key == "model";
    if (depth() <= 2) field_ = key;
    return JsonTree::key(key);
  }
  bool start_object(std::size_t size) override {
    if (within_ != Within::other) refuse_entry();
    if (is_at("vocab"))
      return begin(Within::vocabulary, has_vocabulary_) && JsonEvents::start_object(size);
    return JsonTree::start_object(size);
  }
  bool end_object() override {
    if (!is_in_vocabulary()) return JsonTree::end_object();
    within_ = Within::other;
    return JsonEvents::end_object();
  }
  bool start_array(std::size_t size) override {
    if (within_ == Within::merges && depth() == 3) {
      pair_.clear();
      return JsonEvents::start_array(size);
    }
    if (within_ != Within::other) refuse_entry();
    if (is_at("merges")) return begin(Within::merges, has_merges_) && JsonEvents::start_array(size);
    return JsonTree::start_array(size);
  }
  bool end_array() override {
    if (within_ != Within::merges) return JsonTree::end_array();
    if (depth() == 4) {
      if (pair_.size() != 2) refuse_entry();
      parts_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
    } else {
      within_ = Within::other;
    }
    return JsonEvents::end_array();
  }
  bool string(std::string& value) override {
    if (within_ == Within::other) return JsonTree::string(value);
    if (is_in_vocabulary()) refuse_entry();
    if (depth() == 4) {
      if (pair_.size() == 2) refuse_entry();
      pair_.push_back(std::move(value));
      return true;
    }
    const std::size_t blank = value.find(' ');
    if (blank == value.npos || value.find(' ', blank + 1) != value.npos) refuse_entry();
    parts_.merges.emplace_back(value.substr(0, blank), value.substr(blank + 1));
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (within_ == Within::other) return JsonTree::number_unsigned(value);
    if (!is_in_vocabulary() || value > std::uint64_t{INT32_MAX}) refuse_entry();
    parts_.vocabulary.emplace_back(std::move(token_), static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(std::int64_t value) override {
    return is_other() && JsonTree::number_integer(value);
  }
  bool number_float(double value, const std::string& text) override {
    return is_other() && JsonTree::number_float(value, text);
  }
  bool boolean(bool value) override { return is_other() && JsonTree::boolean(value); }
  bool null() override { return is_other() && JsonTree::null(); }

 private:
  enum class Within { other, vocabulary, merges };
  bool is_in_vocabulary() const { return within_ == Within::vocabulary; }
  bool is_at(std::string_view field) const { return is_model_ && depth() == 2 && field_ == field; }
  bool begin(Within within, bool& has) {
    if (has) fail("its model has " + in_quotes(field_) + " twice");
    within_ = within;
    return has = true;
  }
  bool is_other() const {
    if (within_ != Within::other) refuse_entry();
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const { fail_(what); }
  [[noreturn]] void refuse_entry() const {
    fail(is_in_vocabulary()
             ? "the id of " + in_quotes(token_) + " in the vocabulary is no whole number below 2^31"
             : "merge " + std::to_string(parts_.merges.size() + 1) +
                   " is neither two tokens with a blank between them nor an array of two");
  }

  BpeParts& parts_;
  const Fail& fail_;
  Within within_ = Within::other;
  bool is_model_ = false, has_vocabulary_ = false, has_merges_ = false;
  std::string field_, token_;
  std::vector<std::string> pair_;
};

/// Of the fields around the model: what is supported, all else is refused by name.
class Reader {
 public:
  Reader(std::string_view text, const Fail& fail) : fail_(fail), tree_(text, parts_, fail) {}

  BpeParts read() {
    const json& root = tree_.root();
    if (!root.is_object()) fail("it is no object");
    if (const json& version = field(root, "version"); !version.is_null() && !is(version, "1.0"))
      fail("its version is " + shown(version) + "; 1.0 is supported");
    for (const char* const name : {"truncation", "padding"}) {
      if (!field(root, name).is_null())
        fail("it has a " + std::string(name) + ", which is not supported");
    }
    model(field(root, "model"));
    normalizer(field(root, "normalizer"));
    pre_tokenizer(field(root, "pre_tokenizer"));
    post_processor(field(root, "post_processor"));
    if (type_of(field(root, "decoder"), "decoder") != "ByteLevel")
      refuse("decoder", field(root, "decoder"), "ByteLevel is");
    added_tokens(field(root, "added_tokens"));
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_(what); }
  static std::string shown(const json& value) {
    return in_quotes(value.is_string() ? value.get<std::string>() : value.dump());
  }
  [[noreturn]] void refuse(const std::string& part, const json& value,
                           const std::string& supported) const {
    fail("its " + part + " is " +
         (value.is_object() && value.contains("type") ? shown(value["type"]) : shown(value)) +
         ", which is not supported; " + supported);
  }
  /// The library's own comparison ends the process where there is no memory.
  static bool is(const json& value, std::string_view text) {
    return value.is_string() && value.get_ref<const std::string&>() == text;
  }
  /// null where it is missing.
  const json& field(const json& object, const std::string& name) const {
    if (!object.is_object()) return missing_;
    const auto found = object.find(name);
    return found == object.end() ? missing_ : *found;
  }
  bool flag(const json& object, const char* name, bool otherwise) const {
    const json& value = field(object, name);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean())
      fail("its " + std::string(name) + " is " + shown(value) + ", and neither true nor false");
    return value.get<bool>();
  }
  static bool is_nothing(const json& value) { return value.is_null() || is(value, ""); }
  /// "" of null.
  std::string type_of(const json& value, const char* part) const {
    if (value.is_null()) return "";
    const json& type = field(value, "type");
    if (!type.is_string()) fail("its " + std::string(part) + " has no type");
    return type.get<std::string>();
  }
  /// The members of a sequence, or the one that there is, or none.
  std::vector<const json*> members(const json& value, const char* part, const char* name) const {
    if (value.is_null()) return {};
    if (type_of(value, part) != "Sequence") return {&value};
    std::vector<const json*> all;
    if (!field(value, name).is_array())
      fail("its " + std::string(part) + " is a Sequence without " + name);
    for (const json& member : field(value, name)) all.push_back(&member);
    return all;
  }

  void model(const json& model) {
    if (!model.is_object()) fail("it has no model");
    const json& type = field(model, "type");
    if (!type.is_null() && !is(type, "BPE")) refuse("model", model, "BPE is");
    if (flag(model, "byte_fallback", false))
      fail("its model has byte_fallback true, which is not supported; byte-level BPE is");
    for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!is_nothing(field(model, name)))
        fail("its model has the " + std::string(name) + " " + shown(field(model, name)) +
             ", which is not supported");
    }
    if (const json& dropout = field(model, "dropout"); !dropout.is_null() && dropout != 0)
      fail("its model has a dropout of " + shown(dropout) + ", which is not supported");
    if (!tree_.has_vocabulary()) fail("its model has no object vocab");
    if (!tree_.has_merges()) fail("its model has no array merges");
    parts_.ignores_merges = flag(model, "ignore_merges", false);
    parts_.may_miss_bytes = is_nothing(field(model, "unk_token"));
  }

  void normalizer(const json& value) {
    for (const json* const member : members(value, "normalizer", "normalizers")) {
      if (type_of(*member, "normalizer") != "NFC")
        refuse("normalizer", *member, "null and NFC are");
      parts_.normalizes = true;
    }
  }

  void pre_tokenizer(const json& value) {
    const std::vector<const json*> steps = members(value, "pre_tokenizer", "pretokenizers");
    if (steps.empty() || steps.size() > 2 || type_of(*steps.back(), "pre_tokenizer") != "ByteLevel")
      refuse("pre_tokenizer", steps.empty() ? value : *steps.back(),
             "ByteLevel is, by itself or behind a Split or Digits");
    const json& bytes = *steps.back();
    parts_.adds_space = flag(bytes, "add_prefix_space", true);
    const bool has_rule = flag(bytes, "use_regex", true);
    const std::string first = steps.size() == 1 ? "" : type_of(*steps.front(), "pre_tokenizer");
    if (first.empty() && has_rule) {
      parts_.split = SplitRule::gpt2;
    } else if (first == "Digits" && has_rule && flag(*steps.front(), "individual_digits", false)) {
      parts_.split = SplitRule::smollm2;
    } else if (first == "Split" && !has_rule) {
      parts_.split = split(*steps.front());
    } else if (first == "Split" || first == "Digits" || first.empty()) {
      fail("its pre_tokenizer has ByteLevel with use_regex " +
           std::string(has_rule ? "true" : "false") +
           (first.empty() ? " by itself" : " behind " + first) +
           ", which is not supported; true by itself is, true behind "
           "Digits of individual_digits, and false behind Split");
    } else {
      refuse("pre_tokenizer", *steps.front(),
             "ByteLevel is, by itself or behind a Split or Digits");
    }
    if (parts_.adds_space && !first.empty())
      fail("its pre_tokenizer has add_prefix_space true behind " + first +
           ", which is not supported");
  }

  SplitRule split(const json& step) const {
    const json& behavior = field(step, "behavior");
    const bool inverts = flag(step, "invert", false);
    if (!is(behavior, inverts ? "Removed" : "Isolated"))
      fail("its Split has the behavior " + shown(behavior) + (inverts ? " and invert true" : "") +
           ", which is not supported; Isolated is, and Removed with invert true");
    const json& pattern = field(field(step, "pattern"), "Regex");
    if (!pattern.is_string()) fail("its Split has no pattern that is a Regex");
    const auto rule = rule_of_pattern(pattern.get_ref<const std::string&>());
    if (!rule)
      fail("its Split has the pattern " + in_quotes(pattern.get_ref<const std::string&>()) +
           ", which is not supported; those of GPT-2, Llama 3, Qwen 2 to 3 and Qwen 3.5 are");
    return *rule;
  }

  void post_processor(const json& value) {
    for (const json* const member : members(value, "post_processor", "processors")) {
      const std::string type = type_of(*member, "post_processor");
      if (type == "TemplateProcessing")
        take_template(*member);
      else if (type != "ByteLevel")
        refuse("post_processor", *member, "ByteLevel and TemplateProcessing are");
    }
  }

  void take_template(const json& value) {
    const json& items = field(value, "single");
    if (!items.is_array()) fail("its template has no array single");
    if (!parts_.before.empty() || !parts_.after.empty()) fail("it has two templates");
    int sequences = 0;
    for (const json& item : items) {
      const json& special = field(field(item, "SpecialToken"), "id");
      if (special.is_string()) {
        auto& side = sequences == 0 ? parts_.before : parts_.after;
        const auto& name = special.get_ref<const std::string&>();
        const json& ids = field(field(field(value, "special_tokens"), name), "ids");
        if (!ids.is_array()) fail("its template has " + in_quotes(name) + ", and no ids of it");
        for (const json& id : ids) side.push_back(id_of(id, name));
      } else if (is(field(field(item, "Sequence"), "id"), "A")) {
        ++sequences;
      } else {
        fail("its template has an item that is neither a SpecialToken nor the Sequence A");
      }
    }
    if (sequences != 1)
      fail("its template has the Sequence A " + std::to_string(sequences) + " times");
  }

  std::int32_t id_of(const json& value, const std::string& of) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{INT32_MAX})
      fail("the id of " + in_quotes(of) + " is " + shown(value) +
           ", and no whole number below 2^31");
    return value.get<std::int32_t>();
  }

  void added_tokens(const json& tokens) {
    if (tokens.is_null()) return;
    if (!tokens.is_array()) fail("its added_tokens are no array");
    for (const json& token : tokens) {
      const json& content = field(token, "content");
      if (!content.is_string()) fail("an added token has no content");
      AddedToken& added = parts_.added.emplace_back();
      added.content = content.get<std::string>();
      added.id = id_of(field(token, "id"), added.content);
      for (const char* const name : {"single_word", "lstrip", "rstrip"}) {
        if (flag(token, name, false))
          fail("the added token " + in_quotes(added.content) + " has " + name +
               " true, which is not supported");
      }
      added.is_special = flag(token, "special", false);
      added.is_normalized = flag(token, "normalized", true);
    }
  }

  const Fail& fail_;
  const json missing_;
  BpeParts parts_;
  Tree tree_;
};

}  // namespace

BpeParts parts_of_json(std::string_view text, const Fail& fail) {
  return Reader(text, fail).read();
}

}  // namespace ein::text
