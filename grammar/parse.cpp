#include <ein/grammar/parse.hpp>

#include <iterator>

#include <tao/pegtl.hpp>

#include <ein/grammar/table.hpp>
#include "reflect.hpp"

namespace ein::grammar {
namespace {

template <class List, class Array>
constexpr bool are_equal(const List& list, const Array& array) {
  if (list.size() != std::size(array)) return false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!(list[i] == array[i])) return false;
  }
  return true;
}

constexpr bool is_of_the_rules() {
  Reflection rules;
  const bool begins = rules.add<rules::pattern>() == table::pattern &&
                      rules.add<rules::shape_spec>() == table::shape_spec;
  rules.add_beginnings();
  return begins && are_equal(rules.nodes, table::nodes) && are_equal(rules.parts, table::parts) &&
         are_equal(rules.ranges, table::ranges) && are_equal(rules.kinds, table::kinds);
}
static_assert(is_of_the_rules(), "table.hpp is old: run scripts/make-grammar-table");

struct Stop {};  // the mistake is in the Reading

template <class Rule>
struct action : tao::pegtl::nothing<Rule> {};

template <class Rule>
requires(event_of<Rule> != Event::none) struct action<Rule> {
  template <class Input>
  static void apply(const Input& in, Reading& reading) {
    const auto begin = static_cast<std::uint32_t>(in.begin() - reading.text.data());
    on(event_of<Rule>, reading, {begin, begin + static_cast<std::uint32_t>(in.size())});
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
