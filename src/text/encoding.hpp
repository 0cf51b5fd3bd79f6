// Texts to ids.
#pragma once

#include <memory>
#include <vector>

#include "text/bpe.hpp"

namespace ein::text {

/// The merges of pre-tokens.
class Merging {
 public:
  explicit Merging(const Bpe& bpe) : bpe_(bpe) {}

  /// Appends the ids of a pre-token. An Error of kind `value` for a byte that has no token.
  void append(std::string_view pre_token, std::vector<std::int32_t>& ids);

 private:
  struct Piece {
    std::int32_t id;
    std::uint32_t next, before;  // pieces of the same pre-token
  };
  /// The order in which merges are applied: rank, then place.
  using Candidate = std::uint64_t;
  void consider(std::uint32_t left);

  const Bpe& bpe_;
  std::vector<Piece> pieces_;
  std::vector<Candidate> candidates_;  // a heap
};

/// A text on its way to ids. Pre-tokens that were seen are kept in a table of fixed size.
class Encoding {
 public:
  explicit Encoding(std::shared_ptr<const Bpe> bpe);

  /// Appends ids of the text, all if it is the last piece.
  void push(std::string_view text, bool is_last, std::vector<std::int32_t>& ids) {
    ids_ = &ids;
    pre_tokens_.push(text, is_last);
  }

  void added_token(std::int32_t id) { ids_->push_back(id); }
  void pre_token(std::string_view bytes);

 private:
  /// One that was encoded, in a line of the processor's cache.
  struct Seen {
    static constexpr std::size_t longest = 26, most_ids = 9;
    std::uint8_t length = 0, count = 0;
    char bytes[longest];
    std::int32_t ids[most_ids];
  };
  static constexpr std::size_t rows = 8192;
  static constexpr std::size_t few = 256;  // pre-tokens without such a table

  std::shared_ptr<const Bpe> bpe_;
  Merging merging_;
  std::vector<std::int32_t>* ids_ = nullptr;
  PreTokens<Encoding> pre_tokens_;
  std::vector<Seen> seen_;
  std::size_t count_ = 0;
};

}  // namespace ein::text

namespace ein::detail {
/// As public headers name it.
struct BpeEncoding final : text::Encoding {
  using Encoding::Encoding;
};
}  // namespace ein::detail
