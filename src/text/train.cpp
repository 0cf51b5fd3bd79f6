// Training of byte-level BPE: merges that change only the counts that they touch.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include <ein/text.hpp>

#include "io/file.hpp"
#include "text/bpe.hpp"
#include "text/count.hpp"
#include "text/spelling.hpp"

namespace ein {
namespace {

using text::Counts;

[[noreturn]] void raise(const std::string& what) {
  throw Error(ErrorKind::value, "train_bpe: " + what);
}

/// Pairs of tokens by number.
class PairNumbers {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// That of a pair; `next` where it had none, which it has then.
  std::uint32_t number(std::int32_t left, std::int32_t right, std::uint32_t next) {
    if (2 * used_ >= rows_.size()) grow();
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    Row& row = place(key);
    if (row.number == none) {
      row = {key, next};
      ++used_;
    }
    return row.number;
  }

 private:
  struct Row {
    std::uint64_t key = 0;
    std::uint32_t number = none;
  };
  Row& place(std::uint64_t key) {
    const std::size_t mask = rows_.size() - 1;
    std::size_t at = (key * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (rows_[at].number != none && rows_[at].key != key) at = (at + 1) & mask;
    return rows_[at];
  }
  void grow() {
    std::vector<Row> old(std::max<std::size_t>(1024, 2 * rows_.size()));
    old.swap(rows_);
    for (const Row& row : old) {
      if (row.number != none) place(row.key) = row;
    }
  }

  std::vector<Row> rows_;
  std::size_t used_ = 0;
};

class Trainer {
 public:
  Trainer(const BpeTrainOptions& options, const Counts& counts) : options_(options) {
    for (const std::string& special : options.special_tokens) tokens_.push_back(special);
    const auto first_byte = static_cast<std::int32_t>(tokens_.size());
    for (int byte = 0; byte < 256; ++byte) {
      tokens_.emplace_back(1, static_cast<char>(byte));
      ids_.emplace(tokens_.back(), static_cast<std::int32_t>(tokens_.size()) - 1);
    }
    counts.for_each([&](std::string_view bytes, std::int64_t count) {
      if (bytes.size() < 2) return;
      if (bytes.size() > ~std::uint32_t{0})
        raise("a pre-token has " + std::to_string(bytes.size()) + " bytes");
      words_.push_back({pieces_.size(), static_cast<std::uint32_t>(bytes.size()), count});
      for (const char byte : bytes)
        pieces_.push_back(first_byte + static_cast<unsigned char>(byte));
    });
    if (words_.size() > PairNumbers::none) raise("there are more than 2^32 distinct pre-tokens");
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      const std::int32_t* piece = pieces_.data() + words_[word].begin;
      for (std::uint32_t i = 0; i + 1 < words_[word].length; ++i)
        add(piece[i], piece[i + 1], word, words_[word].count);
    }
    push_new();
  }

  /// Merges until the vocabulary has its size or no pair is left.
  text::BpeParts finish() {
    text::BpeParts parts;
    while (static_cast<std::int64_t>(tokens_.size()) < options_.vocabulary_size &&
           !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      Pair& pair = pairs_[best.pair];
      if (pair.count != best.count) {
        if (pair.count > 0) queue_.push({pair.count, best.pair});
        continue;
      }
      parts.merges.emplace_back(text::spelled(bytes(pair.left)), text::spelled(bytes(pair.right)));
      merge(best.pair);
    }
    const std::size_t specials = options_.special_tokens.size();
    for (std::size_t id = 0; id < tokens_.size(); ++id)
      parts.vocabulary.emplace_back(id < specials ? tokens_[id] : text::spelled(tokens_[id]), id);
    for (std::size_t id = 0; id < specials; ++id)
      parts.added.push_back({tokens_[id], static_cast<std::int32_t>(id), true, false});
    parts.split = options_.split;
    return parts;
  }

 private:
  struct Word {
    std::size_t begin;     // of its pieces
    std::uint32_t length;  // how many there are
    std::int64_t count;
  };
  struct Pair {
    std::int32_t left, right;
    std::int64_t count = 0;
    std::vector<std::uint32_t> words = {};  // where it is, or was
    bool is_new = false;                    // among new_pairs_
  };
  /// A pair with the count that it had; that may be lower by now.
  struct Candidate {
    std::int64_t count;
    std::uint32_t pair;
  };
  struct IsWorse {
    const Trainer& trainer;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      const Pair &p = trainer.pairs_[a.pair], &q = trainer.pairs_[b.pair];
      if (p.left != q.left) {
        // Tokens of the same bytes are the same.
        return trainer.bytes(p.left) < trainer.bytes(q.left);
      }
      return p.right != q.right && trainer.bytes(p.right) < trainer.bytes(q.right);
    }
  };

  const std::string& bytes(std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }

  Pair& pair_of(std::int32_t left, std::int32_t right) {
    const auto next = static_cast<std::uint32_t>(pairs_.size());
    const std::uint32_t number = numbers_.number(left, right, next);
    if (number == next) {
      if (next == PairNumbers::none) raise("there are more than 2^32 pairs of tokens");
      pairs_.push_back({left, right});
    }
    return pairs_[number];
  }
  void add(std::int32_t left, std::int32_t right, std::uint32_t word, std::int64_t count) {
    Pair& pair = pair_of(left, right);
    pair.count += count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    if (!std::exchange(pair.is_new, true))
      new_pairs_.push_back(static_cast<std::uint32_t>(&pair - pairs_.data()));
  }
  void push_new() {
    for (const std::uint32_t number : new_pairs_) {
      Pair& pair = pairs_[number];
      pair.is_new = false;
      if (pair.count > 0) queue_.push({pair.count, number});
    }
    new_pairs_.clear();
  }

