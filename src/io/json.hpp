// JSON texts that are read as a tree: no deeper than what is known of them. And their encoding.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ein::io {

/// `fail(what)` throws: where the text is no JSON or nested deeper.
template <class Fail>
nlohmann::json parse_json(std::string_view text, int deepest, const Fail& fail) {
  using nlohmann::json;
  const auto check_depth = [&](int depth, json::parse_event_t, const json&) {
    if (depth > deepest) fail("it is nested too deeply");
    return true;
  };
  json root = json::parse(text, check_depth, false);  // false: what is wrong is discarded
  if (root.is_discarded()) fail("it is no JSON");
  return root;
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
