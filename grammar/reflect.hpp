// The PEGTL rules as data. Not for programs: they have table.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/grammar/node.hpp>
#include "rules.hpp"

namespace ein::grammar {

/// Rules that were added, and all that they are made of: each once.
class Reflection {
 public:
  std::vector<Node> nodes;
  std::vector<std::uint16_t> parts;
  std::vector<CharacterRange> ranges;
  std::vector<std::uint8_t> kinds;

  /// When all rules were added: what each may begin with.
  constexpr void add_beginnings() {
    std::vector<Characters> beginnings;
    for (std::uint16_t rule = 0; rule < nodes.size(); ++rule)
      beginnings.push_back(may_be_empty(rule) ? Characters::all() : beginning(rule));
    // Characters that the same rules begin with are of one kind.
    std::vector<std::uint32_t> firsts;
    for (std::uint32_t c = 0; c <= end_of_text; ++c) {
      const auto begin_alike = [&](std::uint32_t other) {
        return std::all_of(beginnings.begin(), beginnings.end(),
                           [&](const Characters& set) { return set.has(c) == set.has(other); });
      };
      const auto first = std::find_if(firsts.begin(), firsts.end(), begin_alike);
      kinds.push_back(static_cast<std::uint8_t>(first - firsts.begin()));
      if (first == firsts.end()) firsts.push_back(c);
    }
    for (std::size_t rule = 0; rule < nodes.size(); ++rule) {
      for (std::size_t k = 0; k < firsts.size(); ++k) {
        if (beginnings[rule].has(firsts[k])) nodes[rule].begins |= std::uint32_t{1} << k;
      }
    }
  }

