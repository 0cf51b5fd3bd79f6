// Numbers in braces that come by name: `{stride*y + ky - pad}` with "stride"_n = 2, "pad"_n = 1.
// Constexpr: while compiling it is known which names are numbers, and of some their values.
#pragma once

#include <ein/grammar/events.hpp>

namespace ein::grammar {

/// A number given with the call; it is open where only the call knows its value.
struct GivenNumber {
  std::string_view name;
  std::int64_t value = 1;
  bool is_open = false;
};

/// Puts the numbers into the braces of what was read from `text`, so that no term has a number by
/// its name; the first mistake, or none.
constexpr Mistake put_numbers(PatternBuffer& buffer, std::string_view text,
                              std::span<const GivenNumber> numbers) {
  List<char> is_used(numbers.size(), 0);
  const auto find = [&](SourceSpan span) {
    const std::string_view name = text.substr(span.begin, span.end - span.begin);
    std::size_t i = 0;
    while (i < numbers.size() && numbers[i].name != name) ++i;
    if (i < numbers.size()) is_used[i] = 1;
    return i;
  };
  std::uint32_t brace_end = 0;
  for (std::uint32_t i = 0; i < buffer.terms.size(); ++i) {
    Term& term = buffer.terms[i];
    if (term.kind == TermKind::brace) brace_end = term.next;
    if (term.kind != TermKind::name) continue;
    if (term.coefficient_name.end > 0) {
      const std::size_t n = find(term.coefficient_name);
      if (n == numbers.size()) return {Complaint::number_is_missing, term.coefficient_name, {}, 0};
      const std::int64_t value = numbers[n].value;
      if (value == 0) return {Complaint::number_is_zero, term.coefficient_name, {}, 0};
      if (__builtin_mul_overflow(term.coefficient, value, &term.coefficient) ||
          term.coefficient > max_number_in_braces || term.coefficient < -max_number_in_braces)
        return {Complaint::number_is_too_large, term.coefficient_name, {}, 0};
      term.coefficient_name = {};
      term.is_open |= numbers[n].is_open;
    }
    const std::size_t n = find(term.span);
    if (n == numbers.size()) continue;
    if (i >= brace_end) return {Complaint::number_is_an_axis, term.span, {}, 0};
    std::int64_t value = 0;
    const bool overflows = __builtin_mul_overflow(term.coefficient, numbers[n].value, &value);
    if (overflows || value > max_number_in_braces || value < -max_number_in_braces)
      return {Complaint::number_is_too_large, term.span, {}, 0};
    term.kind = TermKind::constant;
    term.value = value < 0 ? -value : value;
    term.coefficient = value < 0 ? -1 : 1;
    term.is_open |= numbers[n].is_open;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (numbers[i].name == numbers[j].name)
        return {Complaint::number_is_given_twice, {}, {}, static_cast<std::int64_t>(i)};
    }
    if (!is_used[i])
      return {Complaint::number_is_not_of_the_pattern, {}, {}, static_cast<std::int64_t>(i)};
  }
  return {};
}

}  // namespace ein::grammar
