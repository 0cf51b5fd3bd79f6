#include <ein/tokenizer.hpp>

#include <algorithm>
#include <array>
#include <bit>

#include <ein/error.hpp>
#include <ein/text.hpp>

#include "text/character.hpp"

namespace ein {
namespace {

constexpr std::string_view bytes_tag = "bytes", characters_tag = "characters:";

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::value, what); }

/// Calls f(code point, byte, number) for each of the text.
template <class F>
void for_each_character(std::string_view text, F&& f) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const grammar::CodePoint c = grammar::decode_utf8(text, at);
    if (c.length == 0) {
      fail("CharTokenizer: the text is not valid UTF-8 at byte " + std::to_string(at) +
           " (character " + std::to_string(number) + ")");
    }
    f(c.value, at, number);
    at += c.length;
  }
}

/// "U+00E9 'é'", or without the character where it has no glyph.
std::string describe(char32_t c) {
  std::string digits;
  for (int shift = c > 0xFFFF ? 20 : 12; shift >= 0; shift -= 4)
    digits += "0123456789ABCDEF"[c >> shift & 15];
  std::string text = "U+" + digits;
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return text;
  text += " '";
  text::append_utf8(text, c);
  return text + '\'';
}

void check_id(std::int32_t id, std::size_t place, std::int64_t size, std::string_view tokenizer) {
  if (id >= 0 && id < size) return;
  fail(std::string(tokenizer) + ": id " + std::to_string(id) + " at place " +
       std::to_string(place) + " is outside of the vocabulary of " + std::to_string(size));
}

}  // namespace

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids(text.size());
  std::ranges::transform(text, ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return ids;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text(ids.size(), '\0');
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check_id(ids[i], i, vocabulary_size(), "ByteTokenizer");
    text[i] = static_cast<char>(ids[i]);
  }
  return text;
}

std::string ByteTokenizer::save() const { return std::string(bytes_tag); }

CharTokenizer::CharTokenizer(std::string_view text) {
  using Page = std::array<std::uint64_t, 16>;  // a bit for each of its characters
  constexpr std::size_t page_size = 1024;
  std::vector<std::unique_ptr<Page>> pages;  // those with a character that occurs
  for_each_character(text, [&](char32_t c, std::size_t, std::size_t) {
    if (c / page_size >= pages.size()) pages.resize(c / page_size + 1);
    auto& page = pages[c / page_size];
    if (!page) page = std::make_unique<Page>();
    (*page)[c % page_size / 64] |= std::uint64_t{1} << c % 64;
  });
  ascii_.fill(-1);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    for (std::size_t j = 0; pages[i] && j < pages[i]->size(); ++j) {
      for (std::uint64_t rest = (*pages[i])[j]; rest != 0; rest &= rest - 1) {
        const auto c = static_cast<char32_t>(page_size * i + 64 * j +
                                             static_cast<std::size_t>(std::countr_zero(rest)));
        if (c < ascii_.size()) ascii_[c] = static_cast<std::int32_t>(characters_.size());
        characters_.push_back(c);
      }
    }
  }
}

std::int64_t CharTokenizer::vocabulary_size() const {
  return static_cast<std::int64_t>(characters_.size());
}

std::int32_t CharTokenizer::id_of(char32_t character) const {
  if (character < ascii_.size()) return ascii_[character];
  const auto found = std::ranges::lower_bound(characters_, character);
  if (found == characters_.end() || *found != character) return -1;
  return static_cast<std::int32_t>(found - characters_.begin());
}

std::vector<std::int32_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t number) {
    ids.push_back(id_of(c));
    if (ids.back() >= 0) return;
    fail("CharTokenizer: the character " + describe(c) + " at byte " + std::to_string(at) +
         " (character " + std::to_string(number) + ") is not in the vocabulary of " +
         std::to_string(vocabulary_size()));
  });
  return ids;
}

std::string CharTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check_id(ids[i], i, vocabulary_size(), "CharTokenizer");
    text::append_utf8(text, characters_[static_cast<std::size_t>(ids[i])]);
  }
  return text;
}

std::string CharTokenizer::vocabulary() const {
  std::string text;
  for (const char32_t c : characters_) text::append_utf8(text, c);
  return text;
}

std::string CharTokenizer::save() const { return std::string(characters_tag) + vocabulary(); }

std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved) {
  if (saved == bytes_tag) return std::make_unique<ByteTokenizer>();
  if (saved.starts_with('{')) return std::make_unique<BpeTokenizer>(bpe_of_json(saved));
  if (!saved.starts_with(characters_tag)) {
    fail(
        "load_tokenizer: \"bytes\", \"characters:\" and a vocabulary, or the text of a "
        "tokenizer.json is wanted");
  }
  const std::string_view vocabulary = saved.substr(characters_tag.size());
  auto tokenizer = std::make_unique<CharTokenizer>(vocabulary);
  if (tokenizer->vocabulary() != vocabulary) {
    fail("load_tokenizer: the characters of the vocabulary must be in order, and each there once");
  }
  return tokenizer;
}

}  // namespace ein
