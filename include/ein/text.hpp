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

/// "gpt2" and so on, as the enumerators.
std::string_view name(SplitRule rule);
/// That of this name; none for another.
std::optional<SplitRule> split_rule_named(std::string_view name);

/// A token that is found in a text as it is, before the text is cut into pre-tokens: the leftmost
/// one, the longest where several begin at one place.
struct AddedToken {
  std::string content;  // UTF-8, 1 to 1024 bytes
  std::int32_t id = 0;
  bool is_special = true;      // decode may leave it out
  bool is_normalized = false;  // looked for after the text was normalised
  bool operator==(const AddedToken&) const = default;
};

struct BpeEncodeOptions {
  /// Puts the tokens of the tokenizer's template around the text's, as Llama 3's
  /// `<|begin_of_text|>`.
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
/// pre-token begins as its bytes; of the merges that two neighbours allow, the one that was made
/// first is applied, leftmost first, until there is none. Copies share the tables. Calls of const
/// functions may run at the same time.
class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(std::shared_ptr<const detail::BpeTables> bpe) : bpe_(std::move(bpe)) {}

  /// One more than the largest id.
  std::int64_t vocabulary_size() const override;
  /// Any bytes: what is no UTF-8 is encoded byte by byte. An Error of kind `value` for a byte that
  /// has no token, as in vocabularies without all 256, naming it and its place.
  std::vector<std::int32_t> encode(std::string_view text) const override {
    return encode(text, {});
  }
  std::vector<std::int32_t> encode(std::string_view text, BpeEncodeOptions options) const;
  /// UTF-8: each maximal part of the bytes that is none becomes U+FFFD, as in Python's
  /// errors="replace". An Error of kind `value` for an id that no token has, naming it and its
  /// place.
  std::string decode(std::span<const std::int32_t> ids) const override { return decode(ids, {}); }
  std::string decode(std::span<const std::int32_t> ids, BpeDecodeOptions options) const;
  /// The bytes of the tokens; errors as decode has. Those of encode(text) are the text itself where
  /// nothing normalises it and no space is put before it.
  std::string decode_bytes(std::span<const std::int32_t> ids, BpeDecodeOptions options = {}) const;
  /// The text of a tokenizer.json.
  std::string save() const override;

  SplitRule split_rule() const;
  const std::vector<AddedToken>& added_tokens() const;
  /// The template's tokens before and behind those of a text.
  const std::vector<std::int32_t>& tokens_before() const;
  const std::vector<std::int32_t>& tokens_after() const;
  /// The id of the added token with this content; none if there is none.
  std::optional<std::int32_t> added_token(std::string_view content) const;
  /// The merges in the order in which they were made, each as the bytes of both tokens.
  std::vector<std::pair<std::string, std::string>> merges() const;

  const std::shared_ptr<const detail::BpeTables>& tables() const { return bpe_; }

 private:
  std::shared_ptr<const detail::BpeTables> bpe_;
};

/// The encoding of a text that comes in pieces: the ids are those of the whole. Memory: 0.6 MB and
/// what is left of a piece, which is at most the last pre-token and as many bytes as an added token
/// has.
class BpeStream {
 public:
  explicit BpeStream(const BpeTokenizer& tokenizer);
  ~BpeStream();
  BpeStream(BpeStream&&) noexcept;
  BpeStream& operator=(BpeStream&&) noexcept;

  /// Appends the ids that nothing behind the piece can change. Errors as encode has, with the place
  /// in the pre-token.
  void add(std::string_view piece, std::vector<std::int32_t>& ids);
  /// Appends the rest; what is added then begins another text.
  void finish(std::vector<std::int32_t>& ids);

 private:
  std::unique_ptr<detail::BpeEncoding> encoding_;
};

/// Calls `take` with the ids of a file's text, some thousands at a time. Memory as of BpeStream.
/// Errors as encode has, of kind `file` where the file cannot be read.
void encode_file(const std::string& path, const BpeTokenizer& tokenizer,
                 const std::function<void(std::span<const std::int32_t>)>& take);

/// Reads a tokenizer.json of byte-level BPE, whose merges are strings "a b" or pairs. An Error of
/// kind `file` that names what and where: of what is damaged, and of a model, normaliser, pattern
/// or other part that is not supported.
BpeTokenizer load_bpe(const std::string& path);
/// The same of its text, with errors of kind `value`.
BpeTokenizer bpe_of_json(std::string_view json);
/// Writes a tokenizer.json, whole or not at all. An Error of kind `file` when writing fails.
void save_bpe(const std::string& path, const BpeTokenizer& tokenizer);

struct BpeFilesOptions {
  SplitRule split = SplitRule::gpt2;
  /// Those that the vocabulary does not have get ids behind it.
  std::vector<std::string> special_tokens = {};
};
/// Reads a vocab.json and a merges.txt, as GPT-2 was published. Errors as load_bpe has.
BpeTokenizer load_bpe_files(const std::string& path, const std::string& merges_path,
                            BpeFilesOptions options = {});
/// Writes both, each whole or not at all; added tokens are in the vocabulary. An Error of kind
/// `file` when writing fails.
void save_bpe_files(const std::string& path, const std::string& merges_path,
                    const BpeTokenizer& tokenizer);

struct BpeTrainOptions {
  /// Tokens in all: special ones, 256 bytes, one for each merge. Training stops before where no
  /// pair is left.
  std::int64_t vocabulary_size = 32'000;
  /// They cut the text first, and are never counted or merged. Ids from 0 on.
  std::vector<std::string> special_tokens = {};
  SplitRule split = SplitRule::gpt2;
};
/// Each round merges the pair of neighbours that occurs most often within pre-tokens; of several
/// the greatest, comparing the bytes of the first token, then those of the second. The same
/// tokenizer with any number of threads. An Error of kind `value` for a vocabulary that is too
/// small or exceeds 2^24, and for special tokens that are empty, too long or given twice.
BpeTokenizer train_bpe(std::string_view text, const BpeTrainOptions& options);
/// The same on pre-tokens and how often each occurs; one that is there twice counts twice. An Error
/// for a negative count, too, and where the counts exceed 2^62 in all.
BpeTokenizer train_bpe(std::span<const std::pair<std::string, std::int64_t>> pre_tokens,
                       const BpeTrainOptions& options);
/// The same on the texts of files, each by itself, read some megabytes at a time: memory for each
/// distinct pre-token. An Error of kind `file` where one cannot be read.
BpeTokenizer train_bpe_on_files(std::span<const std::string> paths, const BpeTrainOptions& options);

}  // namespace ein
