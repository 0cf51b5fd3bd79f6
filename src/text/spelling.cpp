#include "text/spelling.hpp"

#include <array>

#include "text/character.hpp"

namespace ein::text {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr unsigned others = 68, first_other = 0x100;

constexpr auto characters = [] {
  std::array<char16_t, 256> of_byte{};
  unsigned next = first_other;
  for (unsigned byte = 0; byte < 256; ++byte)
    of_byte[byte] = static_cast<char16_t>(stands_for_itself(byte) ? byte : next++);
  return of_byte;
}();

constexpr auto bytes = [] {
  std::array<char, first_other + others> of_character{};
  for (unsigned byte = 0; byte < 256; ++byte)
    of_character[characters[byte]] = static_cast<char>(byte);
  return of_character;
}();

}  // namespace

std::string spelled(std::string_view raw) {
  std::string spelling;
  for (const char byte : raw) append_utf8(spelling, characters[static_cast<unsigned char>(byte)]);
  return spelling;
}

std::optional<std::string> bytes_of(std::string_view spelling) {
  std::string raw;
  for (std::size_t at = 0; at < spelling.size();) {
    const Character c = character_at(spelling, at);
    if (c.value >= bytes.size() || (c.value < first_other && !stands_for_itself(c.value)))
      return std::nullopt;
    raw += bytes[c.value];
    at += c.length;
  }
  return raw;
}

}  // namespace ein::text
