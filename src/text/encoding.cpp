#include "text/encoding.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include <ein/error.hpp>

#include "io/file.hpp"

namespace ein::text {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

[[noreturn]] void raise_no_token(std::string_view pre_token, std::size_t at) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(pre_token[at]);
  throw Error(ErrorKind::value, "BpeTokenizer: the vocabulary has no token for the byte 0x" +
                                    std::string{digits[byte >> 4], digits[byte & 15]} +
                                    ", at place " + std::to_string(at) + " of the pre-token " +
                                    io::in_quotes(pre_token));
}

}  // namespace

/// Puts the merge of a piece and its next one, if there is one, among the candidates.
void Merging::consider(std::uint32_t left) {
  const std::uint32_t right = pieces_[left].next;
  if (right == none) return;
  const std::uint32_t rank = bpe_.rank(pieces_[left].id, pieces_[right].id);
  if (rank == Bpe::no_merge) return;
  candidates_.push_back(std::uint64_t{rank} << 32 | left);
  std::ranges::push_heap(candidates_, std::greater());
}

void Merging::append(std::string_view pre_token, std::vector<std::int32_t>& ids) {
  if (bpe_.ignores_merges()) {
    if (const std::int32_t id = bpe_.whole(pre_token); id >= 0) return ids.push_back(id);
  }
  if (pre_token.size() >= none)
    throw Error(ErrorKind::value,
                "BpeTokenizer: a pre-token has " + std::to_string(pre_token.size()) + " bytes");
  const auto size = static_cast<std::uint32_t>(pre_token.size());
  pieces_.resize(size);
  candidates_.clear();
  for (std::uint32_t i = 0; i < size; ++i) {
    pieces_[i] = {bpe_.of_byte(static_cast<unsigned char>(pre_token[i])),
                  i + 1 < size ? i + 1 : none, i > 0 ? i - 1 : none};
    if (pieces_[i].id < 0) raise_no_token(pre_token, i);
  }
  for (std::uint32_t i = 0; i < size; ++i) consider(i);
  while (!candidates_.empty()) {
    const Candidate least = candidates_.front();
    std::ranges::pop_heap(candidates_, std::greater());
    candidates_.pop_back();
    const auto left = static_cast<std::uint32_t>(least);
    const Bpe::Merge& merge = bpe_.merges()[least >> 32];
    const std::uint32_t right = pieces_[left].next;
    // One of the two may be part of another token since; a piece that is gone has no id.
    if (pieces_[left].id != merge.left || right == none || pieces_[right].id != merge.right)
      continue;
    pieces_[left].id = merge.joined;
    pieces_[right].id = -1;
    pieces_[left].next = pieces_[right].next;
    if (pieces_[right].next != none) pieces_[pieces_[right].next].before = left;
    consider(left);
    if (pieces_[left].before != none) consider(pieces_[left].before);
  }
  for (std::uint32_t i = 0; i != none && i < size; i = pieces_[i].next)
    ids.push_back(pieces_[i].id);
}

Encoding::Encoding(std::shared_ptr<const Bpe> bpe)
    : bpe_(std::move(bpe)), merging_(*bpe_), pre_tokens_(bpe_->cuts(), *this) {}

void Encoding::pre_token(std::string_view bytes) {
  if (bytes.size() > Seen::longest || (seen_.empty() && ++count_ < few))
    return merging_.append(bytes, *ids_);
  if (seen_.empty()) seen_.resize(rows);
  Seen& row = seen_[std::hash<std::string_view>()(bytes) % rows];
  if (row.length == bytes.size() && std::memcmp(row.bytes, bytes.data(), bytes.size()) == 0) {
    ids_->insert(ids_->end(), row.ids, row.ids + row.count);
    return;
  }
  const std::size_t before = ids_->size();
  merging_.append(bytes, *ids_);
  const std::size_t count = ids_->size() - before;
  if (count > Seen::most_ids) return;
  row.length = static_cast<std::uint8_t>(bytes.size());
  row.count = static_cast<std::uint8_t>(count);
  std::memcpy(row.bytes, bytes.data(), bytes.size());
  std::copy_n(ids_->end() - static_cast<std::ptrdiff_t>(count), count, row.ids);
}

}  // namespace ein::text
