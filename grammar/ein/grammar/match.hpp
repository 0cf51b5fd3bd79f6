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
  constexpr explicit Matcher(Reading& reading) : reading_(reading) {}

  /// Whether the rule matches at the current place; if so, moves past it and applies its event. One
  /// call for each level of rules: compilers bound the depth of calls.
  constexpr bool match(std::uint16_t rule) {
    const Node& node = table::nodes[rule];
    const std::uint32_t begin = at_;
    bool found = false;
    switch (node.construct) {
      case Construct::sor:
        for (std::uint16_t i = node.first; i < node.last && !found && !reading_.mistake; ++i)
          found = match(table::parts[i]);
        break;
      case Construct::eof:
        found = at_ == reading_.text.size();
        break;
      case Construct::string:
        found = take_string(node);
        break;
      case Construct::byte:
        found = at_ < reading_.text.size() &&
                take(node, {static_cast<unsigned char>(reading_.text[at_]), 1});
        break;
      case Construct::code_point:
        found = at_ < reading_.text.size() && take(node, decode_utf8(reading_.text, at_));
        break;
      default:  // all parts, one after the other: once, or as often as they match
        const bool repeats = node.construct == Construct::star || node.construct == Construct::plus;
        for (bool goes_on = true; goes_on;) {
          const std::uint32_t from = at_;
          std::uint16_t i = node.first;
          while (i < node.last && match(table::parts[i])) ++i;
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
  constexpr bool take_string(const Node& node) {
    const std::uint32_t length = node.last - node.first;
    if (reading_.text.size() - at_ < length) return false;
    for (std::uint32_t i = 0; i < length; ++i) {
      if (static_cast<unsigned char>(reading_.text[at_ + i]) != table::ranges[node.first + i].low)
        return false;
    }
    at_ += length;
    return true;
  }

  constexpr bool take(const Node& node, CodePoint c) {
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
