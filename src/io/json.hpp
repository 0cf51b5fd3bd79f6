// JSON texts, which are read no deeper than what is known of them; and their encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ein::io {

/// Takes the events of a JSON parser, and stops it where the text is nested deeper than so many.
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

/// The same as a tree. The library's own callback would do, but looks through an array after each
/// element of it.
template <class Fail>
nlohmann::json parse_json(std::string_view text, int deepest, const Fail& fail) {
  JsonEvents events(deepest);
  read_json(text, events, fail);
  return nlohmann::json::parse(text);
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
