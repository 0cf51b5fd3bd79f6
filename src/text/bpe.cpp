#include "text/bpe.hpp"

#include <algorithm>
#include <numeric>

#include "io/file.hpp"
#include "text/spelling.hpp"

namespace ein::text {
namespace {

using io::in_quotes;

/// Ids take memory up to the largest one, so a file's may not be much larger than it has tokens.
constexpr std::size_t free_ids = 65'536;

std::string pair_in_quotes(const std::pair<std::string, std::string>& merge) {
  return in_quotes(merge.first) + " and " + in_quotes(merge.second);
}

}  // namespace

void Bpe::set_bytes(std::size_t id, std::string_view bytes, const Fail& fail) {
  if (bytes_.size() + bytes.size() > ~std::uint32_t{0})
    fail("its tokens have more than 2^32 bytes");
  tokens_[id].begin = static_cast<std::uint32_t>(bytes_.size());
  tokens_[id].length = static_cast<std::uint32_t>(bytes.size());
  bytes_ += bytes;
}

void Bpe::list(const BpeParts& parts, const Fail& fail, Ids& ids) {
  of_byte_.fill(-1);
  ids.reserve(parts.vocabulary.size());
  const std::size_t most = std::min<std::size_t>(
      largest_vocabulary, 2 * (parts.vocabulary.size() + parts.added.size()) + free_ids);
  const auto check_id = [&](const std::string& content, std::int64_t id) {
    if (id >= 0 && static_cast<std::uint64_t>(id) < most) {
      if (static_cast<std::size_t>(id) >= tokens_.size())
        tokens_.resize(static_cast<std::size_t>(id) + 1);
      return;
    }
    fail("the id " + std::to_string(id) + " of " + in_quotes(content) + " is not between 0 and " +
         std::to_string(most - 1));
  };
  for (const auto& [spelling, id] : parts.vocabulary) {
    if (spelling.empty()) fail("the vocabulary has a token of no bytes, id " + std::to_string(id));
    check_id(spelling, id);
    const auto place = static_cast<std::size_t>(id);
    if (!ids.emplace(spelling, static_cast<std::int32_t>(id)).second)
      fail("the vocabulary has " + in_quotes(spelling) + " twice");
    if (tokens_[place].length > 0)
      fail("the id " + std::to_string(id) + " is that of two tokens, one of which is " +
           in_quotes(spelling));
    const std::optional<std::string> bytes = bytes_of(spelling);
    set_bytes(place, bytes ? *bytes : spelling, fail);
    tokens_[place].is_listed = true;
    tokens_[place].is_spelled = bytes.has_value();
    if (bytes && bytes->size() == 1)
      of_byte_[static_cast<unsigned char>(bytes->front())] = static_cast<std::int32_t>(id);
  }
  for (const AddedToken& token : parts.added) check_id(token.content, token.id);
}

void Bpe::add(const BpeParts& parts, const Fail& fail, const Ids& ids) {
  Ids seen;
  for (const AddedToken& token : parts.added) {
    const std::string shown = "the added token " + in_quotes(token.content);
    if (token.content.empty())
      fail("an added token of id " + std::to_string(token.id) + " has no content");
    if (token.content.size() > longest_added_token)
      fail(shown + " has " + std::to_string(token.content.size()) + " bytes; " +
           std::to_string(longest_added_token) + " are possible");
    if (!seen.emplace(token.content, token.id).second) fail(shown + " is there twice");
    const auto listed = ids.find(token.content);
    if (listed != ids.end() && listed->second != token.id)
      fail(shown + " has the id " + std::to_string(token.id) + ", in the vocabulary it has " +
           std::to_string(listed->second));
    const auto place = static_cast<std::size_t>(token.id);
    if (listed == ids.end() && tokens_[place].length > 0)
      fail(shown + " has the id " + std::to_string(token.id) + ", which is that of " +
           in_quotes(bytes(token.id)));
    if (bytes(token.id) != token.content) {
      set_bytes(place, token.content, fail);
      tokens_[place].is_spelled = false;
    }
    tokens_[place].is_special = token.is_special;
    if (token.is_normalized && cuts_.normalizes) {
      cuts_.of_normalized.add(nfc(token.content, true).text, token.id);
    } else {
      (token.is_normalized ? cuts_.of_normalized : cuts_.of_text).add(token.content, token.id);
    }
  }
  added_ = parts.added;
}

void Bpe::join(const BpeParts& parts, const Fail& fail, const Ids& ids) {
  merges_.reserve(parts.merges.size());
  std::string spelling;
  for (const auto& merge : parts.merges) {
    const auto number = [&] {
      return "merge " + std::to_string(merges_.size() + 1) + ", of " + pair_in_quotes(merge);
    };
    const auto id_of = [&](const std::string& token) {
      const auto found = ids.find(token);
      if (found == ids.end()) fail(number() + ": the vocabulary has no " + in_quotes(token));
      if (!tokens_[static_cast<std::size_t>(found->second)].is_spelled)
        fail(number() + ": " + in_quotes(token) + " has characters that stand for no byte");
      return found->second;
    };
    spelling = merge.first;
    spelling += merge.second;
    const std::int32_t left = id_of(merge.first), right = id_of(merge.second);
    merges_.push_back({left, right, id_of(spelling)});
  }
  by_pair_.resize(merges_.size());
  std::iota(by_pair_.begin(), by_pair_.end(), 0u);
  const auto pair_of = [&](std::uint32_t rank) {
    return std::pair(merges_[rank].left, merges_[rank].right);
  };
  std::ranges::sort(by_pair_, {},
                    [&](std::uint32_t rank) { return std::pair(pair_of(rank), rank); });
  of_left_.assign(tokens_.size() + 1, 0);
  for (std::size_t i = 0; i < by_pair_.size(); ++i) {
    if (i > 0 && pair_of(by_pair_[i]) == pair_of(by_pair_[i - 1]))
      fail("the merges " + std::to_string(by_pair_[i - 1] + 1) + " and " +
           std::to_string(by_pair_[i] + 1) + " are the same, of " +
           pair_in_quotes(parts.merges[by_pair_[i]]));
    ++of_left_[static_cast<std::size_t>(merges_[by_pair_[i]].left) + 1];
    rights_.push_back(merges_[by_pair_[i]].right);
  }
  std::partial_sum(of_left_.begin(), of_left_.end(), of_left_.begin());
}

Bpe::Bpe(BpeParts parts, const Fail& fail)
    : before_(std::move(parts.before)),
      after_(std::move(parts.after)),
      ignores_merges_(parts.ignores_merges) {
  cuts_.split = parts.split;
  cuts_.normalizes = parts.normalizes;
  cuts_.adds_space = parts.adds_space;
  Ids ids;
  list(parts, fail, ids);
  add(parts, fail, ids);
  join(parts, fail, ids);
  for (const auto* around : {&before_, &after_}) {
    for (const std::int32_t id : *around) {
      if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size() ||
          tokens_[static_cast<std::size_t>(id)].length == 0)
        fail("its template has the id " + std::to_string(id) + ", which no token has");
    }
  }
  if (!parts.may_miss_bytes && std::ranges::count(of_byte_, -1) > 0)
    fail("it has an unk_token for bytes without tokens, which is not supported");
  if (ignores_merges_) {
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].is_spelled)
        wholes_.emplace(bytes(tokens_[id]), static_cast<std::int32_t>(id));
    }
  }
}

std::string Bpe::spelling(const Token& token) const {
  return token.is_spelled ? spelled(bytes(token)) : std::string(bytes(token));
}

}  // namespace ein::text
