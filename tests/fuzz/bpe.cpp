// Any bytes as a tokenizer.json and a text, or as a vocab.json, a merges.txt and a text, with a NUL
// byte between them: either an ein::Error of the kind that is promised, or a tokenizer that is
// written as it was read, encodes a text in pieces as whole, and decodes any ids.
#include <optional>
#include <string_view>
#include <vector>

#include <ein/text.hpp>

#include "fuzz/fuzz.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

using Ids = std::vector<std::int32_t>;

/// What is before the next NUL byte.
std::string_view take_part(std::string_view& input) {
  const std::string_view part = input.substr(0, input.find('\0'));
  input.remove_prefix(part.size() + (part.size() < input.size()));
  return part;
}

void check(const BpeTokenizer& tokenizer, std::string_view text) {
  const std::string saved = tokenizer.save();
  require(bpe_of_json(saved).save() == saved, "another tokenizer after a round trip");
  const auto whole = value_or_error(ErrorKind::value, std::optional<Ids>(),
                                    [&] { return std::optional(tokenizer.encode(text)); });
  const auto pieces = value_or_error(ErrorKind::value, std::optional<Ids>(), [&] {
    Ids ids;
    BpeStream stream(tokenizer);
    for (std::size_t at = 0; at < text.size(); at += 3) stream.add(text.substr(at, 3), ids);
    stream.finish(ids);
    return std::optional(ids);
  });
  require(whole == pieces, "other ids of a text in pieces");
  if (whole) {
    for (const std::int32_t id : *whole)
      require(id >= 0 && id < tokenizer.vocabulary_size(), "an id outside the vocabulary");
    const std::string decoded = tokenizer.decode(*whole);
    require(tokenizer.decode_bytes(*whole, {.skip_special_tokens = true}).size() <=
                decoded.size() + text.size(),
            "more bytes than tokens have");
  }
  Ids any;
  for (const char byte : text) any.push_back(static_cast<signed char>(byte) * 7);
  value_or_error(ErrorKind::value, std::string(), [&] { return tokenizer.decode(any); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile vocabulary, merges;
  const std::string_view whole(reinterpret_cast<const char*>(data), size);
  std::string_view input = whole;
  const std::string_view json = take_part(input);
  const auto loaded = value_or_error(ErrorKind::value, std::optional<BpeTokenizer>(),
                                     [&] { return std::optional(bpe_of_json(json)); });
  if (loaded) {
    check(*loaded, input);
    return 0;
  }
  const std::string_view lines = take_part(input);
  vocabulary.replace(json.data(), json.size());
  merges.replace(lines.data(), lines.size());
  const auto of_files = value_or_error(ErrorKind::file, std::optional<BpeTokenizer>(), [&] {
    return std::optional(
        load_bpe_files(vocabulary.path(), merges.path(), {.special_tokens = {"<s>"}}));
  });
  if (of_files) check(*of_files, input);
  return 0;
}
