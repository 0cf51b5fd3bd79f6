// The constexpr matcher: walks the rules of the grammar as data.
#pragma once

#include <ein/grammar/events.hpp>
#include <ein/grammar/table.hpp>

namespace ein::grammar {

namespace detail {

/// `Reading` is what the rules' events fill: a `text`, a `mistake`, and overloads of on(Event,
/// Reading&, SourceSpan) and explain_failure(const Reading&, place).
template <class Reading>
class Matcher {
 public:
  constexpr explicit Matcher(Reading& reading)
      : reading_(reading),
        text_(reading.text.data()),
        end_(static_cast<std::uint32_t>(reading.text.size())) {}

  /// Whether the rule matches at the current place; if so, moves past it and applies its event. One
  /// call for each level of rules: compilers bound the depth of calls.
  constexpr bool match(std::uint16_t rule) {
    const Node& node = table::nodes[rule];
    const std::uint32_t begin = at_;
    bool found = false;
    switch (node.construct) {
      case Construct::sor:
        for (std::uint16_t i = node.first; i < node.last && !found && !reading_.mistake; ++i)
          found = begins_here(table::parts[i]) && match(table::parts[i]);
        break;
      case Construct::eof:
        found = at_ == end_;
        break;
      case Construct::string:
        found = take_string(node);
        break;
      case Construct::byte:
      case Construct::code_point:
        found = take(node);
        break;
      default:  // all parts, one after the other: once, or as often as they match
        const bool repeats = node.construct == Construct::star || node.construct == Construct::plus;
        for (bool goes_on = true; goes_on;) {
          const std::uint32_t from = at_;
          std::uint16_t i = node.first;
          while (i < node.last && begins_here(table::parts[i]) && match(table::parts[i])) ++i;
          const bool all = i == node.last;
          found |= all;
          goes_on = all && repeats;
          // Where a must fails is where the mistake is.
          if (!all && node.construct == Construct::must && !reading_.mistake)
            reading_.mistake = explain_failure(reading_, at_);
          if (!all) at_ = from;
        }
        if (node.construct == Construct::star || node.construct == Construct::opt) found = true;
        if (node.construct == Construct::not_at) found = !found;
        if (node.construct == Construct::at || node.construct == Construct::not_at) at_ = begin;
    }
    if (!found || reading_.mistake) {
      at_ = begin;
      return false;
    }
    if (node.event == Event::none) return true;
    on(node.event, reading_, {begin, at_});
    return !reading_.mistake;
  }

 private:
  /// Whether the rule can take what stands here. It spares most calls of match(), which are what a
  /// compiler takes long for.
  constexpr bool begins_here(std::uint16_t rule) const {
    const std::uint32_t byte =
        at_ == end_ ? end_of_text : std::uint32_t{static_cast<unsigned char>(text_[at_])};
    const std::uint32_t place = byte < other_character || at_ == end_ ? byte : other_character;
    return (table::nodes[rule].begins >> table::kinds[place] & 1) != 0;
  }

  constexpr bool take_string(const Node& node) {
    const std::uint32_t length = node.last - node.first;
    if (end_ - at_ < length) return false;
    for (std::uint32_t i = 0; i < length; ++i) {
      if (static_cast<unsigned char>(text_[at_ + i]) != table::ranges[node.first + i].low)
        return false;
    }
    at_ += length;
    return true;
  }

  constexpr bool take(const Node& node) {
    if (at_ == end_) return false;
    CodePoint c{static_cast<unsigned char>(text_[at_]), 1};
    if (c.value >= 0x80 && node.construct == Construct::code_point)
      c = decode_utf8(reading_.text, at_);
    if (c.length == 0) return false;
    for (std::uint16_t i = node.first; i < node.last; ++i) {
      // Those of code points are in order.
      if (c.value < table::ranges[i].low && node.construct == Construct::code_point) return false;
      if (c.value < table::ranges[i].low || c.value > table::ranges[i].high) continue;
      at_ += c.length;
      return true;
    }
    return false;
  }

  Reading& reading_;
  const char* text_;
  std::uint32_t end_;
  std::uint32_t at_ = 0;
};

}  // namespace detail

/// Reads `text` with the constexpr matcher. The result holds the pattern or the first mistake.
constexpr Reading match_pattern(std::string_view text) {
  Reading reading{.text = text};
  if (text.size() > max_pattern_bytes) {
    reading.complain(Complaint::pattern_is_too_long, {0, 0});
  } else {
    detail::Matcher(reading).match(table::pattern);
  }
  return reading;
}

}  // namespace ein::grammar
