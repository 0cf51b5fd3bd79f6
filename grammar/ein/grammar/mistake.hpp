// Mistake: what is wrong with a pattern, as data that both compile time and run time can hold.
#pragma once

#include <cstdint>

#include <ein/grammar/pattern.hpp>

namespace ein::grammar {

/// Every way in which a pattern can be wrong whatever the shapes are.
enum class Complaint : std::uint8_t {
  none,
  // The text.
  pattern_is_too_long,
  unexpected_character,
  text_is_not_utf8,
  axis_name_begins_with_a_digit,
  axis_name_begins_or_ends_with_underscore,
  ellipsis_is_not_three_dots,
  words_touch,
  number_is_zero,
  number_is_too_large,
  parenthesis_is_not_closed,
  parenthesis_closes_nothing,
  groups_are_nested_too_deeply,
  arrow_is_malformed,
  arrow_is_repeated,
  comma_after_the_arrow,
  // The form that an operation wants.
  arrow_is_missing,
  arrow_is_not_wanted,
  number_of_operands_differs,
  unnamed_axis_is_not_allowed,
  packed_axes_are_not_allowed,
  packed_axes_are_missing,
  packed_axes_are_repeated,
  group_is_not_allowed,
  number_is_not_allowed,
  ellipsis_is_not_allowed,
  // The axes.
  ellipsis_is_repeated,
  ellipsis_is_inside_a_group_of_an_input,
  ellipsis_of_the_output_is_in_no_input,
  ellipsis_of_the_input_is_lost,
  axis_is_repeated,
  axis_of_the_output_is_in_no_input,
  axis_of_the_input_is_lost,
  anonymous_axis_of_the_input_is_lost,
  anonymous_axis_of_the_output_is_in_no_input,
  // The axis sizes given beside the pattern.
  axis_size_is_not_of_the_pattern,
  axis_size_is_given_twice,
  axis_size_is_missing,
  group_has_more_than_one_unknown_size,
};

/// A complaint and where it applies. `span` is the place at fault, `other` a second one (the first
/// occurrence of a repeated axis, say) or empty. `argument` is the index of an axis size argument, or a
/// count, where the complaint is about one.
struct Mistake {
  Complaint complaint = Complaint::none;
  SourceSpan span;
  SourceSpan other;
  std::int64_t argument = 0;

  constexpr explicit operator bool() const { return complaint != Complaint::none; }
};

}  // namespace ein::grammar
