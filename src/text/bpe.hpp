// The tables of byte-level BPE.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ein/text.hpp>

#include "text/pre_tokens.hpp"

namespace ein::text {

/// What a tokenizer is made of, as files have it; nothing is checked.
struct BpeParts {
  using Entry = std::pair<std::string, std::int64_t>;  // spelling, id
  std::vector<Entry> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // two spellings, the first merge first
  std::vector<AddedToken> added;
  std::vector<std::int32_t> before, after;  // the template: ids around those of a text
  SplitRule split = SplitRule::gpt2;
  bool normalizes = false, adds_space = false, ignores_merges = false;
  bool may_miss_bytes = true;
};

constexpr std::int64_t largest_vocabulary = 1 << 24;

/// Throws an Error of the words that it is given.
class Fail {
 public:
  template <class F>
  requires(!std::is_same_v<F, Fail>) Fail(F fail) : fail_(std::move(fail)) {}
  [[noreturn]] void operator()(const std::string& what) const {
    fail_(what);
    throw std::logic_error("what was to throw has returned");
  }

 private:
  std::function<void(const std::string&)> fail_;
};

class Bpe {
 public:
  /// What is wrong is given to `fail`.
  Bpe(BpeParts parts, const Fail& fail);
  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;

  struct Token {
    std::uint32_t begin = 0, length = 0;  // of its bytes; length 0: no token has this id
    bool is_spelled = false;              // in the vocabulary, as the spelling of its bytes
    bool is_listed = false;               // in the vocabulary in any way
    bool is_special = false;
  };
  struct Merge {
    std::int32_t left, right, joined;
  };

  std::size_t size() const { return tokens_.size(); }
  const Token& token(std::size_t id) const { return tokens_[id]; }
  std::string_view bytes(std::int32_t id) const {
    return bytes(tokens_[static_cast<std::size_t>(id)]);
  }
  std::string_view bytes(const Token& token) const {
    return std::string_view(bytes_).substr(token.begin, token.length);
  }
  /// -1: it has none.
  std::int32_t of_byte(unsigned char byte) const { return of_byte_[byte]; }
  /// The rank of the merge of two tokens: 0 is that of the first; `no_merge` if there is none.
  std::uint32_t rank(std::int32_t left, std::int32_t right) const {
    const std::uint32_t* row = by_pair_.data() + of_left_[static_cast<std::size_t>(left)];
    std::size_t count =
        of_left_[static_cast<std::size_t>(left) + 1] - of_left_[static_cast<std::size_t>(left)];
    while (count > 0) {
      const std::size_t half = count / 2;
      const std::int32_t there = rights_[static_cast<std::size_t>(row - by_pair_.data()) + half];
      if (there == right) return row[half];
      if (there < right) {
        row += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return no_merge;
  }
  static constexpr std::uint32_t no_merge = ~std::uint32_t{0};
  const std::vector<Merge>& merges() const { return merges_; }
  const std::vector<AddedToken>& added() const { return added_; }
  const std::vector<std::int32_t>& before() const { return before_; }
  const std::vector<std::int32_t>& after() const { return after_; }
  const Cuts& cuts() const { return cuts_; }
  bool ignores_merges() const { return ignores_merges_; }
  /// The token of a whole pre-token where merges are ignored; -1: there is none.
  std::int32_t whole(std::string_view pre_token) const {
    const auto found = wholes_.find(pre_token);
    return found == wholes_.end() ? -1 : found->second;
  }
  /// As the vocabulary has it.
  std::string spelling(const Token& token) const;

 private:
  using Ids = std::unordered_map<std::string_view, std::int32_t>;
  void list(const BpeParts& parts, const Fail& fail, Ids& ids);
  void add(const BpeParts& parts, const Fail& fail, const Ids& ids);
  void join(const BpeParts& parts, const Fail& fail, const Ids& ids);
  void set_bytes(std::size_t id, std::string_view bytes, const Fail& fail);

  std::string bytes_;  // of all tokens
  std::vector<Token> tokens_;
  std::array<std::int32_t, 256> of_byte_{};
  std::vector<Merge> merges_;  // by rank
  // Ranks in the order of left and right token; those of a left one from of_left_[left] to
  // of_left_[left + 1].
  std::vector<std::uint32_t> by_pair_, of_left_;
  std::vector<std::int32_t> rights_;  // of by_pair_
  std::vector<AddedToken> added_;
  std::vector<std::int32_t> before_, after_;
  Cuts cuts_;
  bool ignores_merges_;
  Ids wholes_;  // views of bytes_
};

}  // namespace ein::text

namespace ein::detail {
/// As public headers name it.
struct BpeTables final : text::Bpe {
  using Bpe::Bpe;
};
}  // namespace ein::detail
