#include <ein/grammar/parse.hpp>

#include <tao/pegtl.hpp>

namespace ein::grammar {
namespace {

struct Stop {};  // the mistake is in the Reading

template <class Rule>
struct action : tao::pegtl::nothing<Rule> {};

template <class Rule>
requires HasEvent<Rule, Reading>
struct action<Rule> {
  template <class Input>
  static void apply(const Input& in, Reading& reading) {
    const auto begin = static_cast<std::uint32_t>(in.begin() - reading.text.data());
    on(Rule{}, reading, {begin, begin + static_cast<std::uint32_t>(in.size())});
    if (reading.mistake) throw Stop{};
  }
};

template <class Rule>
struct control : tao::pegtl::normal<Rule> {
  template <class Input>
  [[noreturn]] static void raise(const Input& in, Reading& reading) {
    reading.mistake =
        explain_failure(reading, static_cast<std::uint32_t>(in.current() - reading.text.data()));
    throw Stop{};
  }
};

}  // namespace

Reading parse_pattern(std::string_view text) {
  Reading reading{.text = text};
  if (text.size() > max_pattern_bytes) {
    reading.complain(Complaint::pattern_is_too_long, {0, 0});
    return reading;
  }
  tao::pegtl::memory_input<tao::pegtl::tracking_mode::lazy> in(text.data(), text.size(), "pattern");
  try {
    tao::pegtl::parse<rules::pattern, action, control>(in, reading);
  } catch (const Stop&) {
  }
  return reading;
}

}  // namespace ein::grammar
