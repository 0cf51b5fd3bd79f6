#include "text/character.hpp"

namespace ein::text {
namespace {

/// How long the part at `at` is that begins as a character does, and ends before the first byte
/// that none has there (Unicode 16, table 3-7); at least 1.
std::size_t maximal_part(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(at);
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  std::size_t part = 1;
  while (part < length && at + part < bytes.size()) {
    const unsigned next = byte(at + part);
    if (part == 1 ? next < low || next > high : (next & 0xC0) != 0x80) break;
    ++part;
  }
  return part;
}

}  // namespace

std::string replace_malformed(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  std::size_t done = 0;  // bytes that are in `text`
  for (std::size_t at = 0; at < bytes.size();) {
    if (static_cast<unsigned char>(bytes[at]) < 0x80) {
      ++at;
    } else if (const auto c = grammar::decode_utf8(bytes, at); c.length > 0) {
      at += c.length;
    } else {
      text.append(bytes.substr(done, at - done)).append("\xEF\xBF\xBD");
      done = at += maximal_part(bytes, at);
    }
  }
  return text.append(bytes.substr(done));
}

}  // namespace ein::text
