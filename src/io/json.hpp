// JSON texts that are read as a tree: no deeper than what is known of them. And their encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ein::io {

/// Reads a text and keeps nothing; stops where it is nested deeper than so many.
class DepthOfJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit DepthOfJson(int deepest) : left_(deepest) {}
  bool is_too_deep() const { return left_ < 0; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(std::size_t) override { return --left_ >= 0; }
  bool end_object() override { return ++left_ > 0; }
  bool start_array(std::size_t) override { return --left_ >= 0; }
  bool end_array() override { return ++left_ > 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  int left_;
};

/// `fail(what)` throws: where the text is no JSON or nested deeper. The library's own callback
/// would do, but looks through an array after each element of it.
template <class Fail>
nlohmann::json parse_json(std::string_view text, int deepest, const Fail& fail) {
  using nlohmann::json;
  DepthOfJson depth(deepest);
  if (!json::sax_parse(text, &depth))
    fail(depth.is_too_deep() ? "it is nested too deeply" : "it is no JSON");
  return json::parse(text);
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
