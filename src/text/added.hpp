// Added tokens in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ein::text {

constexpr std::size_t longest_added_token =
    1024;  // bytes: a text of them is looked through in proportion to it

/// A set of tokens, found leftmost first, of those that begin at one place the longest.
class AddedTokens {
 public:
  /// At the end of a text: where it ends, and no token.
  struct Found {
    std::size_t begin, end;
    std::int32_t id;  // -1: there is none before `begin`, where one may begin if the text goes on
  };

  /// The content is not empty.
  void add(std::string_view content, std::int32_t id);
  bool empty() const { return next_.empty() && ids_.size() <= 1; }
  Found find(std::string_view text, std::size_t from, bool is_last) const;

 private:
  using Node = std::uint32_t;  // 0: the root, to which nothing leads
  Node after(Node node, char byte) const;

  std::array<Node, 256> first_{};
  std::unordered_map<std::uint64_t, Node> next_;  // by node << 8 | byte
  std::vector<std::int32_t> ids_{-1};             // of a token that ends at a node
  std::vector<bool> goes_on_{false};
};

}  // namespace ein::text