  /// The rule's place among the nodes.
  template <class Rule>
  constexpr std::uint16_t add() {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i] == identity<Rule>) return static_cast<std::uint16_t>(i);
    }
    const std::size_t at = nodes.size();
    nodes.push_back({});
    rules_.push_back(identity<Rule>);
    Node node = node_of(static_cast<typename Rule::rule_t*>(nullptr));
    node.event = event_of<Rule>;
    nodes[at] = node;
    return static_cast<std::uint16_t>(at);
  }

 private:
  // FNV-1a of the rule's name. Not an address: under UBSan, GCC compares none at compile time.
  template <class Rule>
  static constexpr std::uint64_t hash_of_name() {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : std::string_view(__PRETTY_FUNCTION__)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
  }
  template <class Rule>
  static constexpr std::uint64_t identity = hash_of_name<Rule>();

  /// A set of what the list of kinds has places for.
  struct Characters {
    std::array<std::uint64_t, 3> words{};
    static constexpr Characters all() { return {{~0ull, ~0ull, ~0ull}}; }
    constexpr void add(std::uint32_t c) { words[c / 64] |= 1ull << c % 64; }
    constexpr bool has(std::uint32_t c) const { return (words[c / 64] >> c % 64 & 1) != 0; }
    constexpr void add(const Characters& more) {
      for (std::size_t i = 0; i < words.size(); ++i) words[i] |= more.words[i];
    }
  };
  static constexpr bool is_character(const Node& node) {
    return node.construct == Construct::byte || node.construct == Construct::code_point;
  }
  /// Whether a rule can match no text, or says where a mistake is.
  constexpr bool may_be_empty(std::uint16_t rule) const {
    const Node& node = nodes[rule];
    const auto is_so = [&](std::uint16_t part) { return may_be_empty(part); };
    const auto first = parts.begin() + node.first, last = parts.begin() + node.last;
    switch (node.construct) {
      case Construct::sor:
        return std::any_of(first, last, is_so);
      case Construct::seq:
      case Construct::plus:
        return std::all_of(first, last, is_so);
      case Construct::eof:
      case Construct::string:
      case Construct::byte:
      case Construct::code_point:
        return false;
      default:
        return true;
    }
  }
  /// What text of a rule that is not empty can begin with.
  constexpr Characters beginning(std::uint16_t rule) const {
    const Node& node = nodes[rule];
    Characters set;
    if (node.construct == Construct::eof) {
      set.add(end_of_text);
    } else if (is_character(node) || node.construct == Construct::string) {
      const std::uint32_t last = node.construct == Construct::string ? node.first + 1u : node.last;
      for (std::uint32_t i = node.first; i < last; ++i) {
        const CharacterRange& range = ranges[i];
        for (std::uint32_t c = range.low; c <= range.high && c < other_character; ++c) set.add(c);
        if (range.high >= other_character) set.add(other_character);
      }
    } else {
      for (std::uint32_t i = node.first; i < node.last; ++i) {
        const bool is_open = may_be_empty(parts[i]);
        set.add(is_open ? Characters::all() : beginning(parts[i]));
        if (!is_open && node.construct != Construct::sor) break;
      }
    }
    return set;
  }

  template <class... Rules>
  constexpr Node with_parts(Construct construct) {
    const std::uint16_t list[] = {add<Rules>()...};
    const std::size_t first = parts.size();
    for (const std::uint16_t part : list) parts.push_back(part);
    return {construct, Event::none, static_cast<std::uint16_t>(first),
            static_cast<std::uint16_t>(parts.size())};
  }
  constexpr Node with_ranges(Construct construct, std::initializer_list<CharacterRange> list) {
    const std::size_t first = ranges.size();
    for (const CharacterRange& range : list) ranges.push_back(range);
    return {construct, Event::none, static_cast<std::uint16_t>(first),
            static_cast<std::uint16_t>(ranges.size())};
  }

  using PeekUtf8 = tao::pegtl::internal::peek_utf8;
  template <class Peek>
  static constexpr Construct one_character() {
    return std::is_same_v<Peek, PeekUtf8> ? Construct::code_point : Construct::byte;
  }
  template <class Data>
  static constexpr std::uint32_t code(Data c) {
    return static_cast<std::uint32_t>(static_cast<std::make_unsigned_t<Data>>(c));
  }
  static constexpr std::uint32_t code(char32_t c) { return c; }

  // One overload per PEGTL construct that the grammar uses.
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::seq<Rules...>*) {
    return with_parts<Rules...>(Construct::seq);
  }
  /// Of characters alone it is one of them all.
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::sor<Rules...>*) {
    const Node sor = with_parts<Rules...>(Construct::sor);
    std::vector<CharacterRange> merged;
    for (std::uint32_t i = sor.first; i < sor.last; ++i) {
      const Node& part = nodes[parts[i]];
      if (!is_character(part) || part.event != Event::none) return sor;
      merged.insert(merged.end(), ranges.begin() + part.first, ranges.begin() + part.last);
    }
    std::sort(merged.begin(), merged.end(),
              [](const CharacterRange& a, const CharacterRange& b) { return a.low < b.low; });
    const std::size_t first = ranges.size();
    ranges.insert(ranges.end(), merged.begin(), merged.end());
    return {Construct::code_point, Event::none, static_cast<std::uint16_t>(first),
            static_cast<std::uint16_t>(ranges.size())};
  }
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::star<Rules...>*) {
    return with_parts<Rules...>(Construct::star);
  }
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::plus<Rules...>*) {
    return with_parts<Rules...>(Construct::plus);
  }
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::opt<Rules...>*) {
    return with_parts<Rules...>(Construct::opt);
  }
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::at<Rules...>*) {
    return with_parts<Rules...>(Construct::at);
  }
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::not_at<Rules...>*) {
    return with_parts<Rules...>(Construct::not_at);
  }
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::must<Rules...>*) {
    return with_parts<Rules...>(Construct::must);
  }
  template <class Condition, class... Rules>
  constexpr Node node_of(tao::pegtl::internal::if_must<false, Condition, Rules...>*) {
    return with_parts<Condition, tao::pegtl::internal::must<Rules...>>(Construct::seq);
  }
  constexpr Node node_of(tao::pegtl::internal::eof*) { return {Construct::eof, Event::none, 0, 0}; }
  template <char... Cs>
  constexpr Node node_of(tao::pegtl::internal::string<Cs...>*) {
    return with_ranges(Construct::string, {{code(Cs), code(Cs)}...});
  }
  template <class Peek, typename Peek::data_t... Cs>
  constexpr Node node_of(
      tao::pegtl::internal::one<tao::pegtl::internal::result_on_found::success, Peek, Cs...>*) {
    return with_ranges(one_character<Peek>(), {{code(Cs), code(Cs)}...});
  }
  template <class Peek, typename Peek::data_t Low, typename Peek::data_t High>
  constexpr Node node_of(tao::pegtl::internal::range<tao::pegtl::internal::result_on_found::success,
                                                     Peek, Low, High>*) {
    return with_ranges(one_character<Peek>(), {{code(Low), code(High)}});
  }
  template <class Peek, typename Peek::data_t... Cs>
  constexpr Node node_of(tao::pegtl::internal::ranges<Peek, Cs...>*) {
    static_assert(sizeof...(Cs) % 2 == 0);
    const std::uint32_t ends[] = {code(Cs)...};
    const std::size_t first = ranges.size();
    for (std::size_t i = 0; i < sizeof...(Cs); i += 2) ranges.push_back({ends[i], ends[i + 1]});
    return {one_character<Peek>(), Event::none, static_cast<std::uint16_t>(first),
            static_cast<std::uint16_t>(ranges.size())};
  }

  std::vector<std::uint64_t> rules_;
};

}  // namespace ein::grammar
