#include "text/added.hpp"

namespace ein::text {

AddedTokens::Node AddedTokens::after(Node node, char byte) const {
  const auto value = static_cast<unsigned char>(byte);
  if (node == 0) return first_[value];
  if (!goes_on_[node]) return 0;
  const auto found = next_.find(std::uint64_t{node} << 8 | value);
  return found == next_.end() ? 0 : found->second;
}

void AddedTokens::add(std::string_view content, std::int32_t id) {
  Node node = 0;
  for (const char byte : content) {
    Node next = after(node, byte);
    if (next == 0) {
      next = static_cast<Node>(ids_.size());
      ids_.push_back(-1);
      goes_on_.push_back(false);
      goes_on_[node] = true;
      const auto value = static_cast<unsigned char>(byte);
      if (node == 0)
        first_[value] = next;
      else
        next_[std::uint64_t{node} << 8 | value] = next;
    }
    node = next;
  }
  ids_[node] = id;
}

AddedTokens::Found AddedTokens::find(std::string_view text, std::size_t from, bool is_last) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    Node node = first_[static_cast<unsigned char>(text[begin])];
    Found found{begin, begin, -1};
    for (std::size_t at = begin + 1; node != 0; ++at) {
      if (ids_[node] >= 0) found = {begin, at, ids_[node]};
      if (at < text.size()) {
        node = after(node, text[at]);
      } else if (!is_last && goes_on_[node]) {
        return {begin, begin, -1};
      } else {
        break;
      }
    }
    if (found.id >= 0) return found;
  }
  return {text.size(), text.size(), -1};
}

}  // namespace ein::text
