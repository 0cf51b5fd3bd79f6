// Byte-level BPE: tokens that were learned from text, as GPT-2, Llama 3 and Qwen have them.
#pragma once

#include <ein/compiler.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/tokenizer.hpp>

namespace ein {

/// The published rules that cut a text into pre-tokens, across which nothing is merged.
enum class SplitRule : std::uint8_t {
  gpt2,     ///< words, numbers and other signs, each with a space before it
  llama3,   ///< also cl100k: numbers of up to 3 digits, ends of lines with what is before them
  qwen2,    ///< also Qwen 2.5 and 3: llama3's, with digits one by one
  qwen35,   ///< qwen2's, with marks (General_Category M) as letters
  smollm2,  ///< gpt2's between digits, which are one by one
};

/// The name of the enumerator: "gpt2".
std::string_view name(SplitRule rule);
/// The rule with this name, or nothing.
std::optional<SplitRule> split_rule_named(std::string_view name);

/// A token that is searched for in the text itself, before the text is cut into pre-tokens. The
/// leftmost match counts; of several that begin at the same place, the longest.
struct AddedToken {
  std::string content;  // UTF-8, 1 to 1024 bytes
  std::int32_t id = 0;
  bool is_special = true;      // decode can leave it out
  bool is_normalized = false;  // searched for after the text was normalised
  bool operator==(const AddedToken&) const = default;
};

struct BpeEncodeOptions {
  /// Adds the tokens of the tokenizer's template, such as Llama 3's `<|begin_of_text|>`.
  bool add_template = false;
};

struct BpeDecodeOptions {
  bool skip_special_tokens = false;
};

namespace detail {
struct BpeTables;
struct BpeEncoding;
}  // namespace detail

/// Byte-level BPE (Sennrich et al. 2016, arXiv:1508.07909; on bytes, Radford et al. 2019). A
/// pre-token starts as a list of its bytes. The merge that was made first is applied to the
/// leftmost pair that it fits, again and again, until no merge fits. Copies share the tables.
/// Several threads may call const functions at the same time.
class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(std::shared_ptr<const detail::BpeTables> bpe) : bpe_(std::move(bpe)) {}

  /// One more than the largest id.
  std::int64_t vocabulary_size() const override;
  /// The text may be any bytes; malformed UTF-8 is encoded byte by byte. An Error of kind `value`
  /// for a byte without a token (not every vocabulary has all 256): it names the byte, the
  /// pre-token and the place in it.
  std::vector<std::int32_t> encode(std::string_view text) const override {
    return encode(text, {});
  }
  std::vector<std::int32_t> encode(std::string_view text, BpeEncodeOptions options) const;
  /// UTF-8. Each maximal malformed part of the bytes becomes one U+FFFD, as with Python's
  /// errors="replace". An Error of kind `value` for an id without a token: it names the id and its
  /// place.
  std::string decode(std::span<const std::int32_t> ids) const override { return decode(ids, {}); }
  std::string decode(std::span<const std::int32_t> ids, BpeDecodeOptions options) const;
  /// The bytes of the tokens, concatenated; errors as decode has. decode_bytes(encode(text)) ==
  /// text, unless the tokenizer normalises or puts a space before the text.
  std::string decode_bytes(std::span<const std::int32_t> ids, BpeDecodeOptions options = {}) const;
  /// The text of a tokenizer.json.
  std::string save() const override;

  SplitRule split_rule() const;
  const std::vector<AddedToken>& added_tokens() const;
  /// The template's tokens: before the tokens of a text, and after them.
  const std::vector<std::int32_t>& tokens_before() const;
  const std::vector<std::int32_t>& tokens_after() const;
  /// The id of the added token with this content, or nothing.
  std::optional<std::int32_t> added_token(std::string_view content) const;
  /// The merges in the order in which they were made, each as the bytes of both tokens.
  std::vector<std::pair<std::string, std::string>> merges() const;

