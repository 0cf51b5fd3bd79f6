#include <algorithm>

#include <ein/error.hpp>
#include <ein/text.hpp>

#include "io/file.hpp"
#include "text/encoding.hpp"
#include "text/json.hpp"

namespace ein {

std::int64_t BpeTokenizer::vocabulary_size() const {
  return static_cast<std::int64_t>(bpe_->size());
}

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text,
                                               BpeEncodeOptions options) const {
  std::vector<std::int32_t> ids;
  if (options.add_template) ids = bpe_->before();
  text::Encoding(bpe_).push(text, true, ids);
  if (options.add_template) ids.insert(ids.end(), bpe_->after().begin(), bpe_->after().end());
  return ids;
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> ids,
                                 BpeDecodeOptions options) const {
  return text::replace_malformed(decode_bytes(ids, options));
}

std::string BpeTokenizer::decode_bytes(std::span<const std::int32_t> ids,
                                       BpeDecodeOptions options) const {
  std::string bytes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    if (ids[i] < 0 || id >= bpe_->size() || bpe_->token(id).length == 0) {
      throw Error(ErrorKind::value, "BpeTokenizer: no token has the id " + std::to_string(ids[i]) +
                                        " at place " + std::to_string(i) + "; ids are below " +
                                        std::to_string(bpe_->size()));
    }
    const text::Bpe::Token& token = bpe_->token(id);
    if (!(options.skip_special_tokens && token.is_special)) bytes += bpe_->bytes(token);
  }
  return bytes;
}

std::string BpeTokenizer::save() const { return text::to_json(*bpe_); }

SplitRule BpeTokenizer::split_rule() const { return bpe_->cuts().split; }

const std::vector<AddedToken>& BpeTokenizer::added_tokens() const { return bpe_->added(); }

const std::vector<std::int32_t>& BpeTokenizer::tokens_before() const { return bpe_->before(); }
const std::vector<std::int32_t>& BpeTokenizer::tokens_after() const { return bpe_->after(); }

std::optional<std::int32_t> BpeTokenizer::added_token(std::string_view content) const {
  const auto found = std::ranges::find(bpe_->added(), content, &AddedToken::content);
  if (found == bpe_->added().end()) return std::nullopt;
  return found->id;
}

std::vector<std::pair<std::string, std::string>> BpeTokenizer::merges() const {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const text::Bpe::Merge& merge : bpe_->merges())
    merges.emplace_back(bpe_->bytes(merge.left), bpe_->bytes(merge.right));
  return merges;
}

BpeStream::BpeStream(const BpeTokenizer& tokenizer)
    : encoding_(std::make_unique<detail::BpeEncoding>(tokenizer.tables())) {}
BpeStream::~BpeStream() = default;
BpeStream::BpeStream(BpeStream&&) noexcept = default;
BpeStream& BpeStream::operator=(BpeStream&&) noexcept = default;

void BpeStream::add(std::string_view piece, std::vector<std::int32_t>& ids) {
  encoding_->push(piece, false, ids);
}

void BpeStream::finish(std::vector<std::int32_t>& ids) { encoding_->push({}, true, ids); }

void encode_file(const std::string& path, const BpeTokenizer& tokenizer,
                 const std::function<void(std::span<const std::int32_t>)>& take) {
  constexpr std::uint64_t piece = 1 << 16;
  const io::InputFile file("encode_file", path);
  BpeStream stream(tokenizer);
  std::vector<std::int32_t> ids;
  for (std::uint64_t at = 0; at < file.size(); at += piece) {
    stream.add(file.read(at, std::min(piece, file.size() - at)), ids);
    take(ids);
    ids.clear();
  }
  stream.finish(ids);
  take(ids);
}

}  // namespace ein
