// The constexpr matcher: walks the PEGTL rule types of rules.hpp without PEGTL's input classes,
// which are not constexpr.
#pragma once

#include <ein/grammar/events.hpp>

namespace ein::grammar {

namespace detail {

namespace peg = tao::pegtl::internal;

/// `Reading` is what the rules' events fill: a `text`, a `mistake`, and overloads of on(Rule,
/// Reading&, SourceSpan) and explain_failure(const Reading&, place).
template <class Reading>
class Matcher {
 public:
  constexpr explicit Matcher(Reading& reading) : reading_(reading) {}

  /// Whether Rule matches at the current place; if so, moves past it and applies its event.
  template <class Rule>
  constexpr bool match() {
    const std::uint32_t begin = at_;
    if (!walk(static_cast<typename Rule::rule_t*>(nullptr)) || reading_.mistake) {
      at_ = begin;
      return false;
    }
    if constexpr (HasEvent<Rule, Reading>) {
      on(Rule{}, reading_, {begin, at_});
      return !reading_.mistake;
    }
    return true;
  }

 private:
  // One overload per PEGTL construct that the grammar uses.
  template <class... Rules>
  constexpr bool walk(peg::seq<Rules...>*) {
    return (match<Rules>() && ...);
  }
  template <class... Rules>
  constexpr bool walk(peg::sor<Rules...>*) {
    return ((!reading_.mistake && match<Rules>()) || ...);
  }
  template <class Rule>
  constexpr bool walk(peg::star<Rule>*) {
    while (match<Rule>()) {
    }
    return true;
  }
  template <class Rule>
  constexpr bool walk(peg::plus<Rule>*) {
    if (!match<Rule>()) return false;
    while (match<Rule>()) {
    }
    return true;
  }
  template <class Rule>
  constexpr bool walk(peg::opt<Rule>*) {
    match<Rule>();
    return true;
  }
  template <class Rule>
  constexpr bool walk(peg::at<Rule>*) {
    return looks_like<Rule>();
  }
  template <class Rule>
  constexpr bool walk(peg::not_at<Rule>*) {
    return !looks_like<Rule>();
  }
  template <class Rule>
  constexpr bool walk(peg::must<Rule>*) {
    if (match<Rule>()) return true;
    if (!reading_.mistake) reading_.mistake = explain_failure(reading_, at_);
    return false;
  }
  template <class Condition, class... Rules>
  constexpr bool walk(peg::if_must<false, Condition, Rules...>*) {
    return match<Condition>() && match<peg::must<Rules...>>();
  }
  constexpr bool walk(peg::eof*) { return at_ == reading_.text.size(); }
  template <char... Cs>
  constexpr bool walk(peg::string<Cs...>*) {
    constexpr char wanted[] = {Cs...};
    if (reading_.text.substr(at_, sizeof...(Cs)) != std::string_view(wanted, sizeof...(Cs)))
      return false;
    at_ += sizeof...(Cs);
    return true;
  }
  template <peg::result_on_found R, class Peek, typename Peek::data_t... Cs>
  constexpr bool walk(peg::one<R, Peek, Cs...>* rule) {
    return step<Peek>(rule);
  }
  template <peg::result_on_found R, class Peek, typename Peek::data_t Lo, typename Peek::data_t Hi>
  constexpr bool walk(peg::range<R, Peek, Lo, Hi>* rule) {
    return step<Peek>(rule);
  }
  template <class Peek, typename Peek::data_t... Cs>
  constexpr bool walk(peg::ranges<Peek, Cs...>* rule) {
    return step<Peek>(rule);
  }

  // A rule for one character knows by itself which it accepts.
  template <class Peek, class Rule>
  constexpr bool step(Rule*) {
    if (at_ == reading_.text.size()) return false;
    CodePoint c{static_cast<unsigned char>(reading_.text[at_]), 1};
    if constexpr (std::is_same_v<Peek, peg::peek_utf8>) c = decode_utf8(reading_.text, at_);
    if (c.length == 0 || !Rule::test(static_cast<typename Peek::data_t>(c.value))) return false;
    at_ += c.length;
    return true;
  }

  template <class Rule>
  constexpr bool looks_like() {
    const std::uint32_t begin = at_;
    const bool found = match<Rule>();
    at_ = begin;
    return found;
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
    detail::Matcher(reading).template match<rules::pattern>();
  }
  return reading;
}

}  // namespace ein::grammar
