// The PEGTL rules as data. Not for programs: they have table.hpp.
#pragma once

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
  template <class... Rules>
  constexpr Node node_of(tao::pegtl::internal::sor<Rules...>*) {
    return with_parts<Rules...>(Construct::sor);
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
