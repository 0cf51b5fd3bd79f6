// JSON texts, which are read no deeper than what is known of them; and their encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace ein::io {

/// Takes the events of a JSON parser, and stops it where the text is nested too deep.
/// Keeps nothing.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEvents(int deepest) : deepest_(deepest) {}
  /// How many objects and arrays are open.
  int depth() const { return depth_; }
  bool is_too_deep() const { return depth_ > deepest_; }
  /// A number, true, false or null.
  virtual bool plain() { return true; }

  bool null() override { return plain(); }
  bool boolean(bool) override { return plain(); }
  bool number_integer(std::int64_t) override { return plain(); }
  bool number_unsigned(std::uint64_t) override { return plain(); }
  bool number_float(double, const std::string&) override { return plain(); }
  bool binary(binary_t&) override { return plain(); }
  bool string(std::string&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= deepest_; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ <= deepest_; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  int deepest_, depth_ = 0;
};

/// `fail(what)` throws: where the text is no JSON or nested too deeply.
template <class Fail>
void read_json(std::string_view text, JsonEvents& events, const Fail& fail) {
  if (!nlohmann::json::sax_parse(text, &events))
    fail(events.is_too_deep() ? "it is nested too deeply" : "it is no JSON");
}

/// A text as a tree. The library's destructor takes memory for what arrays and objects hold, and
/// where there is none it ends the process: they are emptied before it, from the leaves on.
class JsonTree : public JsonEvents {
 public:
  using json = nlohmann::json;

  /// `fail(what)` throws, as that of read_json().
  template <class Fail>
  JsonTree(std::string_view text, int deepest, const Fail& fail) : JsonTree(deepest) {
    read_json(text, *this, fail);
  }
  ~JsonTree() override { empty(root_); }
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  const json& root() const { return root_; }

  bool null() override { return add(json()); }
  bool boolean(bool value) override { return add(json(value)); }
  bool number_integer(std::int64_t value) override { return add(json(value)); }
  bool number_unsigned(std::uint64_t value) override { return add(json(value)); }
  bool number_float(double value, const std::string&) override { return add(json(value)); }
  bool string(std::string& value) override { return add(json(std::move(value))); }
  bool key(std::string& key) override {
    key_ = std::move(key);
    return true;
  }
  bool start_object(std::size_t size) override {
    return JsonEvents::start_object(size) && open(json(json::value_t::object));
  }
  bool start_array(std::size_t size) override {
    return JsonEvents::start_array(size) && open(json(json::value_t::array));
  }
  bool end_object() override { return close() && JsonEvents::end_object(); }
  bool end_array() override { return close() && JsonEvents::end_array(); }

 protected:
  // Once it is done an exception runs the destructor.
  explicit JsonTree(int deepest) : JsonEvents(deepest) {}
  /// Whether the object that is open has this key already.
  bool holds(const std::string& key) const { return open_.back()->contains(key); }

 private:
  json& place(json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    json& within = *open_.back();
    if (within.is_object()) return within[key_] = std::move(value);
    within.push_back(std::move(value));
    return within.back();
  }
  bool add(json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(json&& value) {
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  static void empty(json& value) {
    for (json& child : value) {
      if (child.is_structured()) empty(child);
    }
    if (value.is_array()) value.get_ref<json::array_t&>().clear();
    if (value.is_object()) value.get_ref<json::object_t&>().clear();
  }

  json root_;
  std::vector<json*> open_;
  std::string key_;
};

/// A text, which is_utf8(), as a string of JSON.
inline std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

/// `items` between two brackets, each in a line that begins with `indent` + 2 spaces.
inline std::string in_lines(const std::vector<std::string>& items, std::string_view brackets,
                            std::size_t indent) {
  if (items.empty()) return std::string(brackets);
  std::string text(1, brackets[0]);
  for (const std::string& item : items) {
    text += text.size() == 1 ? "\n" : ",\n";
    text += std::string(indent + 2, ' ') + item;
  }
  return text + '\n' + std::string(indent, ' ') + brackets[1];
}

inline bool is_utf8(const std::string& text) {
  try {
    nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace ein::io