  const std::shared_ptr<const detail::BpeTables>& tables() const { return bpe_; }

 private:
  std::shared_ptr<const detail::BpeTables> bpe_;
};

/// Encodes a text that comes in pieces; the ids are those of the whole text. Memory: 0.6 MB and
/// what is not yet certain of the text, which is at most its last pre-token and the length of an
/// added token. After an Error, make a new one.
class BpeStream {
 public:
  explicit BpeStream(const BpeTokenizer& tokenizer);
  ~BpeStream();
  BpeStream(BpeStream&&) noexcept;
  BpeStream& operator=(BpeStream&&) noexcept;

  /// Appends the ids that no later piece can change. Errors as encode has.
  void add(std::string_view piece, std::vector<std::int32_t>& ids);
  /// Appends the remaining ids. The next add() begins a new text.
  void finish(std::vector<std::int32_t>& ids);

 private:
  std::unique_ptr<detail::BpeEncoding> encoding_;
};

/// Encodes a file with a BpeStream, 64 KiB at a time, and calls `take` with the ids of each piece.
/// Errors as encode has; an Error of kind `file` if the file cannot be read.
void encode_file(const std::string& path, const BpeTokenizer& tokenizer,
                 const std::function<void(std::span<const std::int32_t>)>& take);

/// Reads a tokenizer.json of byte-level BPE; its merges are strings "a b" or pairs. An Error of
/// kind `file` for damage, and for a model, normaliser, pattern or other part that is not
/// supported: it names the part.
BpeTokenizer load_bpe(const std::string& path);
/// The same for the content of such a file; errors are of kind `value`.
BpeTokenizer bpe_of_json(std::string_view json);
/// Writes a tokenizer.json, whole or not at all. An Error of kind `file` when writing fails.
void save_bpe(const std::string& path, const BpeTokenizer& tokenizer);

struct BpeFilesOptions {
  SplitRule split = SplitRule::gpt2;
  /// Special tokens that are not in the vocabulary get the ids after its largest one.
  std::vector<std::string> special_tokens = {};
};
/// Reads a vocab.json and a merges.txt, as GPT-2 was published. Errors as load_bpe has.
BpeTokenizer load_bpe_files(const std::string& path, const std::string& merges_path,
                            BpeFilesOptions options = {});
/// Writes both, each whole or not at all. Added tokens become part of the vocabulary. An Error of
/// kind `file` when writing fails.
void save_bpe_files(const std::string& path, const std::string& merges_path,
                    const BpeTokenizer& tokenizer);

struct BpeTrainOptions {
  /// Number of all tokens: the special ones, 256 bytes, one for each merge. Training stops earlier
  /// if no pair is left.
  std::int64_t vocabulary_size = 32'000;
  /// They cut the text first and are never counted or merged. Their ids start at 0.
  std::vector<std::string> special_tokens = {};
  SplitRule split = SplitRule::gpt2;
};
/// Each round merges the pair of neighbours that occurs most often within pre-tokens. On a tie the
/// greatest pair is merged: the bytes of the first tokens are compared, then those of the second.
/// The result is the same for any number of threads. An Error of kind `value` for a vocabulary that
/// is too small or exceeds 2^24, and for a special token that is empty, longer than 1024 bytes or
/// given twice.
BpeTokenizer train_bpe(std::string_view text, const BpeTrainOptions& options);
/// Trains on pre-tokens with their counts; the counts of equal pre-tokens are added. Also an Error
/// for a negative count, and if the sum of counts times bytes exceeds 2^62.
BpeTokenizer train_bpe(std::span<const std::pair<std::string, std::int64_t>> pre_tokens,
                       const BpeTrainOptions& options);
/// Trains on files; each is a text of its own, and is read in blocks of 32 MiB. Memory grows with
/// the number of distinct pre-tokens. Also an Error of kind `file` if a file cannot be read.
BpeTokenizer train_bpe_on_files(std::span<const std::string> paths, const BpeTrainOptions& options);

}  // namespace ein
