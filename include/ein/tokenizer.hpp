// Tokenizers: texts to token ids and back.
#pragma once

#include <ein/compiler.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ein {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Ids are below this.
  virtual std::int64_t vocabulary_size() const = 0;
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// An Error of kind `value` for an id outside of the vocabulary, naming it and its place.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  /// What load_tokenizer makes this tokenizer of: UTF-8, so that JSON can hold it.
  virtual std::string save() const = 0;
};

/// A token is a byte, its id the byte's value.
class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocabulary_size() const override { return 256; }
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string save() const override;
};

/// A token is a Unicode code point, its id its rank among those of a text, as in nanoGPT's
/// character models. Texts are UTF-8 (RFC 3629); bytes that are not are an Error of kind `value`
/// that says where.
class CharTokenizer final : public Tokenizer {
 public:
  /// Of the characters that occur in `text`.
  explicit CharTokenizer(std::string_view text);
  std::int64_t vocabulary_size() const override;
  /// An Error of kind `value` for a character that is not in the vocabulary, naming it and its
  /// place.
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string save() const override;
  /// The characters in the order of their ids, as UTF-8. CharTokenizer(vocabulary()) is the same
  /// one.
  std::string vocabulary() const;

 private:
  std::int32_t id_of(char32_t character) const;  // -1: it has none

  std::vector<char32_t> characters_;       // sorted
  std::array<std::int32_t, 128> ascii_{};  // id_of the first 128, which most texts are made of
};

/// The tokenizer whose save() is `saved`; an Error of kind `value` if there is none.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved);

}  // namespace ein
