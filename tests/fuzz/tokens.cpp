// Any bytes as tokens of each type: all of the file, or an ein::Error of kind `file` for a size
// that is no whole number of them.
#include <optional>
#include <vector>

#include <ein/data.hpp>

#include "fuzz/fuzz.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

template <class T>
void check(const MemoryFile& file, TokenType type, const std::uint8_t* data, std::size_t size) {
  const auto tokens = value_or_error(ErrorKind::file, std::optional<Tokens>(), [&] {
    return std::optional(Tokens::open(file.path(), type));
  });
  require(tokens.has_value() == (size % sizeof(T) == 0),
          "a wrong size accepted, or a right one refused");
  if (!tokens) return;
  require(tokens->size() == static_cast<std::int64_t>(size / sizeof(T)),
          "not as many tokens as the file has");
  std::vector<std::int64_t> all(static_cast<std::size_t>(tokens->size()));
  tokens->copy(0, all);
  const auto [low, high] = tokens->range();
  for (std::size_t i = 0; i < all.size(); ++i) {
    T token;
    std::memcpy(&token, data + i * sizeof(T), sizeof(T));
    require(all[i] == static_cast<std::int64_t>(token) && low <= all[i] && all[i] <= high,
            "another token");
  }
  const std::int64_t half = tokens->size() / 2;
  const Tensor part = tokens->part(half, tokens->size()).read(0, tokens->size() - half);
  require(part.numel() == 0 || std::memcmp(part.raw_data(), all.data() + half, part.nbytes()) == 0,
          "another part");
  require(
      value_or_error(ErrorKind::value, false,
                     [&] { return tokens->read(half, tokens->size() + 1).numel() > 0; }) == false,
      "tokens behind the end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.replace(data, size);
  check<std::uint8_t>(file, TokenType::u8, data, size);
  check<std::uint16_t>(file, TokenType::u16, data, size);
  check<std::int32_t>(file, TokenType::i32, data, size);
  check<std::int64_t>(file, TokenType::i64, data, size);
  return 0;
}