  void merge(std::uint32_t number) {
    const std::int32_t left = pairs_[number].left, right = pairs_[number].right;
    const auto [found, is_new] =
        ids_.emplace(bytes(left) + bytes(right), static_cast<std::int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(found->first);
    const std::vector<std::uint32_t> words = std::exchange(pairs_[number].words, {});
    for (const std::uint32_t word : words) merge_in(word, left, right, found->second);
    pairs_[number].count = 0;
    push_new();
  }

  /// Joins the pair wherever it is in a word; a word that it is no longer in stays as it is.
  void merge_in(std::uint32_t number, std::int32_t left, std::int32_t right, std::int32_t joined) {
    Word& word = words_[number];
    std::int32_t* const piece = pieces_.data() + word.begin;
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < word.length; ++i) {
      if (i + 1 == word.length || piece[i] != left || piece[i + 1] != right) {
        piece[kept++] = piece[i];
        continue;
      }
      if (kept > 0) {
        pair_of(piece[kept - 1], left).count -= word.count;
        add(piece[kept - 1], joined, number, word.count);
      }
      if (i + 2 < word.length) {
        pair_of(right, piece[i + 2]).count -= word.count;
        add(joined, piece[i + 2], number, word.count);
      }
      piece[kept++] = joined;
      ++i;
    }
    word.length = kept;
  }

  const BpeTrainOptions& options_;
  std::vector<std::string> tokens_;  // bytes by id
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Word> words_;
  std::vector<std::int32_t> pieces_;
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> new_pairs_;  // whose counts have grown
  PairNumbers numbers_;
  std::priority_queue<Candidate, std::vector<Candidate>, IsWorse> queue_{IsWorse{*this}};
};

text::Cuts cuts_of(const BpeTrainOptions& options) {
  text::Cuts cuts;
  cuts.split = options.split;
  const auto entries = static_cast<std::int64_t>(options.special_tokens.size()) + 256;
  if (options.vocabulary_size < entries || options.vocabulary_size > text::largest_vocabulary)
    raise("a vocabulary of " + std::to_string(options.vocabulary_size) + " is not between " +
          std::to_string(entries) + ", the bytes and special tokens, and " +
          std::to_string(text::largest_vocabulary));
  for (std::size_t i = 0; i < options.special_tokens.size(); ++i) {
    const std::string& special = options.special_tokens[i];
    if (special.empty() || special.size() > text::longest_added_token)
      raise("special token " + std::to_string(i + 1) + " has " + std::to_string(special.size()) +
            " bytes, not 1 to " + std::to_string(text::longest_added_token));
    if (std::ranges::count(options.special_tokens, special) > 1)
      raise("the special token " + io::in_quotes(special) + " is given twice");
    cuts.of_text.add(special, static_cast<std::int32_t>(i));
  }
  return cuts;
}

BpeTokenizer trained(const BpeTrainOptions& options, const Counts& counts) {
  return BpeTokenizer(std::make_shared<const detail::BpeTables>(
      Trainer(options, counts).finish(), [](const std::string& what) { raise(what); }));
}

}  // namespace

BpeTokenizer train_bpe(std::string_view text, const BpeTrainOptions& options) {
  const text::Cuts cuts = cuts_of(options);
  text::PreTokenCounter counter(cuts);
  counter.count(text, true);
  return trained(options, counter.finish());
}

BpeTokenizer train_bpe(std::span<const std::pair<std::string, std::int64_t>> pre_tokens,
                       const BpeTrainOptions& options) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  const text::Cuts cuts = cuts_of(options);
  Counts counts;
  std::int64_t left = most;  // of bytes, so that no sum over pairs leaves its type
  for (const auto& [bytes, count] : pre_tokens) {
    if (count < 0)
      raise("the pre-token " + io::in_quotes(bytes) + " has the count " + std::to_string(count));
    if (count == 0 || bytes.empty()) continue;
    if (count > left / static_cast<std::int64_t>(bytes.size()))
      raise("the counts of all bytes exceed 2^62");
    left -= count * static_cast<std::int64_t>(bytes.size());
    if (const auto found = cuts.of_text.find(bytes, 0, true); found.id >= 0)
      raise("the pre-token " + io::in_quotes(bytes) + " holds the special token " +
            io::in_quotes(options.special_tokens[static_cast<std::size_t>(found.id)]));
    counts.add(bytes, count);
  }
  return trained(options, counts);
}

BpeTokenizer train_bpe_on_files(std::span<const std::string> paths,
                                const BpeTrainOptions& options) {
  constexpr std::uint64_t block = 1 << 25;
  const text::Cuts cuts = cuts_of(options);
  text::PreTokenCounter counter(cuts);
  for (const std::string& path : paths) {
    const io::InputFile file("train_bpe_on_files", path);
    std::string text;
    std::uint64_t at = 0;
    do {
      // As much as is left of the text before, so that a text without a place to cut it is not read
      // over and over.
      const std::uint64_t bytes =
          std::min(std::max<std::uint64_t>(block, text.size()), file.size() - at);
      text += file.read(at, bytes);
      at += bytes;
      text.erase(0, counter.count(text, at == file.size()));
    } while (at < file.size());
  }
  return trained(options, counter.finish());
}

}  // namespace ein
