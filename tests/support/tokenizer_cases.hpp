// Texts with what another library makes of them: a list of [text, ids, ids with the template, what
// the ids decode to, the same without special tokens], which scripts/compare-tokenizers writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <ein/text.hpp>

namespace ein::test {

using Ids = std::vector<std::int32_t>;

/// The ids of a text that comes in pieces of 1 to 7 bytes, which follow from `number`.
inline Ids streamed(const BpeTokenizer& tokenizer, std::string_view text, std::size_t number) {
  Ids ids;
  BpeStream stream(tokenizer);
  for (std::size_t at = 0, size = 1 + number % 7; at < text.size();
       at += size, size = 1 + (size + number) % 7)
    stream.add(text.substr(at, size), ids);
  stream.finish(ids);
  return ids;
}

/// What is different, in words, and how many texts there were.
struct CaseResults {
  std::size_t texts = 0;
  std::vector<std::string> differences;
};

inline CaseResults compare_cases(const BpeTokenizer& tokenizer, const nlohmann::json& cases) {
  CaseResults results;
  const auto check = [&](const char* what, const auto& got, const nlohmann::json& wanted,
                         const std::string& text) {
    if (nlohmann::json(got) == wanted) return;
    const auto shown = [](const nlohmann::json& value) { return value.dump(-1, ' ', true); };
    results.differences.push_back(std::string(what) + " of " + shown(text) + ": " + shown(got) +
                                  ", not " + shown(wanted));
  };
  const BpeTokenizer again = bpe_of_json(tokenizer.save());
  check("save", again.save(), tokenizer.save(), "the tokenizer");
  for (const auto& row : cases) {
    const auto text = row[0].get<std::string>();
    const auto ids = row[1].get<Ids>();
    check("encode", again.encode(text), ids, text);
    check("encode with the template", tokenizer.encode(text, {.add_template = true}), row[2], text);
    check("stream", streamed(tokenizer, text, results.texts), ids, text);
    check("decode", tokenizer.decode(ids), row[3], text);
    check("decode without special tokens", tokenizer.decode(ids, {.skip_special_tokens = true}),
          row[4], text);
    ++results.texts;
  }
  return results;
}

}  // namespace ein::test
