// Byte-level BPE beside another library: encodes, streams and decodes each text of a list, and
// compares.
//
// usage: ein_tokenizer_cases TOKENIZER.json CASES.json, which scripts/compare-tokenizers writes: a
// list of [text, ids, ids with the template, what the ids decode to, the same without special
// tokens]
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ein/text.hpp>

namespace {

using Ids = std::vector<std::int32_t>;

/// The ids of a text that comes in pieces of 1 to 7 bytes.
Ids streamed(const ein::BpeTokenizer& tokenizer, const std::string& text, std::size_t number) {
  Ids ids;
  ein::BpeStream stream(tokenizer);
  for (std::size_t at = 0, size = 1 + number % 7; at < text.size();
       at += size, size = 1 + (size + number) % 7)
    stream.add(std::string_view(text).substr(at, size), ids);
  stream.finish(ids);
  return ids;
}

int compare(const char* tokenizer_path, const char* cases_path) {
  const ein::BpeTokenizer tokenizer = ein::load_bpe(tokenizer_path);
  const ein::BpeTokenizer again = ein::bpe_of_json(tokenizer.save());
  if (again.save() != tokenizer.save()) {
    std::printf("another tokenizer after a round trip\n");
    return 1;
  }
  std::ifstream file(cases_path);
  const nlohmann::json cases = nlohmann::json::parse(file);
  std::size_t number = 0, wrong = 0;
  const auto check = [&](const char* what, const auto& got, const auto& wanted,
                         const std::string& text) {
    if (got == wanted) return;
    if (++wrong <= 10)
      std::printf("%s of %s: %s, not %s\n", what, nlohmann::json(text).dump(-1, ' ', true).c_str(),
                  nlohmann::json(got).dump(-1, ' ', true).c_str(),
                  nlohmann::json(wanted).dump(-1, ' ', true).c_str());
  };
  for (const auto& row : cases) {
    const auto text = row[0].get<std::string>();
    const auto ids = row[1].get<Ids>();
    check("encode", again.encode(text), ids, text);
    check("encode with the template", tokenizer.encode(text, {.add_template = true}),
          row[2].get<Ids>(), text);
    check("stream", streamed(tokenizer, text, number++), ids, text);
    check("decode", tokenizer.decode(ids), row[3].get<std::string>(), text);
    check("decode without special tokens", tokenizer.decode(ids, {.skip_special_tokens = true}),
          row[4].get<std::string>(), text);
  }
  std::printf("%zu texts, %zu differences\n", number, wrong);
  return wrong > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return compare(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
